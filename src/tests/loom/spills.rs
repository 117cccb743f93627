//! A request against everything that the owner may be doing.

use super::{assert_nothing_left, fails, limiter, outcomes_unfenced};
use crate::{ArenaHandle, GlobalMemoryLimiter, Reporter};
use loom::thread;

/// Two writers: a has 8 of 10, b will grow to 6.
fn two_writers() -> (GlobalMemoryLimiter, (Reporter, ArenaHandle), (Reporter, ArenaHandle)) {
    let limiter = limiter(10, 1);
    let a = limiter.reporter("a");
    let mut arena_a = a.arena("arena");
    arena_a.set_bytes(&a, 8);
    let b = limiter.reporter("b");
    let arena_b = b.arena("arena");
    (limiter, (a, arena_a), (b, arena_b))
}

/// a spills of its own accord, from begin to finish, while b's growth may ask it to.
fn request_against_begin_and_finish() -> (bool, bool) {
    let (limiter, (a, mut arena_a), (b, mut arena_b)) = two_writers();
    let thread = thread::spawn(move || {
        let spill = arena_a.begin_own_spill(&a).expect("it holds 8");
        let forced = spill.is_forced();
        spill.finish(0);
        (a, arena_a, forced)
    });
    arena_b.set_bytes(&b, 6);
    let (a, arena_a, forced) = thread.join().expect("no panic");
    assert!(!arena_b.spill_requested(), "b alone is within the budget, and was asked");
    assert!(!arena_a.spill_requested(), "an arena that is empty was asked");
    assert_eq!(limiter.snapshot().in_flight_bytes, 0);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (6, 6));
    drop((arena_a, a, arena_b, b));
    assert_nothing_left(&limiter);
    (forced, limiter.stats().requests > 0)
}

#[test]
fn loom_a_request_against_begin_and_finish() {
    assert_eq!(outcomes_unfenced(request_against_begin_and_finish), [(false, false), (true, true)].into());
}

#[test]
fn loom_mutant_without_generations() {
    fails("no_generation", request_against_begin_and_finish);
}

#[test]
fn loom_mutant_a_finish_that_is_not_released() {
    fails("finish_relaxed", request_against_begin_and_finish);
}

/// a spills all it has while somebody who has no arena takes the sum over the budget: a is the only one to ask.
fn finish_against_pressure_from_elsewhere() -> (bool, u64) {
    let (limiter, (a, mut arena_a), (b, _arena_b)) = two_writers();
    let thread = thread::spawn(move || {
        arena_a.begin_own_spill(&a).expect("it holds 8").finish(0);
        (a, arena_a)
    });
    b.charge(12);
    let (_a, arena_a) = thread.join().expect("no panic");
    assert!(!arena_a.spill_requested(), "an arena that is empty was asked");
    assert_eq!(limiter.snapshot().shortfall.map(|shortfall| shortfall.persistent_bytes), Some(12));
    b.release(12);
    (limiter.snapshot().shortfall.is_some(), limiter.stats().requests)
}

#[test]
fn loom_a_finish_against_pressure_from_elsewhere() {
    assert_eq!(outcomes_unfenced(finish_against_pressure_from_elsewhere), [(false, 0), (false, 1)].into());
}

#[test]
fn loom_mutant_arenas_are_read_before_words() {
    fails("arenas_before_words", finish_against_pressure_from_elsewhere);
}

/// a's spill fails while b grows: somebody is asked for what is over, at the end.
fn request_against_abort() -> (bool, bool) {
    let (limiter, (a, mut arena_a), (b, mut arena_b)) = two_writers();
    let thread = thread::spawn(move || {
        drop(arena_a.begin_own_spill(&a).expect("it holds 8"));
        (a, arena_a)
    });
    arena_b.set_bytes(&b, 6);
    let (_a, arena_a) = thread.join().expect("no panic");
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.held_bytes, 14);
    assert!(snapshot.held_bytes - snapshot.in_flight_bytes <= 10, "the failed spill still counts as covering");
    (arena_a.spill_requested(), arena_b.spill_requested())
}

#[test]
fn loom_a_request_against_abort() {
    let seen = outcomes_unfenced(request_against_abort);
    assert_eq!(seen, [(true, false)].into(), "the larger one, however the two meet");
}

#[test]
fn loom_mutant_a_failed_spill_that_tells_nobody() {
    fails("abort_silent", request_against_abort);
}

/// a leaves while b grows: b is within the budget then, and nobody is asked for what a had in flight.
fn request_against_leaving() -> bool {
    let (limiter, (a, arena_a), (b, mut arena_b)) = two_writers();
    let thread = thread::spawn(move || {
        drop(arena_a);
        drop(a);
    });
    arena_b.set_bytes(&b, 6);
    thread.join().expect("no panic");
    assert!(!arena_b.spill_requested(), "b alone is within the budget, and was asked");
    assert_eq!(limiter.snapshot().in_flight_bytes, 0);
    // And the line is where it belongs: b's next growth over the budget is noticed.
    arena_b.set_bytes(&b, 11);
    assert!(arena_b.spill_requested(), "what a had in flight still counts as covered");
    limiter.stats().requests > 1
}

#[test]
fn loom_a_request_against_leaving() {
    assert_eq!(outcomes_unfenced(request_against_leaving), [false, true].into());
}

#[test]
fn loom_mutant_leaving_tells_nobody() {
    fails("leave_silent", request_against_leaving);
}

/// a shrinks without a spill while b grows, and is asked with what it had: nobody counts on that.
fn request_against_shrinking() -> bool {
    let (limiter, (a, mut arena_a), (b, mut arena_b)) = two_writers();
    let thread = thread::spawn(move || {
        arena_a.set_bytes(&a, 0);
        (a, arena_a)
    });
    arena_b.set_bytes(&b, 6);
    let (_a, arena_a) = thread.join().expect("no panic");
    assert_eq!(limiter.snapshot().in_flight_bytes, 0, "b alone is within the budget, and was asked");
    arena_b.set_bytes(&b, 11);
    assert!(arena_b.spill_requested(), "what a had still counts as covered");
    arena_a.spill_requested()
}

#[test]
fn loom_a_request_against_shrinking() {
    assert_eq!(outcomes_unfenced(request_against_shrinking), [false, true].into());
}

#[test]
fn loom_mutant_who_is_asked_is_not_looked_at_again() {
    fails("asked_without_second_look", request_against_shrinking);
}
