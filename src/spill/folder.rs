//! A folder of a process's own to spill into.

use super::error::{SpillError, SpillResult};
use super::files::Files;
use super::quota::DiskQuota;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that this process alone writes, and that goes with everything in it when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct SpillFolder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Arc<dyn Files>,
    path: PathBuf,
    quota: DiskQuota,
}

impl SpillFolder {
    /// Creates `parent/name`.
    ///
    /// # Errors
    /// [`SpillError::Io`] if that fails.
    pub fn create(files: Arc<dyn Files>, parent: &Path, name: &str, quota: DiskQuota) -> SpillResult<SpillFolder> {
        let path = parent.join(name);
        files.create_folder(&path).map_err(SpillError::io("creating", &path))?;
        Ok(SpillFolder(Arc::new(Inner { files, path, quota })))
    }

    /// The system calls that it is used with.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.0.files
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Takes disk space that is about to be written.
    ///
    /// # Errors
    /// [`SpillError::Quota`]; nothing has changed.
    pub fn take(&self, bytes: u64) -> SpillResult<()> {
        self.0.quota.take(bytes)
    }

    /// Gives back disk space that is free again.
    pub fn give_back(&self, bytes: u64) {
        self.0.quota.give_back(bytes);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.files.remove_folder(&self.path);
    }
}
