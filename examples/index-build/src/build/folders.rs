//! Where a build writes: the index folder and its rules, and the folder of spilled runs, which goes in every case.
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::options::{SpillOnRam, Sync};
use plimsoll::spill::files;
use plimsoll::spill::publish::{self, Publication, SyncPolicy};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed, with all that is in it, when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Creates `parent/.NAME.KIND-PROCESS-NUMBER`; of a long name only the beginning, so that this one is not too long.
    fn create(parent: &Path, name: &OsStr, kind: &str) -> Result<Temporary> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            // Relaxed: only the numbers have to differ
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut folder = OsString::from(".");
            folder.push(beginning(name));
            folder.push(format!(".{kind}-{}-{number}", std::process::id()));
            let path = parent.join(folder);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Temporary { path }),
                // a process that had this number was killed
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("creating", &path)(error)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now, and says if that fails.
    pub(super) fn remove(mut self) -> Result<()> {
        let path = std::mem::take(&mut self.path);
        fs::remove_dir_all(&path).map_err(Error::io("removing", &path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // an error is being told already, or a panic is under way
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// As much of a name as leaves room for more in the same name.
fn beginning(name: &OsStr) -> OsString {
    const MOST_CHARACTERS: usize = 32;
    if name.len() <= MOST_CHARACTERS {
        return name.to_owned();
    }
    name.to_string_lossy().chars().take(MOST_CHARACTERS).collect::<String>().into()
}

/// The index folder of a build.
#[derive(Debug)]
pub(super) struct Target {
    /// Its real parent.
    pub(super) parent: PathBuf,
    name: OsString,
    /// There is an index of ours that the new one replaces.
    replaces: bool,
}

impl Target {
    /// Checks the rules: absent, empty, or with `force` an index of ours. One that a killed build has left aside while it
    /// was replaced is put back before.
    pub(super) fn check(index: &Path, force: bool) -> Result<Target> {
        let shown = index.display();
        if index.file_name().is_some() {
            publish::recover(&*files::system(), index)?;
        }
        let (real, replaces) = match fs::metadata(index) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(Error::Usage(format!("--index {shown} is not a folder")));
            }
            Ok(_) => {
                let mut entries = fs::read_dir(index).map_err(Error::io("reading", index))?;
                let replaces = entries.next().is_some();
                if replaces && !force {
                    return Err(Error::Usage(format!(
                        "--index {shown} is not empty: choose another folder or give --force"
                    )));
                }
                if replaces && let Err(error) = Manifest::read(index) {
                    let why = match error {
                        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => "it has no manifest".into(),
                        // it may be one, and cannot be looked at now
                        Error::Io { ref source, .. } if source.kind() != ErrorKind::IsADirectory => return Err(error),
                        error => error.to_string(),
                    };
                    return Err(Error::Usage(format!(
                        "--index {shown} is not an index that --force could replace: {why}"
                    )));
                }
                (fs::canonicalize(index).map_err(Error::io("reading", index))?, replaces)
            }
            // the new index cannot take the name of a link
            Err(_) if fs::read_link(index).is_ok() => {
                return Err(Error::Usage(format!("--index {shown} is a link that leads nowhere")));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => (index.to_owned(), false),
            Err(error) => return Err(Error::io("reading", index)(error)),
        };
        let Some(name) = real.file_name().map(OsString::from) else {
            return Err(Error::Usage(format!("--index {shown} has no name of its own")));
        };
        let parent = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Target { parent, name, replaces })
    }

    /// The index folder itself.
    pub(super) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder in which the new index is made, beside the place where it will be. Parents that are missing are created.
    pub(super) fn publication(&self, sync: Sync) -> Result<Publication> {
        let policy = match sync {
            Sync::Final => SyncPolicy::Final,
            Sync::None => SyncPolicy::None,
        };
        Ok(Publication::begin(files::system(), &self.path(), policy)?.replacing(self.replaces))
    }

    /// The folder of spilled runs, in `folder` or beside the index.
    pub(super) fn spill(&self, folder: Option<&Path>) -> Result<Temporary> {
        let parent = folder.unwrap_or(&self.parent);
        if !parent.is_dir() {
            return Err(Error::Usage(format!("--spill-dir {} is not a folder", parent.display())));
        }
        Temporary::create(parent, &self.name, "spill")
    }
}

/// Whether spills into `folder` would be kept in memory, by what was asked for such folders.
pub(super) fn in_memory(folder: &Path, asked: SpillOnRam) -> Result<bool> {
    let in_memory = on_memory_file_system(folder);
    if in_memory && asked == SpillOnRam::Refuse {
        return Err(Error::Usage(format!(
            "{} is on a file system in memory: name another folder with --spill-dir, or give --spill-on-ram warn",
            folder.display()
        )));
    }
    Ok(in_memory)
}

#[cfg(target_os = "linux")]
fn on_memory_file_system(folder: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58F6;
    rustix::fs::statfs(folder).is_ok_and(|file_system| [TMPFS, RAMFS].contains(&(file_system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn on_memory_file_system(_: &Path) -> bool {
    false
}
