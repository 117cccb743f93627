//! The runs of a spool, oldest first.
//!
//! A list of pieces of a fixed size: it grows by a piece and moves nothing, so what the next run takes is known and small
//! however many there are, and two lists become one without an allocation.

use std::collections::{LinkedList, VecDeque};

/// A sealed run: where it is in its spool, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Which of the spool's files.
    pub(in crate::spill) file: u32,
    pub(in crate::spill) block_bytes: u32,
    pub(in crate::spill) serial: u64,
    pub(in crate::spill) offset: u64,
    pub(in crate::spill) bytes: u64,
    pub(in crate::spill) records: u64,
    pub(in crate::spill) longest: usize,
}

impl Run {
    /// A run that somebody says is in a file: `serial`, its place, and the longest of its keys. For tools that look into
    /// files; all of it is checked when the run is read.
    pub fn at(serial: u64, offset: u64, bytes: u64, records: u64, longest_key_bytes: usize, block_bytes: u32) -> Run {
        Run { file: 0, block_bytes, serial, offset, bytes, records, longest: longest_key_bytes }
    }

    /// Its number among all runs that its spool began.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Where it starts, in bytes from the start of its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its length on disk in bytes, header and seal included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The length of its longest key in bytes.
    pub fn longest_key_bytes(&self) -> usize {
        self.longest
    }

    /// The longest payload of its blocks in bytes, which a reader holds.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes as usize
    }
}

/// Runs of a piece.
const PIECE: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::spill) struct RunList {
    pieces: LinkedList<VecDeque<Run>>,
    len: usize,
}

impl RunList {
    /// What a piece takes in bytes: its runs, and its place in the list.
    pub(in crate::spill) const PIECE_BYTES: usize = PIECE * size_of::<Run>() + size_of::<VecDeque<Run>>() + 16;

    pub(in crate::spill) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::spill) fn allocated_bytes(&self) -> usize {
        self.pieces.len() * RunList::PIECE_BYTES
    }

    /// Whether one more run takes a further piece.
    pub(in crate::spill) fn is_full(&self) -> bool {
        self.pieces.back().is_none_or(|piece| piece.len() == piece.capacity())
    }

    /// A further piece, if one more run takes it.
    pub(in crate::spill) fn reserve(&mut self) {
        if self.is_full() {
            self.pieces.push_back(VecDeque::with_capacity(PIECE));
        }
    }

    /// Frees a piece that nothing came into.
    pub(in crate::spill) fn trim(&mut self) {
        if self.pieces.back().is_some_and(VecDeque::is_empty) {
            self.pieces.pop_back();
        }
    }

    pub(in crate::spill) fn push(&mut self, run: Run) {
        self.reserve();
        if let Some(piece) = self.pieces.back_mut() {
            piece.push_back(run);
            self.len += 1;
        }
    }

    pub(in crate::spill) fn pop_oldest(&mut self) -> Option<Run> {
        let piece = self.pieces.front_mut()?;
        let run = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        self.len -= usize::from(run.is_some());
        run
    }

    /// Puts the runs of `newer` behind these. A piece that has room is filled first, so that lists that are put together
    /// again and again take no more pieces than they need.
    pub(in crate::spill) fn append(&mut self, newer: &mut RunList) {
        self.trim();
        while !self.is_full()
            && let Some(run) = newer.pop_oldest()
        {
            self.push(run);
        }
        self.pieces.append(&mut newer.pieces);
        self.len += std::mem::take(&mut newer.len);
    }

    pub(in crate::spill) fn clear(&mut self) {
        *self = RunList::default();
    }

    pub(in crate::spill) fn iter(&self) -> impl Iterator<Item = &Run> {
        self.pieces.iter().flatten()
    }
}
