//! Questions to a finished index. Nothing here writes, prints or keeps more than it needs for one segment at a time.
//!
//! | file | what is in it |
//! |---|---|
//! | [`Index`] (`index`) | an index folder, opened and checked against its manifest |
//! | [`Query`], [`Answer`] (`ask`) | the questions of the command: term, phrase, and, or |
//! | `phrase` | words at consecutive positions, in one segment |
//! | `words` | the words of a question, as the builder would have split them |
//! | [`TermMerge`] (`merge`), [`distinct_terms`] | one walk over the terms of all segments |
mod ask;
mod index;
mod merge;
mod phrase;
mod words;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use ask::{Answer, Query};
pub use index::Index;
pub use merge::{TermMerge, distinct_terms};
