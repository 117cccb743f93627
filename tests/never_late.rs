//! The budget is a line that decisions do not miss: near it windows shrink with what is left, idle ones are called back,
//! and the first request comes with at most one block for each running writer over it.
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Reporter};

const BLOCK: usize = 32 * KIB;

/// What is held when the first request comes, and how far it is above the budget.
fn held_at_the_first_request(running: &mut [(Reporter, ArenaHandle)], limiter: &GlobalMemoryLimiter) -> usize {
    for round in 1.. {
        for index in 0..running.len() {
            let (reporter, arena) = &mut running[index];
            reporter.charge(137);
            arena.set_bytes(reporter, round * BLOCK);
            if running.iter().any(|(_, arena)| arena.spill_requested()) {
                return limiter.held_bytes();
            }
        }
    }
    unreachable!("rounds do not end")
}

/// A thousand writers: most never did anything, some were parked in the middle of a window, a few run.
fn first_request(budget: usize, running: usize, parked_bytes: usize) -> usize {
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(budget)
        .block_bytes(BLOCK)
        .floor_bytes(BLOCK)
        .build()
        .expect("valid");
    let idle: Vec<_> = (0..700).map(|number| limiter.reporter(&format!("idle {number}"))).collect();
    let parked: Vec<_> = (0..300 - running)
        .map(|number| {
            let reporter = limiter.reporter(&format!("parked {number}"));
            reporter.charge(parked_bytes);
            reporter
        })
        .collect();
    let mut writers: Vec<_> = (0..running)
        .map(|number| {
            let reporter = limiter.reporter(&format!("running {number}"));
            let arena = reporter.arena("postings");
            (reporter, arena)
        })
        .collect();
    let held = held_at_the_first_request(&mut writers, &limiter);
    assert!(held > budget, "asked early: {held} of {budget}");
    let hidden = held - limiter.published_bytes();
    assert!(hidden <= running * BLOCK, "{hidden} bytes were not published");
    writers.iter().for_each(|(reporter, arena)| reporter.release(reporter.held_bytes() - arena.bytes()));
    parked.iter().for_each(|reporter| reporter.release(parked_bytes));
    drop((idle, parked, writers));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.reserved_bytes()), (0, 0, 0));
    held - budget
}

#[test]
fn a_thousand_writers_are_asked_within_a_block_for_each_that_runs() {
    if !GlobalMemoryLimiter::builder().build().expect("valid").effective().process_barrier {
        return eprintln!("SKIPPED: no process-wide barrier here");
    }
    for (budget, running, parked) in
        [(2_048 * MIB, 8, 100 * KIB), (2_048 * MIB, 100, 127 * KIB), (256 * MIB, 8, 15 * KIB), (64 * MIB, 8, 3 * KIB)]
    {
        let over = first_request(budget, running, parked);
        println!("{budget} of budget, {running} running: asked {over} bytes over it");
        assert!(over <= running * BLOCK, "{over} over {budget} with {running} running");
    }
}

#[test]
fn a_fixed_quantum_is_late_by_no_more_than_the_lag_bound() {
    let budget = 256 * MIB;
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(budget)
        .quantum_bytes(MIB)
        .block_bytes(BLOCK)
        .floor_bytes(BLOCK)
        .build()
        .expect("valid");
    let parked: Vec<_> = (0..100).map(|_| limiter.reporter("parked")).collect();
    parked.iter().for_each(|reporter| reporter.charge(MIB - 1));
    let reporter = limiter.reporter("running");
    let arena = reporter.arena("postings");
    let mut running = [(reporter, arena)];
    let held = held_at_the_first_request(&mut running, &limiter);
    assert!(held > budget + 50 * MIB, "R1's lateness");
    assert!(held <= budget + limiter.lag_bound_bytes() + BLOCK, "{held}");
    running.iter().for_each(|(reporter, arena)| reporter.release(reporter.held_bytes() - arena.bytes()));
    parked.iter().for_each(|reporter| reporter.release(MIB - 1));
}
