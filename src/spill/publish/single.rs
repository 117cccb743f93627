//! One file, replaced as a whole.

use super::super::error::{SpillError, SpillResult};
use super::super::files::{Files, OpenFile, write_all_at};
use super::names::Place;
use super::outcome::{Published, SyncPolicy};
use super::swap::Swap;
use super::sync::Syncs;
use super::temporary::{Kind, Temporary, sweep};
use std::path::Path;
use std::sync::Arc;

/// Puts a file of these bytes at `path`, in one step: a manifest. It is written under a temporary name, synced once, given
/// its name; then the folder is synced. Blocks. One at a time to a path: a second one that comes to its last step while the
/// first is in its own is refused ([`ResourceBusy`](std::io::ErrorKind::ResourceBusy)), and may be tried again.
///
/// # Errors
/// [`SpillError::Io`] for the first call that failed. What was there before is as it was, and nothing temporary stays; what
/// of that cannot be done is warned of. One exception: where names cannot be exchanged there is no way back from the last
/// step, so if the sync of the folder fails, the new file has the name and is not known to be durable.
pub fn replace_file(files: &Arc<dyn Files>, path: &Path, bytes: &[u8], policy: SyncPolicy) -> SpillResult<Published> {
    let place = Place::of(path).map_err(SpillError::io("replacing", path))?;
    let mut syncs = Syncs::new(policy);
    sweep(&**files, &place, Kind::File, &mut syncs);
    let (mut temporary, file) = Temporary::file(files.clone(), &place)?;
    write(&*file, temporary.path(), bytes)?;
    syncs.file(&*file, temporary.path())?;
    drop(file);
    let swap = Swap::file(&**files, temporary.path(), &place)?;
    if let Err(first) = syncs.folder(&**files, &place.parent) {
        if !swap.undo(&**files, temporary.path(), &place.path) {
            temporary.keep();
        }
        return Err(first);
    }
    let mut published = syncs.published;
    published.replaced = swap.replaced();
    published.left_behind.extend(swap.remove_old(&**files, temporary.path()));
    temporary.keep();
    Ok(published)
}

fn write(file: &dyn OpenFile, path: &Path, bytes: &[u8]) -> SpillResult<()> {
    write_all_at(file, bytes, 0).map_err(SpillError::io_of("writing", path, bytes.len() as u64))
}
