//! Reads a run: header, check-sum of every block before its bytes are used, order of the terms, counts of the seal.
//!
//! Its memory is one block of the size that the header says (at most 64 KiB, and no more than the file is long) and the
//! current term, which cannot be longer than the bytes that are left in the file. Growth is charged before it happens.
use crate::accounting::Account;
use crate::error::{Error, Result};
use crate::run::format::{
    BLOCK_HEADER_BYTES, BYTE_ORDER, HEADER_BYTES, LEAST_BLOCK_BYTES, MAGIC, MOST_BLOCK_BYTES, SEAL_BYTES, VERSION,
    checksum, corrupt,
};
use crate::run::write::last_bytes;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A cursor over the terms of a run.
#[derive(Debug)]
pub struct RunReader {
    path: PathBuf,
    file: File,
    /// the payload of the current block
    block: Vec<u8>,
    at: usize,
    block_bytes: usize,
    /// offset of the current block's header
    block_offset: u64,
    /// offset behind the current block
    offset: u64,
    file_bytes: u64,
    blocks: u64,
    payload_bytes: u64,
    terms: u64,
    term: Vec<u8>,
    /// bytes that the current piece still has
    piece: usize,
    piece_is_last: bool,
    /// the term's pieces have been read to their end
    drained: bool,
    ended: bool,
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

impl RunReader {
    /// Opens a run and checks its header; there is no term yet.
    pub fn open(path: &Path, account: &mut impl Account) -> Result<RunReader> {
        let mut file = File::open(path).map_err(Error::io("opening", path))?;
        let file_bytes = file.metadata().map_err(Error::io("reading", path))?.len();
        let mut header = [0u8; HEADER_BYTES];
        fill(&mut file, path, 0, &mut header)?;
        let [version, order, block_bytes, sum] = [8, 12, 16, 20].map(|at| number(&header[at..]));
        if header[..8] != MAGIC {
            return Err(corrupt(path, 0, "not a run of this program"));
        }
        if crc32c::crc32c(&header[..20]) != sum {
            return Err(corrupt(path, 20, "the check-sum of the header is wrong"));
        }
        if version != VERSION {
            return Err(corrupt(path, 8, format!("version {version} is not {VERSION}")));
        }
        if order != BYTE_ORDER {
            return Err(corrupt(path, 12, "written in another byte order"));
        }
        let block_bytes = block_bytes as usize;
        if !(LEAST_BLOCK_BYTES..=MOST_BLOCK_BYTES).contains(&block_bytes) {
            return Err(corrupt(path, 16, format!("blocks of {block_bytes} bytes are not written")));
        }
        let room = block_bytes.min(usize::try_from(file_bytes).unwrap_or(block_bytes));
        account.charge(room + size_of::<RunReader>());
        Ok(RunReader {
            path: path.to_owned(),
            file,
            block: Vec::with_capacity(room),
            at: 0,
            block_bytes: room,
            block_offset: HEADER_BYTES as u64,
            offset: HEADER_BYTES as u64,
            file_bytes,
            blocks: 0,
            payload_bytes: 0,
            terms: 0,
            term: Vec::new(),
            piece: 0,
            piece_is_last: true,
            drained: true,
            ended: false,
        })
    }

    /// Capacities of the buffers, and the reader itself.
    pub fn allocated_bytes(&self) -> usize {
        self.block.capacity() + self.term.capacity() + size_of::<RunReader>()
    }

    /// Frees the buffers and closes the file.
    pub fn release(self, account: &mut impl Account) {
        let bytes = self.allocated_bytes();
        drop(self);
        account.release(bytes);
    }

    /// The current term.
    #[inline]
    pub fn term(&self) -> &[u8] {
        &self.term
    }

    /// An error at the block that is being read.
    pub fn corrupt(&self, why: impl Into<String>) -> Error {
        corrupt(&self.path, self.block_offset, why)
    }

    /// Reads the next block, or the seal: false.
    fn next_block(&mut self) -> Result<bool> {
        self.block_offset = self.offset;
        let mut head = [0u8; BLOCK_HEADER_BYTES];
        fill(&mut self.file, &self.path, self.offset, &mut head)?;
        let (length, sum) = (number(&head), number(&head[4..]));
        self.offset += BLOCK_HEADER_BYTES as u64;
        self.at = 0;
        self.block.clear();
        if length == 0 {
            return self.read_seal(sum).map(|()| false);
        }
        if length as usize > self.block_bytes || self.offset + u64::from(length) > self.file_bytes {
            return Err(self.corrupt(format!("a block of {length} bytes is too long")));
        }
        self.block.resize(length as usize, 0);
        fill(&mut self.file, &self.path, self.offset, &mut self.block)?;
        if checksum(self.blocks, length, &self.block) != sum {
            return Err(self.corrupt("the check-sum of a block is wrong"));
        }
        self.offset += u64::from(length);
        self.payload_bytes += u64::from(length);
        self.blocks += 1;
        Ok(true)
    }

    fn read_seal(&mut self, sum: u32) -> Result<()> {
        let mut counts = [0u8; SEAL_BYTES];
        fill(&mut self.file, &self.path, self.offset, &mut counts)?;
        if checksum(self.blocks, 0, &counts) != sum {
            return Err(self.corrupt("the check-sum of the seal is wrong"));
        }
        self.offset += SEAL_BYTES as u64;
        let found = [self.terms, self.payload_bytes, self.blocks];
        for (bytes, found) in counts.as_chunks::<8>().0.iter().zip(found) {
            if u64::from_le_bytes(*bytes) != found {
                return Err(self.corrupt("the counts of the seal are not those of the run"));
            }
        }
        if self.offset != self.file_bytes {
            return Err(corrupt(&self.path, self.offset, "there are bytes behind the seal"));
        }
        self.ended = true;
        Ok(())
    }

    /// At least one byte at hand, or a false at the seal.
    #[inline]
    fn more(&mut self) -> Result<bool> {
        if self.at < self.block.len() { Ok(true) } else { self.next_block() }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        if !self.more()? {
            return Err(self.corrupt("the seal comes inside a term"));
        }
        let byte = self.block[self.at];
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            if shift > 49 {
                return Err(self.corrupt("a number is too long"));
            }
        }
    }

    /// Goes to the next term; false at the end. The pieces of the term before are skipped.
    pub fn advance(&mut self, account: &mut impl Account) -> Result<bool> {
        while !self.drained {
            self.piece()?;
        }
        if self.ended || !self.more()? {
            return Ok(false);
        }
        let shared = self.varint()?;
        let further = self.varint()?;
        let left = self.file_bytes - self.offset + (self.block.len() - self.at) as u64;
        if shared > self.term.len() as u64 || further > left || further == 0 {
            return Err(self.corrupt("the length of a term is impossible"));
        }
        let (shared, further) = (shared as usize, further as usize);
        let length = shared + further;
        if length > self.term.capacity() {
            let capacity = last_bytes(length);
            account.charge(capacity - self.term.capacity());
            self.term.reserve_exact(capacity - self.term.len());
        }
        // the first byte that differs has to be higher; a longer term is
        let before = self.term.get(shared).copied();
        self.term.truncate(shared);
        let mut rest = further;
        while rest > 0 {
            if !self.more()? {
                return Err(self.corrupt("the seal comes inside a term"));
            }
            let now = rest.min(self.block.len() - self.at);
            self.term.extend_from_slice(&self.block[self.at..self.at + now]);
            self.at += now;
            rest -= now;
        }
        if before.is_some_and(|before| self.term[shared] <= before) {
            return Err(self.corrupt("terms do not ascend"));
        }
        self.terms += 1;
        self.drained = false;
        (self.piece, self.piece_is_last) = (0, true);
        Ok(true)
    }

    /// The next bytes of the current term's pieces, and whether a span ends with them.
    pub fn piece(&mut self) -> Result<Option<(&[u8], bool)>> {
        if self.drained {
            return Ok(None);
        }
        if self.piece == 0 {
            let head = self.varint()?;
            if head == 0 {
                if !self.piece_is_last {
                    return Err(self.corrupt("a term ends inside a span"));
                }
                self.drained = true;
                return Ok(None);
            }
            let length = head >> 1;
            if length > self.file_bytes {
                return Err(self.corrupt("the length of a piece is impossible"));
            }
            self.piece = length as usize;
            self.piece_is_last = head & 1 == 1;
            if self.piece == 0 {
                return Ok(Some((&[], true)));
            }
        }
        if !self.more()? {
            return Err(self.corrupt("the seal comes inside a piece"));
        }
        let now = self.piece.min(self.block.len() - self.at);
        let from = self.at;
        self.at += now;
        self.piece -= now;
        Ok(Some((&self.block[from..from + now], self.piece == 0 && self.piece_is_last)))
    }
}

fn fill(file: &mut File, path: &Path, offset: u64, bytes: &mut [u8]) -> Result<()> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => corrupt(path, offset, format!("{} more bytes are missing", bytes.len())),
        _ => Error::io("reading", path)(error),
    })
}
