//! `build` when the disk is the limit: the quota of spilled runs, a disk that is really full, and more runs of one writer
//! than any table of fixed size would hold.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod command;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use command::{Said, at, folder, names, run};
use serde_json::{Value, json};

/// Builds `dir/index` of `dir/in.txt` with these options.
fn build(dir: &tempfile::TempDir, options: &[&str]) -> Said {
    let (input, index) = (at(dir, "in.txt"), at(dir, "index"));
    let always = ["build", "--input", &input, "--index", &index, "--sync", "none", "--quiet", "--json"];
    run(always.iter().chain(options))
}

/// Lines of ids that never come again: what is spilled is larger than they are.
fn ids(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 128);
    let mut id = 0u64;
    while text.len() < bytes {
        for end in [" ", " ", " ", "\n"] {
            id += 1;
            text += &format!("{:016x}{end}", id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
    }
    text
}

/// A writer of its own for each batch, that spills often.
const SMALL: [&str; 8] =
    ["--writer-cap", "64KiB", "--block-bytes", "4KiB", "--batch-bytes", "512KiB", "--accounting", "batched"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn a_quota_of_the_peak_is_enough_and_a_byte_less_is_not() {
    let dir = folder(&[("in.txt", ids(1 << 20).as_bytes())]);
    let free = build(&dir, &small(&["--threads", "1"])).json();
    let peak = free["spill_disk_peak_bytes"].as_u64().unwrap();
    assert!(peak > 512 << 10 && peak < free["spilled_bytes"].as_u64().unwrap(), "{free}");
    assert_eq!(free["spill_disk_at_end_bytes"], 0);

    let quota = peak.to_string();
    let report = build(&dir, &small(&["--threads", "1", "--force", "--spill-quota", &quota])).json();
    for key in ["spill_disk_peak_bytes", "runs", "spilled_bytes", "index_sha256"] {
        assert_eq!(report[key], free[key], "{key}");
    }
    assert_eq!(report["spill_disk_at_end_bytes"], 0);

    let quota = (peak - 1).to_string();
    let before = std::fs::read(dir.path().join("index/manifest.json")).unwrap();
    let said = build(&dir, &small(&["--threads", "1", "--force", "--spill-quota", &quota]));
    assert!(said.failure(1).contains("refused by --spill-quota: "), "{said:?}");
    assert_eq!(std::fs::read(dir.path().join("index/manifest.json")).unwrap(), before, "the old index stays");
    assert_eq!(names(dir.path()), ["in.txt", "index"], "nothing temporary stays");
}

#[test]
fn a_build_that_spills_nothing_has_nothing_on_disk_and_needs_no_quota() {
    let dir = folder(&[("in.txt", b"alpha beta\n")]);
    let report = build(&dir, &["--spill-quota", "1"]).json();
    for key in ["spill_disk_peak_bytes", "spill_disk_at_end_bytes", "runs"] {
        assert_eq!(report[key], 0, "{key}");
    }
}

/// B69: what is told is what a flush thread was refused, with its numbers and the options to change: with one thread to the
/// byte.
#[test]
fn a_refusal_by_the_quota_tells_what_was_asked_used_and_allowed_and_what_to_change() {
    let dir = folder(&[("in.txt", ids(1 << 20).as_bytes())]);
    let said = build(&dir, &small(&["--threads", "1", "--spill-quota", "100KiB"]));
    assert_eq!(
        said.failure(1),
        "18.7 KiB more of spilled runs are refused by --spill-quota: 93.6 KiB used of 100 KiB; give a larger --spill-quota, \
         or a larger --budget, --hard-limit or --writer-cap, so that less is spilled"
    );
    assert_eq!(names(dir.path()), ["in.txt"], "nothing stays");
}

/// B69: the same with several threads, in every mode and under both limits, where all of them end for the one that was refused.
#[test]
fn the_thread_that_was_refused_is_heard_whatever_the_others_do() {
    let dir = folder(&[("in.txt", ids(3 << 20).as_bytes())]);
    for (options, enough) in [
        (&["--accounting", "off"][..], "64MiB"),
        (&["--accounting", "per-term"], "64MiB"),
        (&["--budget", "512KiB", "--floor", "32KiB"], "64MiB"),
        (&["--hard-limit", "4MiB"], "64MiB"),
    ] {
        let base = ["--writer-cap", "64KiB", "--block-bytes", "4KiB", "--batch-bytes", "256KiB", "--threads", "4"];
        let with = |quota| build(&dir, &[&base[..], options, &["--spill-quota", quota]].concat());
        for quota in ["1", "200KiB", "250KiB"] {
            let said = with(quota);
            let told = said.failure(1);
            assert!(told.contains(" more of spilled runs are refused by --spill-quota: "), "{options:?}: {told}");
            let change = "; give a larger --spill-quota, or a larger --budget, --hard-limit or --writer-cap, so that less is spilled";
            assert!(told.ends_with(change) && told.lines().count() == 1, "{options:?}: {told}");
            assert_eq!(names(dir.path()), ["in.txt"], "{options:?}: nothing stays");
        }
        let report = with(enough).json();
        let peak = report["spill_disk_peak_bytes"].as_u64().unwrap();
        assert!(peak > 250 << 10 && peak <= 64 << 20, "{options:?}: {report}");
        for key in ["spill_disk_at_end_bytes", "held_at_end_bytes", "published_at_end_bytes", "accounting_errors"] {
            assert_eq!(report[key], 0, "{options:?}: {key}");
        }
        std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    }
}

/// A small disk, unmounted in every case.
struct Disk(tempfile::TempDir);

impl Disk {
    /// None, and said so, where this process may not mount.
    fn mounted(options: &str) -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path());
        if mount.output().is_ok_and(|done| done.status.success()) {
            let disk = Disk(folder);
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            assert!(mounts.contains(disk.path()), "the mount is there");
            return Some(disk);
        }
        // not eprintln, which the harness keeps back when a test passes
        let _ = writeln!(std::io::stderr(), "SKIPPED: this process may not mount a file system, so no disk is full");
        None
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    /// Another size, with what is there.
    fn resize(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(self.0.path()).output();
        assert!(done.unwrap().status.success(), "mounted again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(self.0.path()).output();
        let done = done.is_ok_and(|done| done.status.success());
        if !done {
            // whoever is still in it: the name is free all the same
            let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
        }
        assert!(done || std::thread::panicking(), "unmounted");
    }
}

/// B46: the error names the file, how much was to be written and what the system said; nothing of the build stays, there or
/// beside the index; with room the same build is done, to the same bytes.
#[test]
fn a_full_disk_is_told_with_path_and_bytes_and_with_room_the_build_is_done() {
    let Some(disk) = Disk::mounted("size=8m") else { return };
    let dir = folder(&[("in.txt", ids(8 << 20).as_bytes()), ("spills/keep", b"")]);
    let spills = at(&dir, "spills");
    let budget = ["--budget", "2MiB", "--floor", "128KiB", "--batch-bytes", "32MiB", "--threads", "2", "--spill-dir"];
    let with = |spill_dir: &str| build(&dir, &[&budget[..], &[spill_dir]].concat());

    let said = with(disk.path());
    let told = said.failure(1);
    let (what, rest) = told.split_once(" bytes, ").unwrap_or_else(|| panic!("a number of bytes is told: {told}"));
    let bytes: u64 = what.strip_prefix("writing ").unwrap_or_else(|| panic!("{told}")).parse().unwrap();
    assert!((1..=64 << 10).contains(&bytes), "{told}");
    assert!(rest.starts_with(&format!("{}/.index.spill-", disk.path())), "{told}");
    assert!(rest.ends_with(".spool: No space left on device (os error 28)"), "{told}");
    assert_eq!(disk.names(), [""; 0], "nothing is left on the full disk");
    assert_eq!(names(dir.path()), ["in.txt", "spills"], "and no index");

    disk.resize("size=64m");
    let report = with(disk.path()).json();
    assert!(report["spill_disk_peak_bytes"].as_u64().unwrap() > 8 << 20, "{report}");
    assert_eq!((&report["spill_disk_at_end_bytes"], &report["held_at_end_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(disk.names(), [""; 0]);
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    let elsewhere = with(&spills).json();
    for key in ["index_sha256", "documents", "tokens", "postings", "distinct_terms"] {
        assert_eq!(report[key], elsewhere[key], "{key}");
    }
    assert_eq!(names(Path::new(&spills)), ["keep"]);
}

/// B46: no room for the file itself.
#[test]
fn a_disk_without_room_for_another_file_is_told_with_the_file() {
    // its root, the owner file and the folder
    let Some(disk) = Disk::mounted("size=8m,nr_inodes=3") else { return };
    let dir = folder(&[("in.txt", ids(256 << 10).as_bytes())]);
    let said = build(&dir, &small(&["--threads", "1", "--spill-dir", disk.path()]));
    let told = said.failure(1);
    assert!(told.starts_with(&format!("creating {}/.index.spill-", disk.path())), "{told}");
    assert!(told.ends_with(".spool: No space left on device (os error 28)"), "{told}");
    assert_eq!(disk.names(), [""; 0]);
    assert_eq!(names(dir.path()), ["in.txt"]);
    disk.resize("nr_inodes=100");
    assert_eq!(
        build(&dir, &small(&["--threads", "1", "--spill-dir", disk.path()])).json()["spill_disk_at_end_bytes"],
        0
    );
}

/// B48: however many runs one writer has, the index is whole: the counts are those of the input, the bytes those of a build
/// without any run.
#[test]
fn an_index_of_very_many_runs_of_one_writer_is_whole() {
    for lines in [63u64, 64, 65, 77, 300, 70_000] {
        let text: String = (0..lines).map(|line| format!("even{} line{line} all\n", line % 97)).collect();
        let dir = folder(&[("in.txt", text.as_bytes())]);
        let whole = ["--threads", "1", "--batch-bytes", "64MiB"];
        let without = build(&dir, &whole).json();
        let a_run_a_line = ["--force", "--writer-cap", "1", "--block-bytes", "512"];
        let with = build(&dir, &[&whole[..], &a_run_a_line].concat()).json();
        let counts =
            |report: &Value| ["documents", "tokens", "postings", "distinct_terms"].map(|key| report[key].clone());
        assert_eq!(counts(&with), [lines, 3 * lines, 3 * lines, lines + 1 + lines.min(97)].map(Value::from));
        assert_eq!(counts(&without), counts(&with));
        assert_eq!(with["index_sha256"], without["index_sha256"], "{lines} runs");
        assert_eq!((&with["own_spills"], &without["runs"]), (&json!(lines), &json!(0)));
        assert!(with["runs"].as_u64().unwrap() >= lines && with["spill_disk_at_end_bytes"] == 0, "{with}");
    }
}
