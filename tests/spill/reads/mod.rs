//! Positioned reads: one open a file, whoever reads; other sources where one fails; checked pages.
mod cursor;
mod descriptors;
mod far;
mod pages;
mod reader;
mod sourced;
mod together;
mod watched;

use crate::faults::{Fault, Faults};
use plimsoll::spill::files::Files;
use plimsoll::spill::read::{Descriptors, Reader};
use std::path::Path;
use std::sync::Arc;

/// Bytes that differ from place to place and from file to file.
fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Both kinds of reader of one file: one that keeps its handle, and one that borrows a descriptor.
fn both(files: &Arc<dyn Files>, path: &Path) -> [Reader; 2] {
    [Reader::new(Arc::clone(files), path), Descriptors::new(Arc::clone(files), 4).reader(path)]
}

/// The operating system, recorded.
fn recorded() -> Faults {
    Faults::new(Fault::None)
}
