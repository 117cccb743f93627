//! The terms of a writer: a table of their hashes, a record of one half cache line each, and their bytes.
//!
//! A term of up to 8 bytes is in its record whole, as a big-endian word that is also what terms are sorted by; the bytes
//! of a longer one are in a block as well, and a term longer than a quarter of a block has one of its own. Records are in
//! blocks too, so that nothing is copied when they grow; the table keeps the hashes, so that its growth touches neither
//! records nor bytes. [`Vocabulary::growth_bytes`] says beforehand what a new term will allocate.
use crate::token::{Counted, Term};
use crate::writer::table::Table;

/// No first slice: the term has one occurrence so far, which is in the record.
pub const ALONE: u32 = u32::MAX;
/// Blocks left before the end of the addresses at which a vocabulary calls itself full.
const MARGIN: usize = 8;

/// A term, and where its postings are.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub struct Record {
    /// the first 8 bytes, big-endian, filled up with 0
    pub key: u64,
    pub length: u32,
    /// of the bytes, if there are more than 8
    address: u32,
    pub last_document: u32,
    pub last_position: u32,
    /// first slice of the postings, or [`ALONE`]
    pub head: u32,
    pub tail: u32,
}

/// The vocabulary of one writer.
#[derive(Debug)]
pub struct Vocabulary {
    table: Table,
    records: Vec<Vec<Record>>,
    record_shift: u32,
    terms: u32,
    blocks: Vec<Vec<u8>>,
    /// the block that is being filled
    current: usize,
    block_bytes: usize,
    shift: u32,
    /// capacities of all byte blocks
    byte_block_bytes: usize,
    /// bytes of terms in them
    term_bytes: usize,
    /// bytes of the longest of those
    longest: usize,
}

/// Multiplies to 128 bits and folds the halves: the step of the hash.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

const SEEDS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];

/// A hash of a term with fixed seeds, so that nothing depends on the run.
#[inline(always)]
fn hash(term: Term<'_>) -> u32 {
    let state = fold(term.key ^ SEEDS[0], term.length as u64 ^ SEEDS[1]);
    let state = if term.length > 8 { hash_long(state, term.long) } else { state };
    (state >> 32) as u32 ^ state as u32
}

#[inline]
fn hash_long(state: u64, term: &[u8]) -> u64 {
    let mut state = state;
    for pair in term[8..].as_chunks::<16>().0 {
        state = fold(word(&pair[..8]) ^ state, word(&pair[8..]) ^ SEEDS[2]);
    }
    // the last 16 bytes overlap what came before, where the length is no multiple of 16
    let last = &term[term.len().saturating_sub(16)..];
    fold(word(&last[..8]) ^ state, word(&last[last.len() - 8..]) ^ SEEDS[1])
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Vocabulary {
    /// A vocabulary without terms, which holds nothing. `block_bytes` as for the arena.
    pub fn new(block_bytes: usize) -> Vocabulary {
        let block_bytes = block_bytes.clamp(64, 64 << 20);
        Vocabulary {
            table: Table::default(),
            records: Vec::new(),
            record_shift: (block_bytes / size_of::<Record>()).max(16).ilog2(),
            terms: 0,
            blocks: Vec::new(),
            current: 0,
            block_bytes,
            shift: block_bytes.next_power_of_two().trailing_zeros(),
            byte_block_bytes: 0,
            term_bytes: 0,
            longest: 0,
        }
    }

    /// Terms so far.
    pub fn len(&self) -> usize {
        self.terms as usize
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.terms == 0
    }

    /// Capacities of the table, the records and the bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.table.bytes() + (self.records.len() << self.record_shift) * size_of::<Record>() + self.byte_block_bytes
    }

    /// What the terms need of that: records and bytes.
    pub fn used_bytes(&self) -> usize {
        self.terms as usize * size_of::<Record>() + self.term_bytes
    }

    /// What the lists of blocks take besides.
    pub fn list_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Vec<Record>>() + self.blocks.capacity() * size_of::<Vec<u8>>()
    }

    /// Bytes of the longest term, if one is longer than 8.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// What the terms of a text will allocate at most: for good, and besides while the table is copied.
    pub fn most_growth_bytes(&self, text: &Counted) -> (usize, usize) {
        let record_blocks = (self.terms as usize + text.tokens).div_ceil(1 << self.record_shift) - self.records.len();
        let room = self.blocks.get(self.current).map_or(0, |block| block.capacity() - block.len());
        let long = self.is_long(text.longest);
        let (byte_blocks, own) = if text.long_bytes == 0 || !long && text.long_bytes <= room {
            (0, 0)
        } else {
            // a block is left when the next term does not fit, at most a quarter of it unused; long ones have their own
            let own = text.long_bytes / (self.block_bytes / 4 + 1);
            (text.long_bytes / (self.block_bytes - self.block_bytes / 4) + 1, if long { own } else { 0 })
        };
        let (table, copied) = self.table.most_growth_bytes(text.tokens);
        let lists = list_growth(&self.records, record_blocks) + list_growth(&self.blocks, byte_blocks + own);
        let blocks = record_blocks * (size_of::<Record>() << self.record_shift) + byte_blocks * self.block_bytes;
        (blocks + if long { text.long_bytes } else { 0 } + table + lists, copied)
    }

    /// The addresses of term bytes, or the term ids, are nearly used up: time to spill.
    pub fn is_full(&self) -> bool {
        self.blocks.len() + MARGIN >= 1 << (32 - self.shift) || self.terms >= u32::MAX - MARGIN as u32
    }

    /// The hash that look-up and insertion need of a term.
    #[inline(always)]
    pub fn hash(term: Term<'_>) -> u32 {
        hash(term)
    }

    /// The id of a term.
    #[inline(always)]
    pub fn find(&self, hash: u32, term: Term<'_>) -> Option<u32> {
        let mut at = hash as usize;
        loop {
            // no closure: a term that is passed by address would be written to memory and read back for every token
            let id = self.table.next(hash, &mut at)?;
            let record = self.record(id);
            if record.key == term.key
                && record.length as usize == term.length
                && (term.length <= 8 || self.long(record)[8..] == term.long[8..])
            {
                return Some(id);
            }
        }
    }

    /// The record of a term.
    #[inline(always)]
    pub fn record(&self, id: u32) -> &Record {
        &self.records[(id >> self.record_shift) as usize][(id & ((1 << self.record_shift) - 1)) as usize]
    }

    /// The record of a term, to be changed.
    #[inline(always)]
    pub fn record_mut(&mut self, id: u32) -> &mut Record {
        &mut self.records[(id >> self.record_shift) as usize][(id & ((1 << self.record_shift) - 1)) as usize]
    }

    /// What the insertion of a term of `length` bytes will allocate: for good, and while the table is copied.
    #[inline]
    pub fn growth_bytes(&self, length: usize) -> (usize, usize) {
        let mut bytes = 0;
        if (self.terms as usize) >> self.record_shift == self.records.len() {
            bytes += size_of::<Record>() << self.record_shift;
        }
        if length > 8 && !self.fits(length) {
            bytes += if self.is_long(length) { length } else { self.block_bytes };
        }
        let (more, copied) = self.table.growth_bytes();
        (bytes + more, copied)
    }

    /// A term longer than a quarter of a block has a block of its own.
    fn is_long(&self, length: usize) -> bool {
        length > self.block_bytes / 4
    }

    fn fits(&self, length: usize) -> bool {
        !self.is_long(length)
            && self.blocks.get(self.current).is_some_and(|block| block.capacity() - block.len() >= length)
    }

    /// Adds a term that [`Vocabulary::find`] did not find, with its only occurrence. Lines are below 4 GiB, so terms are.
    pub fn insert(&mut self, hash: u32, term: Term<'_>, document: u32, position: u32) {
        let id = self.terms;
        let record = Record {
            key: term.key,
            length: term.length as u32,
            address: if term.length > 8 { self.keep(term.long) } else { 0 },
            last_document: document,
            last_position: position,
            head: ALONE,
            tail: 0,
        };
        self.table.insert(hash, id);
        if id as usize >> self.record_shift == self.records.len() {
            self.records.push(Vec::with_capacity(1 << self.record_shift));
        }
        self.records[id as usize >> self.record_shift].push(record);
        self.terms = id + 1;
    }

    /// Copies a term's bytes into a block.
    fn keep(&mut self, term: &[u8]) -> u32 {
        self.term_bytes += term.len();
        self.longest = self.longest.max(term.len());
        if !self.fits(term.len()) {
            let long = self.is_long(term.len());
            let bytes = if long { term.len() } else { self.block_bytes };
            self.blocks.push(Vec::with_capacity(bytes));
            self.byte_block_bytes += bytes;
            if long {
                let own = self.blocks.len() - 1;
                self.blocks[own].extend_from_slice(term);
                return (own << self.shift) as u32;
            }
            self.current = self.blocks.len() - 1;
        }
        let block = &mut self.blocks[self.current];
        let address = (self.current << self.shift) as u32 | block.len() as u32;
        block.extend_from_slice(term);
        address
    }

    /// The bytes of a term longer than 8.
    #[inline(always)]
    fn long(&self, record: &Record) -> &[u8] {
        let at = record.address as usize & ((1 << self.shift) - 1);
        &self.blocks[record.address as usize >> self.shift][at..at + record.length as usize]
    }

    /// The bytes of a term; those of a short one are put into `short`.
    #[inline]
    pub fn term<'a>(&'a self, record: &Record, short: &'a mut [u8; 8]) -> &'a [u8] {
        *short = record.key.to_be_bytes();
        self.term_in(record, short)
    }

    /// The bytes of a term whose key's bytes are in `short` already.
    #[inline]
    pub fn term_in<'a>(&'a self, record: &Record, short: &'a [u8; 8]) -> &'a [u8] {
        if record.length > 8 { self.long(record) } else { &short[..record.length as usize] }
    }

    /// A byte of a term's, read so that it is near.
    #[inline]
    pub fn touch(&self, record: &Record) -> u8 {
        if record.length > 8 { self.long(record)[8] } else { 0 }
    }

    /// Which of two terms with the same key comes first.
    pub fn compare_beyond_key(&self, a: u32, b: u32) -> std::cmp::Ordering {
        let (a, b) = (self.record(a), self.record(b));
        match (a.length > 8, b.length > 8) {
            (true, true) => self.long(a)[8..].cmp(&self.long(b)[8..]),
            _ => a.length.cmp(&b.length),
        }
    }
}

/// What a list's growth by so many takes at most: it doubles, and holds four at least.
pub(super) fn list_growth<T>(list: &Vec<T>, more: usize) -> usize {
    let room = list.capacity() - list.len();
    if more <= room { 0 } else { ((2 * (list.len() + more)).max(4) - list.capacity()) * size_of::<T>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_is_said_beforehand_to_the_byte() {
        for block_bytes in [64usize, 1024, 32 << 10] {
            let mut vocabulary = Vocabulary::new(block_bytes);
            let mut said = 0;
            assert_eq!(vocabulary.bytes(), 0);
            for number in 0..5000usize {
                let term = format!("{number:x}{}", "y".repeat(number * 7 % 41 * usize::from(number % 3 == 0)));
                let term = Term::of(term.as_bytes());
                let hash = Vocabulary::hash(term);
                assert_eq!(vocabulary.find(hash, term), None);
                said += vocabulary.growth_bytes(term.length).0;
                vocabulary.insert(hash, term, 1, 2);
                assert_eq!(vocabulary.bytes(), said);
                assert_eq!(vocabulary.find(hash, term), Some(number as u32));
                let mut short = [0; 8];
                assert_eq!(vocabulary.term(vocabulary.record(number as u32), &mut short), term.bytes(&mut [0; 8]));
            }
        }
    }

    #[test]
    fn a_term_longer_than_a_block_has_a_block_of_its_own() {
        let mut vocabulary = Vocabulary::new(1024);
        let (long, short) = ("z".repeat(100_000), "a123456789");
        for term in [short, &long, "b123456789"] {
            let term = Term::of(term.as_bytes());
            vocabulary.insert(Vocabulary::hash(term), term, 0, 0);
        }
        let mut buffer = [0; 8];
        assert_eq!(vocabulary.term(vocabulary.record(1), &mut buffer), long.as_bytes());
        assert_eq!(vocabulary.blocks.len(), 2, "the block before goes on being filled");
    }
}
