//! The decision: nobody is missed, no notification is lost.

use super::{fails, limiter, outcomes_unfenced};
use crate::{ArenaHandle, GlobalMemoryLimiter, Reporter};
use loom::thread;

/// What is left over the budget once everything asked for is spilled.
fn uncovered(limiter: &GlobalMemoryLimiter) -> usize {
    let snapshot = limiter.snapshot();
    (snapshot.held_bytes - snapshot.in_flight_bytes).saturating_sub(limiter.budget_bytes().expect("a budget"))
}

fn writer(limiter: &GlobalMemoryLimiter, name: &str, bytes: usize) -> (Reporter, ArenaHandle) {
    let reporter = limiter.reporter(name);
    let mut arena = reporter.arena("arena");
    arena.set_bytes(&reporter, bytes);
    (reporter, arena)
}

/// Two writers publish; together they cross the line. Whoever crosses has to find both in its walk.
fn crosser_walks() -> u64 {
    let limiter = limiter(7, 4);
    let (first, mut first_arena) = writer(&limiter, "first", 0);
    let second = limiter.reporter("second");
    let thread = thread::spawn(move || {
        first_arena.set_bytes(&first, 4);
        (first, first_arena)
    });
    second.charge(4);
    let (_first, first_arena) = thread.join().expect("no panic");
    assert_eq!(limiter.published_bytes(), 8);
    assert!(first_arena.spill_requested(), "8 of 7 are held and nobody was asked");
    second.release(4);
    limiter.stats().decisions
}

#[test]
fn loom_who_crosses_the_line_finds_every_published_byte() {
    let seen = outcomes_unfenced(crosser_walks);
    assert!(seen.len() > 1 && !seen.contains(&0), "{seen:?}");
}

#[test]
fn loom_mutant_a_crosser_without_any_ordering() {
    fails("crosser_unordered", crosser_walks);
}

/// Two notifications at once, above the budget already: the second must not be lost while the first is decided.
fn notification_during_a_decision() -> (bool, bool, bool) {
    let limiter = limiter(10, 1);
    let (_a, arena_a) = writer(&limiter, "a", 8);
    let (b, mut arena_b) = writer(&limiter, "b", 0);
    let (c, mut arena_c) = writer(&limiter, "c", 0);
    let thread = thread::spawn(move || {
        arena_b.set_bytes(&b, 7);
        (b, arena_b)
    });
    arena_c.set_bytes(&c, 6);
    let (_b, arena_b) = thread.join().expect("no panic");
    assert_eq!(limiter.held_bytes(), 21);
    assert_eq!(uncovered(&limiter), 0, "a notification was lost");
    (arena_a.spill_requested(), arena_b.spill_requested(), arena_c.spill_requested())
}

#[test]
fn loom_a_notification_during_a_decision() {
    let seen = outcomes_unfenced(notification_during_a_decision);
    // 21 of 10: a and b, or a and c, depending on who was seen first; never all three.
    assert!(seen.contains(&(true, true, false)), "{seen:?}");
    assert!(!seen.contains(&(true, true, true)), "{seen:?}");
}

#[test]
fn loom_mutant_pending_is_stored_and_not_compared() {
    fails("pending_stored", notification_during_a_decision);
}

/// One writer grows within its quantum while the other takes the sum over the line: either the grower sees the line
/// crossed, or the decider sees the arena grown.
fn growth_against_crossing() -> bool {
    let limiter = limiter(10, 8);
    let (a, mut arena_a) = writer(&limiter, "a", 0);
    let b = limiter.reporter("b");
    let thread = thread::spawn(move || {
        arena_a.set_bytes(&a, 5); // held back
        (a, arena_a)
    });
    b.charge(11); // published: over the budget, and nothing of it can be spilled
    let (_a, arena_a) = thread.join().expect("no panic");
    assert!(arena_a.spill_requested(), "5 could be freed, 6 are over, and nobody was asked");
    b.release(11);
    limiter.stats().decisions > 1
}

#[test]
fn loom_growth_against_crossing() {
    let seen = outcomes_unfenced(growth_against_crossing);
    assert_eq!(seen, [false, true].into(), "one of the two decides, or both");
}

#[test]
fn loom_mutant_a_notifier_that_does_not_fence() {
    fails("notify_without_fence", growth_against_crossing);
}

/// A spill that covered much is over, and the line falls, while another writer grows to between the two lines.
fn growth_against_a_line_that_falls() -> bool {
    let limiter = limiter(10, 1);
    let (a, mut arena_a) = writer(&limiter, "a", 12); // asked: the line is 22
    let (b, mut arena_b) = writer(&limiter, "b", 0);
    let thread = thread::spawn(move || {
        arena_b.set_bytes(&b, 11);
        (b, arena_b)
    });
    arena_a.begin_spill(&a).expect("it was asked").finish(0);
    let before = limiter.stats().requests;
    let (_b, arena_b) = thread.join().expect("no panic");
    assert!(arena_b.spill_requested(), "11 of 10 are held by b alone, and it was not asked");
    before == limiter.stats().requests
}

#[test]
fn loom_growth_against_a_line_that_falls() {
    assert_eq!(outcomes_unfenced(growth_against_a_line_that_falls), [false, true].into());
}

#[test]
fn loom_mutant_a_decider_that_does_not_look_again() {
    fails("line_without_second_look", growth_against_a_line_that_falls);
}

/// The budget falls, and nothing is in flight, while a writer grows to between the two budgets.
fn growth_against_a_budget_that_falls() -> bool {
    let limiter = limiter(20, 1);
    let (writer, mut arena) = writer(&limiter, "writer", 0);
    let thread = thread::spawn(move || {
        arena.set_bytes(&writer, 11);
        (writer, arena)
    });
    limiter.set_budget_bytes(10).expect("valid");
    let early = limiter.stats().requests == 1;
    let (_writer, arena) = thread.join().expect("no panic");
    assert!(arena.spill_requested(), "11 of 10 are held, and nobody was asked");
    early
}

#[test]
fn loom_growth_against_a_budget_that_falls() {
    assert_eq!(outcomes_unfenced(growth_against_a_budget_that_falls), [false, true].into());
}

#[test]
fn loom_mutant_a_decider_that_does_not_look_again_after_the_budget_fell() {
    fails("line_without_second_look", growth_against_a_budget_that_falls);
}
