//! R1: pressure of the process and the machine. The overage is the maximum of the three terms and never their sum, and
//! pressure that arrives inside a block still ends in a forced spill.
mod common;

use common::{fixed, spill_if_asked};
use plimsoll::{GlobalMemoryLimiter, MIB, Pressure, PressureSource, ScriptedSignals};
use std::sync::Arc;

fn limiter(budget: usize) -> (GlobalMemoryLimiter, Arc<ScriptedSignals>) {
    let signals = Arc::new(ScriptedSignals::new());
    let limiter = fixed().budget_bytes(budget).signals(Arc::clone(&signals)).build().expect("a valid configuration");
    (limiter, signals)
}

#[test]
fn the_overage_is_the_deepest_of_the_three_terms_and_never_their_sum() {
    let cases = [
        ((3, 4, 5), 5, PressureSource::Process),
        ((3, 5, 4), 5, PressureSource::System),
        ((5, 4, 3), 5, PressureSource::Budget),
        ((5, 5, 5), 5, PressureSource::Budget),
        ((0, 0, 1), 1, PressureSource::Process),
        ((0, 1, 1), 1, PressureSource::System),
    ];
    for ((over, system, process), deepest, source) in cases {
        let (limiter, signals) = limiter(100 * MIB);
        let reporter = limiter.reporter("writer");
        let mut arenas: Vec<_> = (0..25).map(|_| reporter.arena("postings")).collect();
        for arena in &mut arenas[..20] {
            arena.set_bytes(&reporter, MIB);
        }
        reporter.charge(80 * MIB);
        signals.set(Pressure::new(system * MIB, process * MIB));
        arenas[20].set_bytes(&reporter, over * MIB);
        limiter.poll();
        let last = limiter.snapshot().last_decision.expect("it asked");
        assert_eq!((last.overage_bytes, last.source), (deepest * MIB, source), "{over} {system} {process}");
        let asked: usize =
            arenas.iter().filter(|arena| arena.spill_requested()).map(plimsoll::ArenaHandle::bytes).sum();
        assert_eq!(asked, deepest * MIB, "{over} {system} {process}");
        reporter.release(80 * MIB);
    }
}

/// R1: the arena does not change while the pressure rises; its next block decides.
#[test]
fn pressure_that_arrives_inside_a_block_ends_in_a_forced_spill_at_the_next_block() {
    let (limiter, signals) = limiter(100 * MIB);
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 20 * MIB);
    signals.set(Pressure::new(0, 10 * MIB));
    for _ in 0..1_000 {
        reporter.charge(10);
        arena.set_bytes(&reporter, 20 * MIB);
        assert_eq!(spill_if_asked(&mut arena, &reporter), None);
    }
    arena.set_bytes(&reporter, 20 * MIB + 32 * 1_024);
    assert_eq!(spill_if_asked(&mut arena, &reporter), Some(20 * MIB + 32 * 1_024));
    assert_eq!((limiter.stats().forced_spills, limiter.held_bytes()), (1, 10_000));
    reporter.release(10_000);
}

/// The same for a writer that never reaches its next block: whoever samples the machine asks for a look.
#[test]
fn a_poll_decides_for_writers_that_do_not_grow() {
    let (limiter, signals) = limiter(100 * MIB);
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 20 * MIB);
    limiter.poll();
    assert!(!arena.spill_requested());
    signals.set(Pressure::new(1, 0));
    limiter.poll();
    assert_eq!(spill_if_asked(&mut arena, &reporter), Some(20 * MIB));
}

/// And for one that publishes what it holds beside its arena.
#[test]
fn a_publish_decides_under_pressure_as_a_block_does() {
    let (limiter, signals) = limiter(100 * MIB);
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 20 * MIB);
    signals.set(Pressure::new(MIB, 0));
    reporter.charge(MIB - 1);
    assert!(!arena.spill_requested(), "inside the window nobody is told");
    reporter.charge(1);
    assert!(arena.spill_requested());
    arena.set_bytes(&reporter, 0);
    reporter.release(MIB);
}

#[test]
fn without_a_budget_signals_alone_ask_for_spills() {
    let signals = Arc::new(ScriptedSignals::new());
    let limiter = fixed().unlimited().signals(Arc::clone(&signals)).build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 3_000 * MIB);
    assert!(!arena.spill_requested());
    signals.set(Pressure::new(0, usize::MAX));
    limiter.poll();
    assert_eq!(spill_if_asked(&mut arena, &reporter), Some(3_000 * MIB));
    let last = limiter.snapshot().last_decision.expect("it asked");
    assert_eq!((last.budget_bytes, last.overage_bytes, last.source), (None, usize::MAX, PressureSource::Process));
}

#[test]
fn pressure_that_is_gone_by_the_next_block_asks_nobody() {
    let (limiter, signals) = limiter(100 * MIB);
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 20 * MIB);
    signals.set(Pressure::new(0, 10 * MIB));
    signals.set(Pressure::default());
    arena.set_bytes(&reporter, 21 * MIB);
    assert_eq!((arena.spill_requested(), limiter.stats().decisions), (false, 0));
}
