//! One field of one batch in memory, until it is spilled or merged.
//!
//! | file | what is in it |
//! |---|---|
//! | [`field`] | the writer itself: a term, a document and a position at a time |
//! | [`vocabulary`] | the terms: a table, a record each, their bytes |
//! | [`table`] | the terms' hashes, and which term has which |
//! | [`arena`] | the postings: linked slices in blocks |
//! | [`stream`] | how occurrences are written as bytes, and read back |
//! | [`order`] | the terms in byte order, and a walk over them with their postings |
//!
//! All of it is block-backed, and all of it is freed by a spill.
pub mod arena;
pub mod field;
pub mod order;
pub mod stream;
pub mod table;
pub mod vocabulary;

pub use field::Writer;
pub use order::Order;
pub use stream::Decoder;
