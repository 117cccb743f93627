//! The commands on an index, as a script sees them: JSON keys, tables, exit codes, and what stays in the folders.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod command;
use std::fs;

use command::{Said, at, folder, names, run};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The keys of a build's JSON object: those of the contract, and what its syncs and its spills on disk came to.
const KEYS: &str = "documents skipped_documents tokens distinct_terms postings input_bytes index_bytes segments seconds \
    mb_per_s user_seconds sys_seconds threads accounting budget_bytes hard_limit_bytes floor_bytes peak_held_bytes \
    mean_held_bytes overdraft_peak_bytes start_resident_bytes peak_resident_bytes forced_spills own_spills runs \
    spilled_bytes spill_ram_bytes spill_disk_peak_bytes spill_disk_at_end_bytes swept_folders swept_bytes merge_passes \
    publishes notifications decisions shortfall_episodes syncs sync_seconds accounting_errors lag_bound_bytes held_at_end_bytes published_at_end_bytes index_sha256";

const TEXT: &str = "Alpha beta, alpha!\nbeta Gamma\n\nalpha beta\n";

/// Builds `dir/index` of `dir/input` with these options.
fn build(dir: &tempfile::TempDir, input: &str, options: &[&str]) -> Said {
    let (input, index) = (at(dir, input), at(dir, "index"));
    run(["build", "--input", &input, "--index", &index].iter().chain(options))
}

fn query(dir: &tempfile::TempDir, options: &[&str]) -> Value {
    let index = at(dir, "index");
    run(["query", "--json", "--index", &index].iter().chain(options)).json()
}

/// Lines with many different ids, so that a small budget is reached.
fn log_lines(lines: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for line in 0..lines {
        let id = (line + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        out.extend(format!("line {line} id {id:016x} word{} done\n", line % 97).bytes());
    }
    out
}

#[test]
fn a_build_prints_the_keys_of_the_contract_and_of_its_syncs_and_spills() {
    let dir = folder(&[("in.txt", TEXT.as_bytes())]);
    let said = build(&dir, "in.txt", &["--json"]);
    let report = said.json();
    assert_eq!(said.stderr, "");
    let mut expected: Vec<&str> = KEYS.split_whitespace().collect();
    expected.sort_unstable();
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, expected);
    for (key, value) in [
        ("documents", json!(4)),
        ("skipped_documents", json!(0)),
        ("tokens", json!(7)),
        ("distinct_terms", json!(3)),
        ("postings", json!(6)),
        ("input_bytes", json!(TEXT.len())),
        ("segments", json!(1)),
        ("accounting", json!("batched")),
        ("budget_bytes", json!(null)),
        ("hard_limit_bytes", json!(null)),
        ("runs", json!(0)),
        ("held_at_end_bytes", json!(0)),
        ("published_at_end_bytes", json!(0)),
        ("accounting_errors", json!(0)),
    ] {
        assert_eq!(report[key], value, "{key}");
    }
    assert_eq!(names(dir.path()), ["in.txt", "index"], "nothing temporary stays");
}

#[test]
fn without_accounting_nothing_held_is_told() {
    let dir = folder(&[("in.txt", TEXT.as_bytes())]);
    let report = build(&dir, "in.txt", &["--json", "--accounting", "off", "--threads", "3"]).json();
    for key in ["peak_held_bytes", "mean_held_bytes", "lag_bound_bytes"] {
        assert_eq!(report[key], Value::Null, "{key}");
    }
    assert_eq!((&report["held_at_end_bytes"], &report["published_at_end_bytes"]), (&json!(0), &json!(0)));
    assert_eq!((&report["accounting"], &report["threads"]), (&json!("off"), &json!(3)));
}

#[test]
fn a_build_shows_a_table_unless_it_is_to_be_quiet() {
    let dir = folder(&[("in.txt", TEXT.as_bytes())]);
    let said = build(&dir, "in.txt", &[]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    for line in [
        "  documents        4\n",
        "  distinct terms   3\n",
        "  at the end       0 B held, 0 B published, 0 accounting errors\n",
    ] {
        assert!(said.stdout.contains(line), "{}", said.stdout);
    }
    let said = build(&dir, "in.txt", &["--force", "--quiet"]);
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn questions_are_answered_with_the_keys_of_the_contract() {
    let dir = folder(&[("in.txt", TEXT.as_bytes())]);
    build(&dir, "in.txt", &["--json"]).json();
    assert_eq!(
        query(&dir, &["--term", "alpha", "--ids", "9"]),
        json!({"df": 2, "occurrences": 3, "documents": 4, "ids": [0, 3]})
    );
    assert_eq!(query(&dir, &["--term", "alpha"])["ids"], json!([]));
    assert_eq!(query(&dir, &["--term", "Alpha"])["df"], 0, "a term is looked up byte for byte");
    assert_eq!(query(&dir, &["--term", "--help"])["df"], 0, "and may begin with a dash");
    assert_eq!(query(&dir, &["--term", ""])["df"], 0);
    assert_eq!(query(&dir, &["--phrase", "ALPHA beta"])["occurrences"], 2);
    assert_eq!(query(&dir, &["--phrase", "beta-alpha", "--ids", "1"])["ids"], json!([0]));
    assert_eq!(query(&dir, &["--and", "Beta,gamma", "--ids", "5"]), json!({"df": 1, "documents": 4, "ids": [1]}));
    assert_eq!(query(&dir, &["--or", "gamma,alpha", "--ids", "5"]), json!({"df": 3, "documents": 4, "ids": [0, 1, 3]}));
    assert_eq!(query(&dir, &["--field", "text", "--or", "delta,epsilon"])["df"], 0);

    let index = at(&dir, "index");
    let said = run(["query", "--index", &index, "--term", "alpha", "--ids", "2"]);
    assert_eq!(said.stdout, "  documents     2 of 4\n  occurrences   3\n  ids           0 3\n");
    let said = run(["query", "--index", &index, "--term", "none", "--quiet"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "  documents     0 of 4\n  occurrences   0\n"));
    let said = run(["query", "--index", &index, "--field", "nope", "--term", "alpha"]);
    assert_eq!(said.failure(2), "the index has no field \"nope\"; its fields: \"text\"");
    let said = run(["query", "--index", &index, "--phrase", "?!"]);
    assert_eq!(said.failure(2), "\"?!\" holds no word: letters or digits are needed");
    let said = run(["query", "--json", "--index", &at(&dir, "nothing"), "--term", "alpha"]);
    assert!(said.failure(1).contains(&at(&dir, "nothing")), "{said:?}");
}

#[test]
fn an_index_of_several_fields_wants_one_named() {
    let dir = folder(&[("in.jsonl", b"{\"a\": \"x y\", \"b\": \"y\"}\n{\"b\": \"y y\", \"n\": 1}\n")]);
    let report = build(&dir, "in.jsonl", &["--json"]).json();
    assert_eq!(
        (&report["documents"], &report["distinct_terms"], &report["postings"]),
        (&json!(2), &json!(3), &json!(4))
    );
    let index = at(&dir, "index");
    let said = run(["query", "--index", &index, "--term", "y"]);
    assert_eq!(said.failure(2), "the index has several fields, choose one with --field; its fields: \"a\", \"b\"");
    assert_eq!(query(&dir, &["--field", "b", "--term", "y"])["occurrences"], 3);

    build(&dir, "in.jsonl", &["--json", "--force", "--fields", "b"]).json();
    assert_eq!(query(&dir, &["--term", "y"])["df"], 2);
}

#[test]
fn an_index_is_inspected() {
    let dir = folder(&[("in.txt", TEXT.as_bytes())]);
    let report = build(&dir, "in.txt", &["--json"]).json();
    let index = at(&dir, "index");
    let inspected = run(["inspect", "--json", "--index", &index]).json();
    assert_eq!(
        (&inspected["segments"], &inspected["documents"], &inspected["terms"]),
        (&json!(1), &json!(4), &json!(3))
    );
    assert_eq!(inspected["bytes"]["total"], report["index_bytes"]);
    let said = run(["inspect", "--index", &index]);
    assert!(said.stdout.contains("  segments         1, batches of 16.0 MiB\n"), "{}", said.stdout);
    assert!(
        said.stdout.contains("\n  text          3        7          6                       3\n"),
        "{}",
        said.stdout
    );
}

/// A truth about `TEXT`.
fn truth() -> Value {
    let digest = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!({
        "corpus": "made", "sha256": digest(TEXT), "bytes": TEXT.len(),
        "raw": {
            "documents": 4, "documents_with_tokens": 3, "tokens": 7, "distinct_terms": 3, "postings": 6,
            "dictionary_sha256": digest("alpha\t2\t3\nbeta\t3\t3\ngamma\t1\t1\n"),
            "postings_sha256": digest("alpha\t0:2 3:1\nbeta\t0:1 1:1 3:1\ngamma\t1:1\n"),
            "terms": [{"term": "alpha", "class": "frequent", "df": 2, "occurrences": 3},
                      {"term": "delta", "class": "absent", "df": 0, "occurrences": 0}],
            "phrases": [{"words": ["alpha", "beta"], "class": "frequent", "df": 2, "occurrences": 2}],
        }
    })
}

#[test]
fn a_truth_that_holds_ends_with_0_and_one_that_does_not_still_prints_its_object() {
    let mut wrong = truth();
    wrong["raw"]["terms"][0]["df"] = json!(9);
    let mut elsewhere = truth();
    elsewhere["fields"] = json!({"text": elsewhere["raw"]});
    elsewhere.as_object_mut().unwrap().remove("raw");
    let write = |value: &Value| value.to_string().into_bytes();
    let dir = folder(&[
        ("in.txt", TEXT.as_bytes()),
        ("right.json", &write(&truth())),
        ("wrong.json", &write(&wrong)),
        ("fields.json", &write(&elsewhere)),
        ("torn.json", b"{\"corpus\": "),
    ]);
    build(&dir, "in.txt", &["--json"]).json();
    let verify = |truth: &str, more: &[&str]| {
        let (index, truth) = (at(&dir, "index"), at(&dir, truth));
        run(["verify", "--index", &index, "--truth", &truth].iter().chain(more))
    };
    let right = verify("right.json", &["--json"]).json();
    assert_eq!((&right["differences"], &right["skipped"]), (&json!([]), &json!([])));
    assert!(right["checked"].as_u64().unwrap() >= 12, "{right}");
    assert!(verify("right.json", &[]).stdout.starts_with("  checked       "));

    let said = verify("wrong.json", &["--json"]);
    assert_eq!(said.code, Some(1));
    assert_eq!(said.stderr, "index-build: the index is not as the truth says, 1 difference\n");
    let object: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(object["differences"].as_array().unwrap().len(), 1);

    let said = verify("fields.json", &[]);
    assert_eq!((said.code, said.stdout.contains("  skipped       fields: ")), (Some(1), true), "{said:?}");
    assert_eq!(said.stderr, "index-build: nothing was compared: the truth says nothing of this kind of index\n");
    assert!(verify("torn.json", &["--json"]).failure(1).contains(&at(&dir, "torn.json")));
    assert!(verify("none.json", &["--json"]).failure(1).contains(&at(&dir, "none.json")));
}

#[test]
fn a_folder_with_anything_in_it_is_left_alone_without_force() {
    let dir = folder(&[("in.txt", TEXT.as_bytes()), ("foreign/file", b"x")]);
    fs::create_dir(dir.path().join("index")).unwrap();
    build(&dir, "in.txt", &["--json"]).json();
    let before = fs::read(dir.path().join("index/manifest.json")).unwrap();
    let said = build(&dir, "in.txt", &["--batch-bytes", "8"]);
    assert_eq!(
        said.failure(2),
        format!("--index {} is not empty: choose another folder or give --force", at(&dir, "index"))
    );
    assert_eq!(fs::read(dir.path().join("index/manifest.json")).unwrap(), before);
    let report = build(&dir, "in.txt", &["--batch-bytes", "8", "--force", "--json"]).json();
    assert_eq!(report["segments"], 3);
    assert_ne!(fs::read(dir.path().join("index/manifest.json")).unwrap(), before);

    let (input, foreign) = (at(&dir, "in.txt"), at(&dir, "foreign"));
    for force in [&["--force"][..], &[]] {
        let said = run(["build", "--input", &input, "--index", &foreign].iter().chain(force));
        assert!(said.failure(2).contains(&foreign), "{said:?}");
        assert_eq!(names(&dir.path().join("foreign")), ["file"]);
    }
    assert_eq!(names(dir.path()), ["foreign", "in.txt", "index"]);
}

#[test]
fn a_configuration_that_cannot_work_names_what_would() {
    let dir = folder(&[
        ("in.txt", TEXT.as_bytes()),
        ("in.jsonl", b"{}\n"),
        ("both/a.txt", b"a\n"),
        ("both/b.jsonl", b"{}\n"),
    ]);
    let mixed = format!(
        "{} is JSON lines and {} is text: give --format text or --format jsonl for all of them",
        at(&dir, "both/b.jsonl"),
        at(&dir, "both/a.txt")
    );
    for (input, options, text) in [
        (
            "in.txt",
            &["--budget", "16KiB"][..],
            "--budget 16 KiB is below the minimum of 32 KiB: a block of 32 KiB for each of 1 fields of a batch; give a \
             larger budget or smaller --block-bytes",
        ),
        (
            "in.txt",
            &["--budget", "1MiB", "--floor", "2MiB"],
            "--floor 2 MiB is above --budget 1 MiB: give a budget of at least 2 MiB",
        ),
        (
            "in.txt",
            &["--accounting", "off", "--budget", "1MiB"],
            "--budget needs accounting: choose --accounting batched, or leave the budget out",
        ),
        ("both", &[], &mixed),
    ] {
        assert_eq!(build(&dir, input, options).failure(2), text);
        assert_eq!(names(dir.path()), ["both", "in.jsonl", "in.txt"]);
    }
    assert!(build(&dir, "nowhere", &[]).failure(1).contains(&at(&dir, "nowhere")));
    build(&dir, "both", &["--format", "text", "--json"]).json();
}

#[test]
fn a_malformed_line_is_named_or_skipped() {
    let dir = folder(&[("in.jsonl", b"{\"a\": \"x\"}\n{\"a\": \n{\"a\": \"y\"}\n\n")]);
    let said = build(&dir, "in.jsonl", &["--json"]);
    assert!(said.failure(1).starts_with(&format!("{}, line 2: ", at(&dir, "in.jsonl"))), "{said:?}");
    assert_eq!(names(dir.path()), ["in.jsonl"]);
    let report = build(&dir, "in.jsonl", &["--json", "--skip-bad"]).json();
    assert_eq!((&report["documents"], &report["skipped_documents"]), (&json!(2), &json!(2)));
    assert_eq!(query(&dir, &["--term", "y", "--ids", "1"])["ids"], json!([1]));
}

#[test]
fn a_small_budget_forces_spills_and_changes_nothing_else() {
    let dir = folder(&[("in.log", &log_lines(30_000))]);
    let free = build(&dir, "in.log", &["--json", "--batch-bytes", "512KiB"]).json();
    let options =
        ["--json", "--batch-bytes", "512KiB", "--budget", "512KiB", "--floor", "16KiB", "--block-bytes", "4KiB"];
    let tight = build(&dir, "in.log", &[&options[..], &["--force", "--threads", "4"]].concat()).json();
    assert!(tight["forced_spills"].as_u64() > Some(0) && tight["runs"].as_u64() > Some(0), "{tight}");
    assert_eq!(tight["index_sha256"], free["index_sha256"]);
    assert_eq!((&tight["held_at_end_bytes"], &tight["published_at_end_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(tight["budget_bytes"], 512 << 10);
    assert_eq!(names(dir.path()), ["in.log", "index"]);
}

#[cfg(target_os = "linux")]
#[test]
fn spills_to_a_file_system_in_memory_are_warned_of_charged_or_refused() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    let dir = folder(&[("in.log", &log_lines(10_000))]);
    let spill = memory.path().to_str().unwrap();
    let spilling = |options: &[&str]| {
        let given = ["--json", "--force", "--spill-dir", spill, "--writer-cap", "64KiB"];
        build(&dir, "in.log", &[&given[..], options].concat())
    };
    let said = spilling(&[]);
    let bytes = said.json()["spill_ram_bytes"].as_u64().unwrap();
    assert!(bytes > 0);
    assert!(said.stderr.starts_with("index-build: warning: ") && said.stderr.contains("--spill-dir"), "{said:?}");
    assert_eq!(spilling(&["--quiet"]).stderr, "");
    let said = spilling(&["--spill-on-ram", "charge"]);
    assert_eq!((said.stderr.as_str(), said.json()["held_at_end_bytes"].as_u64()), ("", Some(0)));
    assert!(spilling(&["--spill-on-ram", "refuse"]).failure(2).contains("--spill-dir"));
    assert_eq!(names(memory.path()), [""; 0]);
}

/// B44, at the command: more segments and runs than files may be open.
#[cfg(unix)]
#[test]
fn many_segments_and_runs_are_built_and_read_under_a_small_limit_of_open_files() {
    let dir = folder(&[("in.log", &log_lines(8_000))]);
    let (input, index) = (at(&dir, "in.log"), at(&dir, "index"));
    let under = |most: u32, options: &[&str]| {
        let mut command = std::process::Command::new("sh");
        let script = format!("ulimit -n {most}; exec \"$@\"");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_index-build")]).args(options);
        command::Said::of(command).json()
    };
    let mut sha = Vec::new();
    // 64: fewer than the files of 30 segments; 20: little more than what one batch needs
    for (most, batch) in [(64, "8KiB"), (64, "2KiB"), (20, "8KiB")] {
        let limits = ["--threads", "8", "--budget", "64KiB", "--writer-cap", "4KiB", "--block-bytes", "1KiB"];
        let build = ["build", "--input", &input, "--index", &index, "--batch-bytes", batch, "--json", "--force"];
        let built = under(most, &[&build[..], &limits, &["--sync", "none"]].concat());
        assert!(built["segments"].as_u64() > Some(21) && built["runs"].as_u64() > Some(100), "{built}");
        sha.push((batch, built["index_sha256"].as_str().unwrap().to_owned()));
        let found = under(most, &["query", "--index", &index, "--term", "line", "--json"]);
        assert_eq!(found["documents"], 8_000);
    }
    assert_eq!(sha[0], sha[2]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_build_with_its_code_and_nothing_stays() {
    use std::process::Stdio;
    let large = log_lines(1_500_000);
    for (signal, code, text) in [
        (rustix::process::Signal::INT, 130, "interrupted, temporary files removed"),
        (rustix::process::Signal::TERM, 143, "terminated, temporary files removed"),
    ] {
        let dir = folder(&[("in.log", &large)]);
        let (input, index) = (at(&dir, "in.log"), at(&dir, "index"));
        let options = ["--budget", "4MiB", "--floor", "64KiB", "--threads", "4", "--json"];
        let mut command = command::start(["build", "--input", &input, "--index", &index].iter().chain(&options));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while names(dir.path()).len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert_eq!(stderr, format!("index-build: {text}\n"));
        assert!(output.stdout.is_empty());
        assert_eq!(names(dir.path()), ["in.log"]);
    }
}

/// B61, at the command: what a killed build leaves is gone when the next one starts, beside the index and elsewhere.
#[cfg(unix)]
#[test]
fn what_a_killed_build_leaves_is_removed_and_told_by_the_next_one() {
    use std::process::Stdio;
    let dir = folder(&[("in.log", &log_lines(400_000)), ("small.log", b"a b\n"), ("spills/keep", b"")]);
    let (input, index, spills) = (at(&dir, "in.log"), at(&dir, "index"), at(&dir, "spills"));
    let given = ["build", "--input", &input, "--index", &index, "--spill-dir", &spills, "--writer-cap", "64KiB"];
    for round in 0..3 {
        let mut command = command::start(given.iter().chain(&["--threads", "1", "--force"]));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let spilled = |entry: fs::DirEntry| {
            let files = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            files.map(|file| file.metadata().map_or(0, |file| file.len())).sum::<u64>()
        };
        // several runs, and many more to come
        while fs::read_dir(&spills).unwrap().flatten().map(spilled).sum::<u64>() < 256 << 10 {
            assert!(child.try_wait().unwrap().is_none(), "killed in the middle");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names(dir.path()).len(), 4, "round {round}: no more than one build leaves");
        assert_eq!(names(&dir.path().join("spills")).len(), 3);
    }
    let said = build(&dir, "small.log", &["--json", "--spill-dir", &spills]);
    let report = said.json();
    assert_eq!(report["swept_folders"], 2);
    assert!(report["swept_bytes"].as_u64() > Some(0), "{report}");
    assert!(said.stderr.starts_with("index-build: removed 2 folders of dead processes, "), "{said:?}");
    assert_eq!(names(dir.path()), ["in.log", "index", "small.log", "spills"]);
    assert_eq!(names(&dir.path().join("spills")), ["keep"]);
    let said = build(&dir, "small.log", &["--json", "--force"]);
    assert_eq!((said.stderr.as_str(), &said.json()["swept_folders"]), ("", &json!(0)));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_comparison_and_the_build_in_it() {
    use std::process::Stdio;
    let dir = folder(&[("in.log", &log_lines(1_000_000)), ("scratch/keep", b"")]);
    let (input, scratch) = (at(&dir, "in.log"), at(&dir, "scratch"));
    let mut command = command::start(["compare", "--input", &input, "--dir", &scratch, "--threads", "1", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // the build in it has begun when its temporary folder is there
    let begun = |entry: fs::DirEntry| fs::read_dir(entry.path()).is_ok_and(|mut folder| folder.next().is_some());
    while !fs::read_dir(dir.path().join("scratch")).unwrap().flatten().any(begun) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "index-build: terminated, temporary files removed\n");
    assert_eq!(names(&dir.path().join("scratch")), ["keep"]);
}

#[test]
fn a_comparison_has_a_row_for_each_mode_and_number_of_threads() {
    let dir = folder(&[("in.log", &log_lines(500)), ("scratch/keep", b"")]);
    let (input, scratch) = (at(&dir, "in.log"), at(&dir, "scratch"));
    let options = ["compare", "--input", &input, "--dir", &scratch, "--threads", "1,2", "--rounds", "2"];
    let said = run(options.iter().chain(&["--json", "--writer-cap", "64KiB"]));
    let compared = said.json();
    assert_eq!(said.stderr, "");
    let rows = compared["rows"].as_array().unwrap();
    let names_of: Vec<(u64, &str)> =
        rows.iter().map(|row| (row["threads"].as_u64().unwrap(), row["accounting"].as_str().unwrap())).collect();
    let modes = ["off", "per-term", "batched", "off-again"];
    assert_eq!(names_of, [1, 2].iter().flat_map(|&threads| modes.map(|mode| (threads, mode))).collect::<Vec<_>>());
    for row in rows {
        for key in ["mb_per_s", "user_seconds", "sys_seconds"] {
            let [min, median, max] = ["min", "median", "max"].map(|part| row[key][part].as_f64().unwrap());
            assert!(min <= median && median <= max, "{row}");
        }
        assert!(row["publishes"].is_u64() && row["notifications"].is_u64());
        #[cfg(unix)]
        assert!(row["voluntary_switches"]["max"].is_number() && row["involuntary_switches"]["min"].is_number());
    }
    assert_eq!(names(&dir.path().join("scratch")), ["keep"]);

    let said = run(options.iter().chain(&["--modes", "batched", "--threads", "1", "--rounds", "1"]));
    assert_eq!(said.code, Some(2), "an option once: {said:?}");
    let said =
        run(["compare", "--input", &input, "--dir", &scratch, "--modes", "batched", "--threads", "1", "--rounds", "1"]);
    assert_eq!(said.stdout.lines().count(), 2, "{said:?}");
    let said = run(["compare", "--input", &at(&dir, "none"), "--dir", &scratch, "--rounds", "1", "--json"]);
    assert!(said.failure(1).contains(&at(&dir, "none")), "{said:?}");
    assert_eq!(names(&dir.path().join("scratch")), ["keep"]);
}

#[test]
fn without_a_command_the_sources_of_cargo_are_indexed_and_checked() {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for file in 0..40u32 {
        let text: String = (0..200u32)
            .map(|line| format!("fn name_{line}() -> u32 {{ {} + unique{file}x{line} }}\n", line % 7))
            .collect();
        files.push((format!("home/registry/src/index/crate-{}/src/f{file}.rs", file % 3), text.into_bytes()));
    }
    files.push(("home/registry/src/index/crate-1/README.md".to_owned(), b"notrust notrust".to_vec()));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let dir = folder(&files);
    let job = |arguments: &[&str]| {
        let mut command = command::start(arguments);
        command.env("CARGO_HOME", dir.path().join("home")).env("CARGO_TARGET_DIR", dir.path().join("target"));
        Said::of(command)
    };
    let said = job(&["--json"]);
    let answer = said.json();
    assert_eq!(
        (&answer["source"], &answer["files"], &answer["build"]["documents"]),
        (&json!("cargo"), &json!(40), &json!(8000))
    );
    assert_eq!(
        (&answer["build"]["budget_bytes"], &answer["build"]["floor_bytes"]),
        (&json!(64 << 20), &json!(1 << 20))
    );
    assert_eq!(answer["build"]["threads"], 8);
    assert_eq!(answer["terms"].as_array().unwrap().len(), 20);
    assert_eq!(said.stderr, "");
    let said = job(&[]);
    assert_eq!(said.code, Some(0), "a second job replaces the index of the first: {said:?}");
    assert!(said.stdout.contains("All 20 terms agree with a plain scan of the input.\n"), "{said:?}");
    assert!(said.stdout.ends_with("Accounting is back at exactly 0.\n"), "{said:?}");
    assert_eq!(names(&dir.path().join("target/index-build")), ["sources"]);
}
