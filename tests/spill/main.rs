//! The spill folder of the library: runs, merges, publishing, positioned reads.
#![expect(clippy::unwrap_used, reason = "a test may fail by a panic")]

mod calls;
mod earmarks;
#[path = "../common/faults.rs"]
mod faults;
mod full;
mod merges;
mod quota;
mod records;
mod runs;
mod spool;
