//! One walk over the terms of a field in all segments, in byte order, each term once with the segments that hold it. Each
//! segment takes a decoded block at a time; the decompressor is shared.
use std::path::Path;

use super::index::Index;
use crate::error::Result;
use crate::segment::{Decoder, Segment, TermInfo, Terms};

/// A merge of dictionaries. [`next_term`](Self::next_term) goes on, then the other methods speak of the current term.
#[derive(Debug)]
pub struct TermMerge<'a> {
    decoder: Decoder,
    walks: Vec<Walk<'a>>,
    /// Walks that stand on a term after the current one, smallest term and then smallest number first: a binary heap.
    heap: Vec<usize>,
    /// Walks that stand on the current term, in the order of the segments.
    current: Vec<usize>,
}

#[derive(Debug)]
struct Walk<'a> {
    /// Number of the segment in the index's list.
    segment: usize,
    terms: Terms<'a>,
}

impl<'a> TermMerge<'a> {
    /// Stands before the first term of `field`; segments without that field take no part.
    ///
    /// # Errors
    /// From the first blocks of the segments.
    pub fn new(segments: &'a [Segment], field: &str) -> Result<TermMerge<'a>> {
        let walks = segments.iter().enumerate().filter_map(|(segment, reader)| {
            reader.field(field).map(|field| Walk { segment, terms: reader.terms(field) })
        });
        let walks: Vec<_> = walks.collect();
        let mut merge =
            TermMerge { decoder: Decoder::new()?, heap: Vec::new(), current: (0..walks.len()).collect(), walks };
        merge.advance_current()?;
        Ok(merge)
    }

    /// Goes to the next term; false behind the last.
    ///
    /// # Errors
    /// If a block is damaged or cannot be read.
    pub fn next_term(&mut self) -> Result<bool> {
        self.advance_current()?;
        let Some(&first) = self.heap.first() else { return Ok(false) };
        while let Some(&top) = self.heap.first()
            && self.walks[top].terms.term() == self.walks[first].terms.term()
        {
            self.current.push(top);
            self.pop();
        }
        Ok(true)
    }

    /// The current term.
    pub fn term(&self) -> &[u8] {
        self.current.first().map_or(&[], |&walk| self.walks[walk].terms.term())
    }

    /// The segments that hold the current term, by their number in the list, with what each says of it.
    pub fn holders(&self) -> impl Iterator<Item = (usize, TermInfo)> {
        self.current.iter().map(|&walk| (self.walks[walk].segment, self.walks[walk].terms.info()))
    }

    /// Blocks, terms and the shared decompressor, by capacity.
    pub fn allocated_bytes(&self) -> usize {
        let walks = self.walks.iter().map(|walk| walk.terms.allocated_bytes()).sum::<usize>();
        let lists = (self.heap.capacity() + self.current.capacity()) * size_of::<usize>();
        walks + self.walks.capacity() * size_of::<Walk<'_>>() + lists + self.decoder.allocated_bytes()
    }

    fn advance_current(&mut self) -> Result<()> {
        while let Some(walk) = self.current.pop() {
            if self.walks[walk].terms.advance(&mut self.decoder)? {
                self.push(walk);
            }
        }
        Ok(())
    }

    fn before(&self, a: usize, b: usize) -> bool {
        (self.walks[a].terms.term(), a) < (self.walks[b].terms.term(), b)
    }

    fn push(&mut self, walk: usize) {
        let mut at = self.heap.len();
        self.heap.push(walk);
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.before(self.heap[at], self.heap[parent]) {
                break;
            }
            self.heap.swap(at, parent);
            at = parent;
        }
    }

    fn pop(&mut self) {
        self.heap.swap_remove(0);
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

/// Distinct terms of the index in `dir`, summed over its fields: a term in two fields counts twice, in two segments once.
///
/// # Errors
/// As [`Index::open`], and if a dictionary is damaged.
pub fn distinct_terms(dir: &Path) -> Result<u64> {
    Index::open(dir)?.distinct_terms(|_| {})
}

/// Terms between two looks at how much a merge holds.
const LOOK_EVERY: u64 = 1 << 14;

impl Index {
    /// Distinct terms, summed over fields. Reads every dictionary, but for fields that only one segment has. `held` is told
    /// from time to time how many bytes the count holds, the index among them.
    ///
    /// # Errors
    /// If a dictionary is damaged or cannot be read.
    pub fn distinct_terms(&self, mut held: impl FnMut(usize)) -> Result<u64> {
        let mut total = 0u64;
        for name in &self.manifest().fields {
            let mut with_terms = self.segments().iter().filter_map(|s| s.field(name)).filter(|f| f.stats.terms > 0);
            let (first, second) = (with_terms.next(), with_terms.next());
            if second.is_none() {
                total = total.saturating_add(first.map_or(0, |field| field.stats.terms));
                continue;
            }
            let mut merge = TermMerge::new(self.segments(), name)?;
            let mut terms = 0;
            while merge.next_term()? {
                if terms % LOOK_EVERY == 0 {
                    held(self.allocated_bytes() + merge.allocated_bytes());
                }
                terms += 1;
            }
            total = total.saturating_add(terms);
        }
        Ok(total)
    }
}
