//! Ends. B56: a panic between charge and release leaves nothing behind. B59: a limiter that goes while bytes are held tells
//! it once, and later drops are harmless.
mod common;

use common::{count, events_of, fixed};
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Reporter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use tracing::Level;

const EACH: usize = 5 * MIB + 700 * KIB;

/// Eight writers, each with 5 MiB published in its arena and 700 KiB held back in scratch; the fourth panics.
fn eight_writers(limiter: &GlobalMemoryLimiter, panics_with: impl Fn(&Reporter, &mut ArenaHandle) + Sync) {
    let (third_is_gone, look) = (Barrier::new(8), Barrier::new(8));
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (third_is_gone, look, panics_with) = (&third_is_gone, &look, &panics_with);
            scope.spawn(move || {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    let reporter = limiter.reporter(&format!("writer {n}"));
                    let mut arena = reporter.arena("postings");
                    arena.set_bytes(&reporter, 5 * MIB);
                    let _scratch = reporter.reserve(700 * KIB);
                    if n == 3 {
                        panics_with(&reporter, &mut arena);
                    }
                    third_is_gone.wait();
                    look.wait();
                }));
                assert_eq!(caught.is_err(), n == 3);
                if n == 3 {
                    third_is_gone.wait();
                    assert_eq!((limiter.held_bytes(), 7 * EACH), (41_717_760, 41_717_760));
                    let snapshot = limiter.snapshot();
                    assert!(snapshot.writers.iter().all(|writer| writer.name != "writer 3"));
                    assert_eq!((snapshot.in_flight_bytes, limiter.live_arenas(), limiter.live_reporters()), (0, 7, 7));
                    assert!(limiter.published_bytes().abs_diff(41_717_760) <= limiter.lag_bound_bytes());
                    look.wait();
                }
            });
        }
    });
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
}

/// B56, inside add.
#[test]
fn a_writer_that_panics_in_the_middle_of_a_document_leaves_nothing_behind() {
    let limiter = fixed().budget_bytes(512 * MIB).build().expect("a valid configuration");
    eight_writers(&limiter, |reporter, arena| {
        arena.set_bytes(reporter, 6 * MIB);
        let _encoder = reporter.reserve(3 * MIB);
        panic!("the writer's own, inside add");
    });
    assert_eq!(limiter.stats().failed_spills, 0);
}

/// B56, inside its spill.
#[test]
fn a_writer_that_panics_in_its_spill_leaves_no_flag_and_nothing_in_flight() {
    let limiter = fixed().budget_bytes(512 * MIB).build().expect("a valid configuration");
    eight_writers(&limiter, |reporter, arena| {
        let _run_buffer = reporter.reserve(64 * KIB);
        let spill = arena.begin_own_spill(reporter).expect("not empty");
        assert_eq!(limiter.snapshot().in_flight_bytes, spill.bytes());
        panic!("the writer's own, inside its spill");
    });
    assert_eq!(limiter.stats().failed_spills, 1);
}

/// B56: what the writer that panicked was to free is asked of somebody else.
#[test]
fn what_a_panicking_writer_was_to_spill_is_covered_by_its_going() {
    let limiter = fixed().budget_bytes(100 * MIB).build().expect("a valid configuration");
    let other = limiter.reporter("other");
    let mut others = other.arena("postings");
    others.set_bytes(&other, 41 * MIB);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 60 * MIB);
        let _spill = arena.begin_spill(&reporter).expect("asked for");
        others.set_bytes(&other, 45 * MIB);
        panic!("the writer's own, inside its spill");
    }));
    assert!(caught.is_err());
    assert_eq!((limiter.held_bytes(), limiter.snapshot().in_flight_bytes), (45 * MIB, 45 * MIB));
    // The failed spill covered nothing from the moment it failed, and the arena itself went only later: so the other one
    // was asked in between. It is a request like any other, and honoured.
    assert!(others.spill_requested());
    assert_eq!(common::spill_if_asked(&mut others, &other), Some(45 * MIB));
}

/// B59.
#[test]
fn a_limiter_that_goes_while_bytes_are_held_tells_it_once_and_later_drops_are_harmless() {
    let events = events_of(|| {
        let limiter = fixed().unlimited().build().expect("a valid configuration");
        let clone = limiter.clone();
        let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
        let idle = limiter.reporter("idle");
        let held = (first.reserve(3 * MIB), second.reserve(512 * KIB));
        drop(limiter);
        let closed = clone.close();
        let still = closed.still_charged();
        assert_eq!((still.held_bytes, still.writers.len()), (3_670_016, 2));
        drop((first, held.0, idle));
        assert_eq!(closed.still_charged().held_bytes, 512 * KIB);
        let mut arena = second.arena("postings");
        arena.set_bytes(&second, 10 * MIB);
        arena.begin_own_spill(&second).expect("not empty").finish(0);
        drop((held.1, second, arena));
        assert_eq!((closed.still_charged().held_bytes, closed.still_charged().writers.len()), (0, 0));
    });
    assert_eq!(count(&events, Level::WARN, "limiter closed while 2 owners hold 3.5 MiB"), 1, "{events:?}");
    assert_eq!(count(&events, Level::WARN, "held_bytes=3670016"), 1);
    assert_eq!(count(&events, Level::WARN, ""), 1, "{events:?}");
}

/// B59, leaked on purpose.
#[test]
fn a_leaked_reporter_stays_visible_among_those_that_are_still_charged() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let (leaked, kept) = (limiter.reporter("leaked"), limiter.reporter("kept"));
    leaked.charge(512 * KIB);
    kept.charge(3 * MIB);
    std::mem::forget(leaked);
    kept.release(3 * MIB);
    drop(kept);
    let still = limiter.close().still_charged();
    assert_eq!((still.writers.len(), still.writers[0].name.as_str(), still.held_bytes), (1, "leaked", 512 * KIB));
}

#[test]
fn a_limiter_that_goes_with_nothing_held_says_nothing() {
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(64 * MIB).build().expect("a valid configuration");
        let reporter = limiter.reporter("writer");
        drop(limiter);
        reporter.charge(5 * MIB);
        reporter.release(5 * MIB);
    });
    assert_eq!(events, []);
}

/// Reporter, reservations and arenas may go in any order, on any thread.
#[test]
fn the_parts_of_a_writer_may_be_dropped_in_any_order() {
    for order in 0..6 {
        let limiter = fixed().unlimited().build().expect("a valid configuration");
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 3 * MIB);
        let scratch = reporter.reserve(700 * KIB);
        let mut parts: Vec<Box<dyn Send>> = vec![Box::new(reporter), Box::new(arena), Box::new(scratch)];
        let (first, second) = (order / 2, order % 2);
        drop(parts.remove(first));
        let part = parts.remove(second);
        std::thread::spawn(move || drop(part)).join().expect("no panic there");
        assert_eq!(limiter.live_reporters(), 1);
        let left = parts.len();
        drop(parts);
        assert_eq!((left, limiter.live_reporters(), limiter.live_arenas()), (1, 0, 0));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
        assert_eq!(limiter.stats().accounting_errors, 0);
    }
}

/// Single owner at a time, and not always the same thread.
#[test]
fn a_reporter_may_move_to_another_thread_with_what_it_has() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 900 * KIB);
    let (reporter, arena) = std::thread::spawn(move || {
        arena.set_bytes(&reporter, 1_900 * KIB);
        reporter.charge(5);
        (reporter, arena)
    })
    .join()
    .expect("no panic there");
    assert_eq!((reporter.held_bytes(), limiter.held_bytes()), (1_900 * KIB + 5, 1_900 * KIB + 5));
    reporter.release(5);
    drop(reporter);
    assert_eq!(limiter.published_bytes(), 1_900 * KIB);
    drop(arena);
    assert_eq!(limiter.published_bytes(), 0);
}
