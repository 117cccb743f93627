//! Makes the new index the index: every file of it goes into a publication of the library, which is committed.
use crate::error::{Error, Result};
use crate::manifest::FILE_NAME;
use plimsoll::spill::files::OpenFile;
use plimsoll::spill::publish::{Publication, Published};
use std::fs::File;

/// A file of the index, with the handle that wrote it while there are not too many.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) file: Option<File>,
}

/// Writes the manifest and commits. `go_on` is asked one last time before the step that cannot be stopped.
pub(super) fn publish(
    mut publication: Publication,
    manifest: &[u8],
    files: Vec<Written>,
    go_on: impl Fn() -> Result<()>,
) -> Result<Published> {
    publication.write(FILE_NAME, manifest)?;
    for Written { name, file } in files {
        publication.add(name, file.map(|file| Box::new(file) as Box<dyn OpenFile>))?;
    }
    publication.commit::<Error>(go_on)
}
