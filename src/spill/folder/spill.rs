//! The folder of a process's spools: an owned folder, a disk quota, and what a file system in memory means.

use super::owned::OwnedFolder;
use super::sweep::Swept;
use crate::limit::SharedReporter;
use crate::spill::error::{SpillError, SpillResult};
use crate::spill::files::{Files, system, uninterrupted};
use crate::spill::quota::DiskQuota;
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::telemetry;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do about a folder on a file system in memory, where a spill moves bytes and frees none.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum OnRam {
    /// Use it, and say so in an event (warn, target `plimsoll`) when bytes are taken for the first time.
    #[default]
    Warn,
    /// Use it, and charge every byte that is taken to this reporter until it is given back. Its hard limit may refuse.
    Charge(SharedReporter),
    /// Do not use it.
    Refuse,
    /// Use it, and say and charge nothing: for who does that, and asks [`SpillFolder::in_memory`].
    Allow,
}

/// What a [`SpillFolder`] is made with.
#[derive(Debug)]
#[must_use = "it creates nothing before `create`"]
pub struct SpillFolderBuilder {
    files: Arc<dyn Files>,
    parent: PathBuf,
    label: OsString,
    quota: DiskQuota,
    on_ram: OnRam,
}

impl SpillFolderBuilder {
    /// The system calls; the operating system's unless given.
    pub fn files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = files;
        self
    }

    /// What the folder's name begins with: `plimsoll` unless given.
    pub fn label(mut self, label: impl AsRef<OsStr>) -> Self {
        self.label = label.as_ref().to_owned();
        self
    }

    /// Bytes on disk, shared with every folder that has a clone of it; unlimited unless given.
    pub fn quota(mut self, quota: DiskQuota) -> Self {
        self.quota = quota;
        self
    }

    /// What to do about a file system in memory: [`OnRam::Warn`] unless given.
    pub fn on_ram(mut self, on_ram: OnRam) -> Self {
        self.on_ram = on_ram;
        self
    }

    /// Sweeps the parent and creates the folder.
    ///
    /// # Errors
    /// As [`OwnedFolder::create`]; [`SpillError::Folder`] too if the parent is in memory and that is refused. Nothing stays
    /// then.
    pub fn create(self) -> SpillResult<SpillFolder> {
        let SpillFolderBuilder { files, parent, label, quota, on_ram } = self;
        let folder = OwnedFolder::create(Arc::clone(&files), &parent, label, "spill")?;
        let path = folder.path().to_owned();
        // of the folder itself: it is what will be written into
        let in_memory = match uninterrupted(|| files.in_memory(&path)) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => false,
            answer => answer.map_err(SpillError::io("looking at the file system of", &path))?,
        };
        if in_memory && matches!(on_ram, OnRam::Refuse) {
            let why = "on a file system in memory, where a spill frees nothing: name another folder, or allow this one";
            return Err(SpillError::Folder { path: parent, why: why.to_owned() });
        }
        let swept = folder.swept();
        Ok(SpillFolder(Arc::new(Inner {
            files,
            path,
            quota,
            on_ram,
            in_memory,
            swept,
            warned: AtomicBool::new(false),
            folder: Mutex::new(Some(folder)),
        })))
    }
}

/// A folder that this process alone writes. It goes with everything in it when the last clone is dropped, or at the next
/// start in the same parent if the process is killed.
///
/// ```
/// use plimsoll::spill::{DiskQuota, SpillFolder};
///
/// let parent = tempfile::tempdir()?;
/// let folder = SpillFolder::builder(parent.path()).label("logs").quota(DiskQuota::new(1 << 30)).create()?;
/// assert_eq!(folder.swept().folders, 0); // nobody was killed here
/// folder.take(4_096)?; // before it is written
/// assert_eq!(folder.quota().used_bytes(), 4_096);
/// folder.give_back(4_096);
/// folder.remove()?;
/// assert_eq!(std::fs::read_dir(parent.path())?.count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SpillFolder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Arc<dyn Files>,
    path: PathBuf,
    quota: DiskQuota,
    on_ram: OnRam,
    in_memory: bool,
    swept: Swept,
    warned: AtomicBool,
    /// None once it is removed.
    folder: Mutex<Option<OwnedFolder>>,
}

impl SpillFolder {
    /// A folder in `parent`, to be configured.
    pub fn builder(parent: impl Into<PathBuf>) -> SpillFolderBuilder {
        SpillFolderBuilder {
            files: system(),
            parent: parent.into(),
            label: "plimsoll".into(),
            quota: DiskQuota::unlimited(),
            on_ram: OnRam::Warn,
        }
    }

    /// A folder in `parent` with these system calls and this quota; the rest as the builder has it.
    ///
    /// # Errors
    /// As [`SpillFolderBuilder::create`].
    pub fn create(files: Arc<dyn Files>, parent: &Path, label: &str, quota: DiskQuota) -> SpillResult<SpillFolder> {
        SpillFolder::builder(parent).files(files).label(label).quota(quota).create()
    }

    /// The system calls that it is used with.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.0.files
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The quota that it takes from.
    pub fn quota(&self) -> &DiskQuota {
        &self.0.quota
    }

    /// Whether it is on a file system in memory; false where that cannot be told.
    pub fn in_memory(&self) -> bool {
        self.0.in_memory
    }

    /// What was removed of dead processes when it was created.
    pub fn swept(&self) -> Swept {
        self.0.swept
    }

    /// Takes disk space that is about to be written. On a file system in memory it is charged too, if that was asked for.
    ///
    /// # Errors
    /// [`SpillError::Quota`]; [`SpillError::Memory`] if the reporter's hard limit refuses. Nothing has changed.
    pub fn take(&self, bytes: u64) -> SpillResult<()> {
        self.0.quota.take(bytes)?;
        if !self.0.in_memory {
            return Ok(());
        }
        match &self.0.on_ram {
            OnRam::Charge(reporter) => {
                if let Err(error) = reporter.try_charge(in_memory_bytes(bytes)) {
                    self.0.quota.give_back(bytes);
                    return Err(error.into());
                }
            }
            // Relaxed: only one of them has to be the first
            OnRam::Warn if bytes > 0 && !self.0.warned.swap(true, Ordering::Relaxed) => {
                telemetry::spills_to_memory(&self.0.path);
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives back disk space that is free again, and its charge.
    pub fn give_back(&self, bytes: u64) {
        if self.0.in_memory
            && let OnRam::Charge(reporter) = &self.0.on_ram
        {
            reporter.release(in_memory_bytes(bytes));
        }
        self.0.quota.give_back(bytes);
    }

    /// Removes the folder now, for every clone. What was taken is for those who took it to give back.
    ///
    /// # Errors
    /// [`SpillError::Io`]: the first thing that could not be removed; the next start in the same parent tries again. A
    /// second call has nothing to do.
    pub fn remove(self) -> SpillResult<()> {
        let folder = self.0.folder.lock().take();
        folder.map_or(Ok(()), OwnedFolder::remove)
    }
}

/// What is in memory fits its addresses.
fn in_memory_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
