//! What a build does when it cannot be done: the same error whatever the threads do, and nothing left behind.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{json_log, log, names, options, run, write};
use index_build::accounting::{Account, Charge, Meter, Mode, Spilling, Why};
use index_build::build::{Watch, build, build_with};
use index_build::error::Error;
use index_build::options::{Accounting, BuildOptions, Format};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Builds JSON lines with so many threads, and tells the error; nothing but the input may be left.
fn fails(json: &[u8], threads: usize, skip_bad: bool) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.jsonl", json);
    let options = BuildOptions { threads, skip_bad, batch_bytes: 2 << 10, ..options(folder.path(), &[input]) };
    let error = run(&options).unwrap_err();
    assert_eq!(names(folder.path()), ["a.jsonl"], "{error}");
    error
}

#[test]
fn of_many_bad_lines_the_first_is_told_whatever_the_threads_do() {
    let good = json_log(400);
    let lines: Vec<&str> = good.lines().collect();
    for threads in [1, 4, 30] {
        for first in [0, 17, 300] {
            let mut bad = lines.clone();
            for line in (first..400).step_by(23) {
                bad[line] = "{\"message\":\"cut";
            }
            let error = fails(bad.join("\n").as_bytes(), threads, false);
            let Error::Input { path, line, why } = &error else { panic!("{error}") };
            assert!(path.ends_with("a.jsonl") && *line == first as u64 + 1, "{error}");
            assert_eq!(
                (why.as_str(), error.exit_code()),
                ("not a JSON object: EOF while parsing a string, column 15", 1)
            );
        }
    }
}

#[test]
fn a_blank_line_is_an_error_and_a_byte_order_mark_is_none() {
    for (json, line) in [("{}\n\n{}\n", 2), ("{}\n{}\n \n", 3), ("{}\n\u{FEFF}{}\n", 2)] {
        assert!(
            matches!(fails(json.as_bytes(), 1, false), Error::Input { line: told, .. } if told == line),
            "{json:?}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let inputs =
        ["a.jsonl", "b.jsonl"].map(|name| write(folder.path(), name, "\u{FEFF}{\"a\":\"x\"}\r\n{}".as_bytes()));
    let report = run(&options(folder.path(), &inputs)).unwrap();
    assert_eq!((report.documents, report.tokens, report.distinct_terms), (4, 2, 1));
}

#[test]
fn bad_lines_that_are_skipped_leave_no_terms_fields_or_documents_behind() {
    let folder = tempfile::tempdir().unwrap();
    let good = json_log(400);
    let mut mixed = String::new();
    for (number, line) in good.lines().enumerate() {
        mixed += line;
        mixed += "\n";
        if number % 7 == 3 {
            mixed += ["\n", "{\"fresh\":\"neverseen\"\n", "[1]\n", "{\"level\":\"other\"} x\n"][number % 4];
        }
    }
    let inputs = [write(folder.path(), "a.jsonl", good.as_bytes())];
    let plain = run(&options(folder.path(), &inputs)).unwrap();
    let inputs = [write(folder.path(), "b.jsonl", mixed.as_bytes())];
    let mut sha = Vec::new();
    for threads in [1, 4, 30] {
        let skipping = BuildOptions { threads, skip_bad: true, ..options(folder.path(), &inputs) };
        let report = run(&skipping).unwrap();
        assert_eq!(report.skipped_documents, 57);
        assert_eq!(
            (report.documents, report.tokens, report.postings, report.distinct_terms),
            (plain.documents, plain.tokens, plain.postings, plain.distinct_terms)
        );
        sha.push(report.index_sha256);
    }
    assert!(sha.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn the_line_that_brings_one_field_too_many_is_told_whatever_the_threads_do() {
    let mut json = String::new();
    for line in 0..300 {
        let fields: Vec<String> = (0..5).map(|field| format!("\"f{}\":\"v\"", line * 4 + field)).collect();
        json += &format!("{{{}}}\n", fields.join(","));
    }
    for threads in [1, 4, 30] {
        // line n (from 1) has brought 4 n + 1 fields
        let error = fails(json.as_bytes(), threads, true);
        assert!(matches!(&error, Error::Input { line: 256, why, .. } if why.contains("1024")), "{error}");
    }
}

#[test]
fn a_signal_ends_a_build_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.log", log(2000).as_bytes());
    for signal in [2, 15] {
        let watch = Watch::default();
        watch.signal.store(signal, Ordering::Relaxed);
        let error = build(&options(folder.path(), std::slice::from_ref(&input)), &watch).unwrap_err();
        assert_eq!(i32::from(error.exit_code()), 128 + signal);
        assert_eq!(names(folder.path()), ["a.log"]);
    }
    // in the middle: the signal comes from beside when some input has been read
    let watch = Watch::default();
    let options = BuildOptions { threads: 1, batch_bytes: 4 << 10, ..options(folder.path(), &[input]) };
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.done_bytes.load(Ordering::Relaxed) == 0 {
                std::hint::spin_loop();
            }
            watch.signal.store(2, Ordering::Relaxed);
        });
        build(&options, &watch).unwrap_err()
    });
    assert_eq!(error.exit_code(), 130);
    assert_eq!(names(folder.path()), ["a.log"]);
}

/// Panics at the n-th charge.
struct Panicking(AtomicUsize);
struct PanicAccount<'a>(&'a Panicking);
struct PanicMeter(std::sync::Arc<Panicking>);
struct PanicMode(std::sync::Arc<Panicking>);

impl Panicking {
    fn count(&self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) > 1, "counted down");
    }
}

impl Charge for PanicMeter {
    fn charge(&mut self, _: usize) {
        self.0.count();
    }
    fn release(&mut self, _: usize) {}
}

impl Account for PanicMeter {
    fn term_begins(&mut self) {}
    fn term_ends(&mut self) {}
}

impl Charge for PanicAccount<'_> {
    fn charge(&mut self, _: usize) {
        self.0.count();
    }
    fn release(&mut self, _: usize) {}
}

impl Account for PanicAccount<'_> {
    fn term_begins(&mut self) {}
    fn term_ends(&mut self) {}
}

impl Spilling for PanicAccount<'_> {
    fn finish(self) {}
}

impl Meter for PanicMeter {
    type Account = PanicMeter;
    type Spilling<'a> = PanicAccount<'a>;
    fn account(&mut self) -> &mut PanicMeter {
        self
    }
    fn set_arena(&mut self, _: usize) {
        self.0.count();
    }
    fn new_term(&mut self) {}
    fn spill_requested(&self) -> bool {
        false
    }
    fn begin_spill(&mut self, _: Why) -> Option<PanicAccount<'_>> {
        Some(PanicAccount(&self.0))
    }
}

impl Mode for PanicMode {
    type Account = PanicMeter;
    type Meter = PanicMeter;
    fn account(&self, _: &str) -> PanicMeter {
        PanicMeter(self.0.clone())
    }
    fn meter(&self, _: &str, _: &PanicMeter) -> PanicMeter {
        PanicMeter(self.0.clone())
    }
    fn held_bytes(&self) -> usize {
        0
    }
}

/// B56, at the builder: a panic in any place is an error like any other.
#[test]
fn a_panic_in_a_thread_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.log", log(300).as_bytes());
    let with = |charges: usize| {
        let options =
            BuildOptions { writer_cap_bytes: Some(4 << 10), ..options(folder.path(), std::slice::from_ref(&input)) };
        let mode = PanicMode(std::sync::Arc::new(Panicking(AtomicUsize::new(charges))));
        build_with(&options, &Watch::default(), mode)
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    // the first charge is the caller's own thread's
    for charges in (2..400).step_by(13) {
        let error = with(charges).unwrap_err();
        assert!(error.to_string().contains("thread panicked: counted down"), "{error}");
        assert_eq!(names(folder.path()), ["a.log"], "{charges}");
    }
    std::panic::set_hook(hook);
    with(usize::MAX).unwrap();
}

#[test]
fn configurations_that_cannot_work_are_usage_errors_that_name_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let text = write(folder.path(), "a.log", b"x\n");
    let json = write(folder.path(), "a.jsonl", b"{\"a\":\"x\",\"b\":\"x\",\"c\":\"x\"}\n");
    let base = options(folder.path(), std::slice::from_ref(&text));
    let both = vec![text.clone(), json.clone()];
    let fields = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
    let cases: Vec<(&str, BuildOptions)> = vec![
        ("--input", BuildOptions { inputs: vec![], ..base.clone() }),
        ("--format", BuildOptions { inputs: both, ..base.clone() }),
        ("--threads", BuildOptions { threads: 0, ..base.clone() }),
        ("--block-bytes", BuildOptions { block_bytes: 0, ..base.clone() }),
        ("--block-bytes", BuildOptions { block_bytes: 100, ..base.clone() }),
        ("--block-bytes", BuildOptions { block_bytes: 1 << 30, ..base.clone() }),
        ("--batch-bytes", BuildOptions { batch_bytes: 0, ..base.clone() }),
        ("--batch-bytes", BuildOptions { batch_bytes: 4 << 30, ..base.clone() }),
        ("--budget", BuildOptions { budget_bytes: Some(0), ..base.clone() }),
        ("--floor", BuildOptions { floor_bytes: Some(0), ..base.clone() }),
        ("--writer-cap", BuildOptions { writer_cap_bytes: Some(0), ..base.clone() }),
        ("--spill-quota", BuildOptions { spill_quota_bytes: Some(0), ..base.clone() }),
        ("--accounting", BuildOptions { budget_bytes: Some(1 << 20), accounting: Accounting::Off, ..base.clone() }),
        ("--floor", BuildOptions { budget_bytes: Some(1 << 20), floor_bytes: Some(2 << 20), ..base.clone() }),
        ("minimum of 1 KiB", BuildOptions { budget_bytes: Some(1000), ..base.clone() }),
        ("--fields", BuildOptions { fields: fields(&["text"]), ..base.clone() }),
        ("--fields", BuildOptions { fields: fields(&[]), inputs: vec![json.clone()], ..base.clone() }),
        (
            "minimum of 2 KiB",
            BuildOptions {
                fields: fields(&["a", "b"]),
                budget_bytes: Some(2047),
                floor_bytes: Some(1),
                inputs: vec![json.clone()],
                ..base.clone()
            },
        ),
        // how many fields a batch has is known when it was read
        (
            "minimum of 3 KiB",
            BuildOptions { budget_bytes: Some(2048), floor_bytes: Some(1), inputs: vec![json.clone()], ..base.clone() },
        ),
        ("--spill-dir", BuildOptions { spill_dir: Some(folder.path().join("absent")), ..base.clone() }),
    ];
    for (named, options) in cases {
        let error = run(&options).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(named), "{named}: {error}");
        assert_eq!(names(folder.path()), ["a.jsonl", "a.log"], "{named}");
    }
    run(&BuildOptions { format: Format::Text, inputs: vec![text, json], ..base }).unwrap();
}

/// B31: a budget below a first block a writer names the minimum; at the minimum there are no tiny runs.
#[test]
fn tiny_budgets_fail_with_the_minimum_or_make_few_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut json = String::new();
    for line in 0..10_000 {
        let fields: Vec<String> =
            (0..8).map(|field| format!("\"f{field}\":\"{} w{}\"", line % 50, line * field)).collect();
        json += &format!("{{{}}}\n", fields.join(","));
    }
    let input = write(folder.path(), "a.jsonl", json.as_bytes());
    let with = |budget: usize| {
        let fields = Some((0..8).map(|field| format!("f{field}")).collect());
        run(&BuildOptions {
            fields,
            budget_bytes: Some(budget),
            block_bytes: 1 << 20,
            batch_bytes: 16 << 20,
            ..options(folder.path(), std::slice::from_ref(&input))
        })
    };
    for budget in [1, 4 << 10, 1 << 20, (8 << 20) - 1] {
        let error = with(budget).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("8 MiB"), "{error}");
    }
    let report = with(8 << 20).unwrap();
    assert!(report.runs <= report.input_bytes / (1 << 20) + 8 && report.documents == 10_000, "{report:?}");
}

#[test]
fn an_absent_input_is_named_and_an_empty_one_is_an_index_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(&options(folder.path(), &[folder.path().join("absent.log")])).unwrap_err();
    assert!(error.exit_code() == 1 && error.to_string().contains("absent.log"), "{error}");
    for (name, format) in [("a.log", Format::Text), ("a.jsonl", Format::Jsonl)] {
        let inputs = [write(folder.path(), name, b"")];
        for accounting in [Accounting::Off, Accounting::Batched] {
            let report = run(&BuildOptions { accounting, format, ..options(folder.path(), &inputs) }).unwrap();
            assert_eq!((report.documents, report.segments, report.input_bytes, report.distinct_terms), (0, 0, 0, 0));
        }
    }
}

#[test]
fn what_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.log", b"x\n");
    let index = Path::new("/proc/index");
    let error = run(&BuildOptions { index: index.to_owned(), ..options(folder.path(), &[input]) }).unwrap_err();
    assert!(error.exit_code() == 1 && error.to_string().contains("/proc"), "{error}");
}
