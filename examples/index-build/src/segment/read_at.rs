//! The source file that checks what it hands out: header and footer when it is opened, each read against the file's end.
//! The reads themselves are the library's.
use std::path::{Path, PathBuf};

use plimsoll::spill::read::{self, Reader};
use plimsoll::spill::{SpillError, SpillResult};

use super::format::{self, FOOTER_BYTES, Footer, HEADER_BYTES, Part};
use crate::error::{Error, Result};

/// One file of a segment, its header and footer checked.
#[derive(Debug)]
pub(crate) struct Source {
    reader: Reader,
    pub(crate) bytes: u64,
    pub(crate) footer: Footer,
}

impl Source {
    /// Opens the file through a reader that `reader` makes.
    pub(crate) fn open(dir: &Path, part: Part, number: u32, reader: &dyn Fn(PathBuf) -> Reader) -> Result<Source> {
        let reader = reader(dir.join(format::part_name(number, part)));
        let path = reader.path();
        let bytes = reader.bytes().map_err(failed)?;
        if bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(Error::Corrupt {
                path: path.to_owned(),
                offset: bytes,
                why: "too short for a segment file".into(),
            });
        }
        let mut header = [0; HEADER_BYTES];
        reader.read_exact_at(&mut header, 0).map_err(failed)?;
        format::check_header(&header, part, number, path)?;
        let mut footer = [0; FOOTER_BYTES];
        reader.read_exact_at(&mut footer, bytes - FOOTER_BYTES as u64).map_err(failed)?;
        let footer = Footer::decode(&footer, part, bytes, path)?;
        if footer.number != number {
            let why = "header and footer name other segments".into();
            return Err(Error::Corrupt { path: path.to_owned(), offset: bytes, why });
        }
        Ok(Source { reader, bytes, footer })
    }

    pub(crate) fn path(&self) -> &Path {
        self.reader.path()
    }

    /// How often the file was opened.
    pub(crate) fn opens(&self) -> u64 {
        self.reader.opens()
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.reader.allocated_bytes()
    }

    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.reader.read_exact_at(buf, offset).map_err(failed)
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
        Error::Corrupt { path: self.path().to_owned(), offset, why: why.into() }
    }
}

impl read::Source for Source {
    #[inline]
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        self.reader.read_exact_at(bytes, offset)
    }

    fn name(&self) -> &Path {
        self.path()
    }
}

/// A buffer for bytes of `source`, whose number was checked against the file's size.
fn zeroed(bytes: u64, source: &Source) -> Result<Vec<u8>> {
    let bytes = usize::try_from(bytes)
        .map_err(|_| source.corrupt(source.footer.trailer_offset, "larger than this machine's address space"))?;
    Ok(vec![0; bytes])
}

/// A failed read of a segment file. Its lengths were checked, so that an end before what should be there is damage.
#[cold]
pub(super) fn failed(error: SpillError) -> Error {
    match error {
        SpillError::Io { what, path, source, .. } => Error::Io { what, path, source },
        SpillError::Corrupt { path, offset, why } => Error::Corrupt { path, offset, why },
        SpillError::End { path, offset, asked_bytes } => {
            let why = format!("the file ends within the {asked_bytes} bytes that should be here");
            Error::Corrupt { path, offset, why }
        }
        other => Error::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll::spill::files::system;

    use super::*;

    // B50: a read across the end is an error with its numbers. Far offsets are the library's to test.
    #[test]
    fn an_end_before_what_should_be_there_is_damage_of_that_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seg-000000.post");
        let reader = Reader::new(system(), &path);
        let missing = failed(reader.bytes().unwrap_err());
        assert!(matches!(&missing, Error::Io { what: "opening", path: named, .. } if *named == path), "{missing}");
        std::fs::write(&path, [7; 100]).unwrap();
        let error = failed(reader.read_exact_at(&mut [0; 100], 10).unwrap_err());
        let text = "seg-000000.post, offset 10: the file ends within the 100 bytes that should be here";
        assert!(error.to_string().ends_with(text), "{error}");
    }
}
