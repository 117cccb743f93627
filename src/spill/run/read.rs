//! Reads a run: header, check-sum of every block before its bytes are used, order of the keys, counts of the seal.
//!
//! Its memory is taken when it is opened and never grows: one block of the run's size (no more than the run is long) and
//! the longest key. What a file says beyond that is an error.

use super::file::RunFile;
use super::format::{
    BLOCK_HEADER_BYTES, FILE_HEADER_BYTES, LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, RUN_HEADER_BYTES, SEAL_BYTES, checksum,
    prefix, run_header, seed, u32_of, u64_of,
};
use super::list::Run;
use crate::spill::charge::Charge;
use crate::spill::error::{SpillError, SpillResult};

/// A cursor over the records of a run. It reads by position through a file that it shares, at most a block ahead.
#[derive(Debug)]
pub struct RunReader {
    file: RunFile,
    run: Run,
    seed: u32,
    /// the payload of the current block, and the header of the next
    block: Vec<u8>,
    /// length of that payload
    payload: usize,
    at: usize,
    /// offset of the current block's header
    block_offset: u64,
    /// offset behind what was read
    offset: u64,
    /// the header of the next block
    next: [u8; BLOCK_HEADER_BYTES],
    blocks: u64,
    payload_bytes: u64,
    records: u64,
    key: Vec<u8>,
    /// first bytes of the key, for the merge
    prefix: u64,
    /// bytes that the current piece still has
    piece: usize,
    piece_is_last: bool,
    /// the record's pieces have been read to their end
    drained: bool,
    ended: bool,
}

/// What a block of a run takes at most.
fn room(run: &Run) -> usize {
    run.block_bytes().min(usize::try_from(run.bytes).unwrap_or(usize::MAX)) + BLOCK_HEADER_BYTES
}

impl RunReader {
    /// Opens a run and checks its header; there is no record yet. All that the reader will ever hold is charged before it is
    /// allocated: [`RunReader::allocated_bytes`]. Blocks on the file system.
    ///
    /// # Errors
    /// [`SpillError::Memory`] if that is refused; [`SpillError::Corrupt`] if the run is not what `run` says;
    /// [`SpillError::Io`] if it cannot be read. Nothing stays charged.
    pub fn open(file: &RunFile, run: &Run, account: &mut impl Charge) -> SpillResult<RunReader> {
        let wrong = |why: String| Err(SpillError::corrupt(&file.path, run.offset, why));
        if !(LEAST_BLOCK_BYTES..=MOST_BLOCK_BYTES).contains(&run.block_bytes()) {
            return wrong(format!("blocks of {} bytes are not written", run.block_bytes()));
        }
        let least = (RUN_HEADER_BYTES + BLOCK_HEADER_BYTES + SEAL_BYTES) as u64;
        let end = run.offset.checked_add(run.bytes);
        if run.bytes < least || run.offset < FILE_HEADER_BYTES as u64 || run.longest as u64 > run.bytes {
            return wrong(format!("a run of {} bytes with a key of {} is impossible", run.bytes, run.longest));
        }
        if end.is_none_or(|end| end > file.bytes) {
            return wrong(format!("the file ends within the run's {} bytes", run.bytes));
        }
        let mut heads = [0; RUN_HEADER_BYTES + BLOCK_HEADER_BYTES];
        file.read(&mut heads, run.offset)?;
        let seed = seed(file.identity, run.serial);
        if heads[..RUN_HEADER_BYTES] != run_header(seed, run.serial, run.block_bytes) {
            return wrong("the header of the run is wrong".to_owned());
        }
        let mut next = [0; BLOCK_HEADER_BYTES];
        next.copy_from_slice(&heads[RUN_HEADER_BYTES..]);
        account.try_charge(RunReader::bytes_for(run))?;
        Ok(RunReader {
            file: file.clone(),
            run: *run,
            seed,
            block: Vec::with_capacity(room(run)),
            payload: 0,
            at: 0,
            block_offset: run.offset + RUN_HEADER_BYTES as u64,
            offset: run.offset + heads.len() as u64,
            next,
            blocks: 0,
            payload_bytes: 0,
            records: 0,
            key: Vec::with_capacity(run.longest),
            prefix: 0,
            piece: 0,
            piece_is_last: true,
            drained: true,
            ended: false,
        })
    }

    /// What a reader of `run` takes in bytes.
    pub fn bytes_for(run: &Run) -> usize {
        (room(run) + size_of::<RunReader>()).saturating_add(run.longest)
    }

    /// The most that a reader takes in bytes, for blocks and keys of at most so many bytes.
    pub fn most_bytes(block_bytes: usize, longest_key_bytes: usize) -> usize {
        let block_bytes = block_bytes.clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        (block_bytes + BLOCK_HEADER_BYTES + size_of::<RunReader>()).saturating_add(longest_key_bytes)
    }

    /// What the reader takes in bytes, itself included, from its first day to its last.
    pub fn allocated_bytes(&self) -> usize {
        self.block.capacity() + self.key.capacity() + size_of::<RunReader>()
    }

    /// Frees the reader, said to the account that was charged.
    pub fn release(self, account: &mut impl Charge) {
        let bytes = self.allocated_bytes();
        drop(self);
        account.release(bytes);
    }

    /// The current record's key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The first 8 bytes of that, as [`prefix`] makes it.
    #[inline]
    pub fn prefix(&self) -> u64 {
        self.prefix
    }

    /// An error at the block that is being read.
    pub fn corrupt(&self, why: impl Into<String>) -> SpillError {
        SpillError::corrupt(&self.file.path, self.block_offset, why)
    }

    fn end(&self) -> u64 {
        self.run.offset + self.run.bytes
    }

    /// Reads the next block, or the seal: false.
    fn next_block(&mut self) -> SpillResult<bool> {
        self.block_offset = self.offset - BLOCK_HEADER_BYTES as u64;
        let (length, sum) = (u32_of(&self.next), u32_of(&self.next[4..]));
        (self.at, self.payload) = (0, 0);
        if length == 0 {
            return self.read_seal(sum).map(|()| false);
        }
        // behind a block there is at least the header of the seal
        let whole = length as usize + BLOCK_HEADER_BYTES;
        if length as usize > self.run.block_bytes() || self.offset + whole as u64 > self.end() {
            return Err(self.corrupt(format!("a block of {length} bytes is too long")));
        }
        self.block.resize(whole, 0);
        self.file.read(&mut self.block, self.offset)?;
        let (payload, next) = self.block.split_at(length as usize);
        if checksum(self.seed, self.blocks, length, payload) != sum {
            return Err(self.corrupt("the check-sum of a block is wrong"));
        }
        self.next.copy_from_slice(next);
        self.payload = payload.len();
        self.offset += whole as u64;
        self.payload_bytes += u64::from(length);
        self.blocks += 1;
        Ok(true)
    }

    fn read_seal(&mut self, sum: u32) -> SpillResult<()> {
        let behind = self.offset + SEAL_BYTES as u64;
        if behind != self.end() {
            return Err(self.corrupt("the seal is not at the end of the run"));
        }
        let mut counts = [0u8; SEAL_BYTES];
        self.file.read(&mut counts, self.offset)?;
        if checksum(self.seed, self.blocks, 0, &counts) != sum {
            return Err(self.corrupt("the check-sum of the seal is wrong"));
        }
        let found = [self.records, self.payload_bytes, self.blocks];
        let said = [0, 8, 16].map(|at| u64_of(&counts[at..]));
        if said != found || self.records != self.run.records {
            return Err(self.corrupt("the counts of the seal are not those of the run"));
        }
        self.offset = behind;
        self.ended = true;
        Ok(())
    }

    /// At least one byte at hand, or a false at the seal.
    #[inline]
    fn more(&mut self) -> SpillResult<bool> {
        if self.at < self.payload { Ok(true) } else { self.next_block() }
    }

    #[inline]
    fn byte(&mut self) -> SpillResult<u8> {
        if !self.more()? {
            return Err(self.corrupt("the seal comes inside a record"));
        }
        let byte = self.block[self.at];
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn varint(&mut self) -> SpillResult<u64> {
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

    /// Goes to the next record; false at the end. The pieces of the record before are skipped. Blocks on the file system
    /// once a block.
    ///
    /// # Errors
    /// [`SpillError::Corrupt`] with file and offset for anything that a writer does not write; [`SpillError::Io`] if a read
    /// fails. The reader is of no use then but to be released.
    pub fn advance(&mut self) -> SpillResult<bool> {
        while !self.drained {
            self.piece()?;
        }
        if self.ended || !self.more()? {
            return Ok(false);
        }
        let shared = self.varint()?;
        let further = self.varint()?;
        let longest = self.run.longest as u64;
        let empty = further == 0 && self.records > 0;
        if shared > self.key.len() as u64 || empty || further > longest || shared + further > longest {
            return Err(self.corrupt("the length of a key is impossible"));
        }
        let (shared, mut rest) = (shared as usize, further as usize);
        // the first byte that differs has to be higher; a longer key is
        let before = self.key.get(shared).copied();
        self.key.truncate(shared);
        while rest > 0 {
            if !self.more()? {
                return Err(self.corrupt("the seal comes inside a record"));
            }
            let now = rest.min(self.payload - self.at);
            self.key.extend_from_slice(&self.block[self.at..self.at + now]);
            self.at += now;
            rest -= now;
        }
        if before.is_some_and(|before| self.key[shared] <= before) {
            return Err(self.corrupt("keys do not ascend"));
        }
        self.prefix = prefix(&self.key);
        self.records += 1;
        self.drained = false;
        (self.piece, self.piece_is_last) = (0, true);
        Ok(true)
    }

    /// The next bytes of the current record, and whether a span ends with them; none behind the last.
    ///
    /// # Errors
    /// As [`RunReader::advance`].
    pub fn piece(&mut self) -> SpillResult<Option<(&[u8], bool)>> {
        if self.drained {
            return Ok(None);
        }
        if self.piece == 0 {
            let head = self.varint()?;
            if head == 0 {
                if !self.piece_is_last {
                    return Err(self.corrupt("a record ends inside a span"));
                }
                self.drained = true;
                return Ok(None);
            }
            let length = head >> 1;
            if length > self.end() - self.offset + (self.payload - self.at) as u64 {
                return Err(self.corrupt("a piece is longer than the run"));
            }
            (self.piece, self.piece_is_last) = (length as usize, head & 1 == 1);
            if length == 0 {
                return Ok(Some((&[], true)));
            }
        }
        if !self.more()? {
            return Err(self.corrupt("the seal comes inside a piece"));
        }
        let now = self.piece.min(self.payload - self.at);
        let from = self.at;
        self.at += now;
        self.piece -= now;
        Ok(Some((&self.block[from..from + now], self.piece == 0 && self.piece_is_last)))
    }
}
