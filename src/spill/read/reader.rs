//! One file, read by position.

use super::cursor::Cursor;
use super::descriptors::{Descriptors, Lent};
use super::kept::Kept;
use super::source::Source;
use crate::spill::files::{self, Files, OpenFile, Version, uninterrupted};
use crate::spill::{SpillError, SpillResult};
use crate::sync::{AtomicU64, Ordering};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file that is read by position, by any number of threads at the same time. It is opened when it is first read, once
/// however many threads ask, and the handle serves every later read: no look-up, no seek, no lock while reading.
///
/// [`Reader::new`] keeps its handle until it is dropped. [`Descriptors::reader`] makes one whose handle may be closed
/// meanwhile, so that thousands of readers share a few descriptors. Such a file has to stay as it is: if it was written to,
/// or another has taken its name, a read that would have to open it again is an error.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    files: Arc<dyn Files>,
    handle: Handle,
    /// What the file was when it was first opened.
    version: OnceLock<Version>,
    opens: AtomicU64,
}

#[derive(Debug)]
enum Handle {
    Kept(Kept),
    Lent(Lent),
}

impl Reader {
    /// A reader of the file at `path`. Opens nothing yet.
    pub fn new(files: Arc<dyn Files>, path: impl Into<PathBuf>) -> Reader {
        Reader::with(files, path.into(), Handle::Kept(Kept::new()))
    }

    pub(super) fn lent(descriptors: &Descriptors, path: PathBuf) -> Reader {
        Reader::with(Arc::clone(descriptors.files()), path, Handle::Lent(Lent::new(descriptors)))
    }

    fn with(files: Arc<dyn Files>, path: PathBuf, handle: Handle) -> Reader {
        Reader { path, files, handle, version: OnceLock::new(), opens: AtomicU64::new(0) }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How often the file was opened, or was tried to be.
    pub fn opens(&self) -> u64 {
        // Relaxed: a count only, nothing is published through it
        self.opens.load(Ordering::Relaxed)
    }

    /// The file's length in bytes when it was first opened, which this does if need be. May block for that.
    ///
    /// # Errors
    /// [`SpillError::Io`] if the file cannot be opened.
    pub fn bytes(&self) -> SpillResult<u64> {
        if self.version.get().is_none() {
            self.with_file(|_| Ok(()))?;
        }
        // a file that was opened has its version
        Ok(self.version.get().map_or(0, |version| version.bytes))
    }

    /// Fills `bytes` from `offset` on. Short and interrupted reads are repeated. Blocks while the file is read, or opened;
    /// never for another reader of the same file.
    ///
    /// # Errors
    /// [`SpillError::End`] if the file ends before; [`SpillError::Io`] if a call fails; [`SpillError::Corrupt`] if the file
    /// had to be opened again and is not the same any more. `bytes` may hold anything then.
    #[inline]
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        self.with_file(|file| {
            let asked = bytes.len();
            match files::read_exact_at(file, bytes, offset) {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failed(error, offset, asked)),
            }
        })
    }

    /// Reads once into the start of `bytes`: how many bytes, 0 at the end of the file. Interrupted reads are repeated.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at), but the end of the file is none.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<usize> {
        // no file reaches further, and systems call a read across that wrong
        let Some(most) = (i64::MAX as u64).checked_sub(offset) else { return Ok(0) };
        let within = bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let bytes = &mut bytes[..within];
        self.with_file(|file| {
            let asked = bytes.len() as u64;
            uninterrupted(|| file.read_at(bytes, offset)).map_err(|error| self.io(error, asked))
        })
    }

    /// A sequential reader from the start of the file on, with a position of its own.
    pub fn cursor(&self) -> Cursor<&Reader> {
        Cursor::new(self)
    }

    /// What is allocated for it, by capacity; an open file has kernel memory besides.
    pub fn allocated_bytes(&self) -> usize {
        let lent = if matches!(self.handle, Handle::Lent(_)) { Lent::ALLOCATED_BYTES } else { 0 };
        self.path.capacity() + lent
    }

    #[inline]
    fn with_file<T>(&self, read: impl FnOnce(&dyn OpenFile) -> SpillResult<T>) -> SpillResult<T> {
        match &self.handle {
            Handle::Kept(kept) => kept.with(|| self.open(), read),
            Handle::Lent(lent) => lent.with(|| self.open(), read),
        }
    }

    /// The end of the file is an error of its own. No file reaches beyond [`i64::MAX`], where systems call the offset wrong.
    #[cold]
    fn failed(&self, source: io::Error, offset: u64, asked_bytes: usize) -> SpillError {
        let beyond = offset.saturating_add(asked_bytes as u64) > i64::MAX as u64;
        if beyond || source.kind() == io::ErrorKind::UnexpectedEof {
            return SpillError::End { path: self.path.clone(), offset, asked_bytes };
        }
        self.io(source, asked_bytes as u64)
    }

    #[cold]
    fn io(&self, source: io::Error, asked_bytes: u64) -> SpillError {
        SpillError::io_of("reading", &self.path, asked_bytes)(source)
    }

    fn open(&self) -> SpillResult<Box<dyn OpenFile>> {
        // Relaxed: a count only, nothing is published through it
        self.opens.fetch_add(1, Ordering::Relaxed);
        let file = uninterrupted(|| self.files.open(&self.path)).map_err(SpillError::io("opening", &self.path))?;
        let now = uninterrupted(|| file.version()).map_err(SpillError::io("looking at", &self.path))?;
        let first = self.version.get_or_init(|| now);
        if *first != now {
            let why =
                format!("no longer the file that was opened first ({} bytes then, {} now)", first.bytes, now.bytes);
            return Err(SpillError::corrupt(&self.path, 0, why));
        }
        Ok(file)
    }
}

impl Source for Reader {
    #[inline]
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        Reader::read_exact_at(self, bytes, offset)
    }

    fn name(&self) -> &Path {
        &self.path
    }
}
