//! The files of the new index go into a publication of the library, which makes it the index.
use crate::error::{Error, Result};
use crate::manifest::FILE_NAME;
use plimsoll::spill::files::OpenFile;
use plimsoll::spill::publish::Publication;
use std::fs::File;

/// A file of the index, with the handle that wrote it while there are not too many.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) file: Option<File>,
}

/// Writes the manifest and syncs everything: the index can be read where it is, and only the step that makes it the index
/// is left.
pub(super) fn complete(
    publication: &mut Publication,
    manifest: &[u8],
    files: Vec<Written>,
    go_on: impl Fn() -> Result<()>,
) -> Result<()> {
    publication.write(FILE_NAME, manifest)?;
    for Written { name, file } in files {
        publication.add(name, file.map(|file| Box::new(file) as Box<dyn OpenFile>))?;
    }
    publication.sync::<Error>(go_on)
}
