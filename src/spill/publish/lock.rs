//! Whether the owner of a folder is alive: it keeps the folder open and locked, and the lock goes with the process, however
//! it ends. The lock belongs to the folder itself, so it follows it through a rename.

use super::super::files::{Files, OpenFile, uninterrupted};
use std::io;
use std::path::Path;

/// What became of asking for a folder's lock.
#[derive(Debug)]
pub(super) enum Lock {
    /// It is ours until this is dropped.
    Held {
        /// What is locked.
        handle: Box<dyn OpenFile>,
    },
    /// Somebody living has it.
    Taken,
    /// Folders cannot be locked here, so nobody can tell.
    Unsupported,
}

impl Lock {
    pub(super) fn take(files: &dyn Files, folder: &Path) -> io::Result<Lock> {
        if !cfg!(unix) {
            // folders cannot be opened like files
            return Ok(Lock::Unsupported);
        }
        let handle = uninterrupted(|| files.open(folder))?;
        match uninterrupted(|| handle.try_lock()) {
            Ok(true) => Ok(Lock::Held { handle }),
            Ok(false) => Ok(Lock::Taken),
            Err(error) if cannot(&error) => Ok(Lock::Unsupported),
            Err(error) => Err(error),
        }
    }

    /// Whether `path` leads to what is locked; yes where that cannot be told.
    pub(super) fn has_the_name(&self, files: &dyn Files, path: &Path) -> io::Result<bool> {
        let Lock::Held { handle } = self else { return Ok(true) };
        let named = match uninterrupted(|| files.look(path)) {
            Ok(entry) => entry.identity,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let locked = uninterrupted(|| handle.version())?.identity;
        Ok(named.zip(locked).is_none_or(|(named, locked)| named == locked))
    }
}

/// What file systems without locks answer, and network file systems that lock only what is open for writing.
#[cfg(unix)]
fn cannot(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == io::ErrorKind::Unsupported
        || error
            .raw_os_error()
            .is_some_and(|code| [Errno::BADF, Errno::NOLCK].contains(&Errno::from_raw_os_error(code)))
}

#[cfg(not(unix))]
fn cannot(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}
