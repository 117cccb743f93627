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
//!
//! A builder that counts words: what it holds is written as a run each time it is asked to spill, the runs are merged, the
//! result is published.
//!
//! ```
//! use plimsoll::spill::merge::{MergeLimits, Target, Unwatched, merge, open_reduced};
//! use plimsoll::spill::publish::{Publication, SyncPolicy};
//! use plimsoll::spill::{DiskQuota, SpillError, SpillFolder, SpillResult, Spool, files};
//! use plimsoll::{GlobalMemoryLimiter, MIB};
//!
//! /// What is made: a line for each word, with a count for each run.
//! struct Lines(Vec<u8>);
//!
//! impl<C> Target<C> for Lines {
//!     type Error = SpillError;
//!     fn begin(&mut self, word: &[u8], _: &mut C) -> SpillResult<()> {
//!         self.0.extend_from_slice(word);
//!         Ok(())
//!     }
//!     fn piece(&mut self, count: &[u8], _last: bool, _: &mut C) -> SpillResult<()> {
//!         self.0.push(b' ');
//!         self.0.extend_from_slice(count);
//!         Ok(())
//!     }
//!     fn end(&mut self, _: &mut C) -> SpillResult<()> {
//!         self.0.push(b'\n');
//!         Ok(())
//!     }
//! }
//!
//! let parent = tempfile::tempdir()?;
//! let limiter = GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).build()?;
//! let reporter = limiter.reporter("words");
//! let mut account = &reporter; // buffers and lists are charged to it
//! let folder = SpillFolder::builder(parent.path()).quota(DiskQuota::new(1 << 30)).create()?;
//! let mut spool = Spool::new(&folder, "words");
//! for held in [[("barque", "1"), ("clipper", "4")], [("brig", "2"), ("clipper", "5")]] {
//!     let mut run = spool.begin(64 << 10, 7, &mut account)?;
//!     for (word, count) in held {
//!         run.begin_record(word.as_bytes(), &mut account)?; // after an error: `run.abandon(&mut account)`
//!         run.piece(count.as_bytes(), true)?;
//!         run.end_record()?;
//!     }
//!     run.finish(&mut account)?; // from here on it exists
//! }
//!
//! let mut lines = Lines(Vec::new());
//! let (mut runs, passes) = open_reduced(&mut spool, 0, MergeLimits::default(), &mut account, &mut Unwatched)?;
//! merge(&mut runs, &mut lines, &mut account, &mut Unwatched)?;
//! runs.into_iter().for_each(|run| run.release(&mut account));
//! assert_eq!((lines.0.as_slice(), passes), (b"barque 1\nbrig 2\nclipper 4 5\n".as_slice(), 1));
//!
//! let place = parent.path().join("index");
//! let mut publication = Publication::begin(files::system(), &place, SyncPolicy::Final)?;
//! publication.write("words", &lines.0)?;
//! let published = publication.commit(|| Ok::<(), SpillError>(()))?; // durable from here on
//! assert_eq!((published.synced_files, published.synced_folders), (1, 2));
//! spool.clear(&mut account)?; // until then the runs could have made it again
//! assert_eq!((reporter.held_bytes(), folder.quota().used_bytes()), (0, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything here is `Send`; folders, quotas, readers, sources, descriptors and values are `Sync` too. A spool and a
//! publication have one owner.
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
