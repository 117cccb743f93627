//! Tantivy's index writer and this repository's index build on the same text: builds alternate, the order turns round from
//! round to round, each is a process of its own. Both index one field with positions and without stored text, write the
//! same number of segments without merging any, and sync what they wrote.
//!
//! usage: against-tantivy [--index-build FILE] [--threads 1,2] [--rounds 3] [--bytes S] [FILE...]
//!
//! Files are expanded to `--bytes` (200MB) first; without any, the three logs of ../shared/data that the comparison is about,
//! or where they are not, a log made here.

mod figures;
mod opponent;
mod texts;

use figures::{Build, Side, table};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The result of everything here; the text says what went wrong.
type Outcome<T> = Result<T, String>;

struct Options {
    index_build: PathBuf,
    threads: Vec<usize>,
    rounds: usize,
    bytes: String,
    files: Vec<PathBuf>,
}

fn options(mut words: impl Iterator<Item = String>) -> Outcome<Options> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut options = Options {
        index_build: root.join("target/release/index-build"),
        threads: vec![1, 2],
        rounds: 3,
        bytes: "200MB".to_owned(),
        files: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--index-build" => options.index_build = value()?.into(),
            "--threads" => options.threads = value()?.split(',').map(number).collect::<Outcome<_>>()?,
            "--rounds" => options.rounds = number(&value()?)?,
            "--bytes" => options.bytes = value()?,
            word if word.starts_with("--") => return Err(format!("{word} is no option here")),
            _ => options.files.push(word.into()),
        }
    }
    if !options.index_build.is_file() {
        let path = options.index_build.display();
        return Err(format!("{path} is not there: cargo build --release -p index-build first"));
    }
    Ok(options)
}

fn number(text: &str) -> Outcome<usize> {
    text.parse().ok().filter(|&number| number > 0).ok_or(format!("{text:?} is not a number above 0"))
}

/// Runs a command to its end; answers what it printed, and the processor time that it took (user, system).
fn run(command: &mut Command) -> Outcome<(serde_json::Value, f64, f64)> {
    let before = figures::children();
    let output = command.stderr(Stdio::piped()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let after = figures::children();
    if !output.status.success() {
        return Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let said = serde_json::from_slice(&output.stdout).map_err(|error| format!("{command:?}: {error}"))?;
    Ok((said, after.0 - before.0, after.1 - before.1))
}

/// One build of one side.
fn build(side: Side, options: &Options, text: &Path, bytes: u64, threads: usize, folder: &Path) -> Outcome<Build> {
    let index = folder.join("index");
    let mut command = match side {
        Side::Tantivy => {
            let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
            command.arg("--child").arg(text).arg(threads.to_string()).arg(&index);
            command
        }
        Side::Plimsoll => {
            // as many segments as threads
            let batch = bytes.div_ceil(threads as u64) + (1 << 20);
            let mut command = Command::new(&options.index_build);
            command.arg("build").arg("--input").arg(text).arg("--index").arg(&index);
            command.args(["--threads", &threads.to_string(), "--batch-bytes", &batch.to_string()]);
            command.args(["--accounting", "batched", "--sync", "final", "--json", "--quiet"]);
            command
        }
    };
    let ran = run(&mut command);
    let removed = std::fs::remove_dir_all(&index);
    let (said, user, system) = ran?;
    removed.map_err(|error| format!("{}: {error}", index.display()))?;
    let number = |key: &str| said[key].as_f64().ok_or(format!("{command:?} does not say {key}"));
    let segments = number("segments")? as u64;
    if segments != threads as u64 {
        return Err(format!("{} made {segments} segments and not {threads}: not comparable", side.name()));
    }
    Ok(Build {
        mb_per_s: number("mb_per_s")?,
        user,
        system,
        resident: number("peak_resident_bytes")?,
        index_bytes: number("index_bytes")?,
        documents: number("documents")? as u64,
    })
}

fn compare() -> Outcome<()> {
    let options = options(std::env::args().skip(1))?;
    let folder = std::env::temp_dir().join(format!("against-tantivy-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let compared = compare_in(&folder, &options);
    let removed = std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()));
    compared.and(removed)
}

fn compare_in(folder: &Path, options: &Options) -> Outcome<()> {
    for file in texts::files(&options.files, folder)? {
        let text = texts::expanded(&options.index_build, &file, &options.bytes, folder)?;
        let bytes = std::fs::metadata(&text).map_err(|error| format!("{}: {error}", text.display()))?.len();
        for &threads in &options.threads {
            let mut builds = [Vec::new(), Vec::new()];
            for round in 0..options.rounds {
                for place in 0..2 {
                    let side = Side::BOTH[(round + place) % 2];
                    builds[side as usize].push(build(side, options, &text, bytes, threads, folder)?);
                }
            }
            println!("{}", table(&file, threads, &builds)?);
        }
        std::fs::remove_file(&text).map_err(|error| format!("{}: {error}", text.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let done = match words.get(1).map(String::as_str) {
        Some("--child") => opponent::build(&words[2..]),
        _ => compare(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
