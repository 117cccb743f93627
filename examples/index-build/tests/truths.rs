//! Whole indexes against what others counted on the same input: `../shared/data/truth`, by a script and by a second
//! program. Every corpus is built without a budget, and in batches of 32 KiB with small blocks under a budget at which
//! it spills all the time, and under a small hard limit, on 1, 4 and 30 threads; every index is verified, digests included, and the digest of the
//! index is the same whatever the budget, the threads and the accounting.
//!
//! `cargo test` takes nine corpora, one of each kind; `PLIMSOLL_TRUTHS=all` takes the rest too. Without the samples the
//! tests say loudly that they skip.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod command;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use index_build::build::{Watch, build};
use index_build::options::{Accounting, BuildOptions, Format, Sync};
use index_build::report::BuildReport;
use index_build::verify::verify;

/// The budget of small batches: every corpus then spills at least twice a batch.
const BUDGET: usize = 20 << 10;
/// The same for ten writers a batch, of which each has a block at least.
const BUDGET_OF_TEN_FIELDS: usize = 96 << 10;

/// One way to read one corpus.
struct Case<'a> {
    corpus: PathBuf,
    truth: PathBuf,
    format: Format,
    dir: &'a Path,
}

impl Case<'_> {
    fn build(&self, name: &str, change: impl FnOnce(&mut BuildOptions)) -> BuildReport {
        let index = self.dir.join("index");
        let mut options = BuildOptions {
            inputs: vec![self.corpus.clone()],
            index: index.clone(),
            format: self.format,
            sync: Sync::None,
            force: true,
            ..BuildOptions::default()
        };
        change(&mut options);
        let name = format!("{} as {:?}, {name}", self.corpus.display(), self.format);
        let report = build(&options, &Watch::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let verified = verify(&index, &self.truth).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(verified.passed() && verified.checked > 50, "{name}: {verified:#?}");
        assert_eq!((report.held_at_end_bytes, report.published_at_end_bytes), (0, 0), "{name}");
        assert_eq!(report.accounting_errors, 0, "{name}");
        report
    }

    /// Batches of 32 KiB, blocks of 1 KiB, nothing spared below 1 KiB.
    fn build_small(&self, name: &str, change: impl FnOnce(&mut BuildOptions)) -> BuildReport {
        self.build(name, |options| {
            options.batch_bytes = 32 << 10;
            options.block_bytes = 1 << 10;
            change(options);
        })
    }

    fn holds(&self) {
        self.build("as it comes", |_| {});
        self.build("one thread", |options| options.threads = 1);
        let free = self.build_small("small batches", |_| {});
        assert!(free.segments >= 4 && free.runs == 0);
        for accounting in [Accounting::Off, Accounting::PerTerm] {
            let other = self.build_small(accounting.name(), |options| options.accounting = accounting);
            assert_eq!(other.index_sha256, free.index_sha256, "{}", accounting.name());
        }
        let budget = match self.format {
            Format::Jsonl => BUDGET_OF_TEN_FIELDS,
            _ => BUDGET,
        };
        for (threads, accounting) in
            [(1, Accounting::Batched), (4, Accounting::Batched), (30, Accounting::Batched), (4, Accounting::PerTerm)]
        {
            let name = format!("{budget} bytes, {threads} threads, {}", accounting.name());
            let tight = self.build_small(&name, |options| {
                options.budget_bytes = Some(budget);
                options.floor_bytes = Some(1 << 10);
                options.threads = threads;
                options.accounting = accounting;
            });
            assert!(tight.segments >= 4 && tight.runs >= 8, "{name}: {} segments, {} runs", tight.segments, tight.runs);
            assert_eq!(tight.index_sha256, free.index_sha256, "{name}");
        }
        for (threads, limit) in [(1, 3 << 20), (30, 4 << 20)] {
            let name = format!("hard limit of {limit} bytes, {threads} threads");
            let hard = self.build_small(&name, |options| {
                options.hard_limit_bytes = Some(limit);
                options.threads = threads;
            });
            assert_eq!(hard.index_sha256, free.index_sha256, "{name}");
            assert!(hard.overdraft_peak_bytes == 0 && hard.peak_held_bytes <= Some(limit), "{name}: {hard:?}");
        }
    }
}

/// All truths by the name of their corpus, or none where there are no samples.
fn truths() -> Option<BTreeMap<String, (PathBuf, PathBuf)>> {
    let data = command::shared()?.join("data");
    let files = std::fs::read_dir(data.join("truth")).unwrap().map(|entry| entry.unwrap().path());
    let named = files.map(|truth| {
        let text = std::fs::read_to_string(&truth).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let corpus = value["corpus"].as_str().unwrap().to_owned();
        let path = data.join(&corpus);
        (corpus, (path, truth))
    });
    Some(named.collect())
}

/// JSON lines are read as what they are and as text, because their truths speak of both.
fn check(name: &str, (corpus, truth): &(PathBuf, PathBuf)) {
    let dir = tempfile::tempdir().unwrap();
    let formats: &[Format] = if name.ends_with(".jsonl") { &[Format::Jsonl, Format::Text] } else { &[Format::Text] };
    for &format in formats {
        Case { corpus: corpus.clone(), truth: truth.clone(), format, dir: dir.path() }.holds();
    }
}

macro_rules! always {
    ($($name:ident: $corpus:literal;)+) => {
        /// The corpora that every `cargo test` takes.
        const ALWAYS: &[&str] = &[$($corpus),+];

        $(#[test]
        fn $name() {
            let Some(truths) = truths() else { return };
            check($corpus, truths.get($corpus).expect("this corpus has a truth"));
        })+
    };
}

always! {
    a_new_term_in_each_line_is_indexed_as_the_truth_says: "hashes/md5sums_tango.txt";
    lines_with_many_ids_are_indexed_as_the_truth_says: "logs/OpenStack.log";
    lines_that_end_with_a_carriage_return_are_indexed_as_the_truth_says: "logs/Apache.log";
    rows_with_base64_are_indexed_as_the_truth_says: "mixed/access_with_blobs.log";
    prose_is_indexed_as_the_truth_says: "prose/alice.txt";
    bytes_that_are_not_utf_8_are_indexed_as_the_truth_says: "prose/ontboezemingen_latin1.txt";
    twelve_languages_are_indexed_as_the_truth_says: "prose/tldr_multiscript.txt";
    json_lines_of_ten_fields_are_indexed_as_the_truth_says: "jsonl/access_10fields.jsonl";
    json_lines_of_prose_are_indexed_as_the_truth_says: "jsonl/advisories_10fields.jsonl";
}

#[test]
fn all_other_corpora_are_indexed_as_their_truths_say_when_asked_for() {
    if std::env::var("PLIMSOLL_TRUTHS").as_deref() != Ok("all") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the other corpora; PLIMSOLL_TRUTHS=all takes them");
        return;
    }
    let Some(truths) = truths() else { return };
    assert_eq!(truths.len(), 20);
    let others: Vec<_> = truths.iter().filter(|(name, _)| !ALWAYS.contains(&name.as_str())).collect();
    std::thread::scope(|scope| {
        for half in others.chunks(others.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(|(name, paths)| check(name, paths)));
        }
    });
}
