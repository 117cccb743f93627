//! Running the command and reading what it said. Every integration test of the command goes through [`run`].
#![allow(dead_code, reason = "each test program uses its own part of this")]
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// How the command ended and what it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command, not started yet.
pub(crate) fn start(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_index-build"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Said {
    Said::of(start(arguments))
}

impl Said {
    /// What `command` says when it is run to its end.
    pub(crate) fn of(mut command: Command) -> Said {
        let output = command.output().unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The JSON object that was printed, which has to be all of stdout.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        let value: Value = serde_json::from_str(&self.stdout).unwrap();
        assert!(value.is_object());
        value
    }

    /// What was said on stderr by a command that had to fail with `code`, and said nothing on stdout.
    pub(crate) fn failure(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "stdout stays empty after an error");
        let text = self.stderr.strip_prefix("index-build: ");
        text.unwrap_or_else(|| panic!("errors are told by name: {self:?}")).trim_end()
    }
}

/// A folder for one test, with some files in it.
pub(crate) fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    dir
}

/// The names in a folder, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// `dir/name` as an argument.
pub(crate) fn at(dir: &tempfile::TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

/// The folder of shared samples, or none after a loud word about it.
pub(crate) fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("PLIMSOLL_SHARED").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    if folder.join("data/truth").is_dir() {
        return Some(folder);
    }
    use std::io::Write as _;
    // not eprintln, which the harness keeps back when a test passes
    let _ =
        writeln!(std::io::stderr(), "SKIPPED: no samples at {}; set PLIMSOLL_SHARED to their folder", folder.display());
    None
}
