//! What a run file looks like. A run is read by the process that wrote it, but nothing in it is trusted.
//!
//! ```text
//! header   magic "plimrun\n", version u32, byte order u32 0x01020304, block bytes u32, CRC-32C u32 of all before
//! block    payload length u32 (1..=block bytes), CRC-32C u32 of block number u64, length and payload; payload
//! seal     0 u32, CRC-32C u32 of block count, 0 u32 and what follows; terms u64, payload bytes u64, blocks u64
//! ```
//!
//! All numbers are little-endian. The payloads, one after the other, are records in ascending order of their terms; a
//! record may begin and end anywhere in a block:
//!
//! ```text
//! varint   bytes shared with the term before
//! varint   further bytes, and those bytes
//! pieces   varint (length << 1 | last piece of its span), and as many bytes; a 0 ends the pieces
//! ```
//!
//! Spans are in ascending order; [`crate::writer::stream`] says what is in one.
use crate::error::Error;
use std::path::Path;

pub const MAGIC: [u8; 8] = *b"plimrun\n";
pub const VERSION: u32 = 1;
pub const BYTE_ORDER: u32 = 0x0102_0304;
pub const HEADER_BYTES: usize = 24;
/// Length and check-sum before a payload.
pub const BLOCK_HEADER_BYTES: usize = 8;
pub const SEAL_BYTES: usize = 24;
/// No payload is longer; shorter ones serve small budgets.
pub const MOST_BLOCK_BYTES: usize = 64 << 10;
pub const LEAST_BLOCK_BYTES: usize = 256;

/// The check-sum of a block or of the seal: its number makes blocks that changed places differ.
pub fn checksum(number: u64, length: u32, payload: &[u8]) -> u32 {
    let head = crc32c::crc32c(&number.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(head, &length.to_le_bytes()), payload)
}

/// An error of a run file.
pub fn corrupt(path: &Path, offset: u64, why: impl Into<String>) -> Error {
    Error::Corrupt { path: path.to_owned(), offset, why: why.into() }
}
