//! Moving somebody else's window: the primitive under everything that does not wait for an owner.

use super::{assert_lag_bound, assert_nothing_left, fails, limiter, outcomes};
use loom::thread;

/// The quantum shrinks and idle windows are moved, while the owner charges and releases within its old window.
fn window_moved_while_the_owner_changes() -> (usize, usize) {
    let limiter = limiter(1_000, 8);
    let reporter = limiter.reporter("writer");
    let thread = thread::spawn(move || {
        reporter.charge(6);
        reporter.release(2);
        reporter
    });
    limiter.set_quantum_bytes(Some(2));
    assert_eq!(limiter.lag_bound_bytes(), 1);
    let published = limiter.published_bytes();
    let reporter = thread.join().expect("no panic");
    assert_lag_bound(&limiter);
    let after = limiter.published_bytes();
    reporter.release(4);
    drop(reporter);
    assert_nothing_left(&limiter);
    (published, after)
}

#[test]
fn loom_a_window_moved_while_the_owner_changes() {
    // Before the changes, between them, after them; what comes later is published by the owner.
    assert_eq!(outcomes(window_moved_while_the_owner_changes), [(0, 4), (4, 4), (6, 4)].into());
}

#[test]
fn loom_mutant_no_barrier_before_the_owner_is_read() {
    fails("no_process_barrier", window_moved_while_the_owner_changes);
}

#[test]
fn loom_mutant_the_owner_checks_without_a_fence() {
    fails("no_light_fence", window_moved_while_the_owner_changes);
}
