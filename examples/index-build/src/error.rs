//! How a command fails: every error knows its exit code and says what to change.
use plimsoll::Bytes;
use plimsoll::spill::SpillError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything a command does.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command ended without doing its work. The text names the file and the line, or the holder and the option.
#[derive(Debug)]
pub enum Error {
    /// The call or its configuration cannot work: exit code 2.
    Usage(String),
    /// A system call on `path` failed while doing `what` (a gerund: "reading", "creating"): exit code 1.
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// An input line cannot be indexed: exit code 1. `line` counts from 1.
    Input { path: PathBuf, line: u64, why: String },
    /// A file of an index, or a run, does not hold what it should: exit code 1. `offset` is in bytes.
    Corrupt { path: PathBuf, offset: u64, why: String },
    /// A run could not be written, read or merged: exit code 1.
    Spill(SpillError),
    /// So much memory is refused by the hard limit, where the work can be asked to go on once there is room: exit code 1 if
    /// nobody does.
    Room { bytes: usize },
    /// Anything else that makes the work impossible: exit code 1.
    Failed(String),
    /// A signal ended the work; everything temporary is gone: exit code 128 + signal.
    Interrupted { signal: i32 },
}

impl Error {
    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Interrupted { signal } => 128u8.wrapping_add(*signal as u8),
            _ => 1,
        }
    }

    /// For `map_err`: an input or output error with its path and what was being done.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |source| Error::Io { what, path, source }
    }
}

impl From<SpillError> for Error {
    fn from(error: SpillError) -> Self {
        match error {
            SpillError::Io { what, path, bytes: 0, source } => Error::Io { what, path, source },
            SpillError::Corrupt { path, offset, why } => Error::Corrupt { path, offset, why },
            error => Error::Spill(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(why) | Error::Failed(why) => f.write_str(why),
            Error::Io { what, path, source } => write!(f, "{what} {}: {source}", path.display()),
            Error::Input { path, line, why } => write!(f, "{}, line {line}: {why}", path.display()),
            Error::Corrupt { path, offset, why } => write!(f, "{}, offset {offset}: {why}", path.display()),
            Error::Spill(SpillError::Quota { asked_bytes, used_bytes, limit_bytes }) => {
                // what is larger than all addresses is no quota that refuses
                let [asked, used, limit] = [asked_bytes, used_bytes, limit_bytes]
                    .map(|&bytes| Bytes(usize::try_from(bytes).unwrap_or(usize::MAX)));
                write!(
                    f,
                    "{asked} more of spilled runs are refused by --spill-quota: {used} used of {limit}; give a larger \
                     --spill-quota, or a larger --budget, --hard-limit or --writer-cap, so that less is spilled"
                )
            }
            Error::Spill(error) => error.fmt(f),
            Error::Room { bytes } => write!(f, "{bytes} bytes more are refused by --hard-limit"),
            Error::Interrupted { signal: 2 } => f.write_str("interrupted, temporary files removed"),
            Error::Interrupted { .. } => f.write_str("terminated, temporary files removed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Spill(error) => Some(error),
            _ => None,
        }
    }
}
