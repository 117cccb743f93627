//! The files of one segment: written once by [`SegmentWriter`], read by position through [`Segment`].
//!
//! | file | what is in it |
//! |---|---|
//! | `format` | names, magic numbers, header and footer that all three files share; every size limit |
//! | `varint` | small numbers in few bytes |
//! | `output`, `dictionary_out`, `postings_out` | the write side: check-summed files, term blocks, posting blocks |
//! | [`SegmentWriter`] (`writer`) | the face of the write side: fields, terms, occurrences in order |
//! | `read_at`, `pages` | the read side: checked files and pages, through the library's positioned reads |
//! | `catalog`, `terms` | the fields of a segment, its terms in order and by look-up |
//! | `postings` | documents and positions of one term |
//! | [`Segment`] (`reader`) | the face of the read side |
//!
//! # The format, version 1
//!
//! Three files serve all fields of a segment; numbers are little-endian, lengths are varints.
//!
//! - Each file is *header, body, trailer, footer*. Header and footer have a fixed size and carry magic, version, byte
//!   order, segment number and their own CRC32C; the footer says where the trailer begins and its CRC32C.
//! - `.terms`: the body is blocks of sorted terms (16 KiB before compression, or one longer term), each front-coded and
//!   ZSTD-compressed where that makes it smaller. The trailer is the catalog: per field its name, its counts, and for
//!   each block a separator (the shortest string that is greater than all terms before it and not greater than its first),
//!   lengths and CRC32C. Separators keep the catalog small even for terms of many megabytes.
//! - A term's entry holds its document frequency, its occurrences and either the postings themselves (up to 32 bytes:
//!   most terms of a log full of ids occur once, and cost nothing elsewhere) or where they begin in the other two files.
//! - `.post` and `.pos`: the body is a stream cut into pages of 64 KiB, each followed by its CRC32C. A term's postings are
//!   blocks of 128 bit-packed document gaps and frequencies with a varint tail; its positions are gaps within the document,
//!   likewise.
//!
//! A finite-state dictionary (the `fst` crate) would be smaller on natural text, but its builder keeps a cache whose bytes
//! nobody can count, and here every byte held is charged.
mod catalog;
mod dictionary_out;
mod format;
mod output;
mod pages;
mod postings;
mod postings_out;
mod read_at;
mod reader;
mod terms;
mod varint;
mod writer;

#[cfg(test)]
mod tests;

pub use catalog::Field;
pub use format::{FORMAT_VERSION, Part, part_name};
pub use output::SegmentFile;
pub use postings::Postings;
pub use reader::Segment;
pub use terms::{Decoder, TermInfo, Terms};
pub use writer::{FieldStats, SegmentWriter};
