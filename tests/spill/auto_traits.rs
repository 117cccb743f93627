//! Which types go to other threads, and which are shared by them: the table in the folder's docs.
use plimsoll::spill::publish::{Publication, Published};
use plimsoll::spill::read::{Descriptors, Pages, Reader, SourcedReader};
use plimsoll::spill::{
    DiskQuota, Earmark, OwnedFolder, Run, RunReader, RunWriter, SpillError, SpillFolder, Spool, Swept, Uncounted,
};
use static_assertions::assert_impl_all;

assert_impl_all!(SpillFolder: Send, Sync, Clone);
assert_impl_all!(OwnedFolder: Send, Sync);
assert_impl_all!(DiskQuota: Send, Sync, Clone);
assert_impl_all!(Spool: Send);
assert_impl_all!(Earmark<Uncounted>: Send, Sync);
assert_impl_all!(Run: Send, Sync);
assert_impl_all!(RunReader: Send);
assert_impl_all!(RunWriter<'static>: Send);
assert_impl_all!(Publication: Send);
assert_impl_all!(Reader: Send, Sync);
assert_impl_all!(Descriptors: Send, Sync, Clone);
assert_impl_all!(SourcedReader: Send, Sync);
assert_impl_all!(Pages<Reader>: Send, Sync);
assert_impl_all!(SpillError: Send, Sync);
assert_impl_all!(Published: Send, Sync);
assert_impl_all!(Swept: Send, Sync, Copy);
