//! B16: flush storms. Writers that grow evenly under a small budget spill rarely, never below the floor, and no decision asks
//! for more than it needs.
mod common;

use common::fixed;
use plimsoll::{KIB, MIB};

#[test]
fn writers_that_grow_evenly_write_few_runs_of_a_good_size() {
    const FLOOR: usize = 256 * KIB;
    let limiter = fixed().budget_bytes(64 * MIB).floor_bytes(FLOOR).build().expect("a valid configuration");
    let reporters: Vec<_> = (0..64).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    let mut arenas: Vec<_> = reporters.iter().map(|reporter| reporter.arena("postings")).collect();
    let (mut runs, mut written, mut most, mut decisions) = (0, 0, 0, 0);
    for _ in 0..16 * MIB / (64 * KIB) {
        for (reporter, arena) in reporters.iter().zip(&mut arenas) {
            let grown = arena.bytes() + 64 * KIB;
            arena.set_bytes(reporter, grown);
            most = most.max(limiter.held_bytes());
            if limiter.stats().decisions != decisions {
                decisions = limiter.stats().decisions;
                let last = limiter.snapshot().last_decision.expect("a decision under pressure asks");
                let need = last.overage_bytes - last.in_flight_bytes;
                let covered: usize = last.victims.iter().map(|victim| victim.1).sum();
                let smallest = last.victims.iter().map(|victim| victim.1).min().expect("it asked somebody");
                assert!(covered >= need && covered - smallest < need, "{last:?}");
            }
            if let Some(spill) = arena.begin_spill(reporter) {
                assert!(spill.bytes() >= FLOOR, "a run of {}", spill.bytes());
                (runs, written) = (runs + 1, written + spill.bytes());
                spill.finish(0);
            }
        }
    }
    let left: usize = arenas.iter().map(plimsoll::ArenaHandle::bytes).sum();
    assert_eq!((written + left, limiter.stats().forced_spills), (64 * 16 * MIB, runs));
    assert!((1..=2_048).contains(&runs), "{runs} runs");
    assert!(written / runs as usize >= MIB / 2);
    // One arena at most waits for its owner's turn, and the lagged sum is late by the bound.
    assert!(most <= 64 * MIB + 2 * MIB + limiter.lag_bound_bytes(), "{most}");
    assert_eq!(limiter.stats().shortfall_episodes, 0);
}
