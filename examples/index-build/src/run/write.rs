//! Writes a run: one buffer of a block, written when it is full. What is not sealed is removed.
use crate::accounting::Account;
use crate::error::{Error, Result};
use crate::run::format::{
    BLOCK_HEADER_BYTES, BYTE_ORDER, LEAST_BLOCK_BYTES, MAGIC, MOST_BLOCK_BYTES, SEAL_BYTES, VERSION, checksum,
};
use crate::run::merge::Target;
use crate::run::source::Source;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A sealed run file.
#[derive(Debug)]
pub struct Run {
    pub path: PathBuf,
    pub bytes: u64,
    pub terms: u64,
    /// Bytes of the longest term, or a little more.
    pub longest: usize,
}

/// What a copy of a term takes that grows for longer ones.
pub fn last_bytes(term: usize) -> usize {
    term.max(64).next_power_of_two()
}

/// Writes one run. [`Target`] is how terms get in; [`RunWriter::finish`] seals.
#[derive(Debug)]
pub struct RunWriter {
    path: PathBuf,
    file: File,
    /// room for the block's header, then its payload
    buffer: Vec<u8>,
    block_bytes: usize,
    blocks: u64,
    payload_bytes: u64,
    terms: u64,
    written: u64,
    last: Vec<u8>,
    sealed: bool,
}

impl RunWriter {
    /// Creates the file, which must not exist. The buffer is charged, and released by [`RunWriter::finish`] or
    /// [`RunWriter::abandon`].
    pub fn create(path: &Path, block_bytes: usize, account: &mut impl Account) -> Result<RunWriter> {
        let block_bytes = block_bytes.clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(Error::io("creating", path))?;
        account.charge(block_bytes + BLOCK_HEADER_BYTES);
        let mut writer = RunWriter {
            path: path.to_owned(),
            file,
            buffer: Vec::with_capacity(block_bytes + BLOCK_HEADER_BYTES),
            block_bytes,
            blocks: 0,
            payload_bytes: 0,
            terms: 0,
            written: 0,
            last: Vec::new(),
            sealed: false,
        };
        let mut header = MAGIC.to_vec();
        for number in [VERSION, BYTE_ORDER, block_bytes as u32] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
        let written = writer.out(&header);
        writer.buffer.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        match written {
            Ok(()) => Ok(writer),
            Err(error) => {
                writer.abandon(account);
                Err(error)
            }
        }
    }

    fn out(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io("writing", &self.path))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Capacities of the buffers.
    pub fn allocated_bytes(&self) -> usize {
        self.buffer.capacity() + self.last.capacity()
    }

    fn flush(&mut self) -> Result<()> {
        let length = self.buffer.len() - BLOCK_HEADER_BYTES;
        if length == 0 {
            return Ok(());
        }
        let sum = checksum(self.blocks, length as u32, &self.buffer[BLOCK_HEADER_BYTES..]);
        self.buffer[..4].copy_from_slice(&(length as u32).to_le_bytes());
        self.buffer[4..8].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&self.buffer).map_err(Error::io("writing", &self.path))?;
        self.written += self.buffer.len() as u64;
        self.blocks += 1;
        self.payload_bytes += length as u64;
        self.buffer.truncate(BLOCK_HEADER_BYTES);
        Ok(())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        loop {
            let room = self.block_bytes + BLOCK_HEADER_BYTES - self.buffer.len();
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
    fn put_varint(&mut self, value: u64) -> Result<()> {
        let (mut bytes, mut length, mut rest) = ([0u8; 10], 0, value);
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            rest >>= 7;
            length += 1;
        }
        bytes[length] = rest as u8;
        self.put(&bytes[..=length])
    }

    /// Writes what is left and the seal. The buffers are released in any case, and on an error the file is removed.
    pub fn finish(mut self, account: &mut impl Account) -> Result<Run> {
        let sealed = self.seal();
        self.sealed = sealed.is_ok();
        let longest = self.last.capacity();
        let run = Run { path: self.path.clone(), bytes: self.written, terms: self.terms, longest };
        self.abandon(account);
        sealed.map(|()| run)
    }

    fn seal(&mut self) -> Result<()> {
        self.flush()?;
        let mut counts = [0u8; SEAL_BYTES];
        for (slot, number) in counts.chunks_exact_mut(8).zip([self.terms, self.payload_bytes, self.blocks]) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let mut seal = vec![0; 4];
        seal.extend_from_slice(&checksum(self.blocks, 0, &counts).to_le_bytes());
        seal.extend_from_slice(&counts);
        self.out(&seal)
    }

    /// Frees the buffers; removes the file unless it is sealed.
    pub fn abandon(self, account: &mut impl Account) {
        let bytes = self.allocated_bytes();
        drop(self);
        account.release(bytes);
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.sealed {
            // the folder goes as well; this gives the room back sooner
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl<A: Account> Target<A> for RunWriter {
    #[inline]
    fn begin_term(&mut self, term: &[u8], account: &mut A) -> Result<()> {
        account.term_begins();
        let shared = term.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        self.put_varint(shared as u64)?;
        self.put_varint((term.len() - shared) as u64)?;
        self.put(&term[shared..])?;
        if term.len() > self.last.capacity() {
            let capacity = last_bytes(term.len());
            account.charge(capacity - self.last.capacity());
            self.last.reserve_exact(capacity - self.last.len());
        }
        self.last.truncate(shared);
        self.last.extend_from_slice(&term[shared..]);
        self.terms += 1;
        Ok(())
    }

    #[inline]
    fn piece(&mut self, bytes: &[u8], last: bool, _: &mut A) -> Result<()> {
        self.put_varint((bytes.len() as u64) << 1 | u64::from(last))?;
        self.put(bytes)
    }

    #[inline]
    fn end_term(&mut self, account: &mut A) -> Result<()> {
        account.term_ends();
        self.put(&[0])
    }
}

/// Spills a writer's terms into a new run. The writer is cleared by the caller, once the run is sealed.
pub fn spill<A: Account>(
    writer: &crate::writer::Writer,
    path: &Path,
    block_bytes: usize,
    account: &mut A,
    poll: &mut impl FnMut() -> Result<()>,
) -> Result<Run> {
    let mut run = RunWriter::create(path, block_bytes, account)?;
    let order = writer.order(account);
    let mut sources = [Source::memory(writer, order)];
    let merged = crate::run::merge::merge(&mut sources, &mut run, account, poll);
    for source in sources {
        source.release(account);
    }
    match merged {
        Ok(()) => run.finish(account),
        Err(error) => {
            run.abandon(account);
            Err(error)
        }
    }
}
