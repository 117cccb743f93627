//! The hard limit: credit is taken, called back and refused. Nothing is granted past the limit, and nobody is refused while
//! somebody else holds what he does not use.

use super::{assert_nothing_left, fails, outcomes};
use crate::{GlobalMemoryLimiter, Reporter, ReserveError, SharedReporter};
use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::thread;
use std::sync::Arc;

/// No budget, so that nobody decides.
fn limited(hard: usize, quantum: usize) -> GlobalMemoryLimiter {
    GlobalMemoryLimiter::builder()
        .unlimited()
        .hard_limit_bytes(hard)
        .block_bytes(1)
        .quantum_bytes(quantum)
        .build()
        .expect("the numbers are valid")
}

/// What a thread and the main thread do at once; the outcomes of both.
fn at_once<A: Send + 'static, R: Send + 'static>(
    account: A,
    there: fn(&A) -> R,
    here: impl FnOnce() -> bool,
) -> (A, R, bool) {
    let thread = thread::spawn(move || {
        let outcome = there(&account);
        (account, outcome)
    });
    let granted = here();
    let (account, outcome) = thread.join().expect("no panic");
    (account, outcome, granted)
}

/// One writer holds 1 and has credit for 3 more, of 10; another asks for 8. One of them gets what it asks for.
fn taken_against_called_back(settle: bool) -> (bool, bool) {
    let limiter = limited(10, 4);
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    first.charge(1);
    let (first, took, granted) = at_once(
        first,
        |first| first.try_charge(2).is_ok(),
        || {
            let granted = second.try_charge(8).is_ok();
            if settle {
                limiter.settle();
            }
            granted
        },
    );
    let held = limiter.held_bytes();
    assert_eq!(held, 1 + if took { 2 } else { 0 } + if granted { 8 } else { 0 });
    assert!(held <= 10, "{held} granted of 10");
    assert!(took || granted, "both refused");
    assert!(limiter.reserved_bytes() >= held, "held and not reserved");
    first.release(if took { 3 } else { 1 });
    second.release(if granted { 8 } else { 0 });
    drop((first, second));
    assert_nothing_left(&limiter);
    assert_eq!(limiter.reserved_bytes(), 0);
    (took, granted)
}

#[test]
fn loom_credit_taken_against_called_back_against_refused() {
    let one_of_them = [(true, false), (false, true)].into();
    assert_eq!(outcomes(|| taken_against_called_back(false)), one_of_them);
    assert_eq!(outcomes(|| taken_against_called_back(true)), one_of_them);
}

#[test]
fn loom_mutant_credit_is_called_back_without_the_barrier() {
    fails("no_process_barrier", || taken_against_called_back(false));
}

#[test]
fn loom_mutant_a_try_charge_checks_without_a_fence() {
    fails("no_light_fence", || taken_against_called_back(false));
}

#[test]
fn loom_mutant_a_try_charge_that_does_not_look_again() {
    fails("try_checks_before_only", || taken_against_called_back(false));
}

#[test]
fn loom_mutant_a_refused_try_charge_stays_stored() {
    fails("stored_stays", || taken_against_called_back(false));
}

#[test]
fn loom_mutant_what_is_not_reserved_yet_counts_as_spent() {
    fails("unreserved_is_spent", || taken_against_called_back(true));
}

#[test]
fn loom_mutant_nobody_looks_at_the_limit() {
    fails("over_the_limit", || taken_against_called_back(false));
}

/// Both fit: nobody takes ahead what the other needs.
fn both_fit() -> (bool, bool) {
    let limiter = limited(10, 4);
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    first.charge(1);
    let (first, took, granted) = at_once(first, |first| first.try_charge(1).is_ok(), || second.try_charge(8).is_ok());
    assert!(took && granted, "refused although there was room: {took} {granted}");
    first.release(2);
    second.release(8);
    (took, granted)
}

#[test]
fn loom_nobody_takes_ahead_what_somebody_needs() {
    assert_eq!(outcomes(both_fit), [(true, true)].into());
}

#[test]
fn loom_mutant_credit_is_taken_ahead_while_it_is_called_back() {
    fails("never_tight", both_fit);
}

/// One asks for more than there can be, and gives its credit back; the other for all there is.
fn second_look() -> bool {
    let limiter = limited(10, 2);
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    let (first, refused, granted) =
        at_once(first, |first| first.try_charge(20).is_err(), || second.try_charge(10).is_ok());
    assert!(refused && granted, "refused although there was room");
    second.release(10);
    drop((first, second));
    assert_nothing_left(&limiter);
    granted
}

#[test]
fn loom_a_second_look_at_the_pool() {
    assert_eq!(outcomes(second_look), [true].into());
}

#[test]
fn loom_mutant_no_second_look_at_the_pool() {
    fails("no_second_look", second_look);
}

#[test]
fn loom_mutant_a_window_counts_as_closed_before_its_credit_is_back() {
    fails("closed_before_its_credit_is_back", second_look);
}

/// The limit falls from 10 to 5 while a writer with credit for 7 asks for 6.
fn limit_lowered_against_grant() -> (bool, bool) {
    let limiter = limited(10, 8);
    let writer = limiter.reporter("writer");
    let lowered = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&lowered);
    let (account, (late, granted), _) = at_once(
        (writer, seen),
        |(writer, seen)| {
            let late = seen.load(SeqCst);
            (late, writer.try_charge(6).is_ok())
        },
        || {
            limiter.set_hard_limit_bytes(Some(5)).expect("valid");
            lowered.store(true, SeqCst);
            true
        },
    );
    assert!(!(late && granted), "granted past a limit that was in force");
    let other = limiter.reporter("other");
    assert_eq!(other.try_charge(1).is_err(), granted, "the rest of what is left");
    other.release(if granted { 0 } else { 1 });
    account.0.release(if granted { 6 } else { 0 });
    drop((other, account));
    assert_nothing_left(&limiter);
    (late, granted)
}

#[test]
fn loom_a_limit_that_is_lowered_against_a_grant() {
    assert_eq!(outcomes(limit_lowered_against_grant), [(false, true), (false, false), (true, false)].into());
}

#[test]
fn loom_mutant_a_limit_is_lowered_and_no_window_moved() {
    fails("lowered_without_moving", limit_lowered_against_grant);
}

/// The same while the writer takes and gives back within its window.
fn limit_lowered_while_a_writer_takes_and_gives_back() -> (bool, bool, bool) {
    let limiter = limited(10, 8);
    let writer = limiter.reporter("writer");
    let lowered = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&lowered);
    let (account, (first, late, second), _) = at_once(
        (writer, seen),
        |(writer, seen)| {
            let first = writer.try_charge(6).is_ok();
            writer.release(if first { 6 } else { 0 });
            let late = seen.load(SeqCst);
            let second = writer.try_charge(6).is_ok();
            writer.release(if second { 6 } else { 0 });
            (first, late, second)
        },
        || {
            limiter.set_hard_limit_bytes(Some(5)).expect("valid");
            lowered.store(true, SeqCst);
            true
        },
    );
    assert!(!(late && second), "granted past a limit that was in force");
    drop(account);
    assert_nothing_left(&limiter);
    (first, late, second)
}

#[test]
fn loom_what_is_given_back_above_a_lowered_limit_is_not_taken_again() {
    let seen = outcomes(limit_lowered_while_a_writer_takes_and_gives_back);
    assert!(seen.is_superset(&[(true, false, true), (true, true, false), (false, true, false)].into()), "{seen:?}");
}

#[test]
fn loom_mutant_windows_stay_open_above_a_lowered_limit() {
    fails("lowered_without_second_look", limit_lowered_while_a_writer_takes_and_gives_back);
}

/// Two threads ask for 6 each of 10 through one shared account.
fn shared_at_the_limit() -> (bool, bool) {
    let limiter = limited(10, 4);
    let account = limiter.shared_reporter("shared");
    let (other, took, granted) =
        at_once(account.clone(), |other| other.try_charge(6).is_ok(), || account.try_charge(6).is_ok());
    let held = limiter.held_bytes();
    assert_eq!(held, 6, "one of them");
    assert!(took != granted);
    account.release(6);
    drop((account, other));
    assert_nothing_left(&limiter);
    assert_eq!(limiter.reserved_bytes(), 0);
    (took, granted)
}

#[test]
fn loom_the_shared_form_at_the_limit() {
    assert_eq!(outcomes(shared_at_the_limit), [(true, false), (false, true)].into());
}

#[test]
fn loom_mutant_the_shared_form_past_the_limit() {
    fails("over_the_limit", shared_at_the_limit);
}

fn ask(account: &SharedReporter, bytes: usize) -> Result<(), ReserveError> {
    account.try_charge(bytes)
}

/// A shared account with credit for 3 uses it while a writer calls it back.
fn shared_credit_called_back(there: fn(&SharedReporter) -> bool) -> (bool, bool) {
    let limiter = limited(10, 4);
    let (account, writer) = (limiter.shared_reporter("shared"), limiter.reporter("writer"));
    let (account, took, granted) = at_once(account, there, || writer.try_charge(8).is_ok());
    let held = limiter.held_bytes();
    assert!(held <= 10, "{held} granted of 10");
    assert!(took || granted, "both refused");
    account.release(if took { 3 } else { 0 });
    writer.release(if granted { 8 } else { 0 });
    drop((account, writer));
    assert_nothing_left(&limiter);
    (took, granted)
}

#[test]
fn loom_shared_credit_is_called_back() {
    let seen = outcomes(|| shared_credit_called_back(|account| ask(account, 3).is_ok()));
    assert_eq!(seen, [(true, false), (false, true)].into());
}

#[test]
fn loom_mutant_a_shared_try_charge_that_does_not_look_again() {
    fails("shared_try_checks_before_only", || shared_credit_called_back(|account| ask(account, 3).is_ok()));
}

/// What exists is recorded past the limit; the same moment somebody asks.
fn overdraft_against_grant() -> (bool, usize) {
    let limiter = limited(10, 4);
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    let record: fn(&Reporter) = |first| first.charge(9);
    let (first, (), granted) = at_once(first, record, || second.try_charge(4).is_ok());
    let overdraft = limiter.stats().overdraft_peak_bytes;
    assert_eq!(overdraft, if granted { 3 } else { 0 }, "9 and 4 of 10");
    assert_eq!(limiter.overdraft_bytes(), overdraft);
    first.release(9);
    second.release(if granted { 4 } else { 0 });
    drop((first, second));
    assert_nothing_left(&limiter);
    (granted, overdraft)
}

#[test]
fn loom_an_overdraft_against_a_grant() {
    assert_eq!(outcomes(overdraft_against_grant), [(true, 3), (false, 0)].into());
}

/// The limit falls from 10 to 8; one writer has credit for 4 of it and does not use it, another asks for 6 meanwhile. Then the
/// first one uses its credit.
fn limit_lowered_against_credit() -> (bool, bool) {
    let limiter = limited(10, 5);
    let (idle, asker) = (limiter.reporter("idle"), limiter.reporter("asker"));
    let (asker, granted, _) =
        at_once(asker, |asker| asker.try_charge(6).is_ok(), || limiter.set_hard_limit_bytes(Some(8)).is_ok());
    let late = idle.try_charge(3).is_ok();
    assert!(!(granted && late), "granted past a limit that was in force: 9 of 8");
    idle.release(if late { 3 } else { 0 });
    asker.release(if granted { 6 } else { 0 });
    drop((idle, asker));
    assert_nothing_left(&limiter);
    (granted, late)
}

#[test]
fn loom_a_limit_that_is_lowered_against_credit_taken_before() {
    assert_eq!(outcomes(limit_lowered_against_credit), [(true, false)].into());
}

#[test]
fn loom_mutant_a_limit_is_lowered_and_credit_stays_where_it_is() {
    fails("lowered_without_moving", limit_lowered_against_credit);
}

/// A writer has 8 of 10, and somebody without an arena the 2 that are kept for such. It gives them back while the writer
/// asks for 2.
fn reserve_given_back_against_grant() -> bool {
    let limiter = GlobalMemoryLimiter::builder()
        .unlimited()
        .hard_limit_bytes(10)
        .reserve_bytes(2)
        .block_bytes(1)
        .quantum_bytes(0)
        .build()
        .expect("the numbers are valid");
    let (reader, writer) = (limiter.reporter("reader"), limiter.reporter("writer"));
    let arena = writer.arena("postings");
    writer.charge(8);
    reader.charge(2);
    let give_back: fn(&Reporter) = |reader| reader.release(2);
    let (reader, (), granted) = at_once(reader, give_back, || writer.try_charge(2).is_ok());
    assert!(!granted, "what is kept for others was granted");
    writer.release(8);
    drop((arena, writer, reader));
    assert_nothing_left(&limiter);
    granted
}

#[test]
fn loom_what_is_given_back_to_the_reserve_is_not_granted_to_a_writer() {
    assert_eq!(outcomes(reserve_given_back_against_grant), [false].into());
}

#[test]
fn loom_mutant_the_reserve_is_looked_at_before_only() {
    fails("reserve_checked_before_only", reserve_given_back_against_grant);
}
