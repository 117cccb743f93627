//! What can go wrong between memory and disk. Every error names the file, or the limit and what to change.

use crate::error::ReserveError;
use crate::units::Bytes;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of what this folder does.
pub type SpillResult<T> = Result<T, SpillError>;

/// Why something was not written, read or published. What was charged for it is given back before this is returned.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpillError {
    /// A system call on `path` failed while doing `what` (a gerund: "writing", "syncing").
    Io {
        /// What was being done.
        what: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// How many bytes were to be written or read; 0 where that says nothing.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not hold what was written: a wrong check-sum, an impossible length, a missing seal.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where, in bytes from its start.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// A read across the end of a file.
    End {
        /// The file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// How many bytes were asked for.
        asked_bytes: usize,
    },
    /// The disk quota does not hold so many bytes more.
    Quota {
        /// What was asked for, in bytes.
        asked_bytes: u64,
        /// What is used, in bytes.
        used_bytes: u64,
        /// The quota, in bytes.
        limit_bytes: u64,
    },
    /// The memory for a buffer was refused.
    Memory(ReserveError),
    /// A folder cannot be used to spill into: `why` says what to change.
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Every source of a file failed; `first` is what the first one said.
    Sources {
        /// How many there are.
        sources: usize,
        /// What the first one said.
        first: Box<SpillError>,
    },
}

impl SpillError {
    /// For `map_err`: a failed call with its path and what was being done.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SpillError + use<> {
        SpillError::io_of(what, path, 0)
    }

    /// The same for a call that was to move so many bytes.
    pub fn io_of(what: &'static str, path: &Path, bytes: u64) -> impl FnOnce(io::Error) -> SpillError + use<> {
        let path = path.to_owned();
        move |source| SpillError::Io { what, path, bytes, source }
    }

    /// A file that does not hold what it should.
    pub fn corrupt(path: &Path, offset: u64, why: impl Into<String>) -> SpillError {
        SpillError::Corrupt { path: path.to_owned(), offset, why: why.into() }
    }

    /// What the system said, if a system call failed.
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            SpillError::Io { source, .. } => Some(source),
            SpillError::Sources { first, .. } => first.io_error(),
            _ => None,
        }
    }
}

impl From<ReserveError> for SpillError {
    fn from(error: ReserveError) -> Self {
        SpillError::Memory(error)
    }
}

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpillError::Io { what, path, bytes: 0, source } => write!(f, "{what} {}: {source}", path.display()),
            SpillError::Io { what, path, bytes, source } => {
                write!(f, "{what} {bytes} bytes, {}: {source}", path.display())
            }
            SpillError::Corrupt { path, offset, why } => write!(f, "{}, offset {offset}: {why}", path.display()),
            SpillError::End { path, offset, asked_bytes } => {
                write!(f, "{}, offset {offset}: the file ends within the {asked_bytes} bytes asked for", path.display())
            }
            SpillError::Quota { asked_bytes, used_bytes, limit_bytes } => {
                let [asked, used, limit] = [asked_bytes, used_bytes, limit_bytes].map(|bytes| Bytes(*bytes as usize));
                write!(f, "{asked} more refused by the disk quota: {used} used of {limit}")
            }
            SpillError::Memory(error) => error.fmt(f),
            SpillError::Folder { path, why } => write!(f, "{}: {why}", path.display()),
            SpillError::Sources { sources, first } => write!(f, "{first} (and {} further sources failed)", sources - 1),
        }
    }
}

impl std::error::Error for SpillError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SpillError::Io { source, .. } => Some(source),
            SpillError::Memory(error) => Some(error),
            SpillError::Sources { first, .. } => Some(first),
            _ => None,
        }
    }
}
