//! The posting arena: every term's stream in linked slices, the slices in blocks that are allocated one at a time.
//!
//! A slice is 16 bytes at first and twice as long each time it is full, up to 2 KiB; at a block's end it takes what is
//! left. Its last 4 bytes hold the address of the next slice, once there is one; until then the first of them is the
//! slice's level + 1, and every byte between the stream's end and it is 0. So the end of a slice is seen in the bytes
//! that are about to be written, and a term needs no more than the addresses of its first slice and of its next byte.
//! Slice lengths follow from level and address, so a reader needs nothing else either.
//! Addresses are u32. An arena says when it comes near the end of them, and its writer then spills.

use crate::writer::vocabulary::list_growth;

/// Bytes of the smallest slice; blocks are used in multiples of it.
const SLICE: usize = 16;
/// The highest level: slices of 2 KiB.
const TOP: u8 = 7;
/// Bytes at a slice's end for the next slice's address.
const LINK: usize = 4;
/// Blocks left before the end of the addresses at which an arena calls itself full.
const MARGIN: usize = 8;

/// Blocks of zeroed bytes and the streams in them.
#[derive(Debug)]
pub struct Arena {
    blocks: Vec<Box<[u8]>>,
    /// the part of the last block that is in slices
    used: usize,
    block_bytes: usize,
    /// block_bytes in whole slices
    usable: usize,
    shift: u32,
    /// no more blocks than this
    most: usize,
}

impl Arena {
    /// An arena without blocks. `block_bytes` is at least 64 and at most 64 MiB.
    pub fn new(block_bytes: usize) -> Arena {
        Arena::with_limit(block_bytes, usize::MAX)
    }

    /// An arena of at most `most` blocks, where that is less than the addresses allow.
    pub fn with_limit(block_bytes: usize, most: usize) -> Arena {
        let block_bytes = block_bytes.clamp(64, 64 << 20);
        let shift = block_bytes.next_power_of_two().trailing_zeros();
        Arena {
            blocks: Vec::new(),
            used: 0,
            block_bytes,
            usable: block_bytes / SLICE * SLICE,
            shift,
            most: most.min(1 << (32 - shift)),
        }
    }

    /// Bytes of all blocks, and nothing else.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.blocks.len() * self.block_bytes
    }

    /// Bytes that are in slices.
    pub fn used_bytes(&self) -> usize {
        self.blocks.len().saturating_sub(1) * self.usable + self.used
    }

    /// What the list of blocks takes besides.
    pub fn list_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Box<[u8]>>()
    }

    /// What a text of so many tokens adds at most, lists included. `value_bytes` is the longest of the numbers that say one
    /// of its occurrences, two to a document.
    ///
    /// Slices that the text adds are full but for their links, or the last of a stream that it touches. A stream's last
    /// slice is no longer than a slice can be; nor than all before it and 16 bytes more, but for slices that were cut short
    /// at a block's end: then the next is longer than that by what is missing, at most half of the longest. One slice a
    /// block is cut short, also of the blocks that are added.
    pub fn most_growth_bytes(&self, tokens: usize, value_bytes: usize) -> usize {
        // the first occurrence of a term is written with its second, and may be far inside an older document
        let written = tokens * (3 * value_bytes + 5);
        let full = written.div_ceil(SLICE - LINK) * SLICE;
        let top = (SLICE << TOP).min(self.usable);
        let before = (tokens * top).min(self.used_bytes() + self.blocks.len() * top / 2);
        let slices = 2 * full + tokens * SLICE + before;
        let room = if self.blocks.is_empty() { 0 } else { self.usable - self.used };
        if tokens == 0 || slices <= room {
            return 0;
        }
        // with half of the longest for each block that this comes to
        let slices = (slices + top) * 2 * self.usable / (2 * self.usable - top);
        let blocks = (slices - room).div_ceil(self.usable);
        blocks * self.block_bytes + list_growth(&self.blocks, blocks)
    }

    /// The addresses are nearly used up: time to spill.
    pub fn is_full(&self) -> bool {
        self.blocks.len() + MARGIN >= self.most
    }

    /// A new stream's first address. `grow` hears the arena's new size before a block is allocated.
    #[inline]
    pub fn start(&mut self, grow: &mut impl FnMut(usize)) -> u32 {
        self.slice(0, grow)
    }

    /// Appends the low `length` bytes of `bits` (at most 8) at `tail`, and returns the address behind them.
    #[inline(always)]
    pub fn append(&mut self, tail: u32, bits: u64, length: u32, grow: &mut impl FnMut(usize)) -> u32 {
        let at = self.offset(tail);
        if let Some(word) = self.blocks[(tail >> self.shift) as usize].get_mut(at..at + 8) {
            let old = u64::from_le_bytes(word.try_into().unwrap_or_default());
            if old << (64 - 8 * length) == 0 {
                word.copy_from_slice(&(old | bits).to_le_bytes());
                return tail + length;
            }
        }
        self.append_slowly(tail, bits, length, grow)
    }

    #[cold]
    #[inline(never)]
    fn append_slowly(&mut self, tail: u32, bits: u64, length: u32, grow: &mut impl FnMut(usize)) -> u32 {
        let mut tail = tail;
        for byte in &bits.to_le_bytes()[..length as usize] {
            let (block, at) = ((tail >> self.shift) as usize, self.offset(tail));
            match self.blocks[block][at] {
                0 => {
                    self.blocks[block][at] = *byte;
                    tail += 1;
                }
                level => {
                    // the mark is level + 1, so it is the next level
                    let next = self.slice(level.min(TOP), grow);
                    self.blocks[block][at..at + LINK].copy_from_slice(&next.to_le_bytes());
                    let at = self.offset(next);
                    self.blocks[(next >> self.shift) as usize][at] = *byte;
                    tail = next + 1;
                }
            }
        }
        tail
    }

    /// A slice of `level` or what the block still has.
    fn slice(&mut self, level: u8, grow: &mut impl FnMut(usize)) -> u32 {
        if self.blocks.is_empty() || self.used == self.usable {
            assert!(self.blocks.len() < self.most, "an arena that is full has to be spilled");
            grow(self.bytes() + self.block_bytes);
            self.blocks.push(vec![0; self.block_bytes].into_boxed_slice());
            self.used = 0;
        }
        let block = self.blocks.len() - 1;
        let length = self.length(level, self.used);
        self.blocks[block][self.used + length - LINK] = level + 1;
        let address = (block << self.shift) as u32 | self.used as u32;
        self.used += length;
        address
    }

    /// Bytes of a slice of `level` that starts at `at` in its block.
    #[inline]
    fn length(&self, level: u8, at: usize) -> usize {
        (SLICE << level).min(self.usable - at)
    }

    #[inline(always)]
    fn offset(&self, address: u32) -> usize {
        address as usize & ((1 << self.shift) - 1)
    }

    /// A byte at an address, read so that it is near.
    #[inline]
    pub fn touch(&self, address: u32) -> u8 {
        self.blocks[(address >> self.shift) as usize][self.offset(address)]
    }

    /// The stream from `head` to `tail`, piece by piece.
    #[inline]
    pub fn pieces(&self, head: u32, tail: u32) -> Pieces<'_> {
        Pieces { arena: self, next: Some(head), tail, level: 0 }
    }
}

/// Walks over the slices of a stream. Only the last piece can be empty.
#[derive(Debug)]
pub struct Pieces<'a> {
    arena: &'a Arena,
    next: Option<u32>,
    tail: u32,
    level: u8,
}

impl<'a> Iterator for Pieces<'a> {
    /// Bytes, and whether they are the last.
    type Item = (&'a [u8], bool);

    #[inline]
    fn next(&mut self) -> Option<(&'a [u8], bool)> {
        let head = self.next?;
        let block = &self.arena.blocks[(head >> self.arena.shift) as usize];
        let at = self.arena.offset(head);
        let data = self.arena.length(self.level, at) - LINK;
        if self.tail >= head && self.tail - head <= data as u32 {
            self.next = None;
            return Some((&block[at..at + (self.tail - head) as usize], true));
        }
        let link = &block[at + data..at + data + LINK];
        self.next = Some(u32::from_le_bytes(link.try_into().unwrap_or_default()));
        self.level = (self.level + 1).min(TOP);
        Some((&block[at..at + data], false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn streams_that_grow_in_turn_are_read_back_whole(
            writes in proptest::collection::vec((0usize..6, any::<u64>(), 1u32..=8), 1..600),
            block_bytes in prop_oneof![Just(64usize), Just(100), Just(1000), Just(1024), Just(32768)]
        ) {
            let mut arena = Arena::new(block_bytes);
            let mut told = 0;
            let mut streams: Vec<Option<(u32, u32)>> = vec![None; 6];
            let mut plain = vec![Vec::new(); 6];
            for (stream, bits, length) in writes {
                let mut grow = |bytes| told = bytes;
                let bits = bits & (u64::MAX >> (64 - 8 * length));
                let (head, tail) = match streams[stream] {
                    Some(ends) => ends,
                    None => { let head = arena.start(&mut grow); (head, head) }
                };
                streams[stream] = Some((head, arena.append(tail, bits, length, &mut grow)));
                plain[stream].extend_from_slice(&bits.to_le_bytes()[..length as usize]);
            }
            prop_assert_eq!(told, arena.bytes());
            for (ends, plain) in streams.iter().zip(&plain) {
                let read: Vec<u8> = ends.iter().flat_map(|&(head, tail)| arena.pieces(head, tail)).flat_map(|(piece, _)| piece.to_vec()).collect();
                prop_assert_eq!(&read, plain);
                if let Some((head, tail)) = *ends {
                    prop_assert_eq!(arena.pieces(head, tail).filter(|&(_, last)| last).count(), 1);
                }
            }
        }
    }

    /// B29: the arena says that it is full while there is still room for what one document may add before it is spilled.
    #[test]
    fn an_arena_near_the_end_of_its_addresses_asks_to_be_spilled() {
        let mut arena = Arena::with_limit(64, 20);
        let mut tail = arena.start(&mut |_| ());
        while !arena.is_full() {
            tail = arena.append(tail, u64::MAX, 8, &mut |_| ());
        }
        assert_eq!(arena.bytes(), 12 * 64);
        arena.append(tail, u64::MAX, 8, &mut |_| ());
        for block_bytes in [512usize, 32 << 10, 1 << 20, 64 << 20] {
            let arena = Arena::new(block_bytes);
            assert_eq!(arena.most * block_bytes, 1 << 32, "an arena is at most 4 GiB");
        }
    }
}
