//! What a spool file looks like. It is read by the process that wrote it, but nothing in it is trusted.
//!
//! ```text
//! file     magic "plimspl\n", version u32, byte order u32 0x01020304, identity u64, CRC-32C u32 of all before; then runs
//! run      serial u64, block bytes u32, CRC-32C u32 of identity and both; blocks; seal
//! block    payload length u32 (1..=block bytes), check-sum u32; payload
//! seal     0 u32, check-sum u32; records u64, payload bytes u64, blocks u64
//! ```
//!
//! All numbers are little-endian. A check-sum is the CRC-32C of the file's identity, the run's serial, the number of the
//! block in its run (of the seal: how many there are), the length, and what follows: a block of another file, another run
//! or another place is refused. The payloads of a run, one after the other, are its records in ascending order of their
//! keys; a record may begin and end anywhere in a block:
//!
//! ```text
//! varint   bytes shared with the key before
//! varint   further bytes, and those bytes
//! pieces   varint (length << 1 | last piece of its span), and as many bytes; a 0 ends the pieces
//! ```

pub(super) const MAGIC: [u8; 8] = *b"plimspl\n";
pub(super) const VERSION: u32 = 1;
pub(super) const BYTE_ORDER: u32 = 0x0102_0304;
pub(super) const FILE_HEADER_BYTES: usize = 28;
pub(super) const RUN_HEADER_BYTES: usize = 16;
/// Length and check-sum before a payload.
pub(super) const BLOCK_HEADER_BYTES: usize = 8;
/// What follows length and check-sum of a seal.
pub(super) const SEAL_BYTES: usize = 24;
/// No payload of a block is longer, in bytes.
pub const MOST_BLOCK_BYTES: usize = 64 << 10;
/// The shortest blocks that are written, in bytes: for small budgets.
pub const LEAST_BLOCK_BYTES: usize = 256;

/// The number at the start of `bytes`, which are at least 4.
pub(super) fn u32_of(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The number at the start of `bytes`, which are at least 8.
pub(super) fn u64_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The header of a file.
pub(super) fn file_header(identity: u64) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
    header[16..24].copy_from_slice(&identity.to_le_bytes());
    let sum = crc32c::crc32c(&header[..24]);
    header[24..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// What the check-sums of a run start from.
pub(super) fn seed(identity: u64, serial: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&identity.to_le_bytes()), &serial.to_le_bytes())
}

/// The header of a run.
pub(super) fn run_header(seed: u32, serial: u64, block_bytes: u32) -> [u8; RUN_HEADER_BYTES] {
    let mut header = [0; RUN_HEADER_BYTES];
    header[..8].copy_from_slice(&serial.to_le_bytes());
    header[8..12].copy_from_slice(&block_bytes.to_le_bytes());
    let sum = crc32c::crc32c_append(seed, &block_bytes.to_le_bytes());
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The check-sum of block `number`, or of the seal after so many blocks.
#[inline]
pub(super) fn checksum(seed: u32, number: u64, length: u32, bytes: &[u8]) -> u32 {
    let head = crc32c::crc32c_append(seed, &number.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(head, &length.to_le_bytes()), bytes)
}

/// The first 8 bytes of a key as a big-endian word, zeros behind a shorter one: keys of different words are in the words'
/// order.
#[inline]
pub fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut word = [0; 8];
    word[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(word)
}
