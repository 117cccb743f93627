//! Removes whole trees. Links are removed, never followed.

use super::super::files::{Files, uninterrupted};
use std::io;
use std::path::{Path, PathBuf};

/// Removes what is at `path`, if anything is; answers the bytes of its files. What cannot be removed is left, and the rest
/// goes all the same.
///
/// # Errors
/// The first that there was, with the path it was on.
pub(super) fn remove(files: &dyn Files, path: &Path) -> Result<u64, (PathBuf, io::Error)> {
    let (mut bytes, mut first) = (0, None);
    let mut note = |path: &Path, error: io::Error| {
        if error.kind() != io::ErrorKind::NotFound && first.is_none() {
            first = Some((path.to_owned(), error));
        }
    };
    // folders come twice: to be looked into, then to be removed
    let mut left = vec![(path.to_owned(), false)];
    while let Some((path, emptied)) = left.pop() {
        if emptied {
            uninterrupted(|| files.remove_folder(&path)).unwrap_or_else(|error| note(&path, error));
            continue;
        }
        match uninterrupted(|| files.look(&path)) {
            Ok(entry) if entry.is_folder => {
                let inside = uninterrupted(|| files.list(&path)).unwrap_or_else(|error| {
                    note(&path, error);
                    Vec::new()
                });
                left.push((path, true));
                left.extend(inside.into_iter().map(|path| (path, false)));
            }
            Ok(entry) => match uninterrupted(|| files.remove_file(&path)) {
                Ok(()) => bytes += entry.bytes,
                Err(error) => note(&path, error),
            },
            Err(error) => note(&path, error),
        }
    }
    first.map_or(Ok(bytes), Err)
}

/// The same where an error is told already, or nobody is left to tell it to: a warning.
pub(super) fn remove_or_warn(files: &dyn Files, path: &Path) -> Option<u64> {
    match remove(files, path) {
        Ok(bytes) => Some(bytes),
        Err((at, error)) => {
            warn_left(&at, &error);
            None
        }
    }
}

/// Something temporary stays.
pub(super) fn warn_left(path: &Path, error: &io::Error) {
    tracing::warn!(target: "plimsoll", path = %path.display(), %error, "left behind: {}: {error}", path.display());
}
