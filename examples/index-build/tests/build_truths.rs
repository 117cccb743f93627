//! Real corpora against truths that share no code with the builder, without a budget and with one that forces spills.
//!
//! They lie in a folder beside the repository, which PLIMSOLL_SHARED may name; without it these tests say that they skip.
mod common;

use common::{fresh, options, run};
use index_build::options::{BuildOptions, Sync};
use index_build::report::BuildReport;
use index_build::verify::verify;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the corpora are.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    if shared.join("data/truth").is_dir() {
        return Some(shared);
    }
    // the harness swallows what a passing test prints
    let _ = writeln!(std::io::stderr(), "SKIPPED: no corpora in {}: set PLIMSOLL_SHARED", shared.display());
    None
}

/// Builds a corpus in every way that the contract names, and compares each index with its truth.
fn verified(corpus: &str, forced_budget: usize) {
    let Some(shared) = shared() else { return };
    let input = shared.join("data").join(corpus);
    let truth = shared.join("data/truth").join(format!("{}.json", corpus.replace('/', "__")));
    let folder = tempfile::tempdir().unwrap();
    let build = |options: &BuildOptions| -> BuildReport {
        let index = fresh(folder.path());
        let report = run(&BuildOptions { index: index.clone(), ..options.clone() }).unwrap();
        assert_eq!((report.held_at_end_bytes, report.published_at_end_bytes, report.accounting_errors), (0, 0, 0));
        let verified = verify(&index, &truth).unwrap();
        assert!(verified.passed(), "{corpus}: {:#?}", verified.differences);
        report
    };
    let defaults = BuildOptions { inputs: vec![input.clone()], sync: Sync::None, ..BuildOptions::default() };
    let small = BuildOptions { batch_bytes: 32 << 10, ..options(folder.path(), &[input]) };
    let (whole, plain) = (build(&defaults), build(&small));
    assert_eq!((whole.segments, whole.runs), (1, 0));
    for threads in [1, 4, 30] {
        let forced = BuildOptions {
            threads,
            budget_bytes: Some(forced_budget),
            floor_bytes: Some(1 << 10),
            ..small.clone()
        };
        let report = build(&forced);
        assert_eq!(report.index_sha256, plain.index_sha256, "{corpus}, {threads} threads");
        assert!(report.segments >= 4 && report.runs >= 8, "{corpus}, {threads} threads: {report:#?}");
        assert_eq!(build(&BuildOptions { threads, ..small.clone() }).index_sha256, plain.index_sha256);
    }
}

macro_rules! corpora {
    ($($name:ident: $corpus:literal, $budget:literal KiB;)*) => {
        $(#[test]
        fn $name() {
            verified($corpus, $budget << 10);
        })*
    };
}

corpora! {
    log_lines_with_ids_are_indexed_as_the_truth_says: "logs/OpenStack.log", 24 KiB;
    log_lines_of_a_kernel_are_indexed_as_the_truth_says: "logs/Linux.log", 24 KiB;
    prose_is_indexed_as_the_truth_says: "prose/alice.txt", 24 KiB;
    twelve_languages_are_indexed_as_the_truth_says: "prose/tldr_multiscript.txt", 24 KiB;
    bytes_that_are_not_utf_8_are_indexed_as_the_truth_says: "prose/ontboezemingen_latin1.txt", 24 KiB;
    a_new_term_in_each_line_is_indexed_as_the_truth_says: "hashes/md5sums_tango.txt", 24 KiB;
    rows_with_base64_are_indexed_as_the_truth_says: "mixed/access_with_blobs.log", 24 KiB;
    json_lines_of_ten_fields_are_indexed_as_the_truth_says: "jsonl/access_10fields.jsonl", 96 KiB;
    json_lines_of_prose_are_indexed_as_the_truth_says: "jsonl/advisories_10fields.jsonl", 96 KiB;
}
