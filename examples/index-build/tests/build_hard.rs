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
