//! B01: releasing more than was charged, freeing twice. Debug builds assert and name the writer; release builds stop at 0,
//! count, name the writer and go on. The sum is never below 0 and never near `usize::MAX`.
mod common;

use common::fixed;
use plimsoll::{GlobalMemoryLimiter, MIB, Reporter};

fn three_mib() -> (GlobalMemoryLimiter, Reporter) {
    let limiter = fixed().budget_bytes(64 * MIB).build().expect("a valid configuration");
    let w1 = limiter.reporter("W1");
    w1.charge(3 * MIB);
    (limiter, w1)
}

#[cfg(debug_assertions)]
mod debug {
    use super::*;

    #[test]
    #[should_panic(expected = "plimsoll: W1 released 2097152 bytes more than it held")]
    fn a_release_of_more_than_is_held_asserts_and_names_the_writer() {
        let (_limiter, w1) = three_mib();
        w1.release(5 * MIB);
    }

    #[test]
    #[should_panic(expected = "plimsoll: cache released 2097152 bytes more than it held")]
    fn a_shared_release_of_more_than_is_held_asserts_and_names_the_account() {
        let (limiter, _w1) = three_mib();
        let cache = limiter.shared_reporter("cache");
        cache.charge(3 * MIB);
        cache.release(5 * MIB);
    }

    #[test]
    #[should_panic(expected = "plimsoll: W1 released 7 bytes more than it held")]
    fn a_reservation_shrunk_below_zero_asserts() {
        let (_limiter, w1) = three_mib();
        let mut scratch = w1.reserve(5);
        scratch.shrink(&w1, 12);
    }

    #[test]
    #[should_panic(expected = "beyond what a counter can hold")]
    fn a_charge_beyond_the_counter_asserts() {
        let (_limiter, w1) = three_mib();
        w1.charge(usize::MAX);
    }

    #[test]
    #[should_panic(expected = "plimsoll: cache charged 18446744073709551615 bytes, beyond what a counter can hold")]
    fn a_shared_charge_beyond_the_counter_asserts() {
        let (limiter, _w1) = three_mib();
        let cache = limiter.shared_reporter("cache");
        cache.charge(5);
        cache.charge(usize::MAX);
    }

    /// After the assertion was caught: the total stands at 0, nothing is left over for others.
    #[test]
    fn the_assertion_leaves_right_totals_behind() {
        let (limiter, w1) = three_mib();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| w1.release(5 * MIB)));
        assert!(caught.is_err());
        let w2 = limiter.reporter("W2");
        w2.charge(10 * MIB);
        assert_eq!((w1.held_bytes(), limiter.held_bytes(), limiter.published_bytes()), (0, 10 * MIB, 10 * MIB));
        let stats = limiter.stats();
        assert_eq!((stats.accounting_errors, stats.accounting_error_bytes), (1, 2 * MIB as u64));
        w2.release(10 * MIB);
        drop((w1, w2));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    }
}

#[cfg(not(debug_assertions))]
mod release {
    use super::*;
    use common::{count, events_of};
    use tracing::Level;

    #[test]
    fn a_release_of_more_than_is_held_is_clamped_counted_and_named_and_others_go_on() {
        let events = events_of(|| {
            let (limiter, w1) = three_mib();
            w1.release(5 * MIB);
            let stats = limiter.stats();
            assert_eq!((stats.accounting_errors, stats.accounting_error_bytes), (1, 2 * MIB as u64));
            assert_eq!((w1.held_bytes(), limiter.held_bytes(), limiter.published_bytes()), (0, 0, 0));
            let w2 = limiter.reporter("W2");
            assert_eq!(w2.try_charge(10 * MIB), Ok(()));
            w2.flush();
            assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (10 * MIB, 10 * MIB));
            assert_eq!(limiter.snapshot().writers.len(), 2);
            w2.release(10 * MIB);
            drop((w1, w2));
            assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
            assert_eq!(limiter.stats().accounting_errors, 1);
        });
        assert_eq!(count(&events, Level::WARN, "W1 released 2 MiB more than it held: clamped at 0"), 1, "{events:?}");
    }

    #[test]
    fn a_shared_release_of_more_than_is_held_is_clamped_and_counted() {
        let (limiter, w1) = three_mib();
        let cache = limiter.shared_reporter("cache");
        cache.charge(3 * MIB);
        cache.release(5 * MIB);
        assert_eq!((cache.held_bytes(), limiter.held_bytes()), (0, 3 * MIB));
        assert_eq!(limiter.stats().accounting_error_bytes, 2 * MIB as u64);
        cache.charge(MIB);
        assert_eq!(cache.held_bytes(), MIB);
        cache.release(MIB);
        w1.release(3 * MIB);
        drop((cache, w1));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
    }

    #[test]
    fn a_reservation_shrunk_below_zero_gives_back_what_it_has_and_counts_the_rest() {
        let (limiter, w1) = three_mib();
        let mut scratch = w1.reserve(5);
        scratch.shrink(&w1, 12);
        assert_eq!((scratch.bytes(), w1.held_bytes()), (0, 3 * MIB));
        assert_eq!((limiter.stats().accounting_errors, limiter.stats().accounting_error_bytes), (1, 7));
        w1.release(3 * MIB);
    }

    /// The total is below 0 when an attempt folds what came back; the window's end was taken for a very large one then, and
    /// everything was granted.
    #[test]
    fn bytes_given_back_twice_do_not_open_the_hard_limit() {
        let limiter = fixed().unlimited().hard_limit_bytes(100).quantum_bytes(0).build().expect("valid");
        let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
        second.charge(90);
        let scratch = first.reserve(10);
        first.release(10);
        std::thread::spawn(move || drop(scratch)).join().expect("no panic there");
        second.charge(10);
        assert!(first.try_charge(5).is_err(), "100 of 100 are held");
        assert_eq!(limiter.stats().accounting_error_bytes, 10, "found with the attempt");
        assert!(first.try_charge(50).is_err());
        second.release(50);
        first.try_charge(50).expect("there is room");
        first.release(50);
        second.release(50);
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.reserved_bytes()), (0, 0, 0));
        assert!(limiter.reconcile().is_none());
    }

    #[test]
    fn a_charge_beyond_the_counter_is_counted_and_not_recorded() {
        let (limiter, w1) = three_mib();
        w1.charge(usize::MAX);
        w1.charge(isize::MAX as usize);
        assert_eq!((w1.held_bytes(), limiter.stats().accounting_errors), (3 * MIB, 2));
        let cache = limiter.shared_reporter("cache");
        cache.charge(5);
        cache.charge(usize::MAX);
        cache.charge(isize::MAX as usize);
        assert_eq!((cache.held_bytes(), limiter.stats().accounting_errors), (5, 4));
        cache.release(5);
        w1.release(3 * MIB);
    }
}

#[test]
fn the_second_free_of_a_reservation_gives_back_nothing() {
    let (limiter, w1) = three_mib();
    let mut scratch = w1.reserve(2 * MIB);
    assert_eq!((scratch.free(), scratch.free(), scratch.bytes()), (2 * MIB, 0, 0));
    drop(scratch);
    assert_eq!((w1.held_bytes(), limiter.stats().accounting_errors), (3 * MIB, 0));
    w1.release(3 * MIB);
    drop(w1);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
}

/// Bytes that were dropped on another thread are still in the owner's word; releasing them again is found at the owner's
/// next slow path, and reads as 0 until then.
#[test]
fn releasing_what_another_thread_gave_back_never_reads_negative() {
    let (limiter, w1) = three_mib();
    let scratch = w1.reserve(8_192);
    std::thread::spawn(move || drop(scratch)).join().expect("no panic there");
    assert_eq!(w1.held_bytes(), 3 * MIB);
    w1.release(3 * MIB - 1_000);
    w1.release(1_000);
    assert_eq!((w1.held_bytes(), limiter.held_bytes()), (0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
}

#[test]
fn a_reporter_dropped_with_bytes_left_is_drained_and_told_and_never_asserts() {
    let events = common::events_of(|| {
        let (limiter, w1) = three_mib();
        w1.charge(17);
        drop(w1);
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
        assert_eq!((limiter.stats().accounting_errors, limiter.live_reporters()), (1, 0));
    });
    assert_eq!(common::count(&events, tracing::Level::WARN, "W1 was dropped with 3 MiB not released: drained"), 1);
}
