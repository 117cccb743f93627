//! Moving somebody else's window: the primitive under everything that does not wait for an owner.

use super::{assert_lag_bound, assert_nothing_left, fails, limiter, outcomes};
use crate::{GlobalMemoryLimiter, KIB, Reporter};
use loom::thread;

/// The quantum shrinks and idle windows are moved, while the owner charges and releases within its old window.
fn window_moved_while_the_owner_changes(charge: fn(&Reporter, usize)) -> (usize, usize) {
    let limiter = limiter(1_000, 8);
    let reporter = limiter.reporter("writer");
    let thread = thread::spawn(move || {
        charge(&reporter, 6);
        reporter.release(2);
        reporter
    });
    limiter.set_quantum_bytes(Some(2));
    let bound = limiter.lag_bound_bytes();
    let published = limiter.published_bytes();
    let reporter = thread.join().expect("no panic");
    assert_eq!(bound, 1);
    assert_lag_bound(&limiter);
    let after = limiter.published_bytes();
    reporter.release(4);
    drop(reporter);
    assert_nothing_left(&limiter);
    (published, after)
}

fn charge(reporter: &Reporter, bytes: usize) {
    reporter.charge(bytes);
}

fn try_charge(reporter: &Reporter, bytes: usize) {
    reporter.try_charge(bytes).expect("it has no cap");
}

#[test]
fn loom_a_window_moved_while_the_owner_changes() {
    // Before the changes, between them, after them; what comes later is published by the owner.
    let all = [(0, 4), (4, 4), (6, 4)].into();
    assert_eq!(outcomes(|| window_moved_while_the_owner_changes(charge)), all);
    assert_eq!(outcomes(|| window_moved_while_the_owner_changes(try_charge)), all);
}

#[test]
fn loom_mutant_no_barrier_before_the_owner_is_read() {
    fails("no_process_barrier", || window_moved_while_the_owner_changes(charge));
}

#[test]
fn loom_mutant_the_owner_checks_without_a_fence() {
    fails("no_light_fence", || window_moved_while_the_owner_changes(charge));
}

/// One `try_` charge alone, so that nothing after it mends what it missed.
fn window_moved_during_a_try_charge() -> usize {
    let limiter = limiter(1_000, 8);
    let reporter = limiter.reporter("writer");
    let thread = thread::spawn(move || {
        try_charge(&reporter, 6);
        reporter
    });
    limiter.set_quantum_bytes(Some(2));
    let published = limiter.published_bytes();
    let reporter = thread.join().expect("no panic");
    assert_lag_bound(&limiter);
    reporter.release(6);
    published
}

#[test]
fn loom_a_window_moved_during_a_try_charge() {
    assert_eq!(outcomes(window_moved_during_a_try_charge), [0, 6].into());
}

#[test]
fn loom_mutant_a_try_charge_that_looks_before_it_stores_only() {
    fails("try_checks_before_only", window_moved_during_a_try_charge);
}

/// A lag budget for one quantum of 16 KiB, two of 8 or four of 4.
fn shared_lag() -> GlobalMemoryLimiter {
    GlobalMemoryLimiter::builder()
        .budget_bytes(256 * KIB)
        .block_bytes(1)
        .floor_bytes(1)
        .build()
        .expect("the numbers are valid")
}

/// A second reporter comes while the first, which may hoard 16 KiB, changes within its window or publishes.
fn joiner_against_hoarder(change: usize) -> (usize, usize) {
    let limiter = shared_lag();
    let hoarder = limiter.reporter("hoarder");
    let thread = thread::spawn(move || {
        hoarder.charge(change);
        hoarder
    });
    let joiner = limiter.reporter("joiner");
    let bound = limiter.lag_bound_bytes();
    joiner.charge(8 * KIB - 1);
    let joiner_published = joiner.handle.0.published_bytes();
    let published = limiter.published_bytes();
    // Asserted when nobody else runs: a panic beside a running thread would end the process.
    let hoarder = thread.join().expect("no panic");
    assert!(bound <= 16 * KIB, "granted past the lag budget");
    assert_eq!(joiner_published, 0, "the joiner got no room");
    assert_lag_bound(&limiter);
    assert!(limiter.lag_bound_bytes() <= 16 * KIB, "granted past the lag budget");
    let after = limiter.published_bytes();
    joiner.release(8 * KIB - 1);
    hoarder.release(change);
    drop((joiner, hoarder));
    assert_nothing_left(&limiter);
    (published / KIB, after / KIB)
}

#[test]
fn loom_a_joiner_against_a_hoarder() {
    assert_eq!(outcomes(|| joiner_against_hoarder(12 * KIB)), [(0, 12), (12, 12)].into());
}

#[test]
fn loom_a_deal_against_a_publish() {
    // 15: the joiner publishes what of the charge was reserved before (one byte less than 16 KiB); the last byte fits into
    // the new window, or is published by its owner.
    assert_eq!(outcomes(|| joiner_against_hoarder(16 * KIB)), [(0, 16), (15, 15), (15, 16), (16, 16)].into());
}

#[test]
fn loom_mutant_a_joiner_that_does_not_move_the_others() {
    fails("join_without_moving", || joiner_against_hoarder(12 * KIB));
}

#[test]
fn loom_mutant_a_deal_without_the_barrier() {
    fails("no_process_barrier", || joiner_against_hoarder(12 * KIB));
}

#[test]
fn loom_mutant_room_that_is_never_taken_back() {
    fails("take_back_missing", || joiner_against_hoarder(12 * KIB));
}

/// Reporters leave and the seats fall, while another comes.
fn joiner_against_leaver() -> (usize, usize) {
    let limiter = shared_lag();
    let staying = limiter.reporter("staying");
    let leaving: Vec<_> = (0..2).map(|_| limiter.reporter("leaving")).collect();
    let thread = thread::spawn({
        let limiter = limiter.clone();
        move || {
            drop(leaving);
            limiter
        }
    });
    let joiners = [limiter.reporter("joiner"), limiter.reporter("joiner")];
    let bound = limiter.lag_bound_bytes();
    staying.charge(1);
    staying.flush();
    drop(thread.join().expect("no panic"));
    assert!(limiter.lag_bound_bytes() <= 16 * KIB, "granted past the lag budget");
    let after = limiter.lag_bound_bytes();
    staying.release(1);
    drop((staying, joiners));
    assert_nothing_left(&limiter);
    (bound / KIB, after / KIB)
}

#[test]
fn loom_a_joiner_against_a_leaver() {
    assert!(outcomes(joiner_against_leaver).len() > 1);
}
