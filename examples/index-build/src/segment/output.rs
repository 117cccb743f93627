//! Files that are written front to back: a sink that counts and check-sums what it writes, a stream over it, and a stream
//! cut into check-summed pages. Buffers grow with what is put in, up to one page, and never beyond, so that their capacity
//! is what is held. Nothing is synced here: the finished file is handed back open, for the publisher to sync.
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::format::{self, Footer, PAGE_BYTES, PAGE_CRC_BYTES, Part};
use super::varint;
use crate::error::{Error, Result};

/// A finished file of a segment, still open so that the very handle that wrote it can be synced.
#[derive(Debug)]
pub struct SegmentFile {
    pub name: String,
    pub bytes: u64,
    /// CRC32C of the whole file.
    pub crc32c: u32,
    pub file: File,
}

#[derive(Debug)]
struct Sink {
    file: File,
    path: PathBuf,
    part: Part,
    number: u32,
    written: u64,
    crc: u32,
}

impl Sink {
    fn create(dir: &Path, part: Part, number: u32) -> Result<Sink> {
        let path = dir.join(format::part_name(number, part));
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(Error::io("creating", &path))?;
        let mut sink = Sink { file, path, part, number, written: 0, crc: 0 };
        sink.write(&format::header(part, number))?;
        Ok(sink)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io("writing", &self.path))?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn finish(mut self, trailer: &[u8], documents: u32) -> Result<SegmentFile> {
        let footer = Footer {
            trailer_offset: self.written,
            trailer_bytes: trailer.len() as u64,
            trailer_crc: crc32c::crc32c(trailer),
            documents,
            number: self.number,
        };
        self.write(trailer)?;
        self.write(&footer.encode(self.part))?;
        let name = format::part_name(self.number, self.part);
        Ok(SegmentFile { name, bytes: self.written, crc32c: self.crc, file: self.file })
    }
}

/// Makes room for `more` bytes: the capacity doubles, but stops at `most`, for which the caller never asks more.
fn make_room(buffer: &mut Vec<u8>, more: usize, most: usize) {
    let need = buffer.len() + more;
    if need > buffer.capacity() {
        let capacity = need.max((buffer.capacity() * 2).clamp(1 << 10, most));
        buffer.reserve_exact(capacity - buffer.len());
    }
}

/// A plain stream.
#[derive(Debug)]
pub(crate) struct Output {
    sink: Sink,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn create(dir: &Path, part: Part, number: u32) -> Result<Output> {
        Ok(Output { sink: Sink::create(dir, part, number)?, buffer: Vec::new() })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > PAGE_BYTES {
            self.flush()?;
            if bytes.len() >= PAGE_BYTES {
                return self.sink.write(bytes);
            }
        }
        make_room(&mut self.buffer, bytes.len(), PAGE_BYTES);
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self, trailer: &[u8], documents: u32) -> Result<SegmentFile> {
        self.flush()?;
        self.sink.finish(trailer, documents)
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.buffer.capacity() + self.sink.path.capacity()
    }
}

/// A stream of payload bytes, cut into pages that are each followed by their CRC32C. Offsets count payload bytes alone.
#[derive(Debug)]
pub(crate) struct PagedOutput {
    sink: Sink,
    page: Vec<u8>,
    sealed: u64,
}

impl PagedOutput {
    pub(crate) fn create(dir: &Path, part: Part, number: u32) -> Result<PagedOutput> {
        Ok(PagedOutput { sink: Sink::create(dir, part, number)?, page: Vec::new(), sealed: 0 })
    }

    /// Payload bytes so far: where the next byte goes.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.sealed + self.page.len() as u64
    }

    #[inline]
    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            let room = PAGE_BYTES - self.page.len();
            if bytes.len() < room {
                make_room(&mut self.page, bytes.len(), PAGE_BYTES + PAGE_CRC_BYTES);
                self.page.extend_from_slice(bytes);
                return Ok(());
            }
            let (head, rest) = bytes.split_at(room);
            make_room(&mut self.page, head.len(), PAGE_BYTES + PAGE_CRC_BYTES);
            self.page.extend_from_slice(head);
            self.seal()?;
            bytes = rest;
        }
    }

    #[cold]
    fn seal(&mut self) -> Result<()> {
        let payload = self.page.len();
        let crc = crc32c::crc32c(&self.page);
        make_room(&mut self.page, PAGE_CRC_BYTES, PAGE_BYTES + PAGE_CRC_BYTES);
        self.page.extend_from_slice(&crc.to_le_bytes());
        self.sink.write(&self.page)?;
        self.page.clear();
        self.sealed += payload as u64;
        Ok(())
    }

    pub(crate) fn finish(mut self, documents: u32) -> Result<SegmentFile> {
        if !self.page.is_empty() {
            self.seal()?;
        }
        let mut trailer = Vec::new();
        varint::put(&mut trailer, self.sealed);
        self.sink.finish(&trailer, documents)
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.page.capacity() + self.sink.path.capacity()
    }
}
