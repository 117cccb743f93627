//! `build --hard-limit` as a script sees it: keys, exit codes, and what errors say.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod command;
use command::{Said, at, folder, names, run};
use serde_json::json;

/// Builds `dir/index` of `dir/input` with these options.
fn build(dir: &tempfile::TempDir, input: &str, options: &[&str]) -> Said {
    let (input, index) = (at(dir, input), at(dir, "index"));
    run(["build", "--input", &input, "--index", &index, "--quiet"].iter().chain(options))
}

#[test]
fn a_build_under_a_hard_limit_tells_the_limit_and_stays_below_it() {
    let lines: String = (0..3000).map(|line| format!("line {line} of {:x}\n", line * 7919)).collect();
    let dir = folder(&[("in.txt", lines.as_bytes())]);
    let free = build(&dir, "in.txt", &["--json"]).json();
    let report = build(&dir, "in.txt", &["--json", "--force", "--hard-limit", "8MiB", "--threads", "4"]).json();
    for (key, value) in [
        ("hard_limit_bytes", json!(8 << 20)),
        ("budget_bytes", json!(7 << 20)),
        ("overdraft_peak_bytes", json!(0)),
        ("held_at_end_bytes", json!(0)),
        ("published_at_end_bytes", json!(0)),
        ("index_sha256", free["index_sha256"].clone()),
    ] {
        assert_eq!(report[key], value, "{key}");
    }
    assert!(report["peak_held_bytes"].as_u64().unwrap() <= 8 << 20);
    let report = build(&dir, "in.txt", &["--json", "--force", "--hard-limit", "8MiB", "--budget", "8MiB"]).json();
    assert_eq!(report["budget_bytes"], json!(8 << 20));
}

#[test]
fn limits_that_cannot_work_are_usage_errors_that_name_what_to_give() {
    let dir = folder(&[("in.txt", b"alpha beta\n"), ("in.jsonl", b"{\"a\":\"x\",\"b\":\"y\"}\n")]);
    for (input, options, text) in [
        (
            "in.txt",
            vec!["--hard-limit", "1MiB", "--budget", "2MiB"],
            "--hard-limit 1 MiB is below --budget 2 MiB: give at least the budget",
        ),
        (
            "in.txt",
            vec!["--hard-limit", "8MiB", "--accounting", "off"],
            "--hard-limit needs accounting: choose --accounting batched, or leave the limit out",
        ),
        (
            "in.txt",
            vec!["--hard-limit", "8MiB", "--accounting", "per-term"],
            "--hard-limit needs --accounting batched: per-term makes the reference's calls, which are never refused",
        ),
        (
            "in.txt",
            vec!["--hard-limit", "100KiB"],
            "--hard-limit 100 KiB is below the minimum of 640KiB: one batch of 1 field with blocks of 32 KiB, its segment, \
             and a small document; give a larger limit or smaller --block-bytes",
        ),
        (
            "in.jsonl",
            vec!["--hard-limit", "700KiB"],
            "--hard-limit 700 KiB is below the minimum of 752KiB: one batch of 2 fields with blocks of 32 KiB, its segment, \
             and a small document; give a larger limit or smaller --block-bytes",
        ),
    ] {
        let said = build(&dir, input, &options);
        assert_eq!(said.failure(2), text);
        assert_eq!(names(dir.path()), ["in.jsonl", "in.txt"]);
    }
    assert!(build(&dir, "in.txt", &["--hard-limit", "0"]).failure(2).contains("--hard-limit"));
    // what is said to be enough is enough
    assert_eq!(build(&dir, "in.txt", &["--hard-limit", "640KiB"]).code, Some(0));
    assert_eq!(build(&dir, "in.jsonl", &["--hard-limit", "752KiB", "--force"]).code, Some(0));
}

#[test]
fn a_line_that_can_never_fit_is_told_with_its_number_and_what_it_needs() {
    let words: String = (0..20_000).map(|word| format!("w{word} ")).collect();
    let dir = folder(&[
        ("long.txt", ["one", &"x".repeat(9 << 20), "three"].join("\n").as_bytes()),
        ("words.txt", ["one", "two", &words].join("\n").as_bytes()),
        ("term.txt", "x".repeat(300 << 10).as_bytes()),
    ]);
    let said = build(&dir, "long.txt", &["--hard-limit", "8MiB", "--threads", "1"]);
    assert_eq!(
        said.failure(1),
        format!(
            "{}, line 2: the line is 9 MiB long, and a buffer for it alone needs a --hard-limit of at least 17008KiB",
            at(&dir, "long.txt")
        )
    );
    let said = build(&dir, "words.txt", &["--hard-limit", "2MiB", "--threads", "1"]);
    assert_eq!(
        said.failure(1),
        format!(
            "{}, line 3: the document needs 2.4 MiB, and --hard-limit 2 MiB leaves one batch 1.9 MiB: give a --hard-limit \
             of at least 2656KiB",
            at(&dir, "words.txt")
        )
    );
    let said = build(&dir, "term.txt", &["--hard-limit", "4MiB", "--threads", "1"]);
    assert_eq!(
        said.failure(1),
        format!(
            "{}, line 1: the document's longest term needs 5.6 MiB, and --hard-limit 4 MiB leaves one batch 3.9 MiB: give \
             a --hard-limit of at least 5888KiB",
            at(&dir, "term.txt")
        )
    );
    assert_eq!(names(dir.path()), ["long.txt", "term.txt", "words.txt"]);
    // what is said to be enough is enough
    for (input, limit) in [("words.txt", "2656KiB"), ("term.txt", "5888KiB")] {
        let said = build(&dir, input, &["--hard-limit", limit, "--threads", "1", "--force", "--json"]);
        assert_eq!(said.json()["overdraft_peak_bytes"], json!(0), "{input}");
    }
}
