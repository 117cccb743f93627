//! What all three files of a segment share: names, magic numbers, header, footer, and the limits that bound what a reader
//! may be made to allocate. Pure bytes; `output` writes them, `read_at` and `reader` fetch them.
use std::path::Path;

use crate::error::{Error, Result};

/// The version of the segment files; a reader takes no other.
pub const FORMAT_VERSION: u32 = 1;
/// Read back as another number where the byte order is not little-endian.
const BYTE_ORDER: u32 = 0x0102_0304;
pub(crate) const HEADER_BYTES: usize = 32;
pub(crate) const FOOTER_BYTES: usize = 40;

/// A dictionary block is closed before it grows past this; small enough that a look-up reads little, large enough for
/// ZSTD to find repetitions (measured by others as the knee for front-coded terms).
pub(crate) const BLOCK_BYTES: usize = 16 << 10;
/// A block above this (a single long term) is stored as it is: compressing it would need buffers of its size, and a
/// compressed block of a hostile file could not be bounded by the file's size.
pub(crate) const MAX_COMPRESSED_RAW_BYTES: usize = 1 << 20;
/// Payload of one page of `.post` and `.pos`.
pub(crate) const PAGE_BYTES: usize = 64 << 10;
/// The CRC32C after each page.
pub(crate) const PAGE_CRC_BYTES: usize = 4;
/// Postings and positions of a term together up to this many bytes stay in its dictionary entry.
pub(crate) const INLINE_BYTES: usize = 32;
/// Documents or positions in a bit-packed block.
pub(crate) const PACKED: usize = 128;

/// One of the three files of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Terms,
    Postings,
    Positions,
}

impl Part {
    /// In the order in which the manifest lists them.
    pub const ALL: [Part; 3] = [Part::Terms, Part::Postings, Part::Positions];

    /// What the file's name ends with.
    pub fn extension(self) -> &'static str {
        match self {
            Part::Terms => "terms",
            Part::Postings => "post",
            Part::Positions => "pos",
        }
    }

    fn magic(self) -> &'static [u8; 8] {
        match self {
            Part::Terms => b"PLMterm\n",
            Part::Postings => b"PLMpost\n",
            Part::Positions => b"PLMposi\n",
        }
    }
}

/// The only name that this part of this segment can have: `seg-000012.terms`.
pub fn part_name(number: u32, part: Part) -> String {
    format!("seg-{number:06}.{}", part.extension())
}

/// The first bytes of a file.
pub(crate) fn header(part: Part, number: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(part.magic());
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
    bytes[16..20].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Refuses everything but a header that this version wrote for this part of this segment.
pub(crate) fn check_header(bytes: &[u8; HEADER_BYTES], part: Part, number: u32, path: &Path) -> Result<()> {
    let corrupt = |offset, why: String| Err(Error::Corrupt { path: path.to_owned(), offset, why });
    if &bytes[..8] != part.magic() {
        return corrupt(0, format!("not a .{} file of a segment: wrong magic number", part.extension()));
    }
    let version = u32_at(bytes, 8);
    if version != FORMAT_VERSION {
        return corrupt(8, format!("format version {version}, this program reads {FORMAT_VERSION}"));
    }
    if u32_at(bytes, 12) != BYTE_ORDER {
        return corrupt(12, "unknown byte order mark".into());
    }
    if u32_at(bytes, 16) != number {
        return corrupt(16, format!("segment number {}, expected {number}", u32_at(bytes, 16)));
    }
    if bytes[..28] != header(part, number)[..28] || crc32c::crc32c(&bytes[..28]) != u32_at(bytes, 28) {
        return corrupt(20, "header does not match its checksum".into());
    }
    Ok(())
}

/// The last bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Where the body ends and the trailer begins.
    pub(crate) trailer_offset: u64,
    pub(crate) trailer_bytes: u64,
    pub(crate) trailer_crc: u32,
    /// Documents of the segment, the same in its three files.
    pub(crate) documents: u32,
    pub(crate) number: u32,
}

impl Footer {
    pub(crate) fn encode(&self, part: Part) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[..8].copy_from_slice(&self.trailer_offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.trailer_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.trailer_crc.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.documents.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes[32..].copy_from_slice(part.magic());
        bytes
    }

    /// Reads the footer of a file of `file_bytes` bytes; what it returns lies inside the file.
    pub(crate) fn decode(bytes: &[u8; FOOTER_BYTES], part: Part, file_bytes: u64, path: &Path) -> Result<Footer> {
        let at = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        let corrupt = |why: &str| Error::Corrupt { path: path.to_owned(), offset: at, why: why.into() };
        if &bytes[32..] != part.magic() {
            return Err(corrupt("the file does not end as a segment file does; was it cut short?"));
        }
        if crc32c::crc32c(&bytes[..28]) != u32_at(bytes, 28) {
            return Err(corrupt("footer does not match its checksum"));
        }
        let footer = Footer {
            trailer_offset: u64_at(bytes, 0),
            trailer_bytes: u64_at(bytes, 8),
            trailer_crc: u32_at(bytes, 16),
            documents: u32_at(bytes, 20),
            number: u32_at(bytes, 24),
        };
        let end = footer.trailer_offset.checked_add(footer.trailer_bytes);
        if footer.trailer_offset < HEADER_BYTES as u64 || end != Some(at) {
            return Err(corrupt("the footer points outside the file"));
        }
        Ok(footer)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
