//! Where the runs of one writer are: a file that is only appended to, and the list of its sealed runs.
//!
//! | file | what is in it |
//! |---|---|
//! | `runs` | [`Spool`]: beginning, sealing, reading and removing runs, and what is charged for them |
//! | `file` | one file of a spool: its handle, its room on disk, what of that went back |
//! | `earmark` | [`Earmark`]: memory for the next run and the smallest merge, taken when there was some |
mod earmark;
mod file;
mod runs;

pub use earmark::{Earmark, flush_bytes};
pub use runs::Spool;

pub(super) use file::Place;
pub(super) use runs::release_all;
