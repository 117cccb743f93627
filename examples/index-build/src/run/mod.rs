//! Spilled runs of one field of one batch, and the merge that brings them together again.
//!
//! | file | what is in it |
//! |---|---|
//! | [`format`](mod@format) | what a run file looks like, and its numbers |
//! | [`write`](mod@write) | writes one, block by block, and seals it |
//! | [`read`] | reads one, trusting nothing |
//! | [`source`] | a run or a writer's memory as a source of terms |
//! | [`merge`](mod@merge) | the k-way merge of sources into a target |
//! | [`passes`] | bounded fan-in: many runs become few |
//!
//! Postings are copied as the bytes that the writer made; only a merge into a segment decodes them.
pub mod format;
pub mod merge;
pub mod passes;
pub mod read;
pub mod source;
pub mod write;

pub use merge::{Target, merge};
pub use passes::{Limits, Spills, reduce, release_all};
pub use read::RunReader;
pub use source::Source;
pub use write::{Run, RunWriter, spill};

#[cfg(test)]
mod tests;
