//! An open spool file.

use super::format::{BYTE_ORDER, FILE_HEADER_BYTES, MAGIC, VERSION, file_header, u32_of, u64_of};
use crate::spill::error::{SpillError, SpillResult};
use crate::spill::files::{Files, OpenFile, read_exact_at, uninterrupted};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;

/// A spool file that is open: any number of readers share it, as nothing has a position. A clone is the same handle, and
/// the file is closed with the last one.
#[derive(Debug, Clone)]
pub struct RunFile {
    pub(in crate::spill) handle: Arc<dyn OpenFile>,
    pub(in crate::spill) path: Arc<Path>,
    pub(in crate::spill) identity: u64,
    /// its length when it was opened
    pub(in crate::spill) bytes: u64,
}

impl RunFile {
    /// Opens a file for reading and checks its header. Blocks on the file system.
    ///
    /// # Errors
    /// [`SpillError::Io`] if it cannot be opened or read; [`SpillError::Corrupt`] if it is not a spool file of this version.
    pub fn open(files: &dyn Files, path: &Path) -> SpillResult<RunFile> {
        let handle = uninterrupted(|| files.open(path)).map_err(SpillError::io("opening", path))?;
        RunFile::checked(handle.into(), path.into())
    }

    /// Opens a file to read and write it, and checks its header.
    pub(in crate::spill) fn open_for_writing(files: &dyn Files, path: &Arc<Path>) -> SpillResult<RunFile> {
        let handle = uninterrupted(|| files.open_for_writing(path)).map_err(SpillError::io("opening", path))?;
        RunFile::checked(handle.into(), Arc::clone(path))
    }

    /// Creates a file with nothing in it; its header is written with its first run.
    pub(in crate::spill) fn create(files: &dyn Files, path: &Arc<Path>) -> SpillResult<RunFile> {
        let handle = uninterrupted(|| files.create_new(path)).map_err(SpillError::io("creating", path))?;
        // differs between any two files of this process, and most likely from what another process left
        let identity = RandomState::new().build_hasher().finish();
        Ok(RunFile { handle: handle.into(), path: Arc::clone(path), identity, bytes: 0 })
    }

    fn checked(handle: Arc<dyn OpenFile>, path: Arc<Path>) -> SpillResult<RunFile> {
        let bytes = uninterrupted(|| handle.bytes()).map_err(SpillError::io("reading", &path))?;
        let mut file = RunFile { handle, path, identity: 0, bytes };
        let mut header = [0; FILE_HEADER_BYTES];
        file.read(&mut header, 0)?;
        let [version, order, sum] = [8, 12, 24].map(|at| u32_of(&header[at..]));
        let wrong = |offset, why: String| Err(SpillError::corrupt(&file.path, offset, why));
        if header[..8] != MAGIC {
            return wrong(0, "not a spool file".to_owned());
        }
        if crc32c::crc32c(&header[..24]) != sum {
            return wrong(24, "the check-sum of the header is wrong".to_owned());
        }
        if version != VERSION {
            return wrong(8, format!("version {version} is not {VERSION}"));
        }
        if order != BYTE_ORDER {
            return wrong(12, "written in another byte order".to_owned());
        }
        file.identity = u64_of(&header[16..]);
        Ok(file)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header to write before the first run.
    pub(super) fn header(&self) -> [u8; FILE_HEADER_BYTES] {
        file_header(self.identity)
    }

    /// Fills `bytes` from `offset` on. An end before is an error of the file's content.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        let length = bytes.len();
        read_exact_at(&*self.handle, bytes, offset).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                SpillError::corrupt(&self.path, offset, format!("{length} more bytes are missing"))
            }
            _ => SpillError::io_of("reading", &self.path, length as u64)(error),
        })
    }
}
