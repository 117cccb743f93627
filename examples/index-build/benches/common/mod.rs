//! What the benches share: texts, the command, medians.
#![allow(dead_code, reason = "every bench uses a part of it")]

use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a bench's steps; the text says what went wrong.
pub(crate) type Outcome<T> = Result<T, String>;

/// The command, as it is built with the bench.
pub(crate) const INDEX_BUILD: &str = env!("CARGO_BIN_EXE_index-build");

/// Lines as a web server writes them; with `rows`, each ninth carries some 300 bytes of base64. The same in every run.
pub(crate) fn log(lines: usize, rows: bool) -> String {
    let mut state = 1u64;
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let (verbs, places) = (["GET", "POST", "HEAD"], ["index", "images", "orders", "users", "search", "static", "news"]);
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for line in 0..lines as u64 {
        let (a, b, id, size) = (below(256), below(256), below(1 << 32), below(90_000));
        let (verb, place) = (verbs[below(3) as usize], places[below(7) as usize]);
        let (minute, second) = (line / 60 % 60, line % 60);
        text += &format!(
            "10.0.{a}.{b} - - [30/Nov/2026:10:{minute:02}:{second:02} +0000] \"{verb} /{place}/{id:08x} HTTP/1.1\" 200 {size}"
        );
        if rows && line % 9 == 0 {
            text.push(' ');
            text.extend((0..300).map(|_| digits[below(64) as usize] as char));
        }
        text.push('\n');
    }
    text
}

/// Runs a command to its end; answers what it printed on stdout.
pub(crate) fn run(command: &mut Command) -> Outcome<String> {
    let output = command.stderr(Stdio::piped()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// The command's own answer to a build, as JSON.
pub(crate) fn build(input: &Path, index: &Path, options: &[&str]) -> Outcome<serde_json::Value> {
    let mut command = Command::new(INDEX_BUILD);
    command.arg("build").arg("--input").arg(input).arg("--index").arg(index).args(["--json", "--quiet"]).args(options);
    let said = run(&mut command)?;
    serde_json::from_str(&said).map_err(|error| format!("{command:?}: {error}"))
}

/// `median (least..most)`.
pub(crate) fn spread(figures: &mut [f64], decimals: usize) -> String {
    figures.sort_by(f64::total_cmp);
    let [least, median, most] = [0, figures.len() / 2, figures.len() - 1].map(|at| figures[at]);
    format!("{median:.decimals$} ({least:.decimals$}..{most:.decimals$})")
}

/// Ends the bench: an error is told and fails it.
pub(crate) fn end(outcome: Outcome<()>) -> std::process::ExitCode {
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            std::process::ExitCode::FAILURE
        }
    }
}
