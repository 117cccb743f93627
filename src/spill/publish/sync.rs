//! Syncs, counted and timed. There is no second try: what a sync says stands.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Files, OpenFile, uninterrupted};
use super::outcome::{Published, SyncPolicy};
use std::io;
use std::path::Path;
use std::time::Instant;

/// Syncs for one publication.
#[derive(Debug)]
pub(super) struct Syncs {
    policy: SyncPolicy,
    pub(super) published: Published,
}

impl Syncs {
    pub(super) fn new(policy: SyncPolicy) -> Syncs {
        Syncs { policy, published: Published::default() }
    }

    pub(super) fn wanted(&self) -> bool {
        self.policy == SyncPolicy::Final
    }

    fn timed<T>(&mut self, sync: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let start = Instant::now();
        let done = uninterrupted(sync);
        self.published.sync_time += start.elapsed();
        done
    }

    /// A file's content and length.
    pub(super) fn file(&mut self, file: &dyn OpenFile, path: &Path) -> SpillResult<()> {
        if self.wanted() {
            self.timed(|| file.sync()).map_err(SpillError::io("syncing", path))?;
            self.published.synced_files += 1;
        }
        Ok(())
    }

    /// The names in a folder.
    pub(super) fn folder(&mut self, files: &dyn Files, folder: &Path) -> SpillResult<()> {
        if self.wanted() {
            match self.timed(|| files.sync_folder(folder)) {
                Ok(()) => self.published.synced_folders += 1,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.published.unsupported_folder_syncs += 1;
                }
                Err(error) => return Err(SpillError::io("syncing", folder)(error)),
            }
        }
        Ok(())
    }
}
