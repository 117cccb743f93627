//! The one step in which a place gets its new content, and the way back.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Files, uninterrupted};
use super::lock::Lock;
use super::names::Place;
use super::remove::{remove, warn_left};
use std::io;
use std::path::{Path, PathBuf};

/// How a place got its new content.
#[derive(Debug)]
pub(super) struct Swap {
    how: How,
    /// What was replaced is not removed by a neighbour who sweeps.
    _old: Option<Lock>,
}

#[derive(Debug)]
enum How {
    /// There was nothing.
    New,
    /// Old and new have each other's names.
    Exchanged,
    /// The old one was given the third name first.
    Aside(PathBuf),
    /// The old one, a file, is gone: there is no way back.
    Over,
}

fn rename(files: &dyn Files, from: &Path, to: &Path) -> SpillResult<()> {
    uninterrupted(|| files.rename(from, to)).map_err(SpillError::io("renaming to", to))
}

/// Locks what is at the place, so that it stays there. An error if another publication has that in its hands, or was
/// faster: what was opened had lost its name before it was locked.
fn lock_old(files: &dyn Files, place: &Path) -> SpillResult<Lock> {
    let lock = Lock::take(files, place).map_err(SpillError::io("locking", place))?;
    if !matches!(lock, Lock::Taken) && lock.has_the_name(files, place).map_err(SpillError::io("locking", place))? {
        return Ok(lock);
    }
    Err(busy(place))
}

fn busy(place: &Path) -> SpillError {
    let error = io::Error::new(io::ErrorKind::ResourceBusy, "another process is replacing it");
    SpillError::io("replacing", place)(error)
}

/// The place is empty. An error if that is for a moment: what was there waits, in somebody's hands, under the third name.
fn refuse_moment(files: &dyn Files, place: &Place) -> SpillResult<()> {
    let aside = place.aside();
    match Lock::take(files, &aside) {
        Ok(Lock::Taken) => Err(busy(&place.path)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SpillError::io("locking", &aside)(error)),
    }
}

impl Swap {
    /// Puts the folder `new` into the place. A folder that is there and not empty is replaced only if that is asked for.
    pub(super) fn folder(files: &dyn Files, new: &Path, place: &Place, replace: bool) -> SpillResult<Swap> {
        let path = &place.path;
        let refuse = |kind, why| Err(SpillError::io("replacing", path)(io::Error::new(kind, why)));
        match uninterrupted(|| files.look(path)) {
            Ok(entry) if !entry.is_folder => return refuse(io::ErrorKind::NotADirectory, "it is not a folder"),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                refuse_moment(files, place)?;
                rename(files, new, path)?;
                return Ok(Swap { how: How::New, _old: None });
            }
            Err(error) => return Err(SpillError::io("reading", path)(error)),
        }
        let _old = Some(lock_old(files, path)?);
        // with the lock: nobody publishes here between this look and the step
        if !replace && !uninterrupted(|| files.list(path)).map_err(SpillError::io("reading", path))?.is_empty() {
            return refuse(io::ErrorKind::DirectoryNotEmpty, "it is not empty");
        }
        match uninterrupted(|| files.exchange(new, path)) {
            Ok(()) => return Ok(Swap { how: How::Exchanged, _old }),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return Err(SpillError::io("exchanging names with", path)(error)),
        }
        let aside = place.aside();
        // of an earlier replacement: the place is not empty, so nobody needs it
        remove(files, &aside).map_err(|(path, error)| SpillError::io("removing", &path)(error))?;
        rename(files, path, &aside)?;
        if let Err(first) = rename(files, new, path) {
            if let Err(error) = rename(files, &aside, path) {
                warn_not_undone(&error);
            }
            return Err(first);
        }
        Ok(Swap { how: How::Aside(aside), _old })
    }

    /// Puts the file `new` into the place.
    pub(super) fn file(files: &dyn Files, new: &Path, place: &Place) -> SpillResult<Swap> {
        let path = &place.path;
        match uninterrupted(|| files.look(path)) {
            Ok(entry) if entry.is_folder => {
                let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
                return Err(SpillError::io("replacing", path)(error));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                rename(files, new, path)?;
                return Ok(Swap { how: How::New, _old: None });
            }
            Err(error) => return Err(SpillError::io("reading", path)(error)),
        }
        let _old = Some(lock_old(files, path)?);
        match uninterrupted(|| files.exchange(new, path)) {
            Ok(()) => Ok(Swap { how: How::Exchanged, _old }),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                rename(files, new, path)?;
                Ok(Swap { how: How::Over, _old })
            }
            Err(error) => Err(SpillError::io("exchanging names with", path)(error)),
        }
    }

    /// Whether something was there before.
    pub(super) fn replaced(&self) -> bool {
        !matches!(self.how, How::New)
    }

    /// The names as they were. The first error is being told, so this one is a warning. Answers whether what has the name
    /// `new` now may be removed: not if that is the old content.
    pub(super) fn undo(self, files: &dyn Files, new: &Path, place: &Path) -> bool {
        let undone = match &self.how {
            How::New => rename(files, place, new),
            How::Exchanged => {
                uninterrupted(|| files.exchange(new, place)).map_err(SpillError::io("exchanging names with", place))
            }
            How::Aside(aside) => rename(files, place, new).and_then(|()| rename(files, aside, place)),
            How::Over => return true,
        };
        undone.is_ok() || {
            undone.unwrap_or_else(|error| warn_not_undone(&error));
            !matches!(self.how, How::Exchanged)
        }
    }

    /// Removes what was replaced, which has the name `new` or the third one; answers what could not be.
    pub(super) fn remove_old(self, files: &dyn Files, new: &Path) -> Option<PathBuf> {
        let old = match &self.how {
            How::New | How::Over => return None,
            How::Exchanged => new,
            How::Aside(aside) => aside,
        };
        let (at, error) = remove(files, old).err()?;
        warn_left(&at, &error);
        Some(old.to_owned())
    }
}

fn warn_not_undone(error: &SpillError) {
    tracing::warn!(target: "plimsoll", %error, "a publication that failed is not undone: {error}");
}
