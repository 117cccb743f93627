//! Spilling into memory: said, charged or refused.

use super::names;
use super::special::Special;
use crate::common::{count, events_of};
use crate::faults::{EIO, Fault, Faults};
use plimsoll::spill::{DiskQuota, OnRam, SpillError, SpillFolder};
use plimsoll::{GlobalMemoryLimiter, KIB};
use tracing::Level;

const SAID: &str = "spills go to a file system in memory and free nothing: name another folder";

#[test]
fn the_first_bytes_that_go_to_memory_are_warned_of_once() {
    let parent = tempfile::tempdir().unwrap();
    for (in_memory, warnings) in [(Some(true), 1), (Some(false), 0), (None, 0)] {
        let events = events_of(|| {
            let folder = SpillFolder::builder(parent.path()).files(Special::in_memory(in_memory)).create().unwrap();
            assert_eq!(folder.in_memory(), in_memory == Some(true));
            folder.take(0).unwrap();
            for _ in 0..3 {
                folder.clone().take(10).unwrap();
            }
            folder.give_back(30);
            assert_eq!(folder.quota().used_bytes(), 0);
        });
        assert_eq!(count(&events, Level::WARN, SAID), warnings, "{events:?}");
    }
    let events = events_of(|| {
        SpillFolder::builder(parent.path()).files(Special::in_memory(Some(true))).create().unwrap();
    });
    assert_eq!(events, [], "nothing was spilled");
    let events = events_of(|| {
        let builder = SpillFolder::builder(parent.path()).files(Special::in_memory(Some(true))).on_ram(OnRam::Allow);
        let folder = builder.create().unwrap();
        assert!(folder.in_memory());
        folder.take(10).unwrap();
        folder.give_back(10);
    });
    assert_eq!(events, [], "who allows it says it");
}

#[test]
fn bytes_in_memory_are_charged_until_they_are_given_back_or_refused() {
    let parent = tempfile::tempdir().unwrap();
    let limiter = GlobalMemoryLimiter::builder().hard_limit_bytes(64 * KIB).floor_bytes(KIB).build().unwrap();
    for in_memory in [true, false] {
        let reporter = limiter.shared_reporter("spills");
        let quota = DiskQuota::new(100_000);
        let folder = SpillFolder::builder(parent.path())
            .files(Special::in_memory(Some(in_memory)))
            .quota(quota.clone())
            .on_ram(OnRam::Charge(reporter.clone()))
            .create()
            .unwrap();
        folder.take(40_000).unwrap();
        assert_eq!(reporter.held_bytes(), if in_memory { 40_000 } else { 0 });
        let second = folder.take(40_000);
        if in_memory {
            assert!(matches!(second, Err(SpillError::Memory(_))), "{second:?}");
            assert_eq!((reporter.held_bytes(), quota.used_bytes()), (40_000, 40_000), "nothing has changed");
        } else {
            second.unwrap();
            folder.give_back(40_000);
        }
        let error = folder.take(60_001).unwrap_err();
        assert!(matches!(error, SpillError::Quota { .. }), "{error}");
        assert_eq!((reporter.held_bytes(), quota.used_bytes()), (if in_memory { 40_000 } else { 0 }, 40_000));
        folder.give_back(40_000);
        assert_eq!((reporter.held_bytes(), quota.used_bytes()), (0, 0));
    }
    assert_eq!((limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0));
}

#[test]
fn a_folder_in_memory_is_refused_with_what_to_change_and_nothing_stays() {
    let parent = tempfile::tempdir().unwrap();
    let builder =
        |in_memory| SpillFolder::builder(parent.path()).files(Special::in_memory(in_memory)).on_ram(OnRam::Refuse);
    let error = builder(Some(true)).create().unwrap_err();
    let why = "on a file system in memory, where a spill frees nothing: name another folder, or allow this one";
    assert_eq!(error.to_string(), format!("{}: {why}", parent.path().display()));
    assert_eq!(names(parent.path()), [""; 0]);
    builder(Some(false)).create().unwrap();
    builder(None).create().unwrap();
}

#[test]
fn a_file_system_that_cannot_be_looked_at_is_an_error_and_nothing_stays() {
    let parent = tempfile::tempdir().unwrap();
    let faults = Faults::new(Fault::None);
    SpillFolder::builder(parent.path()).files(faults.files()).create().unwrap();
    let at = faults.calls().iter().position(|call| call.what == "in memory").unwrap();
    let faults = Faults::new(Fault::At(at, EIO));
    let error = SpillFolder::builder(parent.path()).files(faults.files()).create().unwrap_err();
    assert!(error.to_string().starts_with("looking at the file system of "), "{error}");
    assert_eq!(names(parent.path()), [""; 0]);
}

/// A real file system in memory, unmounted in every case.
#[cfg(target_os = "linux")]
struct Mounted(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Mounted {
    /// None, and said so, where this process may not mount.
    fn new(options: &str) -> Option<Mounted> {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path());
        if mount.output().is_ok_and(|done| done.status.success()) {
            let mounted = Mounted(folder);
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            assert!(mounts.contains(mounted.0.path().to_str().unwrap()), "the mount is there");
            return Some(mounted);
        }
        let _ = writeln!(std::io::stderr(), "SKIPPED: this process may not mount a file system in memory");
        None
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mounted {
    fn drop(&mut self) {
        let done = std::process::Command::new("umount").arg(self.0.path()).output();
        assert!(std::thread::panicking() || done.is_ok_and(|done| done.status.success()), "unmounted");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_file_system_in_memory_is_known_as_one() {
    use plimsoll::spill::files::system;
    let Some(mounted) = Mounted::new("size=1m") else { return };
    let folder = SpillFolder::builder(mounted.0.path()).create().unwrap();
    assert!(folder.in_memory());
    folder.remove().unwrap();
    let error = SpillFolder::builder(mounted.0.path()).on_ram(OnRam::Refuse).create().unwrap_err();
    assert!(matches!(error, SpillError::Folder { .. }), "{error}");
    assert_eq!(names(mounted.0.path()), [""; 0]);
    // a full one: the error is the system's, and nothing stays
    let filler = system().create_new(&mounted.0.path().join("filler")).unwrap();
    let block = vec![1; 64 << 10];
    let mut at = 0;
    while let Ok(written @ 1..) = filler.write_at(&block, at) {
        at += written as u64;
    }
    let error = SpillFolder::builder(mounted.0.path()).create().unwrap_err();
    assert_eq!(error.io_error().map(std::io::Error::kind), Some(std::io::ErrorKind::StorageFull), "{error}");
    assert_eq!(names(mounted.0.path()), ["filler"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_read_only_file_system_is_named_with_what_to_change() {
    let Some(mounted) = Mounted::new("size=1m,ro") else { return };
    let error = SpillFolder::builder(mounted.0.path()).create().unwrap_err();
    let why = "cannot be written to (Read-only file system (os error 30)): change that, or name another folder";
    assert_eq!(error.to_string(), format!("{}: {why}", mounted.0.path().display()));
}
