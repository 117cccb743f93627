//! Folders that one process alone writes, and that go with it: at its end, or at the next one's start.
//!
//! | file | what is in it |
//! |---|---|
//! | [`OwnedFolder`] (`owned`) | a folder with an owner file beside it, removed when it is dropped |
//! | [`SpillFolder`] (`spill`) | the same with a disk quota, and a say on file systems in memory |
//! | `owner` | the owner file: created, locked, and known to be the one that has the name |
//! | `sweep` | what dead processes left in the same parent, removed and counted |
//! | `names` | what folders and owner files are called |
//!
//! The protocol, with the sides that meet in it:
//!
//! 1. A creator creates `.LABEL.KIND-PROCESS-NUMBER.owner`, takes its lock, checks that the name still leads to the file
//!    that it has locked, writes what it is into it, and only then creates the folder of that name without `.owner`. If
//!    the lock is taken or the name leads elsewhere, a sweeper was faster: the creator takes the next number.
//! 2. A sweeper opens each owner file of the parent and tries its lock. A lock that is taken is a living process: the
//!    folder is left alone. A lock that can be taken is a dead one's, or a creator's between its first two calls, who has
//!    no folder yet. With the lock held, and after the check of step 1, it removes the folder, then the owner file.
//! 3. An owner removes its folder first and the owner file last, with the lock held. Killed in between, or unable to
//!    remove something, it leaves the owner file, so that the next sweep goes on.
//!
//! So a folder without an owner file is never one of these, and a folder with one is either in use or swept.
mod names;
mod owned;
mod owner;
mod spill;
mod sweep;

pub use owned::OwnedFolder;
pub(super) use owned::next_number;
pub use spill::{OnRam, SpillFolder, SpillFolderBuilder};
pub use sweep::Swept;
