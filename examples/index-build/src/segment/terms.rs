//! The terms of one field of one segment, in byte order, with what their entries say. A block is checked against its CRC32C
//! before it is decoded, and the terms are checked to ascend, so that merges over segments may rely on the order.
use std::cmp::Ordering;

use zstd_safe::DCtx;

use super::catalog::{Block, Field};
use super::format::INLINE_BYTES;
use super::read_at::Source;
use super::varint;
use crate::error::{Error, Result};

/// Decompresses blocks; one serves any number of readers of one thread, one after the other.
pub struct Decoder {
    context: DCtx<'static>,
    stored: Vec<u8>,
}

impl Decoder {
    /// # Errors
    /// If there is no memory for ZSTD's context.
    pub fn new() -> Result<Decoder> {
        let context = DCtx::try_create().ok_or_else(|| Error::Failed("no memory for a ZSTD context".into()))?;
        Ok(Decoder { context, stored: Vec::new() })
    }

    /// The buffer by capacity, and the decompressor by the library's own account.
    pub fn allocated_bytes(&self) -> usize {
        self.context.sizeof() + self.stored.capacity()
    }

    /// Replaces `raw` by the decoded block.
    fn read(&mut self, source: &Source, block: &Block, raw: &mut Vec<u8>) -> Result<()> {
        let stored = if block.compressed { &mut self.stored } else { &mut *raw };
        stored.clear();
        stored.reserve_exact(block.stored);
        stored.resize(block.stored, 0);
        source.read(stored, block.offset)?;
        if crc32c::crc32c(stored) != block.crc {
            return Err(source.corrupt(block.offset, "dictionary block does not match its checksum"));
        }
        if block.compressed {
            raw.clear();
            raw.reserve_exact(block.raw);
            let decoded = self.context.decompress(raw, &self.stored);
            if decoded.is_err() || raw.len() != block.raw {
                return Err(source.corrupt(block.offset, "dictionary block does not decompress to its length"));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// What a dictionary entry says of its term.
#[derive(Debug, Clone, Copy)]
pub struct TermInfo {
    /// Documents that hold the term; at least 1.
    pub df: u32,
    /// How often it occurs in them; at least `df`.
    pub occurrences: u64,
    pub(crate) place: TermPlace,
    /// Where the entry's block begins, for errors.
    pub(crate) block_offset: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum TermPlace {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Files { post: u64, pos: u64 },
}

/// A walk over the terms of a field.
#[derive(Debug)]
pub struct Terms<'a> {
    source: &'a Source,
    field: &'a Field,
    next_block: usize,
    last_block: usize,
    raw: Vec<u8>,
    block_offset: u64,
    entries: std::ops::Range<usize>,
    suffixes: std::ops::Range<usize>,
    files: (u64, u64),
    term: Vec<u8>,
    any: bool,
    seen: u64,
    info: TermInfo,
}

impl<'a> Terms<'a> {
    /// Stands before the first term.
    pub(crate) fn new(source: &'a Source, field: &'a Field) -> Terms<'a> {
        let info = TermInfo { df: 0, occurrences: 0, place: TermPlace::Files { post: 0, pos: 0 }, block_offset: 0 };
        Terms {
            source,
            field,
            next_block: 0,
            last_block: usize::MAX,
            raw: Vec::new(),
            block_offset: 0,
            entries: 0..0,
            suffixes: 0..0,
            files: (0, 0),
            term: Vec::new(),
            any: false,
            seen: 0,
            info,
        }
    }

    /// Finds exactly this term.
    pub(crate) fn look_up(
        source: &'a Source,
        field: &'a Field,
        term: &[u8],
        decoder: &mut Decoder,
    ) -> Result<Option<TermInfo>> {
        let Some(block) = field.block_of(term) else { return Ok(None) };
        let mut terms = Terms::new(source, field);
        (terms.next_block, terms.last_block) = (block, block);
        while terms.advance(decoder)? {
            match terms.term().cmp(term) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(Some(terms.info)),
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    /// Goes to the next term; false behind the last.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the block is damaged, [`Error::Io`] if it cannot be read.
    pub fn advance(&mut self, decoder: &mut Decoder) -> Result<bool> {
        if self.entries.is_empty() && !self.open_block(decoder)? {
            return Ok(false);
        }
        self.decode_entry().map_err(|why| self.source.corrupt(self.block_offset, why))?;
        Ok(true)
    }

    /// The current term; after [`advance`](Self::advance) said true.
    pub fn term(&self) -> &[u8] {
        &self.term
    }

    /// What the current term's entry says.
    pub fn info(&self) -> TermInfo {
        self.info
    }

    /// Its block and its term, by capacity.
    pub fn allocated_bytes(&self) -> usize {
        self.raw.capacity() + self.term.capacity()
    }

    /// The decoded bytes of the first block, for tests that forge another.
    #[cfg(test)]
    pub(super) fn first_block(mut self, decoder: &mut Decoder) -> Result<Vec<u8>> {
        self.open_block(decoder)?;
        Ok(self.raw)
    }

    fn open_block(&mut self, decoder: &mut Decoder) -> Result<bool> {
        if !self.suffixes.is_empty() {
            return Err(self.source.corrupt(self.block_offset, "a block has bytes that belong to no term"));
        }
        if self.next_block > self.last_block {
            return Ok(false);
        }
        let Some(block) = self.field.block(self.next_block) else {
            if self.last_block == usize::MAX && self.seen != self.field.stats.terms {
                return Err(self.source.corrupt(self.block_offset, "a field has not as many terms as it says"));
            }
            return Ok(false);
        };
        decoder.read(self.source, block, &mut self.raw)?;
        let head = self.raw.first_chunk::<4>().map(|head| u32::from_le_bytes(*head) as usize);
        let end = head.and_then(|entries| entries.checked_add(4)).filter(|&end| end > 4 && end <= self.raw.len());
        let Some(end) = end else {
            return Err(self.source.corrupt(block.offset, "a block's entries do not fit into it"));
        };
        self.entries = 4..end;
        self.suffixes = end..self.raw.len();
        self.block_offset = block.offset;
        self.next_block += 1;
        self.files = (0, 0);
        Ok(true)
    }

    fn decode_entry(&mut self) -> std::result::Result<(), &'static str> {
        const CUT: &str = "an entry is cut off or holds an impossible number";
        let mut rest = &self.raw[self.entries.clone()];
        let first = self.entries.start == 4;
        let shared = varint::take(&mut rest).ok_or(CUT)?;
        let suffix = varint::take(&mut rest).ok_or(CUT)?;
        let mut suffixes = &self.raw[self.suffixes.clone()];
        let suffix = varint::take_bytes(&mut suffixes, suffix).ok_or("a term is cut off")?;
        self.suffixes.start += suffix.len();

        let shared = usize::try_from(shared).ok().filter(|&shared| shared <= self.term.len());
        let shared = shared.ok_or("a term shares more than the term before has")?;
        if self.any {
            // an entry that opens a block repeats the whole term, so it is compared as a whole
            let ascends =
                if first { shared == 0 && suffix > self.term.as_slice() } else { suffix > &self.term[shared..] };
            if !ascends {
                return Err("the terms are not in byte order");
            }
        }
        self.any = true;
        self.seen += 1;
        self.term.truncate(shared);
        self.term.extend_from_slice(suffix);

        let head = varint::take(&mut rest).ok_or(CUT)?;
        let df = (head >> 1) + 1;
        let df = u32::try_from(df).map_err(|_| CUT)?;
        let occurrences = varint::take(&mut rest).ok_or(CUT)?.checked_add(u64::from(df)).ok_or(CUT)?;
        let place = if head & 1 == 1 {
            let postings = rest;
            let numbers = u64::from(df) + occurrences;
            if numbers > 2 * INLINE_BYTES as u64 {
                return Err(CUT);
            }
            for _ in 0..df {
                if varint::take(&mut rest).ok_or(CUT)? & 1 == 1 {
                    varint::take(&mut rest).ok_or(CUT)?;
                }
            }
            for _ in 0..occurrences {
                varint::take(&mut rest).ok_or(CUT)?;
            }
            let len = postings.len() - rest.len();
            let mut bytes = [0; INLINE_BYTES];
            bytes.get_mut(..len).ok_or(CUT)?.copy_from_slice(&postings[..len]);
            TermPlace::Inline { len: len as u8, bytes }
        } else {
            let (post, pos) = (varint::take(&mut rest).ok_or(CUT)?, varint::take(&mut rest).ok_or(CUT)?);
            let post = self.files.0.checked_add(post).ok_or(CUT)?;
            let pos = self.files.1.checked_add(pos).ok_or(CUT)?;
            self.files = (post, pos);
            TermPlace::Files { post, pos }
        };
        self.entries.start = self.entries.end - rest.len();
        self.info = TermInfo { df, occurrences, place, block_offset: self.block_offset };
        Ok(())
    }
}
