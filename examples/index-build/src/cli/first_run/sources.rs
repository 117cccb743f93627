//! What the job without arguments indexes, and where to: the Rust sources in cargo's registry folder, in byte order of
//! relative path, or a log made in code where there are none; the index lies in the cargo target folder. What is made for
//! the job is made by expansion, the same in every run, and lies beside the index only as long as the job takes.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU64};

use crate::error::{Error, Result};
use crate::expand::{ExpandOptions, expand};

/// No more than this is indexed: the first file that would exceed it and all after it are left out.
pub(super) const LIMIT_BYTES: u64 = 256 << 20;

/// What sources that fitted into the budget are expanded to: what is held of them is about half of their bytes, so this is
/// well above the budget of the job.
const EXPANDED_BYTES: u64 = 192 << 20;

/// What the log made in code is expanded to: most of its terms occur once, so more is held of it.
const LOG_BYTES: u64 = 128 << 20;

/// The files to index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) files: Vec<PathBuf>,
    pub(super) bytes: u64,
}

/// cargo's folder of unpacked sources, if there is one.
pub(super) fn registry() -> Option<PathBuf> {
    let home = match std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty()) {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir()?.join(".cargo"),
    };
    Some(home.join("registry").join("src")).filter(|folder| folder.is_dir())
}

/// The `.rs` files below `root` in byte order of their path relative to it, as many as fit into `limit` bytes. Links are
/// not followed, and empty files are left out.
pub(super) fn rust_sources(root: &Path, limit: u64) -> Result<Input> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::io("reading", &folder))? {
            let entry = entry.map_err(Error::io("reading", &folder))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(Error::io("reading", &path))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
                let bytes = entry.metadata().map_err(Error::io("reading", &path))?.len();
                if bytes > 0 {
                    found.insert(relative(root, &path), (path, bytes));
                }
            }
        }
    }
    let mut input = Input::default();
    for (path, bytes) in found.into_values() {
        if bytes > limit - input.bytes {
            break;
        }
        input.bytes += bytes;
        input.files.push(path);
    }
    Ok(input)
}

/// The relative path as bytes, with `/` between its parts on every system.
fn relative(root: &Path, path: &Path) -> Vec<u8> {
    let parts = path.strip_prefix(root).unwrap_or(path).iter().map(|part| part.as_encoded_bytes());
    parts.collect::<Vec<_>>().join(&b'/')
}

/// One expanded file, removed with the folder that it is in.
#[derive(Debug)]
pub(super) struct Made {
    folder: PathBuf,
    pub(super) input: Input,
}

impl Made {
    /// A log: some thousand lines with words, numbers and ids, expanded, so that most terms occur once.
    pub(super) fn log(parent: &Path, signal: &AtomicI32) -> Result<Made> {
        Made::expand(parent, LOG_BYTES, signal, |out| out.write_all(lines().as_bytes()))
    }

    /// The text of all these files, expanded: words occur more often, and identifiers with digits are new in each pass.
    pub(super) fn of(input: &Input, parent: &Path, signal: &AtomicI32) -> Result<Made> {
        Made::expand(parent, EXPANDED_BYTES, signal, |out| {
            for path in &input.files {
                // a source that ends without a line feed would run into the next one
                std::io::copy(&mut File::open(path)?, out)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })
    }

    fn expand(
        parent: &Path,
        bytes: u64,
        signal: &AtomicI32,
        first_pass: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<Made> {
        let folder = parent.join(format!("expanded-{}", std::process::id()));
        fs::create_dir(&folder).map_err(Error::io("creating", &folder))?;
        let mut made = Made { folder, input: Input::default() };
        let (small, large) = (made.folder.join("first.txt"), made.folder.join("all.txt"));
        let mut out = BufWriter::new(File::create_new(&small).map_err(Error::io("creating", &small))?);
        first_pass(&mut out).and_then(|()| out.flush()).map_err(Error::io("writing", &small))?;
        let options = ExpandOptions { input: small.clone(), out: large.clone(), bytes, seed: 1 };
        let expanded = expand(&options, &AtomicU64::new(0), signal)?;
        fs::remove_file(&small).map_err(Error::io("removing", &small))?;
        made.input = Input { files: vec![large], bytes: expanded.bytes };
        Ok(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // nothing better can be done about a folder that will not go
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The lines that are expanded.
fn lines() -> String {
    const LEVELS: [&str; 4] = ["INFO", "INFO", "WARN", "ERROR"];
    const PARTS: [&str; 8] = ["scheduler", "gateway", "ledger", "mailer", "indexer", "resizer", "auditor", "notifier"];
    const EVENTS: [&str; 8] = [
        "request accepted by queue",
        "worker started a job",
        "checkpoint written to disk",
        "connection closed by peer",
        "retry after a timeout",
        "cache entry was evicted",
        "segment published without errors",
        "memory budget reached, spill asked for",
    ];
    // a linear congruential generator: any spread will do, but it has to be the same everywhere
    let mut state = 0x5eed_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut out = String::new();
    for line in 0..4000u64 {
        let (part, event) = (PARTS[next() as usize % 8], EVENTS[next() as usize % 8]);
        let (level, id, host) = (LEVELS[next() as usize % 4], next() << 31 | next(), next() % 250);
        let (second, millisecond, took) = (line / 4 % 60, next() % 1000, next() % 90_000);
        out += &format!(
            "2026-01-01T00:{:02}:{second:02}.{millisecond:03} {level} {part} req-{id:016x} from 10.0.0.{host}: {event}, {took} us\n",
            line / 240 % 60,
        );
    }
    out
}

/// The cargo target folder: as the environment names it, else the one that the running command lies in, else `target`
/// beside the nearest `Cargo.lock` at or above the current folder, else a folder for temporary files.
pub(super) fn target_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
        return PathBuf::from(folder);
    }
    // cargo marks its target folders with this file
    let marked = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let program = std::env::current_exe().ok();
    if let Some(folder) = program.iter().flat_map(|program| program.ancestors()).find(marked) {
        return folder.to_owned();
    }
    let current = std::env::current_dir().unwrap_or_default();
    let workspace = current.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    workspace.map_or_else(std::env::temp_dir, |folder| folder.join("target"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_sources_come_in_byte_order_of_relative_path_and_stop_before_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("a/z.rs", 10), ("a-1/b.rs", 20), ("a.rs", 30), ("b/é.rs", 40), ("b/n.txt", 50), ("b/empty.rs", 0)]
        {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![b'x'; bytes]).unwrap();
        }
        let names = |limit| {
            let input = rust_sources(dir.path(), limit).unwrap();
            let names: Vec<Vec<u8>> = input.files.iter().map(|path| relative(dir.path(), path)).collect();
            (
                names.iter().map(|name| String::from_utf8(name.clone()).unwrap()).collect::<Vec<_>>().join(" "),
                input.bytes,
            )
        };
        assert_eq!(names(1000), ("a-1/b.rs a.rs a/z.rs b/é.rs".to_owned(), 100));
        assert_eq!(names(99), ("a-1/b.rs a.rs a/z.rs".to_owned(), 60));
        assert_eq!(names(25), ("a-1/b.rs".to_owned(), 20));
        assert_eq!(names(19), (String::new(), 0));
    }

    #[test]
    fn what_is_made_is_the_same_in_every_run_and_goes_with_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(lines(), lines());
        assert_eq!(lines().lines().count(), 4000);
        let made =
            Made::expand(dir.path(), 1 << 20, &AtomicI32::new(0), |out| out.write_all(lines().as_bytes())).unwrap();
        assert!(made.input.bytes >= 1 << 20 && made.input.bytes < 2 << 20);
        assert_eq!(fs::metadata(&made.input.files[0]).unwrap().len(), made.input.bytes);
        assert!(fs::read_to_string(&made.input.files[0]).unwrap().starts_with(&lines()));
        drop(made);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
