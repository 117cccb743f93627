//! Positioned reads, and the source file that checks what it hands out. A read either fills its buffer or is an error that
//! says what was asked for; no file offset is shared, no memory is mapped. The only file with a platform's own calls.
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::format::{self, FOOTER_BYTES, Footer, HEADER_BYTES, Part};
use crate::error::{Error, Result};

/// Fills `buf` from `offset` on, without moving any file position that another reader could see; repeats short and
/// interrupted reads.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before.
#[cfg(unix)]
pub fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
}

/// Fills `buf` from `offset` on; repeats short and interrupted reads. Moves the handle's own position, which nobody uses.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buf = &mut buf[read..];
                offset += read as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// One file of a segment, its header and footer checked.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    /// None: opened for each read, so that an index of many thousand segments needs few handles.
    file: Option<File>,
    pub(crate) bytes: u64,
    pub(crate) footer: Footer,
}

impl Source {
    pub(crate) fn open(dir: &Path, part: Part, number: u32, keep_open: bool) -> Result<Source> {
        let path = dir.join(format::part_name(number, part));
        let file = File::open(&path).map_err(Error::io("opening", &path))?;
        let bytes = file.metadata().map_err(Error::io("reading", &path))?.len();
        if bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(Error::Corrupt { path, offset: bytes, why: "too short for a segment file".into() });
        }
        let mut header = [0; HEADER_BYTES];
        read_or_corrupt(&file, &mut header, 0, &path)?;
        format::check_header(&header, part, number, &path)?;
        let mut footer = [0; FOOTER_BYTES];
        read_or_corrupt(&file, &mut footer, bytes - FOOTER_BYTES as u64, &path)?;
        let footer = Footer::decode(&footer, part, bytes, &path)?;
        if footer.number != number {
            return Err(Error::Corrupt { path, offset: bytes, why: "header and footer name other segments".into() });
        }
        Ok(Source { path, file: keep_open.then_some(file), bytes, footer })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.path.capacity()
    }

    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        match &self.file {
            Some(file) => read_or_corrupt(file, buf, offset, &self.path),
            None => {
                let file = File::open(&self.path).map_err(Error::io("opening", &self.path))?;
                read_or_corrupt(&file, buf, offset, &self.path)
            }
        }
    }

    /// The trailer, after its checksum; it takes no more memory than the file is long.
    pub(crate) fn trailer(&self) -> Result<Vec<u8>> {
        let mut bytes = zeroed(self.footer.trailer_bytes, self)?;
        self.read(&mut bytes, self.footer.trailer_offset)?;
        if crc32c::crc32c(&bytes) != self.footer.trailer_crc {
            return Err(self.corrupt(self.footer.trailer_offset, "trailer does not match its checksum"));
        }
        Ok(bytes)
    }

    pub(crate) fn corrupt(&self, offset: u64, why: impl Into<String>) -> Error {
        Error::Corrupt { path: self.path.clone(), offset, why: why.into() }
    }
}

/// A buffer for bytes of `source`, whose number was checked against the file's size.
fn zeroed(bytes: u64, source: &Source) -> Result<Vec<u8>> {
    let bytes = usize::try_from(bytes)
        .map_err(|_| source.corrupt(source.footer.trailer_offset, "larger than this machine's address space"))?;
    Ok(vec![0; bytes])
}

fn read_or_corrupt(file: &File, buf: &mut [u8], offset: u64, path: &Path) -> Result<()> {
    read_exact_at(file, buf, offset).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            let why = format!("the file ends within the {} bytes that should be here", buf.len());
            Error::Corrupt { path: path.to_owned(), offset, why }
        }
        _ => Error::Io { what: "reading", path: path.to_owned(), source: e },
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    // B50: offsets beyond 2^31 and 2^32 read the right place, and a read across the end is an error with its numbers.
    #[test]
    fn offsets_beyond_32_bits_read_the_right_place() {
        let file = tempfile::tempfile().unwrap();
        let length = 5u64 << 30;
        file.set_len(length).unwrap();
        for (marker, offset) in (1..).zip([0, (1 << 31) - 1, 1 << 31, (1 << 32) + 7, length - 1]) {
            file.write_all_at(&[marker], offset).unwrap();
        }
        let path = Path::new("seg-000000.post");
        for (marker, offset) in (1..).zip([0, (1 << 31) - 1, 1 << 31, (1 << 32) + 7, length - 1]) {
            let mut byte = [0];
            read_or_corrupt(&file, &mut byte, offset, path).unwrap();
            assert_eq!(byte, [marker], "at {offset}");
        }
        let error = read_or_corrupt(&file, &mut [0; 100], length - 10, path).unwrap_err();
        let text = "seg-000000.post, offset 5368709110: the file ends within the 100 bytes that should be here";
        assert_eq!(error.to_string(), text);
    }
}
