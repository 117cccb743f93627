//! The owner file: whoever has its lock owns the folder of its name.

use crate::spill::error::{SpillError, SpillResult};
use crate::spill::files::{Files, OpenFile, uninterrupted, write_all_at};
use std::io;
use std::path::{Path, PathBuf};

/// What an owner file holds. A process that was killed while it created one leaves a beginning of it.
pub(super) const MAGIC: &[u8] = b"plimsoll: while this file is locked, the folder of this name is in use\n";

/// A locked owner file.
#[derive(Debug)]
pub(super) struct Owner {
    path: PathBuf,
    /// Its lock goes with it.
    _file: Box<dyn OpenFile>,
}

/// What came of an attempt to own a name.
#[derive(Debug)]
pub(super) enum Claim {
    /// Locked, and the name is this file's.
    Owned(Owner),
    /// Somebody else has the name, or a sweep was faster.
    Taken,
    /// Files cannot be locked here: nobody sweeps, so nobody needs an owner file.
    Unlockable,
}

impl Owner {
    /// Creates, locks and writes the owner file at `path`. After an error it is gone.
    pub(super) fn claim(files: &dyn Files, path: &Path) -> SpillResult<Claim> {
        let file = match uninterrupted(|| files.create_new(path)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Claim::Taken),
            Err(error) => return Err(SpillError::io("creating", path)(error)),
        };
        let away = || {
            // an error is being told already, or nothing depends on it: a sweep removes it
            let _ = uninterrupted(|| files.remove_file(path));
        };
        match uninterrupted(|| file.try_lock()) {
            Ok(true) => {}
            // a sweep has it, and removes it
            Ok(false) => return Ok(Claim::Taken),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                away();
                return Ok(Claim::Unlockable);
            }
            Err(error) => {
                away();
                return Err(SpillError::io("locking", path)(error));
            }
        }
        match has_the_name(files, file.as_ref(), path) {
            Ok(true) => {}
            // swept before it was locked
            Ok(false) => return Ok(Claim::Taken),
            Err(error) => {
                away();
                return Err(SpillError::io("looking at", path)(error));
            }
        }
        if let Err(error) = write_all_at(file.as_ref(), MAGIC, 0) {
            away();
            return Err(SpillError::io_of("writing", path, MAGIC.len() as u64)(error));
        }
        Ok(Claim::Owned(Owner { path: path.to_owned(), _file: file }))
    }

    /// Removes the file, and lets go of the lock after that.
    pub(super) fn remove(self, files: &dyn Files) -> SpillResult<()> {
        match uninterrupted(|| files.remove_file(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SpillError::io("removing", &self.path)(error)),
            _ => Ok(()),
        }
    }
}

/// Whether `path` leads to this open file. Where that cannot be told, whether it leads to a file.
pub(super) fn has_the_name(files: &dyn Files, file: &dyn OpenFile, path: &Path) -> io::Result<bool> {
    match uninterrupted(|| files.look(path)) {
        Ok(entry) => {
            let open = uninterrupted(|| file.version())?.identity;
            let same = entry.identity.zip(open).is_none_or(|(named, open)| named == open);
            Ok(entry.is_file && same)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
