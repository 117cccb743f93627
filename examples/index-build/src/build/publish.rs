//! Makes the new index the index: everything is written, then every file that stays is synced once, then its folder, then
//! the folder takes its name in one step, then the parent is synced. What fails before that step leaves the old index, or
//! none, as it was; the first error is the one that is told.
use crate::build::folders::Target;
use crate::error::{Error, Result};
use crate::manifest::FILE_NAME;
use plimsoll::spill::OwnedFolder;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file of the index, with the handle that wrote it while there are not too many.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) file: Option<File>,
}

impl Written {
    /// Writes a new file as a whole.
    pub(super) fn create(folder: &Path, name: &str, bytes: &[u8]) -> Result<Written> {
        let path = folder.join(name);
        let mut file = File::create_new(&path).map_err(Error::io("creating", &path))?;
        file.write_all(bytes).map_err(Error::io("writing", &path))?;
        Ok(Written { name: name.to_owned(), file: Some(file) })
    }
}

/// Writes the manifest, syncs, and swaps. `go_on` is asked one last time before the step that cannot be stopped.
pub(super) fn publish(
    folder: OwnedFolder,
    target: &mut Target,
    manifest: &[u8],
    mut files: Vec<Written>,
    sync: bool,
    go_on: impl Fn() -> Result<()>,
) -> Result<()> {
    files.push(Written::create(folder.path(), FILE_NAME, manifest)?);
    if sync {
        for written in files {
            go_on()?;
            let path = folder.path().join(&written.name);
            let file = match written.file {
                Some(file) => file,
                None => File::options().write(true).open(&path).map_err(Error::io("opening", &path))?,
            };
            file.sync_all().map_err(Error::io("syncing", &path))?;
        }
        sync_folder(folder.path())?;
    } else {
        drop(files);
    }
    go_on()?;
    let index = target.path();
    if target.replaces {
        replace(folder, &index, &target.parent, sync)?;
    } else {
        if cfg!(windows) && index.exists() {
            fs::remove_dir(&index).map_err(Error::io("removing", &index))?;
        }
        fs::rename(folder.path(), &index).map_err(Error::io("renaming to", &index))?;
        if sync && let Err(error) = sync_folder(&target.parent) {
            // not known to be durable: it must not look as if it were
            let _ = fs::rename(&index, folder.path());
            return Err(error);
        }
        keep(folder);
    }
    target.published();
    Ok(())
}

/// Puts the new folder in the place of the old one, which is removed.
fn replace(folder: OwnedFolder, index: &Path, parent: &Path, sync: bool) -> Result<()> {
    let swapped = swap(folder.path(), index)?;
    if sync && let Err(error) = sync_folder(parent) {
        if !swapped.undo(folder.path(), index) {
            // the temporary name may be the old index's: better a folder too many than an index too few
            keep(folder);
        }
        return Err(error);
    }
    match swapped {
        // the temporary name is the old index's now
        Swapped::Exchanged => Ok(folder.remove()?),
        Swapped::Aside(aside) => {
            keep(folder);
            fs::remove_dir_all(&aside).map_err(Error::io("removing", &aside))
        }
    }
}

/// The folder is the index, or may be the old one.
fn keep(folder: OwnedFolder) {
    // an owner file that stays is no reason to fail: the next build removes it
    let _ = folder.keep();
}

enum Swapped {
    /// The two folders have each other's names.
    Exchanged,
    /// The old one was moved to a third name first.
    Aside(PathBuf),
}

impl Swapped {
    /// The names as they were. The first error is being told, so this one only says whether it went well.
    fn undo(self, new: &Path, index: &Path) -> bool {
        match self {
            Swapped::Exchanged => matches!(swap(new, index), Ok(Swapped::Exchanged)),
            Swapped::Aside(aside) => fs::rename(index, new).and_then(|()| fs::rename(aside, index)).is_ok(),
        }
    }
}

fn swap(new: &Path, index: &Path) -> Result<Swapped> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, index, RenameFlags::EXCHANGE).is_ok() {
            return Ok(Swapped::Exchanged);
        }
    }
    // a file system without exchange: there is a moment without an index, and never half of one
    let mut aside = new.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    fs::rename(index, &aside).map_err(Error::io("renaming", index))?;
    if let Err(error) = fs::rename(new, index) {
        let _ = fs::rename(&aside, index);
        return Err(Error::io("renaming to", index)(error));
    }
    Ok(Swapped::Aside(aside))
}

/// The entries of a folder are durable from here on.
fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("syncing", folder))?;
    }
    Ok(())
}
