//! Every call of a folder's life fails once, or is the last that the process makes.

use super::{names, orphan, owner_of, sweep_until_left, write};
use crate::faults::{EIO, EMFILE, ENOSPC, Fault, Faults};
use plimsoll::spill::files::system;
use plimsoll::spill::{DiskQuota, OwnedFolder, SpillError, SpillFolder, SpillResult};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

const EACCES: i32 = 13;

/// A parent with one dead process's folder, and with what is nobody's.
struct Case {
    parent: tempfile::TempDir,
    orphan: PathBuf,
    outside: tempfile::TempDir,
    /// How many calls it took to create the folder, once that is done.
    created: Cell<usize>,
}

impl Case {
    fn new() -> Case {
        let (parent, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let orphan = orphan(parent.path(), &[("run-0", 100), ("run-1", 20)]);
        fs::create_dir(orphan.join("inner")).unwrap();
        fs::write(orphan.join("inner/run"), "xyz").unwrap();
        fs::write(outside.path().join("precious"), "p").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), orphan.join("link")).unwrap();
            std::os::unix::fs::symlink(outside.path().join("precious"), orphan.join("inner/link")).unwrap();
        }
        fs::write(parent.path().join("foreign"), "f").unwrap();
        Case { parent, orphan, outside, created: Cell::new(usize::MAX) }
    }

    /// A folder's life, through these calls.
    fn live(&self, faults: &Faults, quota: &DiskQuota) -> SpillResult<()> {
        let folder = SpillFolder::create(faults.files(), self.parent.path(), "logs", quota.clone())?;
        self.created.set(faults.calls().len());
        folder.take(50)?;
        // tests of the spool drive the calls of its files
        fs::write(folder.path().join("run"), [1; 50]).unwrap();
        folder.give_back(50);
        folder.remove()
    }

    /// A next owner finds and removes everything.
    fn next_sweeps_all(&self) -> u64 {
        let swept = sweep_until_left(self.parent.path(), &["foreign"]);
        assert_eq!(swept.failed, 0);
        self.nothing_precious_went();
        swept.folders
    }

    fn nothing_precious_went(&self) {
        assert_eq!(fs::read(self.outside.path().join("precious")).unwrap(), b"p", "links are not followed");
    }

    fn orphan_is_there(&self) -> bool {
        self.orphan.exists()
    }
}

/// The calls of a life without a fault.
fn calls() -> Vec<crate::faults::Call> {
    let (case, faults) = (Case::new(), Faults::new(Fault::None));
    case.live(&faults, &DiskQuota::unlimited()).unwrap();
    assert_eq!(names(case.parent.path()), ["foreign"]);
    case.nothing_precious_went();
    assert_eq!(faults.count("sync") + faults.count("sync folder"), 0, "what will be removed is never synced");
    faults.calls()
}

fn is_within(path: &Path, folder: &Path) -> bool {
    path.to_string_lossy().starts_with(&*folder.to_string_lossy())
}

/// B61, B46: whichever call fails, the first error is told, nothing stays that no sweep would find, no quota is kept.
#[test]
fn every_call_that_fails_once_leaves_nothing_or_what_the_next_sweep_removes() {
    let calls = calls();
    assert!(calls.len() > 30, "{calls:?}");
    let (mut failed_sweeps, mut failed_starts, mut failed_ends) = (0, 0, 0);
    for number in 0..calls.len() {
        for errno in [EIO, EMFILE, ENOSPC] {
            let (case, faults, quota) = (Case::new(), Faults::new(Fault::At(number, errno)), DiskQuota::new(50));
            let ended = case.live(&faults, &quota);
            let call = faults.calls()[number].clone();
            let context = format!("call {number}, {call:?}: {ended:?}");
            assert_eq!(quota.used_bytes(), 0, "{context}");
            // of this life's folder
            let own = || names(case.parent.path()).into_iter().filter(|name| name.starts_with(".logs")).count();
            let of_the_sweep = is_within(&call.path, &case.orphan) || number == 0;
            if of_the_sweep {
                ended.unwrap();
                assert_eq!(own(), 0, "{context}");
                failed_sweeps += usize::from(case.orphan_is_there());
            } else {
                let error = ended.expect_err(&context);
                assert_eq!(error.io_error().and_then(std::io::Error::raw_os_error), Some(errno), "{context}");
                if number >= case.created.get() {
                    failed_ends += 1;
                    // the owner file, and the folder if that is what could not be removed
                    assert!((1..=2).contains(&own()), "{context}: {:?}", names(case.parent.path()));
                } else {
                    failed_starts += 1;
                    assert_eq!(own(), 0, "{context}");
                }
            }
            case.next_sweeps_all();
        }
    }
    // each kind was there: reading, opening, locking and removing what is swept; creating; removing
    assert!(failed_sweeps >= 3 * 8, "{failed_sweeps}");
    assert!(failed_starts >= 3 * 6, "{failed_starts}");
    assert!(failed_ends >= 3 * 5, "{failed_ends}");
}

/// B61: a process that dies at any call leaves nothing that a next one does not find.
#[test]
fn what_a_process_leaves_that_dies_at_any_call_is_swept_by_the_next() {
    let mut orphans = 0;
    for number in 0..=calls().len() {
        let (case, faults, quota) = (Case::new(), Faults::new(Fault::Dead(number)), DiskQuota::new(50));
        let _ = case.live(&faults, &quota);
        assert_eq!(quota.used_bytes(), 0);
        assert!(names(case.parent.path()).len() <= 5, "{:?}", names(case.parent.path()));
        orphans += case.next_sweeps_all();
    }
    assert!(orphans > 20, "{orphans}");
}

#[test]
fn calls_that_are_interrupted_or_short_are_repeated() {
    for fault in [Fault::Interrupted, Fault::Short(3)] {
        let (case, faults) = (Case::new(), Faults::new(fault));
        case.live(&faults, &DiskQuota::unlimited()).unwrap();
        assert_eq!(names(case.parent.path()), ["foreign"], "{fault:?}");
        case.nothing_precious_went();
    }
}

#[test]
fn what_a_sweep_cannot_remove_is_counted_and_left_to_the_next() {
    let number = |what: &str| calls().iter().position(|call| call.what == what).unwrap();
    for (what, errno, counted) in [
        ("lock", EIO, [0, 0, 1]),
        ("read", EIO, [0, 0, 1]),
        ("remove file", EIO, [0, 0, 1]),
        ("remove folder", EIO, [0, 0, 1]),
        // another user's: nothing of ours
        ("open for writing", EACCES, [0, 0, 0]),
        ("open for writing", EMFILE, [0, 0, 1]),
        // the list of the parent
        ("list", EIO, [0, 0, 1]),
    ] {
        let (case, faults) = (Case::new(), Faults::new(Fault::At(number(what), errno)));
        let folder = OwnedFolder::create(faults.files(), case.parent.path(), "logs", "spill").unwrap();
        let swept = folder.swept();
        assert_eq!([swept.folders, swept.bytes, swept.failed], counted, "{what} {errno}");
        drop(folder);
        assert!(case.orphan_is_there());
        assert_eq!(case.next_sweeps_all(), 1, "{what} {errno}");
    }
    // all but the very last call: gone and counted, and the owner file is the next one's
    let faults = Faults::new(Fault::None);
    let case = Case::new();
    OwnedFolder::create(faults.files(), case.parent.path(), "logs", "spill").unwrap();
    let owner = owner_of(&case.orphan);
    let last = faults.calls().iter().position(|call| call.what == "remove file" && call.path == owner).unwrap();
    let (case, faults) = (Case::new(), Faults::new(Fault::At(last, EIO)));
    let swept = OwnedFolder::create(faults.files(), case.parent.path(), "logs", "spill").unwrap().swept();
    assert_eq!([swept.folders, swept.bytes, swept.failed], [1, 123, 1]);
    assert_eq!(case.next_sweeps_all(), 0);
}

#[test]
fn a_folder_that_cannot_be_removed_says_so_and_goes_with_the_next_sweep() {
    let parent = tempfile::tempdir().unwrap();
    let faults = Faults::new(Fault::None);
    let folder = OwnedFolder::create(faults.files(), parent.path(), "logs", "spill").unwrap();
    for name in ["a", "b", "c"] {
        write(system().as_ref(), &folder.path().join(name), 5);
    }
    let path = folder.path().to_owned();
    // the list, then a look and a removal for each
    faults.set(Fault::At(faults.calls().len() + 2, EIO));
    let error = folder.remove().unwrap_err();
    assert!(matches!(&error, SpillError::Io { what: "removing", path: named, .. } if *named == path), "{error}");
    assert_eq!(names(&path).len(), 1, "the others went all the same");
    assert_eq!(names(parent.path()).len(), 2);
    let swept = sweep_until_left(parent.path(), &[]);
    assert_eq!((swept.folders, swept.bytes, swept.failed), (1, 5, 0));
}

#[test]
fn a_parent_that_refuses_a_file_is_named_with_what_to_change() {
    let parent = tempfile::tempdir().unwrap();
    for (errno, text) in [(EACCES, "Permission denied"), (30, "Read-only file system")] {
        for call in ["create", "create folder"] {
            let faults = Faults::new(Fault::None);
            OwnedFolder::create(faults.files(), parent.path(), "logs", "spill").unwrap();
            let at = faults.calls().iter().position(|made| made.what == call).unwrap();
            let faults = Faults::new(Fault::At(at, errno));
            let error = OwnedFolder::create(faults.files(), parent.path(), "logs", "spill").unwrap_err();
            let why = format!("cannot be written to ({text} (os error {errno})): change that, or name another folder");
            assert_eq!(error.to_string(), format!("{}: {why}", parent.path().display()));
            assert_eq!(names(parent.path()), [""; 0]);
        }
    }
}
