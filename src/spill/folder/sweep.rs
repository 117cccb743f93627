//! Removes what dead processes left. What goes wrong with one of them is counted, and the others are swept all the same.

use super::names;
use super::owner::{MAGIC, has_the_name};
use crate::spill::files::{Files, OpenFile, uninterrupted};
use std::io;
use std::ops::Add;
use std::path::{Path, PathBuf};

/// What was removed of dead processes when a folder was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Folders that are gone.
    pub folders: u64,
    /// Bytes in them, by the lengths of their files.
    pub bytes: u64,
    /// Leftovers that could not be looked at or removed; the next start tries again.
    pub failed: u64,
}

impl Add for Swept {
    type Output = Swept;
    fn add(self, other: Swept) -> Swept {
        Swept {
            folders: self.folders + other.folders,
            bytes: self.bytes.saturating_add(other.bytes),
            failed: self.failed + other.failed,
        }
    }
}

/// Sweeps what is listed of a folder.
pub(super) fn sweep(files: &dyn Files, listed: &[PathBuf]) -> Swept {
    let mut swept = Swept::default();
    for path in listed {
        let Some(folder) = names::folder_of(path) else { continue };
        match sweep_one(files, path, &folder, &mut swept) {
            Ok(()) => {}
            // its owner, or another sweep, was faster
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => swept.failed += 1,
        }
    }
    swept
}

fn sweep_one(files: &dyn Files, owner: &Path, folder: &Path, swept: &mut Swept) -> io::Result<()> {
    let entry = uninterrupted(|| files.look(owner))?;
    if !entry.is_file || entry.bytes > MAGIC.len() as u64 {
        return Ok(());
    }
    let file = match uninterrupted(|| files.open_for_writing(owner)) {
        // another user's, dead or alive
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    let locked = match uninterrupted(|| file.try_lock()) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => false,
        locked => locked?,
    };
    if !locked || !is_ours(file.as_ref())? || !has_the_name(files, file.as_ref(), owner)? {
        return Ok(());
    }
    let is_there = match uninterrupted(|| files.look(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        entry => entry?.is_folder,
    };
    if is_there {
        let bytes = bytes_in(files, folder);
        uninterrupted(|| files.remove_tree(folder))?;
        swept.folders += 1;
        swept.bytes = swept.bytes.saturating_add(bytes);
    }
    uninterrupted(|| files.remove_file(owner))
}

/// Whether what is in the file is a beginning of what an owner writes.
fn is_ours(file: &dyn OpenFile) -> io::Result<bool> {
    let mut bytes = [0; MAGIC.len() + 1];
    let mut read = 0;
    while read < bytes.len() {
        match uninterrupted(|| file.read_at(&mut bytes[read..], read as u64))? {
            0 => break,
            more => read += more,
        }
    }
    Ok(MAGIC.starts_with(&bytes[..read]))
}

/// The lengths of all files in a folder and in folders within; what cannot be looked at counts nothing.
fn bytes_in(files: &dyn Files, folder: &Path) -> u64 {
    let mut folders = vec![folder.to_owned()];
    let mut bytes = 0u64;
    while let Some(folder) = folders.pop() {
        for path in uninterrupted(|| files.list(&folder)).unwrap_or_default() {
            match uninterrupted(|| files.look(&path)) {
                Ok(entry) if entry.is_folder => folders.push(path),
                Ok(entry) if entry.is_file => bytes = bytes.saturating_add(entry.bytes),
                _ => {}
            }
        }
    }
    bytes
}
