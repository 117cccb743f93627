//! A workspace, against what is dropped without it.

use super::{assert_nothing_left, fails, limiter, outcomes_unfenced};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::sync::Arc;

/// Bytes are dropped on another thread while the owner asks for as many: whoever is granted them sees them freed, and
/// none are lost.
fn drop_against_try() -> (bool, usize) {
    let limiter = limiter(1_000, 100);
    let reporter = limiter.reporter("writer");
    let workspace = reporter.workspace("postings", 5);
    let reservation = reporter.within(&workspace).reserve(5);
    let freed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&freed);
    let thread = thread::spawn(move || {
        flag.store(true, Ordering::Relaxed);
        drop(reservation);
    });
    let granted = reporter.within(&workspace).try_charge(5).is_ok();
    let seen_free = freed.load(Ordering::Relaxed);
    let held = reporter.held_bytes();
    thread.join().expect("no panic");
    let left = if granted { 5 } else { 0 };
    assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (left, left), "a change was lost");
    reporter.within(&workspace).release(left);
    drop((workspace, reporter));
    assert_nothing_left(&limiter);
    assert!(seen_free || !granted, "granted before it was freed");
    (granted, held)
}

#[test]
fn loom_who_is_granted_sees_bytes_free() {
    // 10: the workspace is lowered before the account.
    assert_eq!(outcomes_unfenced(drop_against_try), [(false, 0), (false, 5), (true, 5), (true, 10)].into());
}

#[test]
fn loom_mutant_a_give_back_without_ordering() {
    fails("workspace_relaxed", drop_against_try);
}
