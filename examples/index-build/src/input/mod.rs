//! From paths to documents.
//!
//! | file | what is in it |
//! |---|---|
//! | [`list`](mod@list) | the input's files, walked in order, and their format |
//! | [`batch`] | where batches end, which depends on the input alone |
//! | [`lines`] | the lines of a part of a file, read in blocks |
//! | [`json`] | a JSON line as the string values of its fields |
//! | `tame` | numbers that are too large for its parser |
//! | [`digest`](mod@digest) | length and SHA-256 of all input |
//!
//! A file that changes its length while it is read is an error wherever it is noticed.
pub mod batch;
pub mod digest;
pub mod json;
pub mod lines;
pub mod list;
mod tame;

pub use batch::{Batch, Cutter, Part, line_end};
pub use digest::digest;
pub use lines::{Line, Lines, line_number};
pub use list::{InputFile, Inputs, Kind, list};
