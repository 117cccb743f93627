//! Folders that are missing above a place. They go again, if nobody has put anything into them, unless they are kept.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Files, uninterrupted};
use super::remove::warn_left;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Parents {
    files: Arc<dyn Files>,
    /// The uppermost first.
    created: Vec<PathBuf>,
    /// Those, and what somebody else has created meanwhile, whose name need not be durable either.
    missing: Vec<PathBuf>,
}

impl Parents {
    /// Creates what is missing of `folder` and above.
    pub(super) fn create(files: Arc<dyn Files>, folder: &Path) -> SpillResult<Parents> {
        let mut missing = Vec::new();
        for folder in folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            match uninterrupted(|| files.look(folder)) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(folder),
                Err(error) => return Err(SpillError::io("reading", folder)(error)),
            }
        }
        // before they are created: some may be when one cannot be
        let created = Vec::with_capacity(missing.len());
        let mut parents = Parents { files, created, missing: missing.iter().rev().map(PathBuf::from).collect() };
        for folder in missing.into_iter().rev() {
            match uninterrupted(|| parents.files.create_folder(folder)) {
                Ok(()) => parents.created.push(folder.to_owned()),
                // somebody else needed it too
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(SpillError::io("creating", folder)(error)),
            }
        }
        Ok(parents)
    }

    /// Folders in which names of folders are that were missing: the nearest to the place first.
    pub(super) fn of_missing(&self) -> impl Iterator<Item = &Path> {
        self.missing.iter().rev().map(|folder| match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        })
    }

    /// They stay.
    pub(super) fn keep(&mut self) {
        self.created.clear();
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        for folder in self.created.iter().rev() {
            match uninterrupted(|| self.files.remove_folder(folder)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // it is somebody else's too by now
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => break,
                Err(error) => return warn_left(folder, &error),
            }
        }
    }
}
