//! What can be configured and what is refused. B29: large budgets. B31: budgets below one block a writer. B64: zero is an
//! error, unlimited is its own word. R1: a share of the process limit, with the correction that it never passes that limit.
mod common;

use common::{count, events_of};
use plimsoll::{ConfigError, GIB, GlobalMemoryLimiter, KIB, LimiterBuilder, MIB, Origin};
use tracing::Level;

fn builder() -> LimiterBuilder {
    GlobalMemoryLimiter::builder()
}

fn built(builder: LimiterBuilder) -> GlobalMemoryLimiter {
    builder.build().expect("a valid configuration")
}

fn refused(builder: LimiterBuilder) -> ConfigError {
    builder.build().expect_err("it cannot work")
}

/// B64.
#[test]
fn a_budget_of_zero_is_an_error_and_unlimited_is_a_word_of_its_own() {
    assert_eq!(refused(builder().budget_bytes(0)), ConfigError::ZeroBudget);
    assert_eq!(refused(builder().budget_percent(50, Some(0))), ConfigError::ZeroBudget);
    assert_eq!(refused(builder().unlimited().block_bytes(0)), ConfigError::ZeroBlock);
    assert_eq!(refused(builder().unlimited().writer_cap_bytes(0)), ConfigError::ZeroWriterCap);
    let limiter = built(builder().budget_bytes(0).unlimited());
    assert_eq!((limiter.budget_bytes(), limiter.available_bytes()), (None, usize::MAX));
    assert_eq!(limiter.effective().budget_bytes, (None, Origin::Option));
    assert_eq!(limiter.set_budget_bytes(0), Err(ConfigError::ZeroBudget));
    assert_eq!(limiter.budget_bytes(), None, "nothing has changed");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 100 * GIB);
    assert!(!arena.spill_requested());
    assert_eq!(limiter.stats().decisions, 0);
}

/// B29.
#[test]
fn large_budgets_are_accepted() {
    for budget in [4 * GIB, 16 * GIB, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        let limiter = built(builder().budget_bytes(budget).writers_hint(1_000));
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 4 * GIB - 1);
        assert!(!arena.spill_requested());
        assert_eq!(limiter.available_bytes(), if budget == usize::MAX { budget } else { budget - (4 * GIB - 1) });
        assert_eq!(limiter.effective().floor_bytes.0, 64 * MIB);
    }
}

/// B31: the message names the least that works.
#[test]
fn a_budget_below_one_block_a_writer_is_refused_and_the_minimum_named() {
    let eight = |budget| builder().budget_bytes(budget).block_bytes(MIB).writers_hint(8);
    assert_eq!(refused(eight(0)), ConfigError::ZeroBudget);
    for budget in [1, 4 * KIB, MIB, 8 * MIB - 1] {
        let error = refused(eight(budget));
        let wanted = ConfigError::BudgetBelowMinimum { budget_bytes: budget, minimum_bytes: 8 * MIB, writers: 8 };
        assert_eq!(error, wanted, "{budget}");
        assert!(error.to_string().contains("below the minimum 8 MiB"), "{error}");
    }
    built(eight(8 * MIB));
    built(builder().unlimited().block_bytes(MIB).writers_hint(usize::MAX / 2));
    let error = refused(builder().budget_bytes(GIB).block_bytes(MIB).writers_hint(usize::MAX));
    assert!(matches!(error, ConfigError::BudgetBelowMinimum { minimum_bytes: usize::MAX, .. }), "no wrap: {error:?}");
}

#[test]
fn the_floor_is_at_most_64_mib_a_sixteenth_of_the_budget_and_never_below_a_block() {
    let floor = |builder| built(builder).effective().floor_bytes;
    assert_eq!(floor(builder().unlimited()), (64 * MIB, Origin::Default));
    assert_eq!(floor(builder().budget_bytes(2 * GIB)), (64 * MIB, Origin::Derived));
    assert_eq!(floor(builder().budget_bytes(64 * MIB)), (4 * MIB, Origin::Derived));
    assert_eq!(floor(builder().budget_bytes(64 * KIB)), (32 * KIB, Origin::Derived));
    assert_eq!(floor(builder().budget_bytes(64 * MIB).block_bytes(16 * MIB)), (16 * MIB, Origin::Derived));
    assert_eq!(floor(builder().budget_bytes(64 * MIB).floor_bytes(MIB)), (MIB, Origin::Option));
    let above = ConfigError::FloorAboveBudget { floor_bytes: MIB + 1, budget_bytes: MIB };
    assert_eq!(refused(builder().budget_bytes(MIB).floor_bytes(MIB + 1)), above);
    built(builder().budget_bytes(MIB).floor_bytes(MIB));
}

/// R1, the share rule.
#[test]
fn a_share_of_the_process_limit_is_clamped_and_switched_off_by_zero_or_an_unknown_limit() {
    let budget = |percent, limit| built(builder().budget_percent(percent, limit)).effective().budget_bytes;
    assert_eq!(budget(25, Some(8 * GIB)), (Some(2 * GIB), Origin::Derived));
    assert_eq!(budget(1_000, Some(8 * GIB)), (Some(8 * GIB), Origin::Derived));
    assert_eq!(budget(100, Some(usize::MAX - 1)), (Some(usize::MAX - 1), Origin::Derived));
    assert_eq!(budget(99, Some(usize::MAX)).0, Some((usize::MAX as u128 * 99 / 100) as usize), "no overflow");
    assert_eq!(budget(0, Some(8 * GIB)), (None, Origin::Derived));
    assert_eq!(budget(50, None), (None, Origin::Derived));
}

/// R1: never below four writer caps (512 MiB each there, so 2 GiB).
#[test]
fn a_share_is_never_below_four_writer_caps() {
    let limiter = built(builder().budget_percent(1, Some(64 * GIB)).writer_cap_bytes(512 * MIB));
    assert_eq!(limiter.budget_bytes(), Some(2 * GIB));
    assert_eq!(limiter.effective().writer_cap_bytes, (Some(512 * MIB), Origin::Option));
    let limiter = built(builder().budget_percent(50, Some(64 * GIB)).writer_cap_bytes(512 * MIB));
    assert_eq!(limiter.budget_bytes(), Some(32 * GIB));
}

/// DESIGN.md's correction: never above the process limit; the cap gives way, with one warning.
#[test]
fn where_four_caps_pass_the_process_limit_the_cap_shrinks_with_one_warning() {
    let events = events_of(|| {
        let limiter = built(builder().budget_percent(10, Some(GIB)).writer_cap_bytes(512 * MIB));
        assert_eq!(limiter.budget_bytes(), Some(GIB));
        assert_eq!(limiter.effective().writer_cap_bytes, (Some(256 * MIB), Origin::Derived));
        let reporter = limiter.reporter("writer");
        assert_eq!(reporter.cap_bytes(), Some(256 * MIB));
        reporter.try_charge(256 * MIB).expect("up to the cap");
        assert_eq!(reporter.try_charge(1).expect_err("above it").limit_bytes, 256 * MIB);
        reporter.release(256 * MIB);
    });
    assert_eq!(
        count(&events, Level::WARN, "four writer caps of 512 MiB are more than the process limit: the cap is 256 MiB"),
        1
    );
    assert_eq!(count(&events, Level::WARN, ""), 1);
    let exactly = events_of(|| {
        let limiter = built(builder().budget_percent(10, Some(2 * GIB)).writer_cap_bytes(512 * MIB));
        assert_eq!((limiter.budget_bytes(), limiter.effective().writer_cap_bytes.0), (Some(2 * GIB), Some(512 * MIB)));
    });
    assert_eq!(exactly, [], "four caps that just fit are no reason to warn");
    let limiter = built(builder().budget_percent(100, Some(usize::MAX)).writer_cap_bytes(usize::MAX - 1));
    assert_eq!(limiter.effective().writer_cap_bytes.0, Some(usize::MAX / 4), "no overflow");
    let tiny = built(builder().budget_percent(100, Some(100)).block_bytes(1).writer_cap_bytes(50));
    assert_eq!(tiny.effective().writer_cap_bytes.0, Some(25));
}

/// A change of one setting leaves what the others are, and where they came from.
#[test]
fn changing_one_setting_keeps_the_others_and_their_origins() {
    let limiter = built(builder().budget_percent(25, Some(8 * GIB)).writer_cap_bytes(64 * MIB).quantum_bytes(64 * KIB));
    let before = limiter.effective();
    limiter.set_floor_bytes(8 * MIB).expect("valid");
    let after = limiter.effective();
    assert_eq!(after.floor_bytes, (8 * MIB, Origin::Option));
    assert_eq!((after.budget_bytes, after.writer_cap_bytes), (before.budget_bytes, before.writer_cap_bytes));
    assert_eq!((after.block_bytes, after.quantum_bytes), (before.block_bytes, before.quantum_bytes));
    assert_eq!(
        limiter.set_floor_bytes(3 * GIB).map_err(|error| error.to_string()).expect_err("above the budget"),
        "floor_bytes 3 GiB is above budget_bytes 2 GiB: no arena could ever be asked to spill"
    );
    assert_eq!(
        limiter.set_budget_bytes(4 * MIB).expect_err("below the floor that was given"),
        ConfigError::FloorAboveBudget { floor_bytes: 8 * MIB, budget_bytes: 4 * MIB }
    );
    assert_eq!(limiter.effective(), after, "nothing has changed");
    limiter.set_writer_cap_bytes(None).expect("valid");
    assert_eq!(limiter.effective().writer_cap_bytes, (None, Origin::Default));
    assert_eq!(limiter.set_writer_cap_bytes(Some(0)), Err(ConfigError::ZeroWriterCap));
    limiter.set_unlimited();
    assert_eq!(limiter.effective().floor_bytes, (8 * MIB, Origin::Option));
}

#[test]
fn a_cap_that_changes_is_in_effect_with_the_next_call_of_writers_without_their_own() {
    for limiter in [builder().unlimited(), builder().budget_bytes(64 * MIB).without_process_barrier()].map(built) {
        let (plain, own) = (limiter.reporter("plain"), limiter.reporter_with_cap("own", 100));
        let shared = limiter.shared_reporter("shared");
        plain.try_charge(60).expect("no cap yet");
        shared.try_charge(60).expect("no cap yet");
        limiter.set_writer_cap_bytes(Some(50)).expect("valid");
        assert_eq!((plain.cap_bytes(), own.cap_bytes(), shared.cap_bytes()), (Some(50), Some(100), Some(50)));
        assert!(plain.over_cap() && shared.over_cap() && !own.over_cap(), "held before, and counted");
        assert!(plain.try_charge(1).is_err() && shared.try_charge(1).is_err());
        own.try_charge(100).expect("its own cap stays");
        limiter.set_writer_cap_bytes(None).expect("valid");
        plain.try_charge(1).expect("no cap any more");
        shared.try_charge(1).expect("no cap any more");
        own.set_cap_bytes(Some(101));
        own.try_charge(1).expect("raised");
        assert!(own.try_charge(1).is_err());
        own.set_cap_bytes(None);
        own.try_charge(1).expect("the limiter's is none");
        shared.set_cap_bytes(Some(61));
        assert!(shared.try_charge(1).is_err());
        assert_eq!((limiter.reporter("late").cap_bytes(), limiter.held_bytes()), (None, 61 + 102 + 61));
        plain.release(61);
        own.release(102);
        shared.release(61);
    }
}

#[test]
fn a_floor_that_was_not_given_follows_the_budget() {
    let limiter = built(builder().budget_bytes(64 * MIB));
    limiter.set_budget_bytes(16 * MIB).expect("valid");
    assert_eq!(limiter.effective().floor_bytes, (MIB, Origin::Derived));
    limiter.set_unlimited();
    assert_eq!(limiter.effective().floor_bytes, (64 * MIB, Origin::Default));
}
