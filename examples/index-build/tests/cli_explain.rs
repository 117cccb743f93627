//! `build --explain`: the decisions of a build are told after its summary, kept in the index folder without times, and shown
//! by `inspect`; the index is the same with and without it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod command;
use std::fs;

use command::{Said, at, folder, names, run};
use serde_json::{Value, json};

const TIGHT: [&str; 10] =
    ["--batch-bytes", "512KiB", "--budget", "512KiB", "--floor", "16KiB", "--block-bytes", "4KiB", "--threads", "4"];

/// Lines with many different ids, so that a small budget is reached.
fn log_lines(lines: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for line in 0..lines {
        let id = (line + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        out.extend(format!("line {line} id {id:016x} word{} done\n", line % 97).bytes());
    }
    out
}

fn build(dir: &tempfile::TempDir, options: &[&str]) -> Said {
    let (input, index) = (at(dir, "in.log"), at(dir, "index"));
    run(["build", "--input", &input, "--index", &index, "--force"].iter().chain(options))
}

fn inspect(dir: &tempfile::TempDir, options: &[&str]) -> Said {
    run(["inspect", "--index", &at(dir, "index")].iter().chain(options))
}

#[test]
fn a_build_tells_its_decisions_and_keeps_them_beside_the_same_index() {
    let dir = folder(&[("in.log", &log_lines(30_000))]);
    let silent = build(&dir, &[&TIGHT[..], &["--json"]].concat()).json();
    let files = names(&dir.path().join("index"));
    assert_eq!((&silent["explain"], files.contains(&"decisions.json".to_owned())), (&Value::Null, false));
    assert_eq!(inspect(&dir, &["--json"]).json().get("explain"), None);

    let said = build(&dir, &[&TIGHT[..], &["--json", "--explain"]].concat());
    let told = said.json();
    assert!(!said.stderr.contains(" over by budget: "), "in the object alone: {said:?}");
    assert_eq!(told["index_sha256"], silent["index_sha256"]);
    assert_eq!(told["index_bytes"], silent["index_bytes"], "it is no part of the index");
    let (total, decisions) = (told["explain_total"].as_u64().unwrap(), told["explain"].as_array().unwrap());
    assert!(total > 0 && decisions.len() as u64 == total.min(64) && told["forced_spills"].as_u64() > Some(0));
    let mut victims = 0;
    for (n, decision) in decisions.iter().enumerate() {
        assert_eq!(decision["number"].as_u64().unwrap(), total - decisions.len() as u64 + 1 + n as u64);
        assert!(decision["at_ms"].is_u64() && decision["exact_bytes"].as_u64() > Some(512 << 10), "{decision}");
        assert_eq!((&decision["source"], &decision["budget_bytes"]), (&json!("budget"), &json!(512 << 10)));
        assert_eq!(decision["floor_bytes"], 16 << 10);
        let named = decision["victims"].as_array().unwrap();
        victims += named.len();
        assert!(named.iter().all(|one| one["name"].as_str().unwrap().ends_with("/text/postings and vocabulary")));
        assert!(decision["text"].as_str().unwrap().contains(" over by budget: "), "{decision}");
    }
    assert!(victims > 0);

    let mut expected = files.clone();
    expected.push("decisions.json".to_owned());
    expected.sort();
    assert_eq!(names(&dir.path().join("index")), expected);
    let kept = fs::read_to_string(dir.path().join("index/decisions.json")).unwrap();
    assert!(!kept.contains("at_ms") && !kept.contains(dir.path().to_str().unwrap()), "no time and no path");
    let mut without_times = told["explain"].clone();
    for decision in without_times.as_array_mut().unwrap() {
        decision.as_object_mut().unwrap().remove("at_ms");
    }
    let shown = inspect(&dir, &["--json"]).json();
    assert_eq!((&shown["explain_total"], &shown["explain"]), (&told["explain_total"], &without_times));
    assert_eq!(shown["bytes"]["total"], silent["index_bytes"]);
    let said = inspect(&dir, &[]);
    let head = format!("\n{total} decision");
    assert!(said.stdout.contains(&head) && said.stdout.contains("asked for spills, or began a shortfall"), "{said:?}");
    assert_eq!(said.stdout.matches(" over by budget: ").count(), decisions.len());

    let said = build(&dir, &[&TIGHT[..], &["--explain"]].concat());
    assert!(said.stdout.contains("  index sha256 ") && !said.stdout.contains("over by budget"), "{said:?}");
    assert!(said.stderr.contains("asked for spills, or began a shortfall") && said.stderr.contains(" s: "), "{said:?}");
    let quiet = build(&dir, &[&TIGHT[..], &["--explain", "--quiet"]].concat());
    assert!(quiet.stdout.is_empty() && quiet.stderr.contains(" over by budget: "), "asked for, so told: {quiet:?}");

    build(&dir, &[&TIGHT[..], &["--json"]].concat()).json();
    assert_eq!(names(&dir.path().join("index")), files, "an index that replaces it has none");
}

#[test]
fn a_build_that_asks_nobody_says_so_and_a_damaged_file_is_named() {
    let dir = folder(&[("in.log", b"a b c\n")]);
    for options in [&["--explain"][..], &["--explain", "--accounting", "off"]] {
        assert_eq!(build(&dir, options).stderr, "index-build: no decision asked for a spill\n");
        let told = build(&dir, &[options, &["--json"]].concat()).json();
        assert_eq!((&told["explain_total"], &told["explain"]), (&json!(0), &json!([])));
        assert!(inspect(&dir, &[]).stdout.ends_with("\nno decision asked for a spill\n"));
    }
    let kept = dir.path().join("index/decisions.json");
    fs::write(&kept, b"{\"explain_total\": 1").unwrap();
    assert!(inspect(&dir, &[]).failure(1).starts_with(&at(&dir, "index/decisions.json")));
    let index = at(&dir, "index");
    assert_eq!(run(["query", "--index", &index, "--term", "a", "--json"]).json()["df"], 1, "no part of the index");
}
