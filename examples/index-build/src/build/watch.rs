//! What a front end sees of a build while it runs, and how it stops one. All of it is atomic: nobody waits for anybody.
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

/// Progress of a build, and the wish to stop it. Every figure is Relaxed: shown, never relied on.
#[derive(Debug, Default)]
pub struct Watch {
    /// Bytes of all input.
    pub total_bytes: AtomicU64,
    /// Bytes that have been read as documents.
    pub done_bytes: AtomicU64,
    /// What is held, sampled every 10 ms.
    pub held_bytes: AtomicU64,
    /// Runs written so far.
    pub runs: AtomicU64,
    /// Folders of killed builds that were removed at the start, and the bytes in them.
    pub swept_folders: AtomicU64,
    pub swept_bytes: AtomicU64,
    /// 0, or the signal that asks the build to stop; looked at once an input block and once a merged block.
    pub signal: AtomicI32,
    /// Spills go to a file system in memory, and the options asked for a warning.
    pub spills_to_ram: AtomicBool,
}
