//! Where exactly a change leaves its window, and what a decision does about releases that are held back: the edges that a
//! mutation of the cell or the decision would move.

mod common;

use common::fixed;
use plimsoll::{GlobalMemoryLimiter, KIB, MIB};

#[test]
fn an_owner_publishes_at_the_quantum_and_not_a_byte_before() {
    let limiter = fixed().unlimited().build().unwrap();
    let writer = limiter.reporter("writer");
    writer.charge(MIB - 1);
    assert_eq!(limiter.published_bytes(), 0);
    writer.charge(1);
    assert_eq!(limiter.published_bytes(), MIB);
    writer.charge(MIB);
    writer.release(MIB - 1);
    assert_eq!(limiter.published_bytes(), 2 * MIB);
    writer.release(1);
    assert_eq!(limiter.published_bytes(), MIB);
    writer.release(MIB);
}

#[test]
fn a_try_charge_publishes_where_a_charge_does() {
    let limiter = fixed().unlimited().build().unwrap();
    let writer = limiter.reporter("writer");
    writer.try_charge(MIB - 1).unwrap();
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (0, 0));
    writer.try_charge(1).unwrap();
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (MIB, 1));
    writer.release(MIB);
}

#[test]
fn a_shared_account_publishes_at_the_quantum_and_not_a_byte_before() {
    let limiter = fixed().unlimited().build().unwrap();
    let account = limiter.shared_reporter("account");
    account.charge(MIB - 1);
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (0, 0));
    account.charge(1);
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (MIB, 1));
    account.charge(MIB);
    account.release(MIB - 1);
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (2 * MIB, 2));
    account.release(1);
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (MIB, 3));
    account.try_charge(MIB - 1).unwrap();
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (MIB, 3));
    account.try_charge(1).unwrap();
    assert_eq!((limiter.published_bytes(), limiter.stats().publishes), (2 * MIB, 4));
    account.release(2 * MIB);
}

#[test]
fn a_cap_is_reached_exactly_and_passed_by_no_byte() {
    let limiter = fixed().unlimited().writer_cap_bytes(10 * KIB).build().unwrap();
    let (writer, account) = (limiter.reporter("writer"), limiter.shared_reporter("account"));
    for _ in 0..2 {
        writer.try_charge(10 * KIB).unwrap();
        account.try_charge(10 * KIB).unwrap();
        assert!(!writer.over_cap() && !account.over_cap());
        assert!(writer.try_charge(1).is_err() && account.try_charge(1).is_err());
        assert!(writer.try_charge(0).is_ok() && account.try_charge(0).is_ok());
        assert_eq!((writer.held_bytes(), account.held_bytes()), (10 * KIB, 10 * KIB));
        writer.charge(1);
        account.charge(1);
        assert!(writer.over_cap() && account.over_cap());
        assert!(writer.try_charge(0).is_err(), "above the cap nothing is granted, not even nothing");
        writer.release(10 * KIB + 1);
        account.release(10 * KIB + 1);
    }
    assert_eq!(limiter.reporter_with_cap("own", 7).cap_bytes(), Some(7));
    assert_eq!(fixed().unlimited().build().unwrap().reporter("none").cap_bytes(), None);
}

#[test]
fn the_largest_amount_is_half_of_usize_and_the_next_is_refused() {
    let limiter = fixed().unlimited().build().unwrap();
    let (writer, account) = (limiter.reporter("writer"), limiter.shared_reporter("account"));
    let most = usize::MAX / 2;
    writer.try_charge(most).unwrap();
    assert!(writer.try_charge(1).is_err() && writer.try_charge(usize::MAX).is_err());
    assert_eq!((writer.held_bytes(), limiter.published_bytes()), (most, most));
    writer.release(most);
    account.try_charge(most).unwrap();
    assert!(account.try_charge(1).is_err() && account.try_charge(usize::MAX).is_err());
    assert_eq!(account.held_bytes(), most);
    account.release(most);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
}

/// The lagged sum is over the budget and the exact one is not, because an idle writer holds a release back. The decision
/// calls it in, so that the next block of somebody else does not walk again.
#[test]
fn a_decision_calls_in_the_releases_that_idle_writers_hold_back() {
    let limiter = fixed().budget_bytes(10 * MIB).build().unwrap();
    if !limiter.effective().process_barrier {
        return;
    }
    let idle = limiter.reporter("idle");
    idle.charge(9 * MIB);
    idle.release(MIB - 1);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (8 * MIB + 1, 9 * MIB));
    let growing = limiter.reporter("growing");
    let mut arena = growing.arena("postings");
    arena.set_bytes(&growing, MIB + 512 * KIB);
    assert_eq!(limiter.stats().decisions, 1, "published 10.5 of 10");
    assert_eq!(limiter.published_bytes(), limiter.held_bytes(), "called in");
    assert!(!arena.spill_requested() && limiter.snapshot().shortfall.is_none());
    arena.set_bytes(&growing, 2 * MIB - 1);
    growing.flush();
    assert_eq!(limiter.stats().decisions, 1, "and the next block is quiet");
    idle.release(8 * MIB + 1);
}

/// While a spill that was asked for covers what is over, growth up to budget plus in flight decides nothing; the byte after
/// that does.
#[test]
fn what_is_in_flight_is_room_and_not_a_byte_more() {
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(100)
        .block_bytes(1)
        .floor_bytes(1)
        .quantum_bytes(0)
        .build()
        .unwrap();
    let (a, b, c) = (limiter.reporter("a"), limiter.reporter("b"), limiter.reporter("c"));
    let (mut arena_a, mut arena_b) = (a.arena("arena"), b.arena("arena"));
    arena_b.set_bytes(&b, 30);
    arena_a.set_bytes(&a, 71);
    assert!(arena_a.spill_requested() && !arena_b.spill_requested());
    let decisions = limiter.stats().decisions;
    c.charge(70); // 171 = 100 + 71
    assert_eq!(limiter.stats().decisions, decisions);
    assert!(!arena_b.spill_requested());
    c.charge(1);
    assert!(limiter.stats().decisions > decisions && arena_b.spill_requested());
    c.release(71);
}

/// A fixed quantum makes the lagged sum late. Somebody who does not want to wait for it polls: then the walk decides.
#[test]
fn a_poll_decides_by_the_walk_whatever_the_lagged_sum_says() {
    let limiter = fixed().budget_bytes(MIB).build().unwrap();
    let writers: Vec<_> = (0..2).map(|_| limiter.reporter("writer")).collect();
    let mut arenas: Vec<_> = writers.iter().map(|writer| writer.arena("postings")).collect();
    for (writer, arena) in writers.iter().zip(&mut arenas) {
        arena.set_bytes(writer, 700 * KIB);
    }
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (0, 1_400 * KIB));
    assert!(!arenas[0].spill_requested() && limiter.stats().decisions == 0);
    limiter.poll();
    assert!(arenas[0].spill_requested() && !arenas[1].spill_requested(), "700 of it cover the 376 that are over");
    assert_eq!(limiter.stats().decisions, 1);
}

#[test]
fn without_pressure_nobody_decides_when_a_spill_ends_or_an_arena_leaves() {
    let limiter = fixed().budget_bytes(10 * MIB).build().unwrap();
    let writer = limiter.reporter("writer");
    let mut arena = writer.arena("postings");
    arena.set_bytes(&writer, 9 * MIB);
    arena.begin_own_spill(&writer).expect("it is not empty").finish(MIB);
    drop(arena.begin_own_spill(&writer).expect("it is not empty"));
    drop(arena);
    let stats = limiter.stats();
    assert_eq!((stats.own_spills, stats.failed_spills, stats.decisions), (1, 1, 0));
}

/// During a shortfall all that can be asked is asked: blocks of arenas below the floor are no reason to look again, the
/// block that takes one to the floor is.
#[test]
fn during_a_shortfall_only_an_arena_that_can_be_asked_is_a_reason_to_decide() {
    let limiter = fixed().budget_bytes(10 * MIB).floor_bytes(4 * MIB).build().unwrap();
    let (persistent, writer) = (limiter.reporter("persistent"), limiter.reporter("writer"));
    let mut arena = writer.arena("postings");
    persistent.charge(20 * MIB);
    assert!(limiter.snapshot().shortfall.is_some());
    let decisions = limiter.stats().decisions;
    for mib in 1..4 {
        arena.set_bytes(&writer, mib * MIB);
        assert_eq!(limiter.stats().decisions, decisions, "at {mib} MiB of a floor of 4");
    }
    arena.set_bytes(&writer, 4 * MIB);
    assert!(limiter.stats().decisions > decisions && arena.spill_requested());
    let decisions = limiter.stats().decisions;
    arena.set_bytes(&writer, 5 * MIB);
    assert_eq!(limiter.stats().decisions, decisions, "it is asked already");
    persistent.release(20 * MIB);
    assert!(limiter.snapshot().shortfall.is_none(), "over as soon as nothing is over the budget");
    assert_eq!(limiter.stats().shortfall_episodes, 1);
}

#[test]
fn a_decision_names_the_first_32_victims_and_counts_the_rest() {
    let limiter = fixed().unlimited().build().unwrap();
    let writer = limiter.reporter("writer");
    let mut arenas: Vec<_> = (0..40).map(|number| writer.arena(&format!("arena {number}"))).collect();
    arenas.iter_mut().for_each(|arena| arena.set_bytes(&writer, MIB));
    limiter.set_budget_bytes(MIB).unwrap();
    let decision = limiter.snapshot().last_decision.expect("39 MiB are over");
    assert_eq!((decision.requests, decision.victims.len()), (39, 32));
    assert_eq!(decision.victims[0], ("writer/arena 0".to_owned(), MIB));
}

#[test]
fn a_shortfall_says_how_many_writers_would_fit() {
    let limiter = fixed().budget_bytes(10 * MIB).floor_bytes(2 * MIB).build().unwrap();
    let writer = limiter.reporter("writer");
    writer.charge(5 * MIB);
    let mut arenas = [writer.arena("a"), writer.arena("b"), writer.arena("c")];
    arenas.iter_mut().for_each(|arena| arena.set_bytes(&writer, 2 * MIB - KIB));
    limiter.poll();
    let shortfall = limiter.snapshot().shortfall.expect("11 MiB less 3 KiB of 10, and no arena at the floor");
    assert_eq!((shortfall.missing_bytes, shortfall.persistent_bytes), (MIB - 3 * KIB, 5 * MIB));
    assert_eq!((shortfall.writers, shortfall.floor_sum_bytes, shortfall.writers_that_fit), (3, 6 * MIB, 2));
    writer.release(5 * MIB);
}

#[test]
fn a_shared_release_of_an_absurd_amount_is_a_mistake_and_not_a_charge() {
    let limiter = fixed().unlimited().build().unwrap();
    let account = limiter.shared_reporter("account");
    account.charge(10);
    let released = std::panic::catch_unwind(|| account.release(usize::MAX));
    assert_eq!(released.is_err(), cfg!(debug_assertions), "debug builds assert");
    assert_eq!((account.held_bytes(), limiter.stats().accounting_errors), (0, 1));
}

/// Between the look and the request the list of arenas may change (here by the selector itself): the victim is asked, and
/// not who stands in its place.
#[test]
fn a_victim_that_has_moved_in_the_list_is_still_the_one_that_is_asked() {
    type Passing = std::sync::Mutex<Option<(plimsoll::ArenaHandle, plimsoll::Reporter)>>;
    #[derive(Debug, Default, Clone)]
    struct Drops(std::sync::Arc<Passing>);
    impl plimsoll::SpillSelector for Drops {
        fn name(&self) -> &'static str {
            "drops"
        }
        fn select(&self, arenas: &[plimsoll::ArenaView], floor: usize, need: usize, victims: &mut Vec<usize>) {
            drop(self.0.lock().unwrap().take());
            plimsoll::LargestFirst.select(arenas, floor, need, victims);
        }
    }
    let drops = Drops::default();
    let limiter = fixed().budget_bytes(8 * MIB).selector(drops.clone()).build().unwrap();
    let passing = limiter.reporter("passing");
    *drops.0.lock().unwrap() = Some((passing.arena("passing"), passing));
    let writer = limiter.reporter("writer");
    let (mut small, mut large) = (writer.arena("small"), writer.arena("large"));
    small.set_bytes(&writer, MIB);
    large.set_bytes(&writer, 8 * MIB);
    assert!(large.spill_requested() && !small.spill_requested());
}
