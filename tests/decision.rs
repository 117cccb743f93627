//! Who is asked to spill, and who is not. B12: idle writers dilute nobody's share. B13: what is in flight covers, and is
//! not asked twice. B14: neither one too few nor all. B15: many medium arenas add up. B68: the budget is the total. R1: the
//! largest reclaimable arena first, nothing below the floor, nothing for registering alone, exactly at the budget is not
//! over, a pending request covers, and who has just spilled is left alone.
mod common;

use common::{fixed, spill_if_asked};
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, LimiterBuilder, MIB, PressureSource, Reporter};
use std::time::Duration;

struct Writer {
    arena: ArenaHandle,
    reporter: Reporter,
}

impl Writer {
    fn new(limiter: &GlobalMemoryLimiter, name: &str) -> Self {
        let reporter = limiter.reporter(name);
        Writer { arena: reporter.arena("postings"), reporter }
    }
    fn set(&mut self, bytes: usize) {
        self.arena.set_bytes(&self.reporter, bytes);
    }
    fn asked(&self) -> bool {
        self.arena.spill_requested()
    }
    fn spill(&mut self) -> Option<usize> {
        spill_if_asked(&mut self.arena, &self.reporter)
    }
}

fn built(builder: LimiterBuilder) -> GlobalMemoryLimiter {
    builder.build().expect("a valid configuration")
}

/// All arenas grown before there is a budget, so that one decision sees them together.
fn grown(limiter: &GlobalMemoryLimiter, sizes: impl IntoIterator<Item = usize>) -> Vec<Writer> {
    sizes
        .into_iter()
        .enumerate()
        .map(|(n, bytes)| {
            let mut writer = Writer::new(limiter, &format!("writer {n}"));
            writer.set(bytes);
            writer
        })
        .collect()
}

fn asked(writers: &[Writer]) -> Vec<usize> {
    (0..writers.len()).filter(|&n| writers[n].asked()).collect()
}

/// B12.
#[test]
fn idle_writers_do_not_dilute_the_share_of_an_active_one() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let idle = grown(&limiter, [0; 128]);
    let mut active = Writer::new(&limiter, "active");
    for mib in 1..=100 {
        active.set(mib * MIB);
        assert!(!active.asked(), "at {mib} MiB");
    }
    assert_eq!(limiter.stats().decisions, 0, "exactly at the budget is not over it");
    active.set(101 * MIB);
    assert!(active.asked());
    assert_eq!(asked(&idle), []);
    let last = limiter.snapshot().last_decision.expect("it asked");
    assert_eq!((last.overage_bytes, last.source, last.requests), (MIB, PressureSource::Budget, 1));
    assert_eq!((last.exact_bytes, last.budget_bytes, last.shortfall_bytes), (101 * MIB, Some(100 * MIB), 0));
    assert_eq!(last.victims, [("active/postings".to_owned(), 101 * MIB)]);
}

/// B13.
#[test]
fn a_spill_that_runs_covers_and_a_failed_one_makes_room_for_the_next_arena() {
    let limiter = built(fixed().budget_bytes(100 * MIB).spill_backoff(Duration::from_millis(100)));
    let mut b = Writer::new(&limiter, "B");
    let mut c = Writer::new(&limiter, "C");
    let mut d = Writer::new(&limiter, "D");
    b.set(15 * MIB);
    c.set(14 * MIB);
    d.set(MIB);
    let mut a = Writer::new(&limiter, "A");
    a.set(80 * MIB);
    assert!(a.asked());
    let spill = a.arena.begin_spill(&a.reporter).expect("asked for");
    assert!(spill.is_forced());
    for _ in 0..100 {
        limiter.poll();
    }
    assert_eq!((limiter.stats().requests, b.asked(), c.asked(), d.asked()), (1, false, false, false));
    assert_eq!(limiter.snapshot().in_flight_bytes, 80 * MIB);

    drop(spill); // it failed
    assert_eq!((limiter.stats().failed_spills, limiter.stats().requests), (1, 2));
    assert_eq!((a.asked(), b.asked(), c.asked(), d.asked()), (false, true, false, false));
    assert_eq!((limiter.snapshot().in_flight_bytes, limiter.held_bytes()), (15 * MIB, 110 * MIB));
    assert_eq!(b.spill(), Some(15 * MIB));
    c.set(24 * MIB);
    assert_eq!((a.asked(), c.asked()), (false, true), "A is left alone still");
    assert_eq!(c.spill(), Some(24 * MIB));
    std::thread::sleep(Duration::from_millis(110));
    c.set(21 * MIB);
    for _ in 0..100 {
        limiter.poll();
    }
    assert_eq!((a.asked(), b.asked(), c.asked(), d.asked()), (true, false, false, false));
    assert_eq!(limiter.stats().requests, 4, "A was asked exactly once more");
    assert_eq!(a.spill(), Some(80 * MIB));
    assert_eq!((limiter.stats().forced_spills, limiter.stats().failed_spills), (3, 1));
}

/// B14, ties.
#[test]
fn of_300_equal_arenas_exactly_as_many_as_needed_are_asked_and_the_same_ones_each_time() {
    for _ in 0..3 {
        let limiter = built(fixed().unlimited());
        let writers = grown(&limiter, [MIB; 300]);
        limiter.set_budget_bytes(256 * MIB).expect("valid");
        assert_eq!(asked(&writers), (0..44).collect::<Vec<_>>(), "the oldest of those alike");
        assert_eq!(limiter.stats().decisions, 2, "one look, and one more because it tightened");
    }
}

/// B14, sizes 1..=24 MiB.
#[test]
fn of_24_arenas_of_300_mib_the_two_largest_are_enough() {
    let limiter = built(fixed().unlimited());
    let writers = grown(&limiter, (1..=24).map(|mib| mib * MIB));
    limiter.set_budget_bytes(256 * MIB).expect("valid");
    assert_eq!(asked(&writers), [22, 23], "24 + 23 = 47 covers 44");
    assert_eq!(limiter.snapshot().last_decision.expect("it asked").requests, 2);
}

/// B15.
#[test]
fn medium_arenas_below_their_own_trigger_add_up_and_one_is_asked() {
    let limiter = built(fixed().budget_bytes(661 * MIB).writer_cap_bytes(64 * MIB));
    let mut writers = grown(&limiter, [24 * MIB; 27]);
    let mut last = Writer::new(&limiter, "last");
    last.set(24 * MIB);
    writers.push(last);
    assert_eq!(limiter.snapshot().last_decision.expect("it asked").overage_bytes, 11 * MIB);
    let victims = asked(&writers);
    assert_eq!(victims, [0]);
    assert!(writers.iter().all(|writer| !writer.reporter.over_cap()));
    assert_eq!(writers[0].spill(), Some(24 * MIB), "without waiting for its own 64 MiB");
    for writer in &mut writers[1..13] {
        writer.set(25 * MIB - 1);
        writer.set(24 * MIB);
        assert_eq!(writer.spill(), None, "the others go on");
    }
}

/// B68.
#[test]
fn the_budget_is_the_total_and_not_a_share_of_each_writer() {
    let limiter = built(fixed().budget_bytes(1_024 * MIB));
    let mut writers = grown(&limiter, [300 * MIB; 3]);
    assert_eq!(asked(&writers), []);
    writers.extend(grown(&limiter, [300 * MIB]));
    assert_eq!(limiter.snapshot().last_decision.expect("it asked").overage_bytes, 176 * MIB);
    assert_eq!(asked(&writers).len(), 1);
    let text = limiter.effective().to_string();
    for line in
        ["budget       1 GiB in all (option)", "writer cap   none (default)", "quantum      1 MiB a reporter (option)"]
    {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains("lag bound    3.9 MiB in all"), "{text}");
    drop(writers);

    let mut alone = Writer::new(&limiter, "alone");
    alone.set(1_000 * MIB);
    assert!(!alone.asked(), "one writer may use it all");
}

/// R1.
#[test]
fn new_terms_inside_one_block_never_reach_the_limiter_while_the_total_moves() {
    let limiter = built(fixed().budget_bytes(64 * MIB));
    let mut writer = Writer::new(&limiter, "logs/message");
    writer.set(32 * 1_024);
    let before = limiter.stats();
    for term in 1..=10_000 {
        writer.reporter.charge(24); // the vocabulary
        writer.set(32 * 1_024); // still the same block
        assert_eq!(writer.reporter.held_bytes(), 32 * 1_024 + term * 24);
        assert_eq!(limiter.held_bytes(), writer.reporter.held_bytes());
    }
    assert_eq!(limiter.stats(), before);
    writer.set(64 * 1_024);
    assert_eq!(limiter.stats().notifications, before.notifications + 1);
    writer.reporter.release(240_000);
}

/// R1: the victim is the largest arena, not the largest writer.
#[test]
fn the_largest_reclaimable_arena_goes_first_and_not_the_largest_total() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let mut vocabulary = Writer::new(&limiter, "large vocabulary");
    vocabulary.reporter.charge(70 * MIB);
    vocabulary.set(10 * MIB);
    let mut postings = Writer::new(&limiter, "large postings");
    postings.set(21 * MIB);
    assert_eq!((vocabulary.asked(), postings.asked()), (false, true));
    vocabulary.reporter.release(70 * MIB);
}

/// R1.
#[test]
fn registering_alone_asks_nobody() {
    let limiter = built(fixed().budget_bytes(10 * MIB).spill_backoff(Duration::ZERO));
    let work = limiter.reporter("merge");
    work.charge(30 * MIB);
    let writers = grown(&limiter, [0; 50]);
    limiter.poll();
    assert_eq!((asked(&writers), limiter.stats().requests), (vec![], 0));
    work.release(30 * MIB);
}

/// R1.
#[test]
fn nothing_below_the_floor_is_asked_and_a_request_below_it_spills_nothing() {
    let limiter = built(fixed().budget_bytes(10 * MIB).floor_bytes(4 * MIB));
    let mut small = Writer::new(&limiter, "small");
    let mut large = Writer::new(&limiter, "large");
    small.set(4 * MIB - 1);
    large.set(7 * MIB);
    assert_eq!((small.asked(), large.asked()), (false, true));
    // Its blocks go back to a pool before it polls: the request stays, and an empty run helps nobody.
    large.set(MIB);
    assert!(large.asked());
    assert_eq!((large.spill(), limiter.stats().forced_spills), (None, 0));
    assert!(large.asked());
    large.set(4 * MIB);
    assert_eq!(large.spill(), Some(4 * MIB));
}

/// R1. What is in flight covers only what is still there: an arena that shrank by other means covers less from then on.
#[test]
fn a_request_whose_arena_has_shrunk_covers_no_more_than_is_left() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let mut a = Writer::new(&limiter, "A");
    let mut b = Writer::new(&limiter, "B");
    a.set(101 * MIB);
    assert!(a.asked());
    a.set(MIB);
    b.set(99 * MIB);
    assert!(!b.asked(), "exactly at the budget");
    b.set(120 * MIB);
    assert!(b.asked(), "20 over, and A's request can free 1 at most");
}

/// R1. The owner that honours a request spills all it has by then, so that is what the request covers.
#[test]
fn a_pending_request_covers_what_its_arena_has_grown_to_since() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let mut a = Writer::new(&limiter, "A");
    let mut b = Writer::new(&limiter, "B");
    a.set(101 * MIB);
    a.set(150 * MIB);
    b.set(60 * MIB);
    assert_eq!((a.asked(), b.asked()), (true, false), "A's spill frees 150, and 110 are over");
    a.set(300 * MIB);
    assert_eq!((b.asked(), limiter.stats().shortfall_episodes), (false, 0), "nothing is short");
    assert_eq!(limiter.snapshot().in_flight_bytes, 300 * MIB);
    assert_eq!(a.spill(), Some(300 * MIB));
    assert_eq!(limiter.stats().requests, 1);
}

/// R1.
#[test]
fn a_pending_request_covers_and_its_arena_is_not_asked_again() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let mut a = Writer::new(&limiter, "A");
    let mut b = Writer::new(&limiter, "B");
    a.set(60 * MIB);
    b.set(41 * MIB);
    assert_eq!((a.asked(), b.asked()), (true, false));
    b.set(50 * MIB);
    limiter.poll();
    assert_eq!((b.asked(), limiter.stats().requests), (false, 1), "60 in flight cover 10");
    b.set(100 * MIB);
    assert!(!b.asked(), "exactly covered");
    b.set(101 * MIB);
    assert!(b.asked());
}

/// R1.
#[test]
fn who_has_just_spilled_is_left_alone_until_it_has_grown_to_the_floor_again() {
    let limiter = built(fixed().budget_bytes(10 * MIB).floor_bytes(2 * MIB));
    let work = limiter.reporter("merge");
    let mut writer = Writer::new(&limiter, "writer");
    writer.set(5 * MIB);
    work.charge(12 * MIB);
    assert_eq!(writer.spill(), Some(5 * MIB));
    for step in 1..64 {
        writer.set(step * 32 * 1_024);
        assert!(!writer.asked(), "at {step} blocks");
    }
    writer.set(2 * MIB);
    assert!(writer.asked());
    assert_eq!(writer.arena.runs(), 1);
    work.release(12 * MIB);
}

/// An own spill ignores the floor, clears a request that is pending, and counts as what it is.
#[test]
fn an_own_spill_ignores_the_floor_and_answers_a_request_as_well() {
    let limiter = built(fixed().budget_bytes(10 * MIB).floor_bytes(2 * MIB));
    let mut writer = Writer::new(&limiter, "writer");
    assert!(writer.arena.begin_own_spill(&writer.reporter).is_none(), "an empty run helps nobody");
    writer.set(MIB);
    let spill = writer.arena.begin_own_spill(&writer.reporter).expect("not empty");
    assert!(!spill.is_forced());
    spill.finish(0);
    writer.set(11 * MIB);
    assert!(writer.asked());
    let spill = writer.arena.begin_own_spill(&writer.reporter).expect("not empty");
    assert!(spill.is_forced());
    assert_eq!(spill.bytes(), 11 * MIB);
    spill.finish(64 * 1_024);
    assert_eq!((writer.asked(), writer.arena.bytes(), limiter.held_bytes()), (false, 64 * 1_024, 64 * 1_024));
    assert_eq!((limiter.stats().own_spills, limiter.stats().forced_spills, writer.arena.runs()), (1, 1, 2));
}

/// An arena that goes while its request is pending frees its bytes, and its cover goes with it.
#[test]
fn an_arena_that_leaves_with_a_request_pending_covers_nothing_any_more() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let mut a = Writer::new(&limiter, "A");
    let mut b = Writer::new(&limiter, "B");
    b.set(41 * MIB);
    a.set(60 * MIB);
    assert!(a.asked());
    drop(a);
    assert_eq!((limiter.snapshot().in_flight_bytes, limiter.held_bytes()), (0, 41 * MIB));
    b.set(100 * MIB);
    assert!(!b.asked());
    b.set(101 * MIB);
    assert!(b.asked());
}

/// R1's rule as an option: only writers are measured against the share.
#[test]
fn with_writer_share_work_without_an_arena_is_not_measured() {
    let limiter = built(fixed().budget_bytes(100 * MIB).writer_share(true));
    let merge = limiter.reporter("merge");
    merge.charge(500 * MIB);
    let mut writer = Writer::new(&limiter, "writer");
    writer.set(100 * MIB);
    assert!(!writer.asked());
    assert_eq!(limiter.published_bytes(), 600 * MIB, "both show in the gauge");
    writer.set(101 * MIB);
    assert!(writer.asked());
    merge.release(500 * MIB);
}

#[test]
fn lowering_the_budget_asks_at_once_and_raising_it_asks_nobody() {
    let limiter = built(fixed().budget_bytes(100 * MIB));
    let mut writers = grown(&limiter, [50 * MIB, 40 * MIB]);
    limiter.set_budget_bytes(60 * MIB).expect("valid");
    assert_eq!((asked(&writers), limiter.available_bytes()), (vec![0], 0));
    assert_eq!(writers[0].spill(), Some(50 * MIB));
    assert_eq!(limiter.available_bytes(), 20 * MIB);
    limiter.set_budget_bytes(200 * MIB).expect("valid");
    writers[0].set(150 * MIB);
    assert_eq!(asked(&writers), []);
    limiter.set_unlimited();
    writers[0].set(1_000 * MIB);
    assert_eq!((asked(&writers), limiter.available_bytes()), (vec![], usize::MAX));
}
