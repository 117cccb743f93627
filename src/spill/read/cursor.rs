//! Sequential reading beside positioned reading.

use super::reader::Reader;
use crate::spill::SpillError;
use std::io::{self, Read};
use std::ops::Deref;

/// A sequential reader over a [`Reader`], with a position that is its own: positioned reads and other cursors leave it
/// where it is. It holds no bytes; where many small reads follow each other, a [`std::io::BufReader`] goes around it.
#[derive(Debug, Clone)]
pub struct Cursor<R> {
    reader: R,
    at: u64,
}

impl<R: Deref<Target = Reader>> Cursor<R> {
    /// Begins at the start of the file. `reader` is a reference, or an [`Arc`](std::sync::Arc) that keeps the reader.
    pub fn new(reader: R) -> Cursor<R> {
        Cursor { reader, at: 0 }
    }

    /// Where the next read begins, in bytes from the start of the file.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Goes elsewhere, behind the end of the file too: reads find nothing there.
    pub fn set_position(&mut self, offset: u64) {
        self.at = offset;
    }
}

impl<R: Deref<Target = Reader>> Read for Cursor<R> {
    /// The error has the kind that the system's has, and a [`SpillError`] within that names the file.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read_at(bytes, self.at).map_err(|error: SpillError| {
            let kind = error.io_error().map_or(io::ErrorKind::InvalidData, io::Error::kind);
            io::Error::new(kind, error)
        })?;
        self.at += read as u64;
        Ok(read)
    }
}
