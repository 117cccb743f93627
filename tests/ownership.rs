//! B07: memory that several share or hand on is charged once. B09: charged to one writer, freed through another. It asserts
//! in debug builds; in release builds it is counted, and both writers come to 0: never one at +x and the other at -x.
mod common;

use common::fixed;
use plimsoll::{GlobalMemoryLimiter, MIB, Reservation};
use std::sync::Arc;

fn limiter() -> GlobalMemoryLimiter {
    fixed().budget_bytes(64 * MIB).build().expect("a valid configuration")
}

static_assertions::assert_not_impl_any!(Reservation: Clone, Copy);
static_assertions::assert_not_impl_any!(plimsoll::ArenaHandle: Clone, Copy);

/// B07 (a).
#[test]
fn ten_slices_of_a_block_are_charged_once() {
    let limiter = limiter();
    let reporter = limiter.reporter("reader");
    let block = Arc::new(reporter.reserve(4 * MIB));
    let slices: Vec<_> = (0..10).map(|_| Arc::clone(&block)).collect();
    assert_eq!((limiter.held_bytes(), reporter.held_bytes()), (4 * MIB, 4 * MIB));
    drop(block);
    assert_eq!(limiter.held_bytes(), 4 * MIB);
    std::thread::spawn(move || drop(slices)).join().expect("no panic there");
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
}

/// B07 (b).
#[test]
fn a_block_that_is_handed_on_counts_once_at_every_instant() {
    let limiter = limiter();
    let (writer, spill) = (limiter.reporter("writer"), limiter.reporter("spill"));
    let cache = limiter.shared_reporter("page cache");
    let mut block = writer.reserve(4 * MIB);
    std::thread::scope(|scope| {
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let watch = scope.spawn({
            let (limiter, done) = (&limiter, Arc::clone(&done));
            move || {
                let mut seen = 0;
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    assert!(limiter.published_bytes() <= 4 * MIB, "the lagged sum never has them twice");
                    seen = seen.max(limiter.held_bytes());
                }
                seen
            }
        });
        for _ in 0..200 {
            block.transfer(&spill);
            assert_eq!((writer.held_bytes(), spill.held_bytes(), limiter.held_bytes()), (0, 4 * MIB, 4 * MIB));
            block.transfer(&cache);
            assert_eq!((spill.held_bytes(), cache.held_bytes(), limiter.held_bytes()), (0, 4 * MIB, 4 * MIB));
            block.transfer(&writer);
            assert_eq!((cache.held_bytes(), writer.held_bytes(), limiter.held_bytes()), (0, 4 * MIB, 4 * MIB));
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        assert!(watch.join().expect("the sum was never too large") <= 8 * MIB);
    });
    assert_eq!(block.writer(), "writer");
    drop(block);
    drop((writer, spill, cache));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
}

#[test]
fn reservations_of_two_writers_do_not_merge_but_stay_whole() {
    let limiter = limiter();
    let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
    let (mut of_a, of_b) = (a.reserve(10), b.reserve(20));
    let back = of_a.merge(of_b).expect_err("another writer's");
    assert_eq!((of_a.bytes(), back.bytes(), a.held_bytes(), b.held_bytes()), (10, 20, 10, 20));
    let mut back = back;
    back.transfer(&a);
    of_a.merge(back).expect("now it is this writer's");
    assert_eq!((of_a.bytes(), a.held_bytes(), b.held_bytes()), (30, 30, 0));
}

#[test]
fn a_reservation_can_go_to_a_writer_of_another_limiter() {
    let (one, two) = (limiter(), limiter());
    let (a, b) = (one.reporter("A"), two.reporter("B"));
    let mut block = a.reserve(3 * MIB);
    block.transfer(&b);
    assert_eq!((one.held_bytes(), two.held_bytes()), (0, 3 * MIB));
    drop(block);
    drop((a, b));
    assert_eq!((one.published_bytes(), two.published_bytes()), (0, 0));
    assert_eq!((one.stats().accounting_errors, two.stats().accounting_errors), (0, 0));
}

/// B09 as it is meant to be done: the block remembers its writer, wherever it is dropped.
#[test]
fn what_is_dropped_on_another_thread_goes_back_to_the_writer_that_charged_it() {
    let limiter = limiter();
    let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
    let block = a.reserve(5 * MIB / 2);
    let mut arena = a.arena("postings");
    arena.set_bytes(&a, 5 * MIB / 2);
    std::thread::scope(|scope| {
        scope.spawn(move || drop((block, arena)));
    });
    assert_eq!((a.held_bytes(), b.held_bytes(), limiter.held_bytes()), (0, 0, 0));
    drop((a, b));
    assert_eq!((limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0));
}

#[cfg(debug_assertions)]
mod debug {
    use super::*;

    #[test]
    #[should_panic(expected = "plimsoll: reservation of A was changed through B")]
    fn a_reservation_changed_through_another_reporter_asserts() {
        let limiter = limiter();
        let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
        let mut block = a.reserve(5 * MIB / 2);
        block.shrink(&b, 5 * MIB / 2);
    }

    #[test]
    #[should_panic(expected = "plimsoll: arena of A was changed through B")]
    fn an_arena_changed_through_another_reporter_asserts() {
        let limiter = limiter();
        let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
        let mut arena = a.arena("postings");
        arena.set_bytes(&a, 5 * MIB / 2);
        arena.set_bytes(&b, 0);
    }

    /// A caller that mixes up reporters while it unwinds must not turn its panic into an abort.
    #[test]
    fn a_mix_up_while_unwinding_is_counted_and_does_not_abort() {
        struct FreesThroughTheWrongOne<'a>(Option<Reservation>, &'a plimsoll::Reporter);
        impl Drop for FreesThroughTheWrongOne<'_> {
            fn drop(&mut self) {
                if let Some(block) = self.0.take() {
                    block.free_with(self.1);
                }
            }
        }
        let limiter = limiter();
        let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _mixed = FreesThroughTheWrongOne(Some(a.reserve(MIB)), &b);
            panic!("the writer's own");
        }));
        assert!(caught.is_err());
        assert_eq!((a.held_bytes(), b.held_bytes(), limiter.stats().accounting_errors), (0, 0, 1));
    }
}

#[cfg(not(debug_assertions))]
mod release {
    use super::*;

    #[test]
    fn an_arena_freed_through_another_reporter_leaves_both_at_zero_and_one_error() {
        let limiter = limiter();
        let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
        let mut arena = a.arena("postings");
        arena.set_bytes(&a, 5 * MIB / 2);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                arena.set_bytes(&b, 0);
                assert_eq!(b.held_bytes(), 0);
                drop(arena);
            });
        });
        assert_eq!((a.held_bytes(), limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0, 1));
        drop(a);
        assert_eq!((limiter.published_bytes(), limiter.stats().accounting_errors), (0, 1));
    }

    #[test]
    fn a_reservation_ended_through_another_reporter_leaves_both_at_zero_and_one_error() {
        let limiter = limiter();
        let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
        a.reserve(5 * MIB / 2).free_with(&b);
        assert_eq!((a.held_bytes(), b.held_bytes(), limiter.stats().accounting_errors), (0, 0, 1));
        drop((a, b));
        assert_eq!((limiter.published_bytes(), limiter.stats().accounting_errors), (0, 1));
    }

    /// The calls that are made several times a term do not look; the two writers are told of all the same.
    #[test]
    fn a_reservation_shrunk_through_another_reporter_is_never_hidden_in_a_sum_of_zero() {
        let limiter = limiter();
        let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
        let mut block = a.reserve(5 * MIB / 2);
        block.shrink(&b, 5 * MIB / 2);
        assert_eq!(b.held_bytes(), 0);
        assert_eq!(limiter.stats().accounting_errors, 1, "B went below zero");
        drop((block, a, b));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
        assert_eq!(limiter.stats().accounting_errors, 2, "A was left with it");
    }
}
