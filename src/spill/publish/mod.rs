//! Makes what was written visible as a whole and durable, or not at all.
//!
//! A [`Publication`] is a folder that is made beside its place and takes it in one step; [`replace_file`] is the same for one
//! file. Success is said by a call that returned `Ok`, and by nothing else: a publication that is dropped is removed.
//!
//! # Order
//!
//! 1. Everything is written, under a temporary name beside the place.
//! 2. Each file that stays is synced, once. Nothing is synced that will be deleted.
//! 3. Each folder of the publication is synced, the innermost first.
//! 4. The place gets its new content by one rename, or by an exchange of names if there is something to replace.
//! 5. The parent is synced, and the parent of every folder that had to be created above the place.
//! 6. What was replaced is removed. `Ok` is returned.
//!
//! A crash before 4 leaves what was there, after 5 the new content, in between one of the two. Where names cannot be
//! exchanged, what is replaced gets a third name first, so there is a moment in which the place is empty: [`present`] knows
//! where to look then, and [`recover`] puts it back.
//!
//! # What a sync says
//!
//! A sync that failed is never repeated: the kernel may have dropped what it could not write, and then says that all is
//! well. The publication is over, its files are removed, and a retry writes new files under new names; whatever they are made
//! from stays with the caller until `Ok`. A call that was interrupted has not failed, and is repeated. Not every file system
//! can sync folders: "not supported" is counted and goes on, any other error ends the publication.
//!
//! No memory maps are used here, so there is no mapping, read-only, empty or closed, that a flush could go wrong on.
//!
//! # After a crash
//!
//! A process that is killed leaves its temporary folder. The next publication to the same place removes those whose owner
//! is gone, which a lock on the folder tells; those of living neighbours are left alone.
//!
//! | file | what is in it |
//! |---|---|
//! | `publication` | [`Publication`]: what is in it, and the order above |
//! | `outcome` | [`SyncPolicy`], [`Published`] |
//! | `single` | [`replace_file`] |
//! | `sync` | syncs, counted and timed |
//! | `swap` | the one step, and the way back |
//! | `aside` | the third name |
//! | `temporary` | names that go when they are dropped; leftovers |
//! | `parents` | folders that are missing above the place |
//! | `names` | what temporary things are called |
//! | `lock` | whether the owner of a folder is alive |
//! | `remove` | whole trees |
mod aside;
mod lock;
mod names;
mod outcome;
mod parents;
mod publication;
mod remove;
mod single;
mod swap;
mod sync;
mod temporary;

pub use aside::{present, recover};
pub use outcome::{Published, SyncPolicy};
pub use publication::Publication;
pub use single::replace_file;
