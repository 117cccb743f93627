//! Every text that a person reads, pinned: errors, settings, the table of a snapshot.
mod common;

use common::fixed;
use plimsoll::{ConfigError, GIB, GlobalMemoryLimiter, InstallError, KIB, MIB, Origin, PassedOver, PressureSource};

#[test]
fn refusals_name_what_was_asked_what_is_held_and_the_limit() {
    let limiter = fixed().unlimited().writer_cap_bytes(64 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    reporter.charge(63 * MIB + 512 * KIB);
    let error = reporter.try_charge(MIB).expect_err("above the cap");
    assert_eq!(error.to_string(), "1 MiB more refused by writer_cap_bytes: 63.5 MiB held of 64 MiB");
    let error = reporter.try_reserve(usize::MAX).expect_err("above any counter");
    assert_eq!(error.to_string(), "16777215.9 TiB more refused: beyond what a counter can hold, 63.5 MiB held");
    let mut arena = reporter.arena_with_address_space("postings", 2 * GIB);
    let error = arena.try_grow_bytes(&reporter, 3 * GIB).expect_err("past the end");
    assert_eq!(error.to_string(), "3 GiB more refused by arena_with_address_space: 0 B used of 2 GiB");
    reporter.release(63 * MIB + 512 * KIB);
    let workspace = reporter.workspace("postings", 32 * MIB);
    let account = reporter.within(&workspace);
    account.charge(31 * MIB);
    let error = account.try_charge(MIB + 512 * KIB).expect_err("above the workspace's budget");
    assert_eq!(error.to_string(), "1.5 MiB more refused by the workspace: 31 MiB used of 32 MiB");
    account.release(31 * MIB);
}

#[test]
fn configuration_errors_name_the_option_to_change() {
    let below = ConfigError::BudgetBelowMinimum { budget_bytes: 8 * MIB - 1, minimum_bytes: 8 * MIB, writers: 8 };
    let above = ConfigError::FloorAboveBudget { floor_bytes: 64 * MIB, budget_bytes: 1_536 * KIB };
    let texts = [
        (ConfigError::ZeroBudget, "budget_bytes is 0: give a budget, or say unlimited()"),
        (ConfigError::ZeroBlock, "block_bytes is 0: give the size of an arena's block"),
        (ConfigError::ZeroWriterCap, "writer_cap_bytes is 0: give a cap, or leave it out"),
        (ConfigError::ZeroHardLimit, "hard_limit_bytes is 0: give a limit, or leave it out"),
        (
            ConfigError::BudgetAboveHardLimit { budget_bytes: 64 * MIB, hard_limit_bytes: 32 * MIB },
            "budget_bytes 64 MiB is above hard_limit_bytes 32 MiB: nobody would be asked to spill before others are refused",
        ),
        (
            ConfigError::ReserveAboveBudget { reserve_bytes: 8 * MIB, budget_bytes: 8 * MIB },
            "reserve_bytes 8 MiB leaves nothing of the budget 8 MiB for writers that can spill",
        ),
        (above, "floor_bytes 64 MiB is above budget_bytes 1.5 MiB: no arena could ever be asked to spill"),
        (below, "budget_bytes 7.9 MiB is below the minimum 8 MiB: one block for each of 8 writers"),
    ];
    for (error, text) in texts {
        assert_eq!(error.to_string(), text);
        assert_eq!(InstallError::from(error).to_string(), text);
    }
    assert_eq!(InstallError::AlreadyInstalled.to_string(), "the process-wide limiter is installed already");
}

#[test]
fn words_for_sources_reasons_and_origins() {
    let sources = [PressureSource::Budget, PressureSource::System, PressureSource::Process].map(|s| s.to_string());
    assert_eq!(sources, ["budget", "system memory", "process memory"]);
    let reasons =
        [PassedOver::InFlight, PassedOver::BelowFloor, PassedOver::Exempt, PassedOver::NotNeeded, PassedOver::MovedOn];
    assert_eq!(
        reasons.map(|reason| reason.to_string()),
        ["in flight already", "below the floor", "exempt after a failed spill", "not needed", "moved on by itself"]
    );
    let origins = [Origin::Default, Origin::Option, Origin::Derived].map(|origin| origin.to_string());
    assert_eq!(origins, ["default", "option", "derived"]);
}

#[test]
fn effective_prints_a_line_for_each_setting_and_where_it_came_from() {
    let limiter =
        GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).writer_cap_bytes(32 * MIB).build().expect("valid");
    let writers = [limiter.reporter("a"), limiter.reporter("b")];
    let barrier = if limiter.effective().process_barrier { "process-wide" } else { "none, owners move their windows" };
    assert_eq!(
        limiter.effective().to_string(),
        format!(
            "budget       64 MiB in all (option)\n\
             hard limit   none\n\
             reserve      0 B\n\
             floor        4 MiB (derived)\n\
             writer cap   32 MiB (option)\n\
             block        32 KiB (default)\n\
             quantum      1 MiB a reporter (derived)\n\
             lag budget   4 MiB in all (derived)\n\
             lag bound    1.9 MiB in all\n\
             counts       everything held\n\
             barrier      {barrier}\n\
             selector     largest-first"
        )
    );
    drop(writers);
    let limiter = GlobalMemoryLimiter::builder().quantum_bytes(0).writer_share(true).build().expect("valid");
    assert_eq!(
        limiter.effective().to_string(),
        format!(
            "budget       unlimited in all (default)\n\
             hard limit   none\n\
             reserve      0 B\n\
             floor        64 MiB (default)\n\
             writer cap   none (default)\n\
             block        32 KiB (default)\n\
             quantum      0, every change is published (option)\n\
             lag budget   unlimited in all (default)\n\
             lag bound    0 B in all\n\
             counts       writers with an arena\n\
             barrier      {barrier}\n\
             selector     largest-first"
        )
    );
}

#[test]
fn a_snapshot_prints_a_small_table_the_largest_writer_first() {
    let limiter = fixed().name("node").budget_bytes(10 * MIB).build().expect("a valid configuration");
    let (logs, merge) = (limiter.reporter("logs/message"), limiter.reporter("merge"));
    let mut arena = logs.arena("postings");
    arena.set_bytes(&logs, 2 * MIB);
    arena.begin_own_spill(&logs).expect("not empty").finish(0);
    merge.charge(3 * MIB);
    arena.set_bytes(&logs, 8 * MIB);
    logs.charge(512);
    assert_eq!(
        limiter.snapshot().to_string(),
        "node: 11 MiB held of 10 MiB, 11 MiB published, lag at most 1.9 MiB, 8 MiB in flight\n\
         writer               held        arena    in flight   runs\n\
         logs/message        8 MiB        8 MiB        8 MiB      1\n\
         merge               3 MiB          0 B          0 B      0\n"
    );
    logs.release(512);
    merge.release(3 * MIB);
    drop((arena, logs, merge));
    assert_eq!(
        limiter.snapshot().to_string(),
        "node: 0 B held of 10 MiB, 0 B published, lag at most 0 B, 0 B in flight\n\
         writer         held        arena    in flight   runs\n"
    );
}

#[test]
fn a_snapshot_of_many_writers_prints_twenty_rows_and_sums_up_the_rest() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let writers: Vec<_> = (0..23).map(|n| limiter.reporter(&format!("w{n:02}"))).collect();
    for (n, writer) in writers.iter().enumerate() {
        writer.charge((n + 1) * KIB);
    }
    let text = limiter.snapshot().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 23);
    assert_eq!(lines[0], "default: 276 KiB held of unlimited, 0 B published, lag at most 22.9 MiB, 0 B in flight");
    assert_eq!(lines[2], "w22          23 KiB          0 B          0 B      0");
    assert_eq!(lines[21], "w03           4 KiB          0 B          0 B      0");
    assert_eq!(lines[22], "3 more hold 6 KiB");
    for (n, writer) in writers.iter().enumerate() {
        writer.release((n + 1) * KIB);
    }
}

/// The order of the writers does not depend on the order of registration.
#[test]
fn writers_alike_are_listed_by_name() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let writers = ["c", "a", "b"].map(|name| limiter.reporter(name));
    writers[0].charge(1);
    let names: Vec<_> = limiter.snapshot().writers.into_iter().map(|writer| writer.name).collect();
    assert_eq!(names, ["c", "a", "b"]);
    writers[0].release(1);
    let names: Vec<_> = limiter.snapshot().writers.into_iter().map(|writer| writer.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
}
