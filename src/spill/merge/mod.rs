//! Many sources of records become one: the k-way merge, and passes that bound how many are open at once.
//!
//! | file | what is in it |
//! |---|---|
//! | `traits` | [`Source`], [`Target`], [`Watch`]: what a merge reads, writes and asks |
//! | `ways` | [`merge`]: records in ascending order, equal keys in the order of the sources |
//! | `passes` | [`reduce`], [`open_reduced`]: contiguous groups of runs become bigger runs |
//! | `limits` | [`MergeLimits`]: fan-in and blocks, by memory and descriptors |
mod limits;
mod passes;
mod traits;
mod ways;

pub use limits::{MergeLimits, most_open_files};
pub use passes::{open_reduced, reduce};
pub use traits::{Source, Target, Unwatched, Watch};
pub use ways::{heap_bytes, merge};
