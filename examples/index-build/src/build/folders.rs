//! Where a build writes: the index folder and its rules, and the temporary folders beside it, which go in every case.
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::options::SpillOnRam;
use plimsoll::spill::files::system;
use plimsoll::spill::{DiskQuota, SpillFolder};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind::AlreadyExists;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed, with all that is in it, when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(parent: &Path, name: &OsStr, kind: &str) -> Result<Temporary> {
        loop {
            let path = parent.join(temporary_name(name, kind));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Temporary { path }),
                // a process that had this number was killed
                Err(error) if error.kind() == AlreadyExists => {}
                Err(error) => return Err(Error::io("creating", &path)(error)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder has another name by now, or another folder has its name: nothing is removed.
    pub(super) fn keep(mut self) {
        self.path = PathBuf::new();
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

/// `.NAME.KIND-PROCESS-NUMBER`; of a long name only the beginning, so that this one is not too long.
fn temporary_name(name: &OsStr, kind: &str) -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only the numbers have to differ
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut folder = OsString::from(".");
    folder.push(beginning(name));
    folder.push(format!(".{kind}-{}-{number}", std::process::id()));
    folder
}

/// Removes the folder of spilled runs, whose spools are gone, and says if that fails.
pub(super) fn remove(spill: SpillFolder) -> Result<()> {
    let path = spill.path().to_owned();
    drop(spill);
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("removing", &path)(error)),
        _ => Ok(()),
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
    pub(super) replaces: bool,
    /// The uppermost folder that had to be created for it.
    created: Option<PathBuf>,
    published: bool,
}

impl Target {
    /// Checks the rules: absent, empty, or with `force` an index of ours. A missing parent is created.
    pub(super) fn check(index: &Path, force: bool) -> Result<Target> {
        let shown = index.display();
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
                        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                            "it has no manifest".into()
                        }
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
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (index.to_owned(), false),
            Err(error) => return Err(Error::io("reading", index)(error)),
        };
        let Some(name) = real.file_name().map(OsString::from) else {
            return Err(Error::Usage(format!("--index {shown} has no name of its own")));
        };
        let parent = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let created = parent.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).last();
        let created = created.map(Path::to_owned);
        // before they are created: some may be when one cannot be
        let target = Target { parent, name, replaces, created, published: false };
        fs::create_dir_all(&target.parent).map_err(Error::io("creating", &target.parent))?;
        Ok(target)
    }

    /// The index folder itself.
    pub(super) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder in which the new index is made, beside the place where it will be.
    pub(super) fn temporary(&self) -> Result<Temporary> {
        Temporary::create(&self.parent, &self.name, "tmp")
    }

    /// The folder of spilled runs, in `folder` or beside the index.
    pub(super) fn spill(&self, folder: Option<&Path>) -> Result<SpillFolder> {
        let parent = folder.unwrap_or(&self.parent);
        if !parent.is_dir() {
            return Err(Error::Usage(format!("--spill-dir {} is not a folder", parent.display())));
        }
        loop {
            let name = temporary_name(&self.name, "spill");
            match SpillFolder::create(system(), parent, &name.to_string_lossy(), DiskQuota::unlimited()) {
                // a process that had this number was killed
                Err(error) if error.io_error().is_some_and(|error| error.kind() == AlreadyExists) => {}
                created => return Ok(created?),
            }
        }
    }

    /// The index is there: what was created for it stays.
    pub(super) fn published(&mut self) {
        self.published = true;
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(created) = &self.created
            && !self.published
        {
            // folders that were created for nothing; only empty ones go
            let mut folder = Some(self.parent.as_path());
            while let Some(path) = folder.filter(|path| path.starts_with(created)) {
                if fs::remove_dir(path).is_err() && path.exists() {
                    break;
                }
                folder = path.parent();
            }
        }
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
