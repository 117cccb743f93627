//! What durability costs a build: segments of 100 MB and of 2 GB of input, `--sync final` and `--sync none` in turn.
//!
//! `cargo bench -p index-build --bench segments [-- --rounds 3 --bytes 100MB,2GB --file FILE]`. One segment a build,
//! on one thread. Beside it: the same bytes as the index has, written to one file and synced
//! once, which is what a sync of them costs on this disk.

mod common;

use common::{INDEX_BUILD, Outcome, build, end, log, run, spread};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

struct Options {
    rounds: usize,
    bytes: Vec<String>,
    file: Option<PathBuf>,
}

fn options() -> Outcome<Options> {
    let mut options = Options { rounds: 3, bytes: vec!["100MB".to_owned(), "2GB".to_owned()], file: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--rounds" => options.rounds = value()?.parse().map_err(|_| "--rounds takes a number".to_owned())?,
            "--bytes" => options.bytes = value()?.split(',').map(str::to_owned).collect(),
            "--file" => options.file = Some(value()?.into()),
            // what cargo says to every bench
            "--bench" => {}
            _ => return Err(format!("{word} is no option here")),
        }
    }
    if options.rounds == 0 { Err("--rounds is 0".to_owned()) } else { Ok(options) }
}

/// Seconds to sync so many bytes of one file that were just written.
fn one_sync(path: &Path, mut bytes: u64) -> Outcome<f64> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::create(path).map_err(failed)?;
    let block = log(4_000, true).into_bytes();
    while bytes > 0 {
        let now = block.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        file.write_all(&block[..now]).map_err(failed)?;
        bytes -= now as u64;
    }
    let start = Instant::now();
    file.sync_all().map_err(failed)?;
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_file(path).map_err(failed)?;
    Ok(seconds)
}

fn bench() -> Outcome<()> {
    let options = options()?;
    // beside the target folder, which is on a disk; the system's folder for temporary files may be in memory
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|error| error.to_string())?;
    let seed = match &options.file {
        Some(file) => file.clone(),
        None => {
            let path = folder.path().join("seed.log");
            std::fs::write(&path, log(20_000, true)).map_err(|error| error.to_string())?;
            path
        }
    };
    println!(
        "| input | sync | seconds | MB/s | syncs | seconds in syncs | one sync of as many bytes |\n|---|---|--:|--:|--:|--:|--:|"
    );
    for bytes in &options.bytes {
        let (text, index) = (folder.path().join("text"), folder.path().join("index"));
        let mut expand = Command::new(INDEX_BUILD);
        expand.arg("expand").arg("--input").arg(&seed).arg("--out").arg(&text);
        run(expand.args(["--bytes", bytes, "--seed", "1", "--json", "--quiet"]))?;
        let mut figures = [[const { Vec::new() }; 3], [const { Vec::new() }; 3]];
        let (mut syncs, mut single) = ([0u64; 2], Vec::new());
        for round in 0..options.rounds {
            for place in 0..2 {
                let which = (round + place) % 2;
                let sync = ["final", "none"][which];
                let said = build(&text, &index, &["--sync", sync, "--batch-bytes", "4000MB", "--threads", "1"])?;
                std::fs::remove_dir_all(&index).map_err(|error| format!("{}: {error}", index.display()))?;
                let number = |key: &str| said[key].as_f64().ok_or(format!("a build does not say {key}"));
                if number("segments")? != 1.0 {
                    return Err(format!("{} segments and not 1", said["segments"]));
                }
                figures[which][0].push(number("seconds")?);
                figures[which][1].push(number("mb_per_s")?);
                figures[which][2].push(number("sync_seconds")?);
                syncs[which] = number("syncs")? as u64;
                if which == 0 {
                    single.push(one_sync(&folder.path().join("one"), number("index_bytes")? as u64)?);
                }
            }
        }
        for (which, sync) in ["final", "none"].into_iter().enumerate() {
            let [seconds, speed, syncing] = &mut figures[which];
            let single = if which == 0 { spread(&mut single, 2) } else { String::new() };
            println!(
                "| {bytes} | {sync} | {} | {} | {} | {} | {single} |",
                spread(seconds, 2),
                spread(speed, 1),
                syncs[which],
                spread(syncing, 3),
            );
        }
        std::fs::remove_file(&text).map_err(|error| format!("{}: {error}", text.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    end(bench())
}
