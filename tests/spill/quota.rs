//! Bytes on disk, counted.
use crate::faults::{EIO, Fault, Faults};
use plimsoll::spill::{DiskQuota, SpillError, SpillFolder};

#[test]
fn a_quota_starts_with_nothing_used_and_knows_its_limit() {
    assert_eq!((DiskQuota::new(7).used_bytes(), DiskQuota::new(7).limit_bytes()), (0, Some(7)));
    assert_eq!(DiskQuota::unlimited().limit_bytes(), None);
}

#[test]
fn an_error_names_what_was_done_and_on_what() {
    let parent = tempfile::tempdir().unwrap();
    let faults = Faults::new(Fault::At(0, EIO));
    let error = SpillFolder::create(faults.files(), parent.path(), "runs", DiskQuota::unlimited()).unwrap_err();
    assert!(matches!(&error, SpillError::Io { what: "creating", path, .. } if path.ends_with("runs")), "{error}");
    assert_eq!(faults.calls().len(), 1);
}
