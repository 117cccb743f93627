//! The spill folder of the library: runs, merges, publishing, positioned reads.
#![expect(clippy::unwrap_used, reason = "a test may fail by a panic")]

mod auto_traits;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod earmarks;
#[path = "../common/faults.rs"]
mod faults;
mod folder;
mod full;
mod merges;
mod power;
mod publish;
mod quota;
mod reads;
mod records;
mod runs;
mod spool;
