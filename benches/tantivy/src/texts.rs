//! What is indexed: logs, expanded to a size.
use crate::{Outcome, run};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Short access logs, OpenStack logs, access logs with base64 rows: beside the repository, if they are there.
const SHARED: [&str; 3] = ["mixed/access_short.log", "logs/OpenStack.log", "mixed/access_with_blobs.log"];

/// The files that were given, or those of ../shared, or one that is made.
pub(crate) fn files(given: &[PathBuf], folder: &Path) -> Outcome<Vec<PathBuf>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let files: Vec<PathBuf> = SHARED.iter().map(|name| shared.join(name)).filter(|path| path.is_file()).collect();
    if !files.is_empty() {
        return Ok(files);
    }
    eprintln!("no ../shared/data beside the repository: a log made here instead");
    let made = folder.join("made.log");
    std::fs::write(&made, log()).map_err(|error| format!("{}: {error}", made.display()))?;
    Ok(vec![made])
}

/// Some 600 KB of lines as a web server writes them, the same in every run.
fn log() -> String {
    let (mut text, mut state) = (String::new(), 1u64);
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let verbs = ["GET", "GET", "GET", "POST", "HEAD"];
    let places = ["index", "images", "orders", "users", "search", "static", "news"];
    for line in 0..8_000u64 {
        let (a, b, id) = (below(256), below(256), below(1 << 32));
        let (verb, place, size) = (verbs[below(5) as usize], places[below(7) as usize], below(90_000));
        let (minute, second) = (line / 60 % 60, line % 60);
        // writing to a String cannot fail
        let _ = writeln!(
            text,
            "10.0.{a}.{b} - - [30/Nov/2026:10:{minute:02}:{second:02} +0000] \"{verb} /{place}/{id:08x} HTTP/1.1\" 200 {size}"
        );
    }
    text
}

/// Expands a file with the index build's own command.
pub(crate) fn expanded(index_build: &Path, file: &Path, bytes: &str, folder: &Path) -> Outcome<PathBuf> {
    let out = folder.join("text");
    let mut command = Command::new(index_build);
    command.arg("expand").arg("--input").arg(file).arg("--out").arg(&out);
    command.args(["--bytes", bytes, "--seed", "1", "--json", "--quiet"]);
    run(&mut command)?;
    Ok(out)
}
