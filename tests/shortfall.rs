//! R1: a shortfall (less can be reclaimed than is over) is no reason to do nothing. Every eligible arena is asked, the
//! episode is warned of once with the deepest source of pressure, its end is told once, and a relapse is warned of again.
mod common;

use common::{count, events_of, fixed, spill_if_asked};
use plimsoll::{MIB, Pressure, PressureSource, ScriptedSignals};
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

#[test]
fn an_episode_asks_every_eligible_arena_warns_once_and_tells_its_end_once() {
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(100 * MIB).floor_bytes(4 * MIB).build().expect("a valid configuration");
        let merge = limiter.reporter("merge");
        merge.charge(90 * MIB);
        let reporters: Vec<_> = (0..4).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
        let mut arenas: Vec<_> = reporters.iter().map(|reporter| reporter.arena("postings")).collect();
        for (arena, (reporter, mib)) in arenas.iter_mut().zip(reporters.iter().zip([3, 4, 3, 5])) {
            arena.set_bytes(reporter, mib * MIB); // 105 in all: 5 over, 9 to be had
        }
        let asked = |arenas: &[plimsoll::ArenaHandle]| {
            arenas.iter().map(plimsoll::ArenaHandle::spill_requested).collect::<Vec<_>>()
        };
        assert_eq!(asked(&arenas), [false, false, false, true]);
        merge.charge(10 * MIB); // 15 over, 9 to be had
        assert_eq!(asked(&arenas), [false, true, false, true], "all that are not below the floor");
        let snapshot = limiter.snapshot();
        let shortfall = snapshot.shortfall.expect("6 MiB are missing");
        assert_eq!((shortfall.source, shortfall.missing_bytes), (PressureSource::Budget, 6 * MIB));
        assert_eq!((shortfall.persistent_bytes, shortfall.floor_sum_bytes), (100 * MIB, 16 * MIB));
        assert_eq!((shortfall.writers, shortfall.writers_that_fit), (4, 0));
        assert!(
            snapshot
                .to_string()
                .contains("shortfall by budget: 6 MiB missing, 100 MiB persistent, 4 writers, 0 would fit")
        );

        // It lasts: more notifications and decisions, and no second warning, no tiny runs.
        for _ in 0..20 {
            limiter.poll();
            merge.charge(MIB);
        }
        arenas[0].set_bytes(&reporters[0], 2 * MIB);
        assert_eq!((limiter.stats().shortfall_episodes, limiter.stats().requests), (1, 2));
        assert_eq!(spill_if_asked(&mut arenas[1], &reporters[1]), Some(4 * MIB));
        assert_eq!(spill_if_asked(&mut arenas[3], &reporters[3]), Some(5 * MIB));
        assert_eq!(limiter.stats().shortfall_episodes, 1, "what they freed was not enough");
        assert!(limiter.snapshot().shortfall.is_some());

        merge.release(60 * MIB);
        assert!(limiter.snapshot().shortfall.is_none(), "over as soon as the release is published");
        limiter.poll();

        merge.charge(80 * MIB);
        assert!(limiter.snapshot().shortfall.is_some());
        assert_eq!(limiter.stats().shortfall_episodes, 2, "a relapse is an episode of its own");
        merge.release(140 * MIB);
        assert!(limiter.snapshot().shortfall.is_none());
    });
    assert_eq!(count(&events, Level::WARN, "shortfall: every arena at or above the floor is asked to spill"), 2);
    assert_eq!(
        count(&events, Level::WARN, "source=budget missing_bytes=6291456 persistent_bytes=104857600"),
        1,
        "{events:?}"
    );
    assert_eq!(count(&events, Level::INFO, "shortfall over"), 2);
    assert_eq!(count(&events, Level::WARN, ""), 2, "nothing else is worth a warning: {events:?}");
}

#[test]
fn the_warning_names_the_deepest_source_of_pressure() {
    let signals = Arc::new(ScriptedSignals::new());
    let events = events_of(|| {
        let limiter =
            fixed().budget_bytes(100 * MIB).signals(Arc::clone(&signals)).build().expect("a valid configuration");
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        signals.set(Pressure::new(7 * MIB, 5 * MIB));
        arena.set_bytes(&reporter, 2 * MIB);
        assert!(arena.spill_requested());
        let shortfall = limiter.snapshot().shortfall.expect("5 MiB are missing");
        assert_eq!((shortfall.source, shortfall.missing_bytes), (PressureSource::System, 5 * MIB));
        signals.set(Pressure::default());
        limiter.poll();
        assert!(limiter.snapshot().shortfall.is_none());
    });
    assert_eq!(
        count(&events, Level::WARN, "5 MiB are missing still limiter=default source=system memory"),
        1,
        "{events:?}"
    );
    assert_eq!(count(&events, Level::INFO, "shortfall over"), 1);
}

/// A budget below what the writers need at least: nothing below the floor is asked, so there is no storm of tiny runs.
#[test]
fn a_budget_below_the_persistent_bytes_makes_no_storm_of_tiny_runs() {
    let limiter = fixed().budget_bytes(32 * MIB).floor_bytes(16 * MIB).build().expect("a valid configuration");
    let reporters: Vec<_> = (0..30).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    let mut arenas: Vec<_> = reporters.iter().map(|reporter| reporter.arena("postings")).collect();
    reporters.iter().for_each(|reporter| reporter.charge(2 * MIB));
    let mut runs = vec![];
    for _ in 0..40 {
        for (reporter, arena) in reporters.iter().zip(&mut arenas) {
            let grown = arena.bytes() + MIB;
            arena.set_bytes(reporter, grown);
            runs.extend(spill_if_asked(arena, reporter));
        }
    }
    assert!(runs.iter().all(|&run| run >= 16 * MIB), "{runs:?}");
    assert_eq!(runs.len(), 60, "each writer twice: at 16 MiB, and 16 MiB later");
    let stats = limiter.stats();
    assert_eq!((stats.forced_spills, stats.shortfall_episodes), (60, 1));
    reporters.iter().for_each(|reporter| reporter.release(2 * MIB));
    drop((arenas, reporters));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
    assert!(limiter.snapshot().shortfall.is_none(), "the episode ends with what caused it");
}

/// An episode whose rest is covered by spills in flight ends as soon as nothing is over, whoever brings that about.
#[test]
fn an_episode_that_was_covered_meanwhile_ends_by_a_release_alone() {
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(100 * MIB).build().expect("a valid configuration");
        let merge = limiter.reporter("merge");
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 5 * MIB);
        merge.charge(110 * MIB);
        assert_eq!(limiter.snapshot().shortfall.map(|shortfall| shortfall.missing_bytes), Some(10 * MIB));
        merge.release(11 * MIB);
        assert!(limiter.snapshot().shortfall.is_some(), "4 MiB are over still, though the request covers them");
        merge.release(20 * MIB);
        assert!(limiter.snapshot().shortfall.is_none(), "nothing is over");
        merge.release(79 * MIB);
    });
    assert_eq!(count(&events, Level::INFO, "shortfall over"), 1, "{events:?}");
}

#[test]
fn an_arena_whose_spill_failed_long_ago_is_asked_again_when_it_grows_during_a_shortfall() {
    let limiter = fixed()
        .budget_bytes(100 * MIB)
        .floor_bytes(MIB)
        .spill_backoff(Duration::from_millis(1))
        .build()
        .expect("valid");
    let merge = limiter.reporter("merge");
    merge.charge(200 * MIB);
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, MIB);
    drop(arena.begin_spill(&reporter).expect("it is asked")); // it fails
    assert!(!arena.spill_requested(), "left alone for a millisecond");
    std::thread::sleep(Duration::from_millis(5));
    arena.set_bytes(&reporter, MIB + 1_024);
    assert!(arena.spill_requested(), "the block that it grew by is news");
    merge.release(200 * MIB);
}
