//! Builds under a hard limit: never past it, never stuck, the same bytes as without one, or an error that says what is
//! needed.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{json_log, log, names, options, run, write};
use index_build::build::{Watch, build};
use index_build::error::Error;
use index_build::options::BuildOptions;
use index_build::report::BuildReport;
use std::sync::atomic::{AtomicBool, Ordering};

/// The options with a hard limit.
fn hard(options: &BuildOptions, limit: usize) -> BuildOptions {
    BuildOptions { hard_limit_bytes: Some(limit), force: true, ..options.clone() }
}

/// Builds under a hard limit and looks at what is held all the while.
fn kept(options: &BuildOptions, limit: usize) -> BuildReport {
    let (watch, done) = (Watch::default(), AtomicBool::new(false));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let held = watch.held_bytes.load(Ordering::Relaxed);
                assert!(held <= limit as u64, "{held} bytes held");
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let report = build(&hard(options, limit), &watch);
        done.store(true, Ordering::Relaxed);
        report
    });
    let report = report.unwrap_or_else(|error| panic!("under {limit}: {error}"));
    assert_eq!(report.hard_limit_bytes, Some(limit));
    assert_eq!((report.overdraft_peak_bytes, report.accounting_errors), (0, 0), "{report:?}");
    assert_eq!((report.held_at_end_bytes, report.published_at_end_bytes), (0, 0));
    assert!(report.peak_held_bytes.unwrap() <= limit && report.peak_held_bytes.unwrap() > 0, "{report:?}");
    report
}

/// The least limit, as the usage errors of smaller ones tell it: how many fields there are is known when a batch was read.
fn minimum(options: &BuildOptions) -> usize {
    let mut limit = 1;
    loop {
        match run(&hard(options, limit)) {
            Ok(_) => return limit,
            Err(error) => {
                assert_eq!(error.exit_code(), 2, "{error}");
                let least = named(&error, "minimum of ");
                assert!(least > limit, "{error}");
                limit = least;
            }
        }
    }
}

/// The size behind these words.
fn named(error: &Error, words: &str) -> usize {
    let text = error.to_string();
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("{text}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let unit = if rest[digits.len()..].starts_with("KiB") { 10 } else { 20 };
    digits.parse::<usize>().unwrap() << unit
}

/// JSON lines of ten fields, some new terms in each.
fn ten_fields(lines: u32) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let mixed = line.wrapping_mul(0x9E37_79B9);
        let fields: Vec<String> = (0..10)
            .map(|field| format!("\"f{field}\":\"w{} v{mixed:x} said \\\"x{}\\\"\"", line % 50, line * field))
            .collect();
        text += &format!("{{{}}}\n", fields.join(","));
    }
    text
}

#[test]
fn the_index_is_the_same_at_every_limit_and_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("a.log", log(6000)), ("a.jsonl", json_log(4000)), ("ten.jsonl", ten_fields(1500))] {
        let input = write(folder.path(), name, content.as_bytes());
        let free = BuildOptions { batch_bytes: 64 << 10, ..options(folder.path(), &[input]) };
        let sha = run(&free).unwrap().index_sha256;
        for threads in [1, 4, 30] {
            let free = BuildOptions { threads, ..free.clone() };
            let least = minimum(&free);
            for limit in [least, least + least / 3, 2 << 20, 4 << 20, 16 << 20] {
                if limit >= least {
                    assert_eq!(kept(&free, limit).index_sha256, sha, "{name}, {threads} threads, {limit}");
                }
            }
        }
    }
}

/// Thirty threads, small limits, ten fields: nobody is stuck, and what is asked to spill is written and merged in passes.
#[test]
fn many_threads_under_a_small_limit_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "ten.jsonl", ten_fields(20_000).as_bytes());
    let free =
        BuildOptions { batch_bytes: 256 << 10, block_bytes: 4 << 10, threads: 30, ..options(folder.path(), &[input]) };
    let plain = run(&free).unwrap();
    for (limit, batch_bytes) in [(3 << 20, 256 << 10), (6 << 20, 256 << 10), (6 << 20, 4 << 20)] {
        let report = kept(&BuildOptions { batch_bytes, force: true, ..free.clone() }, limit);
        assert!(batch_bytes < 4 << 20 || report.runs > 30 && report.merge_passes > 10, "{report:?}");
        assert!(batch_bytes != 256 << 10 || report.index_sha256 == plain.index_sha256);
        assert_eq!((report.documents, report.tokens, report.postings), (plain.documents, plain.tokens, plain.postings));
    }
}

/// Long lines go one at a time, whatever the threads do, and each gets what the limit leaves.
#[test]
fn long_lines_take_turns_and_do_not_wait_for_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for line in 0..200u32 {
        let mixed = line.wrapping_mul(0x9E37_79B9);
        match line % 4 {
            // base64 without separators, prose, and ordinary lines between them
            0 => text += &format!("blob {}\n", format!("{mixed:08x}").repeat(4000)),
            1 => text += &format!("{}\n", format!("w{} {mixed:x} ", line % 7).repeat(2500)),
            _ => text += &log(20),
        }
    }
    let json: String = text
        .lines()
        .map(|line| format!("{{\"a\":\"{}\",\"b\":\"said \\\"{}\\\"\"}}\n", line.trim(), line.trim()))
        .collect();
    for (name, content, limit) in [("a.log", text, 6 << 20), ("a.jsonl", json, 12 << 20)] {
        let input = write(folder.path(), name, content.as_bytes());
        let free = BuildOptions { batch_bytes: 100 << 10, threads: 1, ..options(folder.path(), &[input]) };
        let sha = run(&free).unwrap().index_sha256;
        for threads in [1, 3, 30] {
            let report = kept(&BuildOptions { threads, ..free.clone() }, limit);
            assert_eq!(report.index_sha256, sha, "{name}, {threads} threads");
        }
    }
}

/// B29, under a hard limit: what can never fit is told at once, with the line, and a limit that is enough.
#[test]
fn a_document_that_can_never_fit_is_an_error_that_names_the_line_and_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let words: String = (0..60_000).map(|word| format!("w{word} ")).collect();
    for (name, long, threads) in
        [("a.log", words.clone(), 1), ("b.log", words.clone(), 4), ("c.log", "x".repeat(3 << 20), 4)]
    {
        let input = write(folder.path(), name, [log(2000), long, log(2000)].join("\n").as_bytes());
        let free = BuildOptions { threads, ..options(folder.path(), &[input]) };
        let sha = run(&free).unwrap().index_sha256;
        let line = log(2000).lines().count() as u64 + 2;
        let (mut limit, mut rounds) = (2 << 20, 0);
        let report = loop {
            let Err(error) = run(&hard(&free, limit)) else { break kept(&free, limit) };
            assert!(error.exit_code() == 1 && error.to_string().contains("--hard-limit"), "{error}");
            let Error::Input { path, line: told, .. } = &error else { panic!("{error}") };
            assert!(path.ends_with(name) && *told == line, "{error}");
            let least = named(&error, "at least ");
            assert!(least > limit, "{error} under {limit}");
            (limit, rounds) = (least, rounds + 1);
        };
        assert!((1..=3).contains(&rounds), "{rounds} rounds to {limit}");
        assert_eq!(report.index_sha256, sha);
    }
}

#[test]
fn a_bad_line_under_a_hard_limit_is_told_as_without_one_and_nothing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let good = json_log(3000);
    let mut lines: Vec<&str> = good.lines().collect();
    lines[1777] = "{\"message\":\"cut";
    let input = write(folder.path(), "a.jsonl", lines.join("\n").as_bytes());
    for threads in [1, 4, 30] {
        let free = BuildOptions { threads, ..options(folder.path(), std::slice::from_ref(&input)) };
        let error = run(&hard(&free, 3 << 20)).unwrap_err();
        assert!(matches!(&error, Error::Input { line: 1778, .. }), "{error}");
        assert_eq!(names(folder.path()), ["a.jsonl"]);
    }
}

/// Lines that are skipped leave nothing behind that was asked for to parse them.
#[test]
fn bad_lines_that_are_skipped_hold_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let bad = format!("{{\"message\":\"cut {}\n", "\\n:".repeat(400)).repeat(4000);
    let input = write(folder.path(), "a.jsonl", [json_log(50), bad, json_log(50)].concat().as_bytes());
    let free = BuildOptions { skip_bad: true, batch_bytes: 64 << 20, threads: 1, ..options(folder.path(), &[input]) };
    let sha = run(&free).unwrap().index_sha256;
    let report = kept(&free, 4 << 20);
    assert_eq!((report.skipped_documents, report.documents), (4000, 100));
    assert_eq!(report.index_sha256, sha);
    assert!(report.runs == 0 && report.peak_held_bytes.unwrap() < 2 << 20, "{report:?}");
}

#[test]
fn a_signal_ends_a_build_whose_batches_wait() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "ten.jsonl", ten_fields(8000).as_bytes());
    let free =
        BuildOptions { batch_bytes: 64 << 10, block_bytes: 4 << 10, threads: 30, ..options(folder.path(), &[input]) };
    for after in [0, 1 << 10, 300 << 10] {
        let (watch, options) = (Watch::default(), hard(&free, 3 << 20));
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                while watch.done_bytes.load(Ordering::Relaxed) < after {
                    std::thread::yield_now();
                }
                watch.signal.store(15, Ordering::Relaxed);
            });
            build(&options, &watch).unwrap_err()
        });
        assert_eq!(error.exit_code(), 143, "{error}");
        assert_eq!(names(folder.path()), ["ten.jsonl"]);
    }
}

/// A budget of its own under the limit: spills are asked for below it.
#[test]
fn a_budget_below_the_limit_asks_for_spills_before_anybody_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.log", log(40_000).as_bytes());
    let free = BuildOptions { batch_bytes: 4 << 20, threads: 1, ..options(folder.path(), &[input]) };
    let sha = run(&free).unwrap().index_sha256;
    let with = BuildOptions { budget_bytes: Some(1 << 20), floor_bytes: Some(64 << 10), ..free.clone() };
    let report = kept(&with, 32 << 20);
    assert!(report.forced_spills > 2 && report.index_sha256 == sha, "{report:?}");
    assert_eq!((report.budget_bytes, report.hard_limit_bytes), (Some(1 << 20), Some(32 << 20)));
    assert!(report.peak_held_bytes.unwrap() < 8 << 20, "{report:?}");
    let report = kept(&free, 8 << 20);
    assert_eq!(report.budget_bytes, Some(7 << 20), "seven eighths");
    let capped = BuildOptions { writer_cap_bytes: Some(100 << 10), ..free };
    let report = kept(&capped, 32 << 20);
    assert!(report.own_spills > 10 && report.forced_spills == 0 && report.index_sha256 == sha, "{report:?}");
}

#[test]
fn an_empty_input_and_many_tiny_batches_are_built() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "empty.log", b"");
    assert_eq!(kept(&options(folder.path(), &[input]), 2 << 20).documents, 0);
    let input = write(folder.path(), "many.log", log(600).as_bytes());
    let many = BuildOptions { batch_bytes: 1, threads: 8, ..options(folder.path(), &[input]) };
    assert!(kept(&many, 8 << 20).segments > 600);
    // what they come to until the index is published has to fit as well
    let error = run(&hard(&many, 1100 << 10)).unwrap_err();
    assert!(error.exit_code() == 1 && error.to_string().contains("--hard-limit"), "{error}");
    assert_eq!(names(folder.path()).len(), 4, "{:?}", names(folder.path()));
}

/// What was granted to a line or its parser, and asked for once more, used to be refused and granted for ever.
#[test]
fn a_long_line_that_nearly_fits_is_built_or_refused_and_nothing_turns_in_circles() {
    let folder = tempfile::tempdir().unwrap();
    let words = |bytes: usize| format!("{}\n", "x ".repeat(bytes / 2));
    let object = |bytes: usize| {
        let pairs: Vec<String> = (0..40).map(|key| format!("\"k{key}\":\"{}\"", "y\\n ".repeat(bytes / 160))).collect();
        format!("{{{}}}\n", pairs.join(","))
    };
    let cases = [
        ("a.log", words(300_000), &[640, 704, 800][..]),
        ("b.log", words(700_000), &[1000, 1250, 1500]),
        ("c.log", words(1_200_000), &[1300, 1600, 2048, 2560, 2720]),
        ("d.log", format!("{}{}", log(900), words(2_800_000)), &[2048, 4720, 6000]),
        ("e.jsonl", object(1_050_000), &[1616, 2100, 2500, 4096]),
    ];
    let mut refused = 0;
    for (name, text, limits) in cases {
        let input = write(folder.path(), name, text.as_bytes());
        for limit in limits {
            match run(&hard(&options(folder.path(), std::slice::from_ref(&input)), limit << 10)) {
                Ok(report) => {
                    assert_eq!((report.documents, report.overdraft_peak_bytes), (text.lines().count() as u64, 0))
                }
                Err(error) => {
                    assert!(error.to_string().contains("--hard-limit"), "{name}, {limit} KiB: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 3, "some are too small: {refused}");
}
