//! Where the bytes go that memory is traded for: sealed runs on disk, their merge, durable publishing, positioned reads.
//!
//! | file | what is in it |
//! |---|---|
//! | [`files`] | the system calls, behind a trait, and the operating system's |
//! | [`SpillError`] | what can go wrong, with file and offset |
//! | [`Charge`] | who pays for buffers |
//! | [`SpillFolder`] | a folder of a process's own |
//! | [`publish`] | a folder or a file that becomes visible as a whole, and durable |
//! | [`DiskQuota`] | bytes on disk of all spools of a process |
mod charge;
mod error;
pub mod files;
mod folder;
pub mod publish;
mod quota;
mod system;

pub use charge::{Charge, Uncounted};
pub use error::{SpillError, SpillResult};
pub use folder::SpillFolder;
pub use quota::DiskQuota;
