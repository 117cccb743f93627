//! Writes a run: one buffer of a block, written when it is full. What is not sealed is cut off again.

use super::file::RunFile;
use super::format::{
    BLOCK_HEADER_BYTES, FILE_HEADER_BYTES, LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, RUN_HEADER_BYTES, SEAL_BYTES, checksum,
    run_header, seed,
};
use super::list::Run;
use crate::spill::charge::Charge;
use crate::spill::error::{SpillError, SpillResult};
use crate::spill::files::write_all_at;
use crate::spill::merge::Target;
use crate::spill::spool::{Place, Spool};

/// What a copy of a key of so many bytes takes that grows for longer ones.
pub fn key_buffer_bytes(key_bytes: usize) -> usize {
    key_bytes.max(64).next_power_of_two()
}

/// What the buffer has beside a payload: headers before the first block, a header before each, and the seal.
const BESIDE_BYTES: usize = FILE_HEADER_BYTES + RUN_HEADER_BYTES + 2 * BLOCK_HEADER_BYTES + SEAL_BYTES;

/// Writes one run of a [`Spool`]. Keys ascend strictly; a record is its key and pieces of bytes, which may be parts of
/// spans: [`RunWriter::begin_record`], [`RunWriter::piece`], [`RunWriter::end_record`].
///
/// The run exists from [`RunWriter::finish`] on, if that says so. Whatever was written before is cut off the file again by
/// [`RunWriter::abandon`], by a `finish` that fails, and when the writer is dropped by a panic; only the first two give the
/// charge of the buffers back. After an error nothing but `abandon` is of use.
#[derive(Debug)]
pub struct RunWriter<'a> {
    pub(in crate::spill) spool: &'a mut Spool,
    file: RunFile,
    place: Place,
    seed: u32,
    run: Run,
    /// what is written next: headers, then a payload
    buffer: Vec<u8>,
    /// where in that the payload starts
    payload: usize,
    block_bytes: usize,
    blocks: u64,
    payload_bytes: u64,
    /// bytes written, and bytes of the quota taken for them
    written: u64,
    taken: u64,
    last: Vec<u8>,
    inside_record: bool,
    inside_span: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Failed,
    /// sealed, or cut off
    Closed,
}

impl<'a> RunWriter<'a> {
    /// What a writer takes in bytes, for blocks and keys of at most so many bytes.
    pub fn most_bytes(block_bytes: usize, longest_key_bytes: usize) -> usize {
        let block_bytes = block_bytes.clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        block_bytes + BESIDE_BYTES + key_buffer_bytes(longest_key_bytes)
    }

    /// A writer at a place of an open file; its buffers have been charged.
    pub(in crate::spill) fn new(
        spool: &'a mut Spool,
        file: RunFile,
        place: Place,
        block_bytes: usize,
        longest: usize,
    ) -> RunWriter<'a> {
        let block_bytes = block_bytes.clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        let mut buffer = Vec::with_capacity(block_bytes + BESIDE_BYTES);
        if place.start == 0 {
            buffer.extend_from_slice(&file.header());
        }
        let offset = place.start + buffer.len() as u64;
        let seed = seed(file.identity, place.serial);
        buffer.extend_from_slice(&run_header(seed, place.serial, block_bytes as u32));
        buffer.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        RunWriter {
            spool,
            file,
            seed,
            run: Run {
                file: place.file,
                block_bytes: block_bytes as u32,
                serial: place.serial,
                offset,
                bytes: 0,
                records: 0,
                longest: 0,
            },
            place,
            payload: buffer.len(),
            buffer,
            block_bytes,
            blocks: 0,
            payload_bytes: 0,
            written: 0,
            taken: 0,
            last: Vec::with_capacity(key_buffer_bytes(longest)),
            inside_record: false,
            inside_span: false,
            state: State::Open,
        }
    }

    /// Capacities of the buffers in bytes.
    pub fn allocated_bytes(&self) -> usize {
        self.buffer.capacity() + self.last.capacity()
    }

    /// A mistake of the caller's, which would make a run that cannot be read.
    #[cold]
    fn refuse(&mut self, why: &str) -> SpillError {
        self.state = State::Failed;
        SpillError::corrupt(&self.file.path, self.place.start + self.written, why)
    }

    /// Takes room on disk for the buffer, and writes it.
    fn out(&mut self) -> SpillResult<()> {
        if self.state != State::Open {
            return Err(self.refuse("a write has failed before"));
        }
        let bytes = self.buffer.len() as u64;
        let written =
            self.spool.folder().take(bytes).and_then(|()| {
                self.taken += bytes;
                write_all_at(&*self.file.handle, &self.buffer, self.place.start + self.written)
                    .map_err(SpillError::io_of("writing", &self.file.path, bytes))
            });
        if written.is_err() {
            self.state = State::Failed;
        } else {
            self.written += bytes;
        }
        self.buffer.clear();
        written
    }

    /// Puts length and check-sum before the payload in the buffer, if there is any.
    fn close_block(&mut self) {
        let (head, payload) = self.buffer.split_at_mut(self.payload);
        let length = payload.len() as u32;
        if length == 0 {
            self.buffer.truncate(self.payload - BLOCK_HEADER_BYTES);
            return;
        }
        let sum = checksum(self.seed, self.blocks, length, payload);
        let head = &mut head[self.payload - BLOCK_HEADER_BYTES..];
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4..].copy_from_slice(&sum.to_le_bytes());
        self.blocks += 1;
        self.payload_bytes += u64::from(length);
    }

    fn flush(&mut self) -> SpillResult<()> {
        self.close_block();
        self.out()?;
        self.buffer.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        self.payload = BLOCK_HEADER_BYTES;
        Ok(())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> SpillResult<()> {
        let mut rest = bytes;
        loop {
            let room = self.payload + self.block_bytes - self.buffer.len();
            if rest.len() < room {
                self.buffer.extend_from_slice(rest);
                return Ok(());
            }
            let (now, later) = rest.split_at(room);
            self.buffer.extend_from_slice(now);
            self.flush()?;
            rest = later;
        }
    }

    #[inline]
    fn put_varint(&mut self, value: u64) -> SpillResult<()> {
        let (mut bytes, mut length, mut rest) = ([0u8; 10], 0, value);
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            rest >>= 7;
            length += 1;
        }
        bytes[length] = rest as u8;
        self.put(&bytes[..=length])
    }

    /// The next record. A key that is longer than any before makes the copy of it grow, which is charged before.
    ///
    /// # Errors
    /// [`SpillError::Memory`] if that is refused; [`SpillError::Quota`] or [`SpillError::Io`] if a block cannot be written;
    /// [`SpillError::Corrupt`] if the key is not above the one before.
    #[inline]
    pub fn begin_record(&mut self, key: &[u8], account: &mut impl Charge) -> SpillResult<()> {
        let shared = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        let ascends = match (key.get(shared), self.last.get(shared)) {
            (Some(next), Some(last)) => next > last,
            (Some(_), None) => true,
            (None, _) => self.run.records == 0,
        };
        if self.state != State::Open || !ascends || self.inside_record {
            return Err(self.refuse("keys do not ascend, a record was not ended, or a write has failed before"));
        }
        if key.len() > self.last.capacity() {
            let capacity = key_buffer_bytes(key.len());
            account.try_charge(capacity - self.last.capacity())?;
            self.last.reserve_exact(capacity - self.last.len());
        }
        self.inside_record = true;
        self.run.longest = self.run.longest.max(key.len());
        self.put_varint(shared as u64)?;
        self.put_varint((key.len() - shared) as u64)?;
        self.put(&key[shared..])?;
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.run.records += 1;
        Ok(())
    }

    /// Bytes of the record; the last ones of a span are marked.
    ///
    /// # Errors
    /// [`SpillError::Quota`] or [`SpillError::Io`] if a block cannot be written; [`SpillError::Corrupt`] outside of a record.
    #[inline]
    pub fn piece(&mut self, bytes: &[u8], last: bool) -> SpillResult<()> {
        if !self.inside_record {
            return Err(self.refuse("a piece is outside of a record"));
        }
        if bytes.is_empty() && !last {
            return Ok(());
        }
        self.inside_span = !last;
        self.put_varint((bytes.len() as u64) << 1 | u64::from(last))?;
        self.put(bytes)
    }

    /// No more pieces of the record.
    ///
    /// # Errors
    /// As [`RunWriter::piece`], and if the last piece was not marked.
    #[inline]
    pub fn end_record(&mut self) -> SpillResult<()> {
        if self.inside_span || !self.inside_record {
            return Err(self.refuse("a record ends inside a span, or before it began"));
        }
        self.inside_record = false;
        self.put(&[0])
    }

    /// Writes what is left and the seal; from then on the run exists. The buffers are given back in any case, and on an
    /// error the file is cut back.
    ///
    /// # Errors
    /// [`SpillError::Quota`] or [`SpillError::Io`] if the rest cannot be written, or if a write has failed before.
    pub fn finish(mut self, account: &mut impl Charge) -> SpillResult<Run> {
        let sealed = self.seal();
        if sealed.is_ok() {
            self.state = State::Closed;
            self.run.bytes = self.place.start + self.written - self.run.offset;
            self.spool.sealed(self.run, self.taken);
        }
        let run = self.run;
        self.abandon(account);
        sealed.map(|()| run)
    }

    fn seal(&mut self) -> SpillResult<()> {
        if self.state != State::Open || self.inside_record {
            return Err(self.refuse("a record was not ended, or a write has failed before"));
        }
        self.close_block();
        let mut counts = [0u8; SEAL_BYTES];
        for (slot, number) in counts.chunks_exact_mut(8).zip([self.run.records, self.payload_bytes, self.blocks]) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&checksum(self.seed, self.blocks, 0, &counts).to_le_bytes());
        self.buffer.extend_from_slice(&counts);
        self.out()
    }

    /// Frees the buffers; what is not sealed is cut off the file.
    pub fn abandon(mut self, account: &mut impl Charge) {
        let bytes = self.allocated_bytes();
        self.cut_off();
        (self.buffer, self.last) = (Vec::new(), Vec::new());
        account.release(bytes);
        self.spool.settle(account);
    }

    fn cut_off(&mut self) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.spool.cut_off(&self.file, self.place, self.taken);
        }
    }
}

impl Drop for RunWriter<'_> {
    fn drop(&mut self) {
        self.cut_off();
    }
}

impl<C: Charge> Target<C> for RunWriter<'_> {
    type Error = SpillError;

    #[inline]
    fn begin(&mut self, key: &[u8], account: &mut C) -> SpillResult<()> {
        self.begin_record(key, account)
    }

    #[inline]
    fn piece(&mut self, bytes: &[u8], last: bool, _: &mut C) -> SpillResult<()> {
        RunWriter::piece(self, bytes, last)
    }

    #[inline]
    fn end(&mut self, _: &mut C) -> SpillResult<()> {
        self.end_record()
    }
}
