//! The third name. Where names cannot be exchanged, what is replaced waits under it while the new content takes the place.
//! It is always the same, so that whoever finds the place empty after a crash knows where to look.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Files, uninterrupted};
use super::lock::Lock;
use super::names::Place;
use std::io;
use std::path::{Path, PathBuf};

/// Where the folder that was published to `place` is: there, or, if a crash or a replacement that is going on has left
/// the place empty, under the name that it waits under. For readers; it changes nothing.
///
/// # Errors
/// [`SpillError::Io`] with [`io::ErrorKind::NotFound`] if there is neither; else what the system says.
pub fn present(files: &dyn Files, place: &Path) -> SpillResult<PathBuf> {
    let look = |path: &Path| uninterrupted(|| files.look(path));
    let absent = match look(place) {
        Ok(_) => return Ok(place.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => error,
        Err(error) => return Err(SpillError::io("reading", place)(error)),
    };
    let aside = Place::of(place).map_err(SpillError::io("reading", place))?.aside();
    match look(&aside) {
        Ok(entry) if entry.is_folder => Ok(aside),
        // the new content may have come between the two looks
        _ => look(place).map(|_| place.to_owned()).map_err(|_| SpillError::io("reading", place)(absent)),
    }
}

/// Puts back what a replacement that was killed has left aside, if `place` is absent or an empty folder; answers whether it
/// did. To be called before it is looked whether there is something to replace. A replacement that is going on in another
/// process is left alone.
///
/// # Errors
/// [`SpillError::Io`]; what was found is as it was.
pub fn recover(files: &dyn Files, place: &Path) -> SpillResult<bool> {
    let place = Place::of(place).map_err(SpillError::io("reading", place))?;
    let aside = place.aside();
    match uninterrupted(|| files.look(&aside)) {
        Ok(entry) if entry.is_folder => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(SpillError::io("reading", &aside)(error)),
    }
    let lock = Lock::take(files, &aside).map_err(SpillError::io("locking", &aside))?;
    if matches!(lock, Lock::Taken) {
        return Ok(false);
    }
    match uninterrupted(|| files.look(&place.path)) {
        Ok(entry) if !entry.is_folder => return Ok(false),
        Ok(_) => {
            let inside = uninterrupted(|| files.list(&place.path)).map_err(SpillError::io("reading", &place.path))?;
            if !inside.is_empty() {
                return Ok(false);
            }
            if cfg!(windows) {
                // there nothing takes the name of a folder, an empty one neither
                uninterrupted(|| files.remove_folder(&place.path)).map_err(SpillError::io("removing", &place.path))?;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(SpillError::io("reading", &place.path)(error)),
    }
    uninterrupted(|| files.rename(&aside, &place.path)).map_err(SpillError::io("renaming to", &place.path))?;
    drop(lock);
    Ok(true)
}
