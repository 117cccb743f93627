//! What is asked of a publication, and what it came to.

use std::path::PathBuf;
use std::time::Duration;

/// How durable a publication is when it says that it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// Every file that stays is synced once, and every folder whose names have changed: it survives a loss of power.
    #[default]
    Final,
    /// Nothing is synced: it survives the end of the process, and a loss of power if the system has had time to write.
    None,
}

/// What a publication came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Files that were synced, each once.
    pub synced_files: u64,
    /// Folders that were synced, each once for all names in it; the parents too.
    pub synced_folders: u64,
    /// Folders that the file system cannot sync.
    pub unsupported_folder_syncs: u64,
    /// Time in syncs.
    pub sync_time: Duration,
    /// Something was there before.
    pub replaced: bool,
    /// Temporary files and folders of processes that are gone, and were removed.
    pub swept: u64,
    /// Their bytes.
    pub swept_bytes: u64,
    /// What was replaced and could not be removed. The new content is in its place all the same.
    pub left_behind: Vec<PathBuf>,
}
