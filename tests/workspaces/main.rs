//! Workspaces: a second, smaller budget under a writer's. Both are checked, the error says which refused, a refusal changes
//! nothing, and whatever came through a workspace is given back to both, by every route and on every thread.
#[path = "../common/mod.rs"]
mod common;
mod model;

use common::{count, events_of, fixed};
use plimsoll::{Account, GlobalMemoryLimiter, KIB, MIB, Refusal, Reporter, Reservation, ReserveError, Workspace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing::Level;

fn writer(cap: usize) -> (GlobalMemoryLimiter, Reporter) {
    let limiter = fixed().unlimited().writer_cap_bytes(cap).build().expect("a valid configuration");
    let reporter = limiter.reporter("logs/message");
    (limiter, reporter)
}

fn assert_nothing_left(limiter: &GlobalMemoryLimiter) {
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    assert_eq!((limiter.live_reporters(), limiter.live_arenas(), limiter.stats().accounting_errors), (0, 0, 0));
}

fn parts(error: ReserveError) -> (Refusal, usize, usize, usize) {
    (error.kind, error.asked_bytes, error.held_bytes, error.limit_bytes)
}

#[test]
fn both_limits_are_checked_and_the_error_says_which_refused() {
    let (limiter, reporter) = writer(1_000);
    let (postings, encoders) = (reporter.workspace("postings", 600), reporter.workspace("encoders", 700));
    let (in_postings, in_encoders) = (reporter.within(&postings), reporter.within(&encoders));
    let first = in_postings.try_reserve(600).expect("exactly the workspace's budget");
    assert!(!postings.over_budget());
    let error = in_postings.try_charge(1).expect_err("above it");
    assert_eq!(parts(error), (Refusal::Workspace, 1, 600, 600));
    assert_eq!(error.to_string(), "1 B more refused by the workspace: 600 B used of 600 B");
    let second = in_encoders.try_reserve(400).expect("exactly the cap, over both workspaces together");
    let error = in_encoders.try_charge(1).expect_err("the workspace has room, the writer has none");
    assert_eq!(parts(error), (Refusal::WriterCap, 1, 1_000, 1_000));
    let error = in_encoders.try_charge(301).expect_err("neither has");
    assert_eq!(parts(error), (Refusal::Workspace, 301, 400, 700), "the workspace is asked first");
    let error = in_encoders.try_charge(usize::MAX).expect_err("no counter has");
    assert_eq!((error.kind, error.limit_bytes), (Refusal::Overflow, isize::MAX as usize));
    assert_eq!((postings.used_bytes(), encoders.used_bytes(), reporter.held_bytes()), (600, 400, 1_000));
    assert_eq!((postings.available_bytes(), encoders.available_bytes()), (0, 300));
    assert_eq!((postings.name(), postings.budget_bytes()), ("postings", 600));
    drop((first, second, postings, encoders, reporter));
    assert_nothing_left(&limiter);
}

/// Every call that may refuse, refused by the workspace and refused by the writer's cap.
#[test]
fn a_refusal_changes_nothing_on_either_side() {
    for (budget, cap, kind) in [(300, 5_000, Refusal::Workspace), (5_000, 300, Refusal::WriterCap)] {
        let (limiter, reporter) = writer(cap);
        let workspace = reporter.workspace("postings", budget);
        let account = reporter.within(&workspace);
        let mut table = account.reserve(100);
        let mut arena = account.arena("blocks");
        arena.set_bytes(&reporter, 150);
        account.charge(50);
        reporter.flush();
        let look = |table: &Reservation, arena: &plimsoll::ArenaHandle| {
            let stats = limiter.stats();
            let totals =
                (workspace.used_bytes(), reporter.held_bytes(), limiter.held_bytes(), limiter.published_bytes());
            (totals, table.bytes(), arena.bytes(), stats.notifications, limiter.snapshot().writers)
        };
        let before = look(&table, &arena);
        assert_eq!(before.0, (300, 300, 300, 300));
        let errors = [
            account.try_charge(1).expect_err("full"),
            account.try_reserve(1).expect_err("full"),
            table.try_grow(&account, 1).expect_err("full"),
            table.try_resize(&account, 101).expect_err("full"),
            table.try_replace(&account, 1).expect_err("full"),
            arena.try_grow_bytes(&reporter, 1).expect_err("full"),
        ];
        for error in errors {
            assert_eq!(parts(error), (kind, 1, 300, 300));
        }
        assert_eq!(look(&table, &arena), before);
        table.try_resize(&account, 99).expect("less is never refused");
        account.try_charge(1).expect("one is free again");
        account.release(51);
        drop((table, arena, workspace, reporter));
        assert_nothing_left(&limiter);
    }
}

#[test]
fn calls_that_cannot_refuse_are_exact_above_the_budget() {
    let (limiter, reporter) = writer(10 * MIB);
    let workspace = reporter.workspace("postings", MIB);
    let account = reporter.within(&workspace);
    let mut table = account.reserve(MIB);
    table.grow(&account, 1);
    assert_eq!((workspace.used_bytes(), workspace.over_budget(), workspace.available_bytes()), (MIB + 1, true, 0));
    account.charge(7);
    table.resize(&account, 3 * MIB);
    assert_eq!((workspace.used_bytes(), reporter.held_bytes(), reporter.over_cap()), (3 * MIB + 7, 3 * MIB + 7, false));
    assert_eq!(account.try_charge(0).expect_err("above it even nothing is refused").kind, Refusal::Workspace);
    table.shrink(&account, 2 * MIB + 7);
    assert!(!workspace.over_budget());
    account.try_charge(0).expect("at exactly the budget");
    account.release(7);
    table.free_with(&account);
    assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (0, 0));
    drop((workspace, reporter));
    assert_nothing_left(&limiter);
}

/// What an index writer does with a posting workspace: blocks without asking, and a spill of its own once it is over.
#[test]
fn a_posting_arena_spills_at_its_workspaces_budget() {
    let (limiter, reporter) = writer(512 * MIB);
    let postings = reporter.workspace("postings", 32 * MIB);
    let mut arena = reporter.within(&postings).arena("blocks");
    let mut largest = 0;
    for _ in 0..5_000 {
        arena.set_bytes(&reporter, arena.bytes() + 32 * KIB);
        largest = largest.max(postings.used_bytes());
        if postings.over_budget() {
            arena.begin_own_spill(&reporter).expect("not empty").finish(32 * KIB);
            assert_eq!((postings.used_bytes(), reporter.held_bytes()), (32 * KIB, 32 * KIB));
        }
    }
    assert_eq!((largest, arena.runs()), (32 * MIB + 32 * KIB, 4));
    // A spill that fails leaves everything where it was, one that leaves more than there was counts it.
    let before = arena.bytes();
    drop(arena.begin_own_spill(&reporter).expect("not empty"));
    assert_eq!((postings.used_bytes(), reporter.held_bytes()), (before, before));
    arena.begin_own_spill(&reporter).expect("not empty").finish(before + 1);
    assert_eq!((postings.used_bytes(), reporter.held_bytes()), (before + 1, before + 1));
    arena.set_bytes(&reporter, 0);
    // The other policy: asked before each block.
    let mut blocks = 0;
    let error = loop {
        match arena.try_grow_bytes(&reporter, 32 * KIB) {
            Ok(()) => blocks += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((blocks, parts(error)), (1_024, (Refusal::Workspace, 32 * KIB, 32 * MIB, 32 * MIB)));
    drop(arena);
    assert_eq!((postings.used_bytes(), reporter.held_bytes()), (0, 0));
    drop((postings, reporter));
    assert_nothing_left(&limiter);
}

#[test]
fn an_arena_in_a_workspace_is_still_the_limiters_victim() {
    let limiter = fixed().budget_bytes(10 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("logs/message");
    let postings = reporter.workspace("postings", 32 * MIB);
    let mut arena = reporter.within(&postings).arena_with_address_space("blocks", 64 * MIB);
    arena.set_bytes(&reporter, 11 * MIB);
    assert_eq!((arena.max_bytes(), common::spill_if_asked(&mut arena, &reporter)), (64 * MIB, Some(11 * MIB)));
    assert_eq!((postings.used_bytes(), limiter.held_bytes()), (0, 0));
    drop((arena, postings, reporter));
    assert_nothing_left(&limiter);
}

#[test]
fn a_reservation_dropped_on_another_thread_gives_back_to_both() {
    let (limiter, reporter) = writer(2_000);
    let workspace = reporter.workspace("postings", 1_000);
    let account = reporter.within(&workspace);
    for _ in 0..100 {
        let full: Vec<_> = (0..10).map(|_| account.try_reserve(100).expect("ten fit")).collect();
        assert!(account.try_charge(1).is_err());
        std::thread::scope(|scope| {
            for reservation in full {
                scope.spawn(move || drop(reservation));
            }
        });
        assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (0, 0));
    }
    // The other routes that do without the account.
    let mut table = account.reserve(900);
    drop(table.split(300));
    drop(table.take().split(100));
    let mut scratch = account.reserve(50);
    assert_eq!((scratch.free(), scratch.free()), (50, 0));
    assert_eq!((workspace.used_bytes(), reporter.held_bytes(), table.bytes()), (0, 0, 0));
    drop((table, scratch, workspace, reporter));
    assert_nothing_left(&limiter);
}

/// Dropped elsewhere while the owner goes on: nothing is lost, and the workspace is never above its budget.
#[test]
fn drops_elsewhere_and_changes_here_lose_nothing() {
    let (limiter, reporter) = writer(MIB);
    let workspace = reporter.workspace("postings", 64 * KIB);
    let (send, receive) = std::sync::mpsc::channel::<Reservation>();
    let dropper = std::thread::spawn(move || receive.into_iter().map(|reservation| reservation.bytes()).sum::<usize>());
    let account = reporter.within(&workspace);
    let (mut table, mut sent) = (account.reserve(0), 0);
    for round in 0..50_000_usize {
        let bytes = round * 37 % 4_096;
        if let Ok(reservation) = account.try_reserve(bytes) {
            sent += bytes;
            send.send(reservation).expect("it listens");
        }
        // Refused while too much of what was sent is not dropped yet: then it stays as it is.
        let _ = table.try_resize(&account, bytes);
        assert!(workspace.used_bytes() <= 64 * KIB);
        assert!(workspace.used_bytes() >= table.bytes());
    }
    drop(send);
    assert_eq!(dropper.join().expect("no panic there"), sent);
    assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (table.bytes(), table.bytes()));
    drop((table, workspace, reporter));
    assert_nothing_left(&limiter);
}

#[test]
fn a_workspace_moves_to_another_thread_with_its_reporter() {
    let (limiter, mut reporter) = writer(MIB);
    let mut workspace = reporter.workspace("postings", 10_000);
    let mut kept = vec![];
    for n in 1..=8 {
        (reporter, workspace, kept) = std::thread::spawn(move || {
            kept.push(reporter.within(&workspace).try_reserve(1_000).expect("eight fit"));
            assert_eq!(workspace.used_bytes(), n * 1_000);
            (reporter, workspace, kept)
        })
        .join()
        .expect("no panic there");
    }
    assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (8_000, 8_000));
    drop((kept, workspace, reporter));
    assert_nothing_left(&limiter);
}

#[test]
fn a_writer_that_panics_gives_back_all_of_it_to_both() {
    let (limiter, reporter) = writer(MIB);
    let workspace = reporter.workspace("postings", 500 * KIB);
    let kept = reporter.within(&workspace).reserve(7);
    let caught = catch_unwind(|| {
        let account = reporter.within(&workspace);
        let mut arena = account.arena("blocks");
        arena.set_bytes(&reporter, 100 * KIB);
        let mut table = account.reserve(1_000);
        let _spill = arena.begin_own_spill(&reporter);
        let _copying = table.replace(&account, 2_000);
        assert_eq!(workspace.used_bytes(), 0, "the writer's own panic");
    });
    assert!(caught.is_err());
    assert_eq!((workspace.used_bytes(), reporter.held_bytes(), limiter.live_arenas()), (7, 7, 0));
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _held = (kept, workspace, reporter);
        panic!("with everything it has");
    }));
    assert!(caught.is_err());
    assert_nothing_left(&limiter);
}

#[test]
fn reservations_and_arenas_outlive_their_workspace_and_their_reporter() {
    let (limiter, reporter) = writer(MIB);
    let workspace = reporter.workspace("postings", 500 * KIB);
    let table = reporter.within(&workspace).reserve(1_000);
    let mut arena = reporter.within(&workspace).arena("blocks");
    arena.set_bytes(&reporter, 2_000);
    drop(workspace);
    arena.set_bytes(&reporter, 3_000);
    assert_eq!((reporter.held_bytes(), limiter.held_bytes()), (4_000, 4_000));
    drop(reporter);
    assert_eq!(limiter.held_bytes(), 4_000);
    drop(table);
    std::thread::spawn(move || drop(arena)).join().expect("no panic there");
    assert_nothing_left(&limiter);
}

#[test]
fn what_was_charged_by_hand_and_not_released_is_drained_and_told() {
    let events = events_of(|| {
        let (limiter, reporter) = writer(10 * MIB);
        let workspace = reporter.workspace("postings", MIB);
        let account = reporter.within(&workspace);
        account.charge(900);
        account.release(100);
        reporter.charge(50);
        let last = account.reserve(1_000);
        drop(workspace);
        assert_eq!((reporter.held_bytes(), limiter.stats().accounting_errors), (1_850, 0));
        drop(last);
        assert_eq!((reporter.held_bytes(), limiter.held_bytes()), (50, 50), "the writer's own charge stays");
        let stats = limiter.stats();
        assert_eq!((stats.accounting_errors, stats.accounting_error_bytes), (1, 800));
        reporter.release(50);
        drop(reporter);
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.live_reporters()), (0, 0, 0));
    });
    let text = "logs/message/postings was dropped with 800 B not released: drained";
    assert_eq!(count(&events, Level::WARN, text), 1, "{events:?}");
}

/// Releasing more than the workspace has: it gives back what it has, to both, and the writer's other bytes stay.
#[test]
fn a_release_of_more_than_the_workspace_has_is_told_and_takes_nothing_of_the_writers() {
    let events = events_of(|| {
        let (limiter, reporter) = writer(10 * MIB);
        let workspace = reporter.workspace("postings", MIB);
        reporter.charge(5_000);
        let account = reporter.within(&workspace);
        account.charge(100);
        let caught = catch_unwind(AssertUnwindSafe(|| account.release(130)));
        assert_eq!(caught.is_err(), cfg!(debug_assertions), "debug builds assert");
        assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (0, 5_000));
        let stats = limiter.stats();
        assert_eq!((stats.accounting_errors, stats.accounting_error_bytes), (1, 30));
        account.try_charge(MIB).expect("the workspace goes on");
        account.release(MIB);
        reporter.release(5_000);
        drop((workspace, reporter));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
    });
    let text = "logs/message/postings released 30 B more than it held: clamped at 0";
    assert_eq!(count(&events, Level::WARN, text), 1, "{events:?}");
}

#[test]
fn a_replacement_covers_both_buffers_in_both() {
    let (limiter, reporter) = writer(10 * MIB);
    let workspace = reporter.workspace("tables", 6 * MIB);
    let account = reporter.within(&workspace);
    let mut table = account.reserve(2 * MIB);
    let copying = table.try_replace(&account, 4 * MIB).expect("exactly the workspace's budget");
    assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (6 * MIB, 6 * MIB));
    drop(copying); // the allocation failed
    assert_eq!((workspace.used_bytes(), reporter.held_bytes(), table.bytes()), (2 * MIB, 2 * MIB, 2 * MIB));
    let refused = table.try_replace(&account, 4 * MIB + 1).expect_err("both together pass the budget");
    assert_eq!(parts(refused), (Refusal::Workspace, 4 * MIB + 1, 2 * MIB, 6 * MIB));
    table.replace(&account, 5 * MIB).commit();
    assert_eq!((workspace.used_bytes(), reporter.held_bytes(), table.bytes()), (5 * MIB, 5 * MIB, 5 * MIB));
    drop((table, workspace, reporter));
    assert_nothing_left(&limiter);
}

#[test]
fn bytes_go_from_one_workspace_to_another_and_to_none() {
    let (limiter, reporter) = writer(10 * MIB);
    let (one, two) = (reporter.workspace("one", MIB), reporter.workspace("two", 500));
    let other = limiter.shared_reporter("spill");
    let foreign_limiter = fixed().unlimited().build().expect("a valid configuration");
    let foreign = foreign_limiter.reporter("elsewhere");
    let (theirs, far) = (other.workspace("theirs", MIB), foreign.workspace("far", MIB));
    let mut buffer = reporter.within(&one).reserve(800);
    let used = || (one.used_bytes(), two.used_bytes(), theirs.used_bytes(), far.used_bytes());
    let held = || (reporter.held_bytes(), other.held_bytes(), foreign.held_bytes());
    assert_eq!((used(), held()), ((800, 0, 0, 0), (800, 0, 0)));
    buffer.transfer(&reporter.within(&one));
    assert_eq!((used(), held()), ((800, 0, 0, 0), (800, 0, 0)), "to itself");
    buffer.transfer(&reporter.within(&two));
    assert_eq!((used(), held(), two.over_budget()), ((0, 800, 0, 0), (800, 0, 0), true));
    buffer.transfer(&reporter);
    assert_eq!((used(), held()), ((0, 0, 0, 0), (800, 0, 0)));
    buffer.transfer(&other.within(&theirs));
    assert_eq!((used(), held()), ((0, 0, 800, 0), (0, 800, 0)));
    buffer.transfer(&foreign.within(&far));
    assert_eq!((used(), held()), ((0, 0, 0, 800), (0, 0, 800)));
    buffer.transfer(&foreign);
    buffer.transfer(&reporter.within(&one));
    assert_eq!((used(), held()), ((800, 0, 0, 0), (800, 0, 0)));

    // Merging asks for the same workspace.
    let plain = reporter.reserve(5);
    let plain = buffer.merge(plain).expect_err("it came through no workspace");
    let mut strange = reporter.within(&two).reserve(6);
    strange = buffer.merge(strange).expect_err("it came through another one");
    strange.transfer(&reporter.within(&one));
    buffer.merge(strange).expect("of one workspace");
    assert_eq!((buffer.bytes(), used(), held()), (806, (806, 0, 0, 0), (811, 0, 0)));
    assert_eq!(buffer.writer(), "logs/message");
    drop((plain, buffer, one, two, theirs, far, reporter, other, foreign));
    assert_nothing_left(&limiter);
    assert_nothing_left(&foreign_limiter);
}

/// Several threads, each with a workspace of its own, under one account with a cap.
#[test]
fn a_shared_account_is_capped_over_the_workspaces_of_all_its_threads() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let cache = limiter.shared_reporter_with_cap("cache", 10_000);
    let refusals: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let cache = cache.clone();
                scope.spawn(move || {
                    let workspace = cache.workspace("part", 4_000);
                    let account = cache.within(&workspace);
                    let mut kept = vec![];
                    let mut refused = (0, 0);
                    for round in 0..20_000_usize {
                        match account.try_reserve((round * 31 + n) % 700) {
                            Ok(reservation) => kept.push(reservation),
                            Err(error) if error.kind == Refusal::Workspace => refused.0 += 1,
                            Err(error) => {
                                assert_eq!(error.kind, Refusal::WriterCap);
                                refused.1 += 1;
                            }
                        }
                        let sum: usize = kept.iter().map(Reservation::bytes).sum();
                        assert_eq!(workspace.used_bytes(), sum);
                        assert!(sum <= 4_000 && cache.held_bytes() <= 10_000);
                        if round % 16 == 0 {
                            kept.clear();
                        }
                    }
                    refused
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic there")).collect()
    });
    assert!(refusals.iter().any(|refused| refused.0 > 0), "{refusals:?}");
    assert_eq!(cache.held_bytes(), 0);
    drop(cache);
    assert_nothing_left(&limiter);
}

/// The two words of a workspace only ever grow apart, and wrap.
#[test]
fn counters_that_wrap_are_exact() {
    let (limiter, reporter) = writer(usize::MAX);
    let workspace = reporter.workspace("absurd", usize::MAX);
    let account = reporter.within(&workspace);
    for _ in 0..40 {
        let half = account.try_reserve(isize::MAX as usize / 2).expect("half of what a counter holds");
        assert_eq!(workspace.used_bytes(), isize::MAX as usize / 2);
        drop(half);
        assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (0, 0));
    }
    account.charge(5);
    let error = account.try_charge(isize::MAX as usize).expect_err("the writer has no counter for it");
    assert_eq!(parts(error), (Refusal::Overflow, isize::MAX as usize, 5, isize::MAX as usize));
    account.release(5);
    drop((workspace, reporter));
    assert_nothing_left(&limiter);
}

#[test]
fn a_workspace_of_nothing_refuses_everything_but_nothing() {
    let (limiter, reporter) = writer(MIB);
    let workspace = reporter.workspace("none", 0);
    let account = reporter.within(&workspace);
    let nothing = account.try_reserve(0).expect("nothing fits");
    assert_eq!(account.try_charge(1).expect_err("one does not").limit_bytes, 0);
    drop((nothing, workspace, reporter));
    assert_nothing_left(&limiter);
}

#[cfg(debug_assertions)]
mod debug {
    use super::*;

    #[test]
    #[should_panic(expected = "plimsoll: workspace of logs/message was changed through other")]
    fn a_workspace_used_through_another_writers_reporter_asserts() {
        let (limiter, reporter) = writer(MIB);
        let workspace = reporter.workspace("postings", 1_000);
        limiter.reporter("other").within(&workspace).charge(1);
    }

    #[test]
    #[should_panic(expected = "plimsoll: reservation of logs/message/postings was changed through logs/message")]
    fn a_reservation_changed_past_its_workspace_asserts() {
        let (_limiter, reporter) = writer(MIB);
        let workspace = reporter.workspace("postings", 1_000);
        reporter.within(&workspace).reserve(5).grow(&reporter, 1);
    }

    #[test]
    #[should_panic(expected = "plimsoll: reservation of logs/message was changed through logs/message/postings")]
    fn a_reservation_changed_through_a_workspace_that_it_did_not_come_through_asserts() {
        let (_limiter, reporter) = writer(MIB);
        let workspace = reporter.workspace("postings", 1_000);
        reporter.reserve(5).shrink(&reporter.within(&workspace), 1);
    }
}

#[cfg(not(debug_assertions))]
mod release {
    use super::*;

    /// The writer's sum is right whatever was mixed up; what the workspace is left with is told at its end.
    #[test]
    fn mixed_up_accounts_leave_the_writers_sum_right() {
        let (limiter, reporter) = writer(MIB);
        let workspace = reporter.workspace("postings", 1_000);
        let mut past = reporter.within(&workspace).reserve(5);
        past.grow(&reporter, 100); // not seen by the workspace
        assert_eq!((workspace.used_bytes(), reporter.held_bytes(), limiter.stats().accounting_errors), (5, 105, 0));
        drop(past);
        assert_eq!((workspace.used_bytes(), reporter.held_bytes()), (0, 0));
        let mut into = reporter.reserve(50);
        into.grow(&reporter.within(&workspace), 7); // goes over to the workspace
        assert_eq!((into.bytes(), reporter.held_bytes(), limiter.stats().accounting_errors), (57, 57, 1));
        drop(into);
        let other = limiter.reporter("other");
        let elsewhere = other.within(&workspace).reserve(30);
        assert_eq!((other.held_bytes(), reporter.held_bytes()), (30, 0));
        drop(elsewhere);
        drop(workspace);
        assert_eq!(limiter.stats().accounting_errors, 2, "the workspace is 100 below zero");
        drop((reporter, other));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.live_reporters()), (0, 0, 0));
    }
}

/// An account within a workspace is an account like the others.
#[test]
fn code_that_takes_any_account_takes_one_within_a_workspace() {
    fn fill(account: &impl Account, table: &mut Reservation) -> usize {
        let mut steps = 0;
        while table.try_grow(account, 100).is_ok() {
            steps += 1;
        }
        steps
    }
    let (_limiter, reporter) = writer(2_000);
    let workspace = reporter.workspace("postings", 1_000);
    let account = reporter.within(&workspace);
    assert_eq!(fill(&account, &mut account.reserve(0)), 10);
    assert_eq!(fill(&reporter, &mut reporter.reserve(0)), 20);
}
