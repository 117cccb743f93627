//! The bytes of an index depend on input, format, fields and batch size alone.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{fresh, json_log, log, options, run, write};
use index_build::options::{Accounting, BuildOptions};
use index_build::report::BuildReport;
use std::path::PathBuf;

fn checked(options: &BuildOptions) -> BuildReport {
    let index = fresh(options.index.parent().unwrap());
    let report = run(&BuildOptions { index, ..options.clone() }).unwrap();
    assert_eq!((report.held_at_end_bytes, report.published_at_end_bytes, report.accounting_errors), (0, 0, 0));
    report
}

fn every_way(inputs: &[PathBuf], folder: &std::path::Path) {
    let plain = checked(&options(folder, inputs));
    assert!(plain.segments >= 4 && plain.runs == 0 && plain.documents > 1000, "{plain:?}");
    for threads in [1, 4, 30] {
        for accounting in [Accounting::Off, Accounting::PerTerm, Accounting::Batched] {
            let report = checked(&BuildOptions { threads, accounting, ..options(folder, inputs) });
            assert_eq!(report.index_sha256, plain.index_sha256, "{threads} threads, {accounting:?}");
        }
        let own = BuildOptions { threads, writer_cap_bytes: Some(5 << 10), ..options(folder, inputs) };
        for accounting in [Accounting::Off, Accounting::Batched] {
            let report = checked(&BuildOptions { accounting, ..own.clone() });
            assert_eq!(report.index_sha256, plain.index_sha256, "{threads} threads, own spills, {accounting:?}");
            assert!(
                report.own_spills >= 8 && report.forced_spills == 0 && report.runs >= report.own_spills,
                "{report:?}"
            );
        }
        let forced = BuildOptions {
            threads,
            budget_bytes: Some(24 << 10),
            floor_bytes: Some(1 << 10),
            ..options(folder, inputs)
        };
        for accounting in [Accounting::PerTerm, Accounting::Batched] {
            let report = checked(&BuildOptions { accounting, ..forced.clone() });
            assert_eq!(report.index_sha256, plain.index_sha256, "{threads} threads, forced spills, {accounting:?}");
            assert!(report.forced_spills >= 8 && report.own_spills == 0, "{report:?}");
            assert!(report.merge_passes > 0 && report.spilled_bytes > 0);
        }
    }
    let blocks = checked(&BuildOptions { block_bytes: 32 << 10, ..options(folder, inputs) });
    assert_eq!(blocks.index_sha256, plain.index_sha256, "another block size");
    let batches = checked(&BuildOptions { batch_bytes: 17 << 10, ..options(folder, inputs) });
    assert_ne!(batches.index_sha256, plain.index_sha256, "another batch size is another index");
    assert_eq!(
        (batches.documents, batches.tokens, batches.postings, batches.distinct_terms),
        (plain.documents, plain.tokens, plain.postings, plain.distinct_terms)
    );
}

#[test]
fn a_text_index_is_the_same_for_every_budget_thread_count_block_size_and_accounting() {
    let folder = tempfile::tempdir().unwrap();
    let text = log(1500);
    let (first, second) = text.split_at(text.len() / 3);
    let inputs = [write(folder.path(), "a.log", first.as_bytes()), write(folder.path(), "b.log", second.as_bytes())];
    every_way(&inputs, folder.path());
}

#[test]
fn a_json_lines_index_is_the_same_for_every_budget_thread_count_block_size_and_accounting() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = [write(folder.path(), "a.jsonl", json_log(1500).as_bytes())];
    every_way(&inputs, folder.path());
}
