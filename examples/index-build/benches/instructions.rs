//! What accounting adds to a whole build in instructions: exact, also on a busy machine.
//!
//! `cargo bench -p index-build --bench instructions [-- FILE...]` builds each text (without any: two logs made here, 6 MB
//! each) under `valgrind --tool=callgrind` with accounting `off`, `batched` and `per-term`, one thread, batches of 4 MiB.
//! Shown are the instructions of the whole process and those of the flush thread alone: check-sums of input and index are
//! the larger part of the first, as valgrind has no instruction for SHA-256. Fails if the whole grows by more than 1 %.

mod common;

use common::{INDEX_BUILD, Outcome, end, log, run};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const MODES: [&str; 3] = ["off", "batched", "per-term"];
/// Of `off` to `batched`, in per cent.
const MOST: f64 = 1.0;
/// Everything that a flush thread does for a batch.
const FLUSH_THREAD: &str = "index_build::build::batch::run";

/// Instructions of the process, and of its flush thread.
fn count(text: &Path, mode: &str, folder: &Path) -> Outcome<(u64, u64)> {
    let (index, profile) = (folder.join("index"), folder.join("profile"));
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(INDEX_BUILD).arg("build").arg("--input").arg(text).arg("--index").arg(&index);
    command.args(["--force", "--threads", "1", "--batch-bytes", "4MiB", "--sync", "none", "--json", "--quiet"]);
    command.args(["--accounting", mode]);
    run(&mut command)?;
    let mut annotate = Command::new("callgrind_annotate");
    annotate.args(["--inclusive=yes", "--threshold=100"]).arg(&profile);
    let table = run(&mut annotate)?;
    let find = |what: &str| {
        let line = table.lines().find(|line| line.contains(what)).ok_or(format!("no {what} in the profile"))?;
        let digits = line.split_whitespace().next().unwrap_or_default().replace(',', "");
        digits.parse::<u64>().map_err(|error| format!("{line}: {error}"))
    };
    Ok((find("PROGRAM TOTALS")?, find(FLUSH_THREAD)?))
}

fn compare(texts: &[PathBuf], folder: &Path) -> Outcome<()> {
    println!(
        "| text | accounting | instructions of the process | | of the flush thread | |\n|---|---|--:|--:|--:|--:|"
    );
    let mut above = Vec::new();
    for text in texts {
        let name = text.file_name().unwrap_or_default().to_string_lossy();
        let mut off = (0, 0);
        for mode in MODES {
            let now = count(text, mode, folder)?;
            if mode == "off" {
                off = now;
            }
            let more = |now: u64, off: u64| 100.0 * (now as f64 / off as f64 - 1.0);
            let (whole, thread) = (more(now.0, off.0), more(now.1, off.1));
            println!("| {name} | {mode} | {} | {whole:+.2} % | {} | {thread:+.2} % |", now.0, now.1);
            if mode == "batched" && whole > MOST {
                above.push(format!("{name}: {whole:+.2} %, at most {MOST} % is allowed"));
            }
        }
    }
    if above.is_empty() { Ok(()) } else { Err(above.join("\n")) }
}

fn bench() -> Outcome<()> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut texts: Vec<PathBuf> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).map(PathBuf::from).collect();
    if texts.is_empty() {
        for (name, lines, rows) in [("made-short.log", 70_000, false), ("made-with-base64.log", 50_000, true)] {
            let path = folder.path().join(name);
            std::fs::write(&path, log(lines, rows)).map_err(|error| error.to_string())?;
            texts.push(path);
        }
    }
    compare(&texts, folder.path())
}

fn main() -> ExitCode {
    end(bench())
}
