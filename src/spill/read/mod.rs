//! Positioned reads: one reader a file, shared by all threads, that moves no position and holds no lock while it reads.
//!
//! | type | what it is |
//! |---|---|
//! | [`Reader`] | a file, opened when it is first read, and the handle kept |
//! | [`Descriptors`] | a bounded number of open files for any number of readers |
//! | [`Cursor`] | a sequential reader over a file, with a position of its own |
//! | [`Source`] | a way to some content; a [`Reader`] is one |
//! | [`SourcedReader`] | several ways to the same content: what fails on one is read from the next |
//! | [`Pages`], [`PageReader`] | content in pages, each checked before a byte of it is handed out |
//!
//! ```
//! use plimsoll::spill::files::system;
//! use plimsoll::spill::read::{Reader, SourcedReader};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (path, copy) = (folder.path().join("segment"), folder.path().join("copy of segment"));
//! std::fs::write(&copy, b"postings")?;
//! let reader = SourcedReader::new(Reader::new(system(), path)).or(Reader::new(system(), copy));
//! let mut bytes = [0; 4];
//! reader.read_exact_at(&mut bytes, 4)?; // the first one is not there
//! assert_eq!(&bytes, b"ings");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod cursor;
mod descriptors;
mod kept;
mod pages;
mod reader;
mod source;
mod sourced;

pub use cursor::Cursor;
pub use descriptors::Descriptors;
pub use pages::{PageReader, Pages};
pub use reader::Reader;
pub use source::{Flaw, Source};
pub use sourced::SourcedReader;
