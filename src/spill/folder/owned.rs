//! A folder of a process's own, with an owner file beside it.

use super::names;
use super::owner::{Claim, Owner};
use super::sweep::{Swept, sweep};
use crate::spill::error::{SpillError, SpillResult};
use crate::spill::files::{Files, uninterrupted};
use crate::sync::{Numbers, Ordering};
use crate::telemetry;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names that are tried; each may be taken by what a sweep could not remove.
const MOST_ATTEMPTS: usize = 1_000;

/// A temporary folder of this process, removed with all that is in it when this is dropped.
///
/// Beside it is its owner file, locked as long as the process lives. Creating one sweeps the parent first: folders whose
/// owner file can be locked are those of dead processes, and are removed; those of the living are left alone, whoever they
/// are. A process lives as long as a child that it forked and that is the same program still. All calls may block on the
/// file system, and on nothing else.
#[derive(Debug)]
pub struct OwnedFolder {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// None where files cannot be locked.
    owner: Option<Owner>,
    swept: Swept,
    /// Removed, or not ours any more.
    gone: bool,
}

impl OwnedFolder {
    /// Sweeps `parent`, then creates `parent/.LABEL.KIND-PROCESS-NUMBER`. Of a long label the name has the beginning.
    ///
    /// # Errors
    /// [`SpillError::Folder`] if `parent` is not there, is no folder or cannot be written to, which is found out by writing;
    /// [`SpillError::Io`] if something else fails. Nothing of the new folder stays then. What goes wrong in the sweep is
    /// counted in [`swept`](Self::swept) and is no error.
    pub fn create(
        files: Arc<dyn Files>,
        parent: &Path,
        label: impl AsRef<OsStr>,
        kind: &str,
    ) -> SpillResult<OwnedFolder> {
        let swept = match uninterrupted(|| files.list(parent)) {
            Ok(listed) => sweep(files.as_ref(), &listed),
            Err(error) if unusable(&error).is_some() => return Err(refused("reading", parent, parent, error)),
            // what can be written need not be readable
            Err(_) => Swept { failed: 1, ..Swept::default() },
        };
        if swept != Swept::default() {
            telemetry::swept(parent, swept.folders, swept.bytes, swept.failed);
        }
        for _ in 0..MOST_ATTEMPTS {
            let path = parent.join(names::folder(label.as_ref(), kind, next_number()));
            let owner_path = names::owner_of(&path);
            let owner = match Owner::claim(files.as_ref(), &owner_path) {
                Ok(Claim::Owned(owner)) => Some(owner),
                Ok(Claim::Unlockable) => None,
                Ok(Claim::Taken) => continue,
                Err(SpillError::Io { what, path, bytes: 0, source }) => {
                    return Err(refused(what, &path, parent, source));
                }
                Err(error) => return Err(error),
            };
            let Err(error) = uninterrupted(|| files.create_folder(&path)) else {
                return Ok(OwnedFolder { files, path, owner, swept, gone: false });
            };
            if let Some(owner) = owner {
                // an error is being told already; a sweep removes it
                let _ = owner.remove(files.as_ref());
            }
            // a folder without an owner file has the name
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(refused("creating", &path, parent, error));
            }
        }
        let why = format!("no free name for a temporary folder after {MOST_ATTEMPTS} attempts: name another folder");
        Err(SpillError::Folder { path: parent.to_owned(), why })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The system calls that it is used with.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// What was removed of dead processes when it was created.
    pub fn swept(&self) -> Swept {
        self.swept
    }

    /// The folder has another name by now, or another folder has its name: nothing is removed but the owner file.
    ///
    /// # Errors
    /// [`SpillError::Io`] if that cannot be removed; a later sweep would remove it, and what has the name then.
    pub fn keep(mut self) -> SpillResult<()> {
        self.gone = true;
        self.let_go()
    }

    /// Removes it now. If it is not there any more, that is as good.
    ///
    /// # Errors
    /// [`SpillError::Io`]: the first thing that could not be removed. The owner file stays with it, without its lock, so
    /// that the next start sweeps both.
    pub fn remove(mut self) -> SpillResult<()> {
        self.take_away()
    }

    fn take_away(&mut self) -> SpillResult<()> {
        if std::mem::replace(&mut self.gone, true) {
            return Ok(());
        }
        match uninterrupted(|| self.files.remove_tree(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SpillError::io("removing", &self.path)(error)),
            _ => self.let_go(),
        }
    }

    fn let_go(&mut self) -> SpillResult<()> {
        self.owner.take().map_or(Ok(()), |owner| owner.remove(self.files.as_ref()))
    }
}

impl Drop for OwnedFolder {
    fn drop(&mut self) {
        // an error is being told already, or a panic is under way; the next start sweeps what stays
        let _ = self.take_away();
    }
}

/// A number that nothing temporary of this process has had.
pub(in crate::spill) fn next_number() -> u64 {
    static NEXT: Numbers = Numbers::new(0);
    // Relaxed: only the numbers have to differ
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What to change about a folder, where the system's answer means that it is the wrong one.
fn unusable(error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::NotFound => Some("no such folder: create it, or name another one".to_owned()),
        io::ErrorKind::NotADirectory => Some("not a folder: name another one".to_owned()),
        _ => None,
    }
}

/// The error of a call on `path`, or of its parent where that cannot be used at all.
fn refused(what: &'static str, path: &Path, parent: &Path, error: io::Error) -> SpillError {
    let why = unusable(&error).or_else(|| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some(format!("cannot be written to ({error}): change that, or name another folder"))
        }
        _ => None,
    });
    match why {
        Some(why) => SpillError::Folder { path: parent.to_owned(), why },
        None => SpillError::io(what, path)(error),
    }
}
