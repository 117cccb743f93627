//! The account itself, against those who read it and against itself.

use super::{assert_lag_bound, assert_nothing_left, fails, limiter, outcomes_unfenced};
use loom::thread;

/// Two threads publish on one shared account: nothing is lost, and the window ends up where the total is.
fn publish_against_publish() -> usize {
    let limiter = limiter(1_000, 4);
    let account = limiter.shared_reporter("shared");
    account.charge(10);
    let other = account.clone();
    let thread = thread::spawn(move || {
        other.charge(10);
        other
    });
    account.release(5);
    let published = limiter.published_bytes();
    let other = thread.join().expect("no panic");
    assert_eq!(limiter.held_bytes(), 15, "a change was lost");
    assert_lag_bound(&limiter);
    account.release(15);
    drop((account, other));
    assert_nothing_left(&limiter);
    published
}

#[test]
fn loom_publish_against_publish_on_a_shared_account() {
    // 20 needs three preemptions. 13: the release settles what of the charge was reserved before, the charge the rest.
    let seen = outcomes_unfenced(publish_against_publish);
    assert!(seen.is_superset(&[5, 10, 15].into()) && seen.is_subset(&[5, 10, 13, 15, 18, 20].into()), "{seen:?}");
}

#[test]
fn loom_mutant_a_shared_window_that_is_settled_while_it_is_open() {
    fails("shared_settles_open", publish_against_publish);
}

#[test]
fn loom_mutant_a_shared_change_without_its_fence() {
    fails("no_rmw_fence", publish_against_publish);
}

/// A reporter is dropped with a reservation alive elsewhere, while somebody walks.
fn drop_against_exact_read() -> usize {
    let limiter = limiter(1_000, 4);
    let reporter = limiter.reporter("writer");
    let reservation = reporter.reserve(5);
    let first = thread::spawn(move || drop(reporter));
    let second = thread::spawn(move || drop(reservation));
    let seen = limiter.held_bytes();
    assert!(seen == 0 || seen == 5, "the walk saw {seen} of one reservation of 5");
    first.join().expect("no panic");
    second.join().expect("no panic");
    assert_eq!(limiter.live_reporters(), 0);
    assert_nothing_left(&limiter);
    seen
}

#[test]
fn loom_drop_against_exact_read() {
    assert_eq!(outcomes_unfenced(drop_against_exact_read), [0, 5].into());
}

#[test]
fn loom_mutant_the_last_handle_does_not_see_what_the_others_did() {
    fails("handle_relaxed", drop_against_exact_read);
}

/// The owner takes what was returned off its total, while somebody walks: the total does not move.
fn fold_against_exact_read() -> (usize, usize) {
    let limiter = limiter(1_000, 100);
    let reporter = limiter.reporter("writer");
    let reservation = reporter.reserve(3);
    reporter.charge(7);
    drop(reservation);
    let thread = thread::spawn(move || {
        reporter.flush();
        reporter
    });
    let seen = limiter.held_bytes();
    let published = limiter.published_bytes();
    let reporter = thread.join().expect("no panic");
    reporter.release(7);
    drop(reporter);
    assert_nothing_left(&limiter);
    // After everybody is gone: a thread that is left in the middle of a change cannot be unwound.
    assert_eq!(seen, 7, "bytes were missing or twice while they went from one word to the other");
    (seen, published)
}

#[test]
fn loom_fold_against_exact_read() {
    assert_eq!(outcomes_unfenced(fold_against_exact_read), [(7, 0), (7, 7)].into());
}

#[test]
fn loom_mutant_a_fold_that_is_met_half_way() {
    fails("read_without_lock", fold_against_exact_read);
}

/// Bytes are dropped without the reporter and charged anew: a walk never has them twice.
fn drop_and_charge_against_exact_read() -> usize {
    let limiter = limiter(1_000, 100);
    let reporter = limiter.reporter("writer");
    let reservation = reporter.reserve(4);
    let thread = thread::spawn(move || {
        drop(reservation);
        let reservation = reporter.reserve(4);
        reporter.flush();
        (reservation, reporter)
    });
    let seen = limiter.held_bytes();
    drop(thread.join().expect("no panic"));
    assert_nothing_left(&limiter);
    assert!(seen <= 4, "{seen} were never held");
    seen
}

#[test]
fn loom_drop_and_charge_against_exact_read() {
    assert_eq!(outcomes_unfenced(drop_and_charge_against_exact_read), [0, 4].into());
}

#[test]
fn loom_mutant_bytes_that_are_charged_anew_and_seen_twice() {
    fails("read_without_lock", drop_and_charge_against_exact_read);
}

/// Bytes go from one writer to another while somebody walks: they are seen once.
fn transfer_against_exact_read() -> (usize, usize) {
    let limiter = limiter(1_000, 1_000);
    let (from, to) = (limiter.reporter("from"), limiter.reporter("to"));
    let mut reservation = from.reserve(4);
    let thread = thread::spawn(move || {
        reservation.transfer(&to);
        (reservation, to)
    });
    let seen = limiter.held_bytes();
    assert_eq!(seen, 4, "a walk met a transfer half way");
    let owner = from.held_bytes();
    let (reservation, to) = thread.join().expect("no panic");
    assert_eq!((from.held_bytes(), to.held_bytes()), (0, 4));
    drop((reservation, from, to));
    assert_nothing_left(&limiter);
    (seen, owner)
}

#[test]
fn loom_transfer_against_exact_read() {
    assert_eq!(outcomes_unfenced(transfer_against_exact_read), [(4, 0), (4, 4)].into());
}

#[test]
fn loom_mutant_a_walk_that_does_not_go_again() {
    fails("walk_once", transfer_against_exact_read);
}

/// What is handed on with the bytes is seen by whoever sees them free.
#[test]
fn loom_who_sees_bytes_free_sees_what_was_freed() {
    use loom::sync::atomic::{AtomicBool, Ordering};
    let seen = outcomes_unfenced(|| {
        let limiter = limiter(1_000, 100);
        let reporter = limiter.reporter("writer");
        reporter.charge(5);
        let freed = std::sync::Arc::new(AtomicBool::new(false));
        let flag = std::sync::Arc::clone(&freed);
        let thread = thread::spawn(move || {
            flag.store(true, Ordering::Relaxed);
            reporter.release(5);
            reporter
        });
        let held = limiter.held_bytes();
        if held == 0 {
            assert!(freed.load(Ordering::Relaxed), "free before it was freed");
        }
        thread.join().expect("no panic");
        held
    });
    assert_eq!(seen, [0, 5].into());
}

/// Whoever sees a published amount finds every byte of it in a walk.
fn published_against_exact() -> (usize, usize) {
    let limiter = limiter(1_000, 2);
    let reporter = limiter.reporter("writer");
    let thread = thread::spawn(move || {
        reporter.charge(4);
        reporter
    });
    let published = limiter.published_bytes();
    let held = limiter.held_bytes();
    assert!(held >= published, "{published} published and {held} found");
    let reporter = thread.join().expect("no panic");
    reporter.release(4);
    (published, held)
}

#[test]
fn loom_who_sees_a_published_amount_finds_it() {
    assert_eq!(outcomes_unfenced(published_against_exact), [(0, 0), (0, 4), (4, 4)].into());
}

#[test]
fn loom_mutant_a_publish_without_ordering() {
    fails("crosser_unordered", published_against_exact);
}
