//! Things under temporary names, which go when they are dropped; and those of processes that are gone.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Entry, Files, OpenFile, uninterrupted};
use super::lock::Lock;
use super::names::Place;
use super::remove::remove_or_warn;
use super::sync::Syncs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file or a folder that is removed, with all that is in it, when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    files: Arc<dyn Files>,
    path: PathBuf,
    kept: bool,
    /// Tells others that the owner is alive.
    _lock: Option<Lock>,
}

impl Temporary {
    /// A new folder, locked; under `path`, or else under the first name beside `place` that is free.
    pub(super) fn folder(files: Arc<dyn Files>, place: &Place, path: Option<PathBuf>) -> SpillResult<Temporary> {
        let create = |path: &Path| files.create_folder(path);
        Temporary::create(&files, place, path, create).map(|(folder, ())| folder)
    }

    /// A new file, locked, under the first name beside `place` that is free.
    pub(super) fn file(files: Arc<dyn Files>, place: &Place) -> SpillResult<(Temporary, Box<dyn OpenFile>)> {
        Temporary::create(&files, place, None, |path| files.create_new(path))
    }

    fn create<T>(
        files: &Arc<dyn Files>,
        place: &Place,
        named: Option<PathBuf>,
        create: impl Fn(&Path) -> io::Result<T>,
    ) -> SpillResult<(Temporary, T)> {
        loop {
            let path = named.clone().unwrap_or_else(|| place.temporary());
            let created = match uninterrupted(|| create(&path)) {
                Ok(created) => created,
                // a process that had this number was killed
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && named.is_none() => continue,
                Err(error) => return Err(SpillError::io("creating", &path)(error)),
            };
            let mut temporary = Temporary { files: files.clone(), path, kept: false, _lock: None };
            let lock = Lock::take(&**files, &temporary.path)
                // whoever sweeps may have been there between the two calls
                .and_then(|lock| uninterrupted(|| files.look(&temporary.path)).map(|_| lock));
            match lock {
                Ok(Lock::Taken) => temporary.kept = true,
                Ok(lock) => {
                    temporary._lock = Some(lock);
                    return Ok((temporary, created));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => temporary.kept = true,
                Err(error) => return Err(SpillError::io("locking", &temporary.path)(error)),
            }
            if named.is_some() {
                let error = io::Error::new(io::ErrorKind::ResourceBusy, "another process is removing it");
                return Err(SpillError::io("creating", &temporary.path)(error));
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// It has another name by now, or something else has its name: nothing is removed. Its lock is kept.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            remove_or_warn(&*self.files, &self.path);
        }
    }
}

/// What a sweep looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

/// Removes temporary files or folders of `place` whose owners are gone, and what an earlier replacement has left aside.
/// What cannot be removed is warned of, and is no reason not to publish.
pub(super) fn sweep(files: &dyn Files, place: &Place, kind: Kind, syncs: &mut Syncs) {
    let listed = match uninterrupted(|| files.list(&place.parent)) {
        Ok(listed) => listed,
        Err(error) => return warn_unswept(&place.parent, &error),
    };
    let aside = place.aside();
    let mut names_durable = !syncs.wanted();
    for path in listed {
        // what is aside is outdated when there is something in the place
        let ours = place.owns(&path)
            || path.file_name() == aside.file_name() && uninterrupted(|| files.look(&place.path)).is_ok();
        let of_kind = |entry: Entry| entry.is_folder == (kind == Kind::Folder);
        if !ours || !uninterrupted(|| files.look(&path)).is_ok_and(of_kind) {
            continue;
        }
        let Ok(_lock @ Lock::Held { .. }) = Lock::take(files, &path) else { continue };
        if !names_durable {
            // it may be what was replaced, and the name of what replaced it not durable: it goes after that
            if let Err(error) = syncs.folder(files, &place.parent) {
                return warn_unswept(&path, &error);
            }
            names_durable = true;
        }
        if let Some(bytes) = remove_or_warn(files, &path) {
            syncs.published.swept += 1;
            syncs.published.swept_bytes += bytes;
        }
    }
}

fn warn_unswept(path: &Path, error: &dyn std::fmt::Display) {
    tracing::warn!(target: "plimsoll", path = %path.display(), %error, "leftovers not looked for: {}: {error}", path.display());
}
