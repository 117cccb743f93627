//! Where the bytes go that memory is traded for: sealed runs on disk, their merge, durable publishing, positioned reads.
//!
//! | file | what is in it |
//! |---|---|
//! | [`files`] | the system calls, behind a trait, and the operating system's |
//! | [`SpillError`] | what can go wrong, with file and offset |
//! | [`Charge`] | who pays for buffers |
//! | [`run`] | sealed runs of records: written block by block, read by position, every byte checked |
//! | [`spool`] | the runs of one writer in one file; memory that is taken for the next flush |
//! | [`merge`](mod@merge) | the k-way merge, and passes that bound how many runs are read at once |
//! | [`OwnedFolder`], [`SpillFolder`] | a folder of a process's own; what dead processes left is swept |
//! | [`publish`] | a folder or a file that becomes visible as a whole, and durable |
//! | [`DiskQuota`] | bytes on disk of all spools of a process |
//! | [`read`] | positioned reads, with other sources to fall back on |
mod charge;
mod error;
pub mod files;
mod folder;
pub mod merge;
pub mod publish;
mod quota;
pub mod read;
pub mod run;
pub mod spool;
mod system;

pub use charge::{Charge, Uncounted};
pub use error::{SpillError, SpillResult};
pub use folder::{OnRam, OwnedFolder, SpillFolder, SpillFolderBuilder, Swept};
pub use quota::DiskQuota;
pub use run::{Run, RunReader, RunWriter};
pub use spool::{Earmark, Spool};
