//! The postings of one term at a time, on their way into `.post` and `.pos`. Holds at most one block of 128 documents and
//! one of 128 positions, whatever the term's length; a term that is small enough at its end leaves both files alone and
//! goes into its dictionary entry.
use bitpacking::{BitPacker, BitPacker4x};

use super::format::{INLINE_BYTES, PACKED};
use super::output::PagedOutput;
use super::varint;
use crate::error::{Error, Result};

/// Where the postings of a finished term are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In [`PostingsEncoder::inline`].
    Inline,
    /// From these payload offsets on.
    Files { post: u64, pos: u64 },
}

#[derive(Debug)]
pub(crate) struct PostingsEncoder {
    gaps: [u32; PACKED],
    /// Term frequencies less one.
    more: [u32; PACKED],
    docs: usize,
    steps: [u32; PACKED],
    positions: usize,
    started: bool,
    doc: u32,
    position: u32,
    /// Occurrences in the current document, less one.
    repeats: u32,
    /// The document before the current one; all ones before the first, so that each gap is the difference less one.
    previous: u32,
    df: u32,
    occurrences: u64,
    start: (u64, u64),
    tail: Vec<u8>,
    packed: [u8; 2 + 2 * 4 * PACKED],
}

impl PostingsEncoder {
    pub(crate) fn new() -> PostingsEncoder {
        PostingsEncoder {
            gaps: [0; PACKED],
            more: [0; PACKED],
            docs: 0,
            steps: [0; PACKED],
            positions: 0,
            started: false,
            doc: 0,
            position: 0,
            repeats: 0,
            previous: u32::MAX,
            df: 0,
            occurrences: 0,
            start: (0, 0),
            tail: Vec::new(),
            packed: [0; 2 + 2 * 4 * PACKED],
        }
    }

    /// Forgets the last term; the next one's blocks will begin at these offsets.
    #[inline]
    pub(crate) fn begin(&mut self, post: u64, pos: u64) {
        self.docs = 0;
        self.positions = 0;
        self.started = false;
        self.previous = u32::MAX;
        self.df = 0;
        self.occurrences = 0;
        self.start = (post, pos);
    }

    pub(crate) fn df(&self) -> u32 {
        self.df
    }

    pub(crate) fn occurrences(&self) -> u64 {
        self.occurrences
    }

    /// The document of the last occurrence.
    pub(crate) fn last_doc(&self) -> u32 {
        self.doc
    }

    /// The bytes of a finished term whose place is [`Place::Inline`].
    pub(crate) fn inline(&self) -> &[u8] {
        &self.tail
    }

    #[inline]
    pub(crate) fn occurrence(
        &mut self,
        doc: u32,
        position: u32,
        post: &mut PagedOutput,
        pos: &mut PagedOutput,
    ) -> Result<()> {
        let step = if self.started && doc == self.doc {
            if position <= self.position {
                return Err(out_of_order("positions", position, self.position));
            }
            self.repeats += 1;
            position - self.position
        } else {
            if self.started {
                if doc < self.doc {
                    return Err(out_of_order("documents", doc, self.doc));
                }
                self.close_document(post)?;
            }
            self.started = true;
            self.doc = doc;
            self.repeats = 0;
            position
        };
        self.position = position;
        self.steps[self.positions] = step;
        self.positions += 1;
        self.occurrences += 1;
        if self.positions == PACKED {
            self.pack_positions(pos)?;
        }
        Ok(())
    }

    /// The current document has no further occurrence.
    #[inline]
    fn close_document(&mut self, post: &mut PagedOutput) -> Result<()> {
        self.gaps[self.docs] = self.doc.wrapping_sub(self.previous).wrapping_sub(1);
        self.more[self.docs] = self.repeats;
        self.previous = self.doc;
        self.docs += 1;
        self.df += 1;
        if self.docs == PACKED {
            self.pack_documents(post)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn pack_documents(&mut self, post: &mut PagedOutput) -> Result<()> {
        let packer = BitPacker4x::new();
        let (gap_bits, more_bits) = (packer.num_bits(&self.gaps), packer.num_bits(&self.more));
        self.packed[0] = gap_bits;
        self.packed[1] = more_bits;
        let mut end = 2;
        end += packer.compress(&self.gaps, &mut self.packed[end..], gap_bits);
        end += packer.compress(&self.more, &mut self.packed[end..], more_bits);
        self.docs = 0;
        post.put(&self.packed[..end])
    }

    #[inline(never)]
    fn pack_positions(&mut self, pos: &mut PagedOutput) -> Result<()> {
        let packer = BitPacker4x::new();
        let bits = packer.num_bits(&self.steps);
        self.packed[0] = bits;
        let end = 1 + packer.compress(&self.steps, &mut self.packed[1..], bits);
        self.positions = 0;
        pos.put(&self.packed[..end])
    }

    /// Ends the term: `None` if it had no occurrence.
    pub(crate) fn end(&mut self, post: &mut PagedOutput, pos: &mut PagedOutput) -> Result<Option<Place>> {
        if !self.started {
            return Ok(None);
        }
        self.close_document(post)?;
        self.tail.clear();
        for (&gap, &more) in self.gaps[..self.docs].iter().zip(&self.more) {
            // the low bit says whether a frequency above one follows
            varint::put(&mut self.tail, u64::from(gap) << 1 | u64::from(more > 0));
            if more > 0 {
                varint::put(&mut self.tail, u64::from(more));
            }
        }
        let documents_end = self.tail.len();
        for &step in &self.steps[..self.positions] {
            varint::put(&mut self.tail, u64::from(step));
        }
        let whole = self.docs as u64 == u64::from(self.df) && self.positions as u64 == self.occurrences;
        if whole && self.tail.len() <= INLINE_BYTES {
            return Ok(Some(Place::Inline));
        }
        post.put(&self.tail[..documents_end])?;
        pos.put(&self.tail[documents_end..])?;
        Ok(Some(Place::Files { post: self.start.0, pos: self.start.1 }))
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.tail.capacity()
    }
}

#[cold]
fn out_of_order(what: &str, got: u32, after: u32) -> Error {
    Error::Failed(format!("{what} of a term have to ascend: {got} came after {after}"))
}
