//! Spilled runs of one field of one batch, by plimsoll's spool and merge; here is what is the build's own.
//!
//! | file | what is in it |
//! |---|---|
//! | [`source`] | a run or a writer's memory as a source of terms |
//! | [`mod@spill`] | a writer's terms become a run; what goes on beside a merge |
//!
//! A record of a run is a term and its postings, copied as the bytes that the writer made, in spans that ascend
//! ([`crate::writer::stream`]); only a merge into a segment decodes them.
pub mod source;
pub mod spill;

pub use source::{Source, release_all};
pub use spill::{Beside, spill};

#[cfg(test)]
mod tests;
