//! Sealed runs: records in ascending order of their keys, as bytes of a spool file.
//!
//! | file | what is in it |
//! |---|---|
//! | `format` | what a file and its runs look like, and their numbers |
//! | `write` | [`RunWriter`]: one run, block by block, sealed |
//! | `read` | [`RunReader`]: one run, trusting nothing |
//! | `file` | [`RunFile`]: an open file that any number of readers share |
//! | `list` | the runs of a spool, in a list that grows without moving |
mod file;
mod format;
mod list;
mod read;
mod write;

pub use file::RunFile;
pub use format::{LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, prefix};
pub use list::Run;
pub use read::RunReader;
pub use write::{RunWriter, key_buffer_bytes};

pub(super) use list::RunList;
