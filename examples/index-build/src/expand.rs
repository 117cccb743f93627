//! A small sample made large: pass 0 is the file itself, and each later pass is the file with every identifier-like run
//! replaced, so that the vocabulary grows as that of a real log does while words stay words.
//!
//! A run is a maximal run of characters for which `char::is_alphanumeric` is true in the lossily decoded file, as in a
//! token. It is replaced if it has at least [`SHORTEST`] characters and one of them is an ASCII digit: an ASCII digit by
//! a digit, a lower-case ASCII letter by a lower-case one, an upper-case one by an upper-case one; other characters
//! count and stay. A run of `[0-9a-f]` alone or of `[0-9A-F]` alone takes its letters from a to f, so it stays
//! hexadecimal. What follows a backslash in JSON (`\n`, `\u00e9`) is left alone and ends a run.
//!
//! Three things follow, and the checks of an expanded index rest on them: no length changes, so every pass is as long as
//! the file; digits stay where they are, so no new term without a digit appears and a term without digits occurs
//! (passes x) as often; and a run is replaced by a keyed hash of pass, seed and its own bytes, so it is replaced alike
//! wherever it stands in a pass, without a table.
//!
//! The file is read again for each pass through one buffer, which is changed in place and grows only to hold the longest
//! run.
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::error::{Error, Result};

mod alter;
use alter::{Alter, alter};

/// Runs of fewer characters stay as they are.
pub const SHORTEST: usize = 5;

/// What is read at once: large enough that a system call costs nothing beside the work on it.
const CHUNK: usize = 1 << 20;

/// What to expand, and how far.
#[derive(Debug, Clone)]
pub struct ExpandOptions {
    pub input: PathBuf,
    pub out: PathBuf,
    /// The first pass that reaches this is the last.
    pub bytes: u64,
    pub seed: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Expanded {
    /// Whole passes, the file itself included.
    pub passes: u64,
    pub bytes: u64,
    /// Documents of the result: pieces between line feeds, an empty one at the end not counted.
    pub lines: u64,
}

/// Expands `options.input` into `options.out`, which is replaced if it exists and appears only once it is whole.
///
/// `written` follows the bytes written. `signal` is polled once a chunk; anything but 0 ends the work with
/// [`Error::Interrupted`]. On every error the temporary file beside the output is removed and an older output stays as it was.
///
/// # Errors
/// A usage error if output and input are one file, or the output is a folder; a failure if the input is empty, no
/// regular file, or changes its length while it is read again.
pub fn expand(options: &ExpandOptions, written: &AtomicU64, signal: &AtomicI32) -> Result<Expanded> {
    let input = fs::metadata(&options.input).map_err(Error::io("reading", &options.input))?;
    if !input.is_file() {
        return Err(Error::Failed(format!(
            "{}: not a regular file, cannot be read once for each pass",
            options.input.display()
        )));
    }
    if same_file(&options.input, &options.out) {
        return Err(Error::Usage(format!("{}: --out is the input itself", options.out.display())));
    }
    if options.out.is_dir() {
        return Err(Error::Usage(format!("{}: --out is a folder, not a file", options.out.display())));
    }
    // renaming over a device or a pipe would put a file in its place
    if fs::metadata(&options.out).is_ok_and(|out| !out.is_file()) {
        return Err(Error::Usage(format!("{}: --out is there and no regular file", options.out.display())));
    }
    let temporary = Temporary::create(&options.out)?;
    let mut file = &temporary.file;
    let done = expand_to(&options.input, options.bytes, options.seed, signal, &mut |piece| {
        file.write_all(piece).map_err(Error::io("writing", &temporary.path))?;
        written.fetch_add(piece.len() as u64, Relaxed); // Relaxed: a figure for a progress bar
        Ok(())
    })?;
    temporary.rename(&options.out)?;
    Ok(done)
}

/// The same passes, handed to `sink` piece by piece. No piece is empty; pieces end anywhere.
///
/// # Errors
/// As [`expand`], and whatever `sink` returns.
pub fn expand_to(
    input: &Path,
    bytes: u64,
    seed: u64,
    signal: &AtomicI32,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Expanded> {
    let mut done = Expanded::default();
    let mut buffer = vec![0; CHUNK];
    let mut first: Option<Pass> = None;
    loop {
        let keyed = (done.passes > 0).then(|| Alter::new(seed, done.passes));
        if first.is_some_and(|pass| pass.last != b'\n') {
            sink(b"\n")?;
            done.bytes += 1;
        }
        let pass = one_pass(input, keyed.as_ref(), &mut buffer, signal, sink)?;
        if pass.bytes == 0 {
            return Err(Error::Failed(format!("{}: an empty file cannot be expanded", input.display())));
        }
        let whole = *first.get_or_insert(pass);
        if whole.bytes != pass.bytes {
            return Err(Error::Failed(format!("{}: changed while it was expanded", input.display())));
        }
        done.passes += 1;
        done.bytes += pass.bytes;
        done.lines += pass.newlines + u64::from(pass.last != b'\n');
        if done.bytes >= bytes {
            return Ok(done);
        }
    }
}

/// What one pass has seen.
#[derive(Debug, Clone, Copy)]
struct Pass {
    bytes: u64,
    newlines: u64,
    last: u8,
}

fn one_pass(
    input: &Path,
    keyed: Option<&Alter>,
    buffer: &mut Vec<u8>,
    signal: &AtomicI32,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Pass> {
    let mut file = File::open(input).map_err(Error::io("opening", input))?;
    let mut pass = Pass { bytes: 0, newlines: 0, last: b'\n' };
    // buffer[..kept] is the beginning of a run, an escape or a character whose end has not been read yet
    let mut kept = 0;
    loop {
        match signal.load(Relaxed) {
            0 => {}
            signal => return Err(Error::Interrupted { signal }),
        }
        if kept == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        let read = match file.read(&mut buffer[kept..]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(Error::io("reading", input))?,
        };
        let filled = kept + read;
        let ready = match keyed {
            Some(keyed) => alter(&mut buffer[..filled], keyed, read == 0),
            None => filled,
        };
        if ready > 0 {
            let piece = &buffer[..ready];
            pass.bytes += ready as u64;
            pass.newlines += memchr::memchr_iter(b'\n', piece).count() as u64;
            pass.last = piece[ready - 1];
            sink(piece)?;
        }
        if read == 0 {
            return Ok(pass);
        }
        buffer.copy_within(ready..filled, 0);
        kept = filled - ready;
    }
}

/// Whether both names lead to one existing file, by whatever links.
fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// The output under a temporary name beside it; removed on drop unless it was renamed.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    fn create(out: &Path) -> Result<Temporary> {
        let name = out.file_name().ok_or_else(|| Error::Usage(format!("{}: --out names no file", out.display())))?;
        // of a long name the beginning, so that this one is not too long
        let beginning: String = name.to_string_lossy().chars().take(32).collect();
        let process = std::process::id();
        let mut number = 0u32;
        loop {
            let path = out.with_file_name(format!(".{beginning}.{process}-{number}.tmp"));
            match File::create_new(&path) {
                Ok(file) => return Ok(Temporary { path, file, renamed: false }),
                // a process that had this number was killed
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < u32::MAX => number += 1,
                Err(error) => return Err(Error::io("creating", &path)(error)),
            }
        }
    }

    fn rename(mut self, out: &Path) -> Result<()> {
        fs::rename(&self.path, out).map_err(Error::io("renaming to", out))?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // nothing better can be done about a file that will not go
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
