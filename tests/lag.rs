//! What the lagged sum may hide, and how it comes right. B04: the unseen memory grows with the writers, and the bound says
//! so. B05: idle writers keep a remainder until somebody publishes it. R1: per-term swings stay off the shared counters;
//! held-back bytes are published together at the step; destroying a reporter publishes the last partial step; concurrent
//! changes on one reporter lose nothing.
mod common;

use common::fixed;
use plimsoll::{GlobalMemoryLimiter, KIB, MIB};

fn unlimited() -> GlobalMemoryLimiter {
    fixed().unlimited().build().expect("a valid configuration")
}

/// B04.
#[test]
fn a_thousand_writers_below_the_quantum_are_unseen_and_the_bound_says_so() {
    let limiter = fixed().budget_bytes(512 * MIB).build().expect("a valid configuration");
    let writers: Vec<_> = (0..1_000).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    writers.iter().for_each(|writer| writer.charge(800 * KIB));
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (0, 819_200_000));
    assert_eq!(limiter.lag_bound_bytes(), 1_048_575_000);
    assert_eq!(limiter.effective().lag_bound_bytes, 1_048_575_000);
    assert_eq!(limiter.stats().publishes, 0);
    writers.iter().for_each(|writer| writer.release(800 * KIB));
    drop(writers);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
}

/// B04, with a smaller hold-back.
#[test]
fn with_a_quantum_of_16_kib_a_spill_is_asked_for_before_a_thousand_writers_are_far_over() {
    let limiter = fixed().quantum_bytes(16 * KIB).budget_bytes(512 * MIB).build().expect("a valid configuration");
    let writers: Vec<_> = (0..1_000).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    let mut arenas: Vec<_> = writers.iter().map(|writer| writer.arena("postings")).collect();
    let mut first = None;
    'grow: for bytes in (8 * KIB..=800 * KIB).step_by(8 * KIB) {
        for (writer, arena) in writers.iter().zip(&mut arenas) {
            arena.set_bytes(writer, bytes);
            if limiter.stats().requests > 0 {
                first = Some(limiter.held_bytes());
                break 'grow;
            }
        }
    }
    let first = first.expect("a spill was asked for");
    assert!((512 * MIB..512 * MIB + 1_000 * 16 * KIB).contains(&first), "at {first}");
}

/// B05.
#[test]
fn idle_writers_that_hold_back_releases_come_right_by_a_flush() {
    let limiter = unlimited();
    let writers: Vec<_> = (0..256).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    for writer in &writers {
        writer.charge(2 * MIB);
        writer.release(900 * KIB);
    }
    let exact = 256 * 1_148 * KIB;
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), exact), (512 * MIB, exact, 287 * MIB));
    writers.iter().for_each(|writer| writer.flush());
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (exact, exact));
    writers.iter().for_each(|writer| writer.release(1_148 * KIB));
    drop(writers);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
}

/// B05, without the owners' help.
#[test]
fn settle_publishes_for_idle_owners() {
    let limiter = unlimited();
    let writers: Vec<_> = (0..256).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    for writer in &writers {
        writer.charge(2 * MIB);
        writer.release(900 * KIB);
    }
    if !limiter.settle() {
        assert!(!limiter.effective().process_barrier, "only a system without the barrier says no");
        return;
    }
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (287 * MIB, 287 * MIB));
    for writer in &writers {
        writer.charge(100 * KIB);
        writer.release(1_248 * KIB);
    }
    drop(writers);
    assert_eq!((limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0));
}

/// B05, mirrored: the release is published and the growth is held back.
#[test]
fn the_lagged_sum_never_shows_a_negative_number() {
    let limiter = unlimited();
    let (a, b) = (limiter.reporter("A"), limiter.reporter("B"));
    for _ in 0..100 {
        a.charge(900 * KIB);
        b.charge(900 * KIB);
        a.release(900 * KIB);
        let mut moved = b.reserve(300 * KIB);
        moved.transfer(&a);
        moved.free_with(&a);
        let shown = limiter.published_bytes();
        assert!(shown <= 4 * MIB, "{shown}");
        assert!(limiter.held_bytes().abs_diff(shown) <= limiter.lag_bound_bytes());
        b.release(900 * KIB);
    }
    let cache = limiter.shared_reporter("cache");
    cache.charge(MIB / 2);
    drop(cache.reserve(MIB));
    cache.release(MIB / 2);
    drop((a, b, cache));
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (0, 0));
}

/// R1.
#[test]
fn swings_of_every_term_stay_off_the_shared_counters() {
    let limiter = fixed().budget_bytes(64 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("logs/message");
    reporter.charge(3 * MIB);
    let before = limiter.stats();
    for term in 0..100_000_usize {
        let mut scratch = reporter.reserve(40 * KIB);
        scratch.resize(&reporter, 64 * KIB + term % 4_096);
        scratch.grow(&reporter, 100 * KIB);
        assert_eq!(reporter.held_bytes(), 3 * MIB + scratch.bytes());
        scratch.free_with(&reporter);
    }
    assert_eq!(limiter.stats(), before, "no publish, no notification, no decision");
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (3 * MIB, 3 * MIB));
    reporter.release(3 * MIB);
}

/// R1.
#[test]
fn held_back_bytes_are_published_together_at_the_step() {
    let limiter = unlimited();
    let reporter = limiter.reporter("logs/message");
    for _ in 0..MIB / KIB - 1 {
        reporter.charge(KIB);
    }
    reporter.charge(KIB - 1);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.stats().publishes), (0, MIB - 1, 0));
    reporter.charge(1);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.stats().publishes), (MIB, MIB, 1));
    assert_eq!(limiter.stats().peak_held_bytes, 2 * MIB - 1, "and what might be held back");
    reporter.release(MIB - 1);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.stats().publishes), (MIB, 1, 1));
    reporter.release(1);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.stats().publishes), (0, 0, 2));
}

/// R1.
#[test]
fn dropping_a_reporter_publishes_its_last_partial_step() {
    let limiter = unlimited();
    let reporter = limiter.reporter("logs/message");
    let rest = reporter.reserve(700 * KIB);
    reporter.charge(5);
    reporter.release(5);
    assert_eq!(limiter.published_bytes(), 0);
    drop(reporter);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.lag_bound_bytes()), (700 * KIB, 700 * KIB, 0));
    drop(rest);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes(), limiter.live_reporters()), (0, 0, 0));
}

/// R1.
#[test]
fn concurrent_changes_on_one_account_lose_nothing() {
    let limiter = unlimited();
    let cache = limiter.shared_reporter("dictionary cache");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = cache.clone();
            scope.spawn(move || {
                for step in 0..20_000_usize {
                    cache.charge(100 + thread);
                    if step % 3 == 0 {
                        cache.release(50);
                    }
                    if step % 64 == 0 {
                        drop(cache.reserve(3 * MIB));
                    }
                }
            });
        }
    });
    let exact = (0..4).map(|thread| 20_000 * (100 + thread) - 6_667 * 50).sum::<usize>();
    assert_eq!((cache.held_bytes(), limiter.held_bytes()), (exact, exact));
    assert!(limiter.published_bytes().abs_diff(exact) <= limiter.lag_bound_bytes());
    cache.release(exact);
    drop(cache);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
}

/// The default quantum keeps what all writers hide together within 1/16 of the budget, and says when it is 0.
#[test]
fn the_derived_quantum_follows_budget_and_writers() {
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).build().expect("a valid configuration");
    let quantum = |limiter: &GlobalMemoryLimiter| limiter.effective().quantum_bytes.0;
    assert_eq!(quantum(&limiter), MIB);
    let writers: Vec<_> = (0..8).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    assert_eq!(quantum(&limiter), 512 * KIB);
    let more: Vec<_> = (0..1_017).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    assert_eq!(quantum(&limiter), 0, "4 MiB among 1,025 is less than 4 KiB");
    let last = limiter.reporter("last");
    last.charge(1);
    assert_eq!(limiter.published_bytes(), 1, "every change is published");
    last.release(1);
    drop((writers, more, last));
    assert_eq!((limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0));
}

/// However large a quantum is asked for, the bound is a sum and does not wrap.
#[test]
fn the_lag_bound_does_not_wrap_for_the_largest_quantum() {
    let limiter = GlobalMemoryLimiter::builder().unlimited().quantum_bytes(usize::MAX).build().expect("valid");
    let writers: Vec<_> = (0..5).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    let one = limiter.lag_bound_bytes() / 5;
    assert!(one >= 1 << 30 || cfg!(target_pointer_width = "32"), "{one}");
    writers.iter().for_each(|writer| writer.charge(3 * MIB));
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (0, 15 * MIB));
    assert!(limiter.lag_bound_bytes() >= 15 * MIB);
    writers.iter().for_each(|writer| writer.release(3 * MIB));
    drop(writers);
    assert_eq!(limiter.lag_bound_bytes(), 0);
}
