//! Many arenas: between two walks decisions take the next in order. What they ask must still cover what is over, and not
//! more than that but for the last one asked and the lag.
mod common;

use common::Random;
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Pressure, Reporter, ScriptedSignals};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const BLOCK: usize = 32 * KIB;
const FLOOR: usize = 8 * BLOCK;
const WRITERS: usize = 600;

struct Build {
    limiter: GlobalMemoryLimiter,
    writers: Vec<(Reporter, ArenaHandle)>,
}

impl Build {
    fn new(budget_bytes: usize, signals: &Arc<ScriptedSignals>) -> Self {
        let limiter = GlobalMemoryLimiter::builder()
            .budget_bytes(budget_bytes)
            .block_bytes(BLOCK)
            .floor_bytes(FLOOR)
            .signals(Arc::clone(signals))
            .spill_backoff(Duration::ZERO)
            .build()
            .expect("valid");
        let writers = (0..WRITERS)
            .map(|number| {
                let reporter = limiter.reporter(&format!("writer {number}"));
                let arena = reporter.arena("postings");
                (reporter, arena)
            })
            .collect();
        Build { limiter, writers }
    }

    fn flagged_bytes(&self) -> usize {
        self.writers.iter().filter(|(_, arena)| arena.spill_requested()).map(|(_, arena)| arena.bytes()).sum()
    }

    fn grow(&mut self, index: usize) {
        let (reporter, arena) = &mut self.writers[index];
        arena.set_bytes(reporter, arena.bytes() + BLOCK);
    }

    fn spill(&mut self, index: usize) -> bool {
        let (reporter, arena) = &mut self.writers[index];
        arena.begin_spill(reporter).map(|spill| spill.finish(0)).is_some()
    }

    /// What decisions may not know yet: windows of the writers that ran, and releases that are held back.
    fn slack(&self) -> usize {
        self.limiter.reserved_bytes() - self.limiter.published_bytes() + 2 * BLOCK
    }
}

#[test]
fn at_a_budget_that_lasts_what_is_asked_covers_what_is_over_and_little_more() {
    let budget = WRITERS * 16 * BLOCK;
    let mut build = Build::new(budget, &Arc::default());
    let mut random = Random(7);
    let mut largest_extra = 0;
    for step in 0..60_000 {
        build.grow(random.below(WRITERS));
        if step % 3 == 0 {
            build.spill(random.below(WRITERS));
        }
        if step % 7 == 0 {
            let (held, flagged) = (build.limiter.held_bytes(), build.flagged_bytes());
            assert!(held <= budget + flagged + build.slack(), "step {step}: {held} held, {flagged} flagged");
            // Flagged for nothing: more than the largest victim beyond what is over (they grow while they wait).
            largest_extra = largest_extra.max((budget + flagged).saturating_sub(held.max(budget)));
        }
    }
    let stats = build.limiter.stats();
    assert!(stats.walks * 20 < stats.decisions, "{} walks for {} decisions", stats.walks, stats.decisions);
    assert!(stats.forced_spills > 1_000, "{}", stats.forced_spills);
    assert!(largest_extra < 6 * MIB, "{largest_extra} flagged beyond what was over");
    build.limiter.poll();
    assert!(build.limiter.stats().walks > stats.walks, "who polls wants a walk");
    let snapshot = build.limiter.snapshot();
    assert!(snapshot.decisions.iter().any(|decision| !decision.walked && decision.requests > 0));
    assert_eq!(build.limiter.reconcile().to_string(), plimsoll::Drift::default().to_string());
    drop(build.writers);
    assert_eq!(
        (build.limiter.held_bytes(), build.limiter.published_bytes(), build.limiter.reserved_bytes()),
        (0, 0, 0)
    );
}

#[test]
fn of_many_the_largest_are_asked_first_also_between_walks() {
    let budget = WRITERS * 16 * BLOCK;
    let mut build = Build::new(budget, &Arc::default());
    for index in 0..WRITERS {
        let (reporter, arena) = &mut build.writers[index];
        // Sizes from 8 to 23 blocks, a hair below the budget in all.
        arena.set_bytes(reporter, (8 + index * 7 % 16) * BLOCK);
    }
    let mut asked = Vec::new();
    for step in 0.. {
        build.grow(step % WRITERS);
        let flagged: Vec<_> = (0..WRITERS).filter(|&index| build.writers[index].1.spill_requested()).collect();
        for index in flagged {
            asked.push(build.writers[index].1.bytes() / BLOCK);
            assert!(build.spill(index));
        }
        if asked.len() >= 40 {
            break;
        }
    }
    assert!(asked.iter().all(|&blocks| blocks >= 22), "not the largest: {asked:?}");
}

#[test]
fn a_shortfall_among_many_ends_and_arenas_that_become_eligible_are_asked() {
    let budget = WRITERS * 4 * BLOCK;
    let mut build = Build::new(budget, &Arc::default());
    let persistent = build.limiter.reporter("persistent");
    persistent.charge(2 * budget);
    let mut asked = 0;
    for round in 0..12 {
        for index in 0..WRITERS {
            build.grow(index);
            let (_, arena) = &build.writers[index];
            assert_eq!(arena.spill_requested(), arena.bytes() >= FLOOR, "round {round}, writer {index}");
            asked += usize::from(build.spill(index));
        }
    }
    assert_eq!(asked, WRITERS, "each at the floor, once");
    let stats = build.limiter.stats();
    assert_eq!((stats.requests, stats.shortfall_episodes), (WRITERS as u64, 1));
    assert!(build.limiter.snapshot().shortfall.is_some());
    assert!(stats.walks < 60, "{} walks", stats.walks);

    // What is asked covers what is over by now, and the shortfall lasts: nobody else is asked.
    (0..8 * WRITERS).for_each(|step| build.grow(step % WRITERS));
    let asked = build.limiter.stats().requests;
    assert_eq!(asked, 2 * WRITERS as u64);
    persistent.release(2 * budget - MIB);
    build.limiter.poll();
    let late = build.limiter.reporter("late");
    let mut arena = late.arena("postings");
    arena.set_bytes(&late, FLOOR);
    assert!(build.limiter.snapshot().shortfall.is_some() && !arena.spill_requested());
    assert_eq!(build.limiter.stats().requests, asked);
    drop((arena, late));
    persistent.release(MIB);
    (0..WRITERS).for_each(|index| assert!(build.spill(index)));
    assert!(build.limiter.snapshot().shortfall.is_none(), "over when nothing is over");
    assert!(build.writers.iter().all(|(_, arena)| !arena.spill_requested()));
}

#[test]
fn pressure_from_outside_that_is_covered_is_no_reason_to_decide_again() {
    let signals = Arc::new(ScriptedSignals::new());
    let mut build = Build::new(WRITERS * 1_000 * BLOCK, &signals);
    for index in 0..WRITERS {
        (0..8).for_each(|_| build.grow(index));
    }
    assert_eq!(build.limiter.stats().requests, 0);
    signals.set(Pressure::new(20 * FLOOR, 0));
    build.grow(0);
    assert!(build.flagged_bytes() >= 20 * FLOOR && build.flagged_bytes() <= 21 * FLOOR, "{}", build.flagged_bytes());
    let (decisions, requests) = (build.limiter.stats().decisions, build.limiter.stats().requests);
    (0..1_000).for_each(|step| build.grow(step % WRITERS));
    assert_eq!(build.limiter.stats().decisions, decisions, "covered: nobody decides");
    signals.set(Pressure::new(40 * FLOOR, 0));
    build.grow(1);
    assert!(build.limiter.stats().requests > requests, "more pressure than is covered");
    let spilled = (0..WRITERS).filter(|&index| build.spill(index)).take(20).count();
    assert_eq!(spilled, 20);
    assert!(build.flagged_bytes() >= 40 * FLOOR, "the pressure stays, so others are asked when those have spilled");
    signals.set(Pressure::default());
    (0..WRITERS).for_each(|index| {
        build.spill(index);
    });
    build.limiter.poll();
    let requests = build.limiter.stats().requests;
    (0..1_000).for_each(|step| build.grow(step % WRITERS));
    assert_eq!(build.limiter.stats().requests, requests, "no pressure, nobody is asked");
}

#[test]
fn what_a_walk_leaves_behind_keeps_nobody_alive() {
    let signals = Arc::new(ScriptedSignals::new());
    let mut build = Build::new(WRITERS * 8 * BLOCK, &signals);
    (0..9 * WRITERS).for_each(|step| build.grow(step % WRITERS));
    assert!(build.limiter.stats().requests > 0);
    assert_eq!(Arc::strong_count(&signals), 2, "the limiter has it");
    drop(build);
    assert_eq!(Arc::strong_count(&signals), 1, "the limiter went with its last writer");
}

/// Four threads, six hundred arenas, a budget that is always full. Whenever all of them pause, what is asked covers what is
/// over; at the end everything is 0.
#[test]
fn many_arenas_on_several_threads_are_asked_for_what_is_over_whenever_they_pause() {
    let budget = WRITERS * 8 * BLOCK;
    let Build { limiter, writers } = Build::new(budget, &Arc::default());
    let mut parts: Vec<Vec<_>> = (0..4).map(|_| Vec::new()).collect();
    writers.into_iter().enumerate().for_each(|(index, writer)| parts[index % 4].push(writer));
    let (pause, flagged, eligible) = (Barrier::new(4), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (seed, mut part) in parts.into_iter().enumerate() {
            let (limiter, pause, flagged, eligible) = (&limiter, &pause, &flagged, &eligible);
            scope.spawn(move || {
                let mut random = Random(seed as u64 + 1);
                for round in 0..100 {
                    for _ in 0..10 {
                        for (reporter, arena) in &mut part {
                            if random.below(3) == 0 {
                                arena.set_bytes(reporter, arena.bytes() + BLOCK);
                            }
                            if let Some(spill) = arena.begin_spill(reporter) {
                                if random.below(10) == 0 { drop(spill) } else { spill.finish(random.below(2) * BLOCK) }
                            }
                        }
                    }
                    pause.wait();
                    let asked = part.iter().filter(|(_, arena)| arena.spill_requested());
                    flagged.fetch_add(asked.map(|(_, arena)| arena.bytes()).sum(), Relaxed);
                    let free = part.iter().filter(|(_, arena)| !arena.spill_requested() && arena.bytes() >= FLOOR);
                    eligible.fetch_add(free.count(), Relaxed);
                    if pause.wait().is_leader() {
                        let (held, flagged) = (limiter.held_bytes(), flagged.swap(0, Relaxed));
                        let slack = limiter.reserved_bytes() - limiter.published_bytes() + 2 * BLOCK;
                        let all_asked = eligible.swap(0, Relaxed) == 0;
                        assert!(all_asked || held <= budget + flagged + slack, "{round}: {held} held, {flagged} asked");
                    }
                    pause.wait();
                }
            });
        }
    });
    let stats = limiter.stats();
    assert!(stats.forced_spills > 1_000 && stats.failed_spills > 100, "{stats:?}");
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.reserved_bytes()), (0, 0, 0));
    assert!(limiter.reconcile().is_none());
}
