//! Folders of a process's own: what stays, what goes, and what is swept.

mod faults;
mod hostile;
mod memory;
mod processes;
mod races;
mod special;

use crate::common::events_of;
use crate::faults::{EIO, Fault, Faults};
use plimsoll::spill::files::{Files, system};
use plimsoll::spill::{DiskQuota, OwnedFolder, SpillError, SpillFolder, Swept};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::Level;

/// What is in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes a file of so many bytes through the folder's own calls.
fn write(files: &dyn Files, path: &Path, bytes: usize) {
    let file = files.create_new(path).unwrap();
    plimsoll::spill::files::write_all_at(file.as_ref(), &vec![7; bytes], 0).unwrap();
}

/// What an owner file holds.
fn magic() -> Vec<u8> {
    let parent = tempfile::tempdir().unwrap();
    let folder = OwnedFolder::create(system(), parent.path(), "any", "spill").unwrap();
    fs::read(owner_of(folder.path())).unwrap()
}

fn owner_of(folder: &Path) -> PathBuf {
    folder.with_file_name(format!("{}.owner", folder.file_name().unwrap().to_str().unwrap()))
}

/// Leaves a folder with files as a process that was killed does; answers its path. Nothing here has had its lock: a child
/// that another test starts at this moment has the lock of every open file until it is the other program.
fn orphan(parent: &Path, files: &[(&str, usize)]) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let folder = parent.join(format!(".dead.spill-1-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&folder).unwrap();
    for (name, bytes) in files {
        write(system().as_ref(), &folder.join(name), *bytes);
    }
    fs::write(owner_of(&folder), magic()).unwrap();
    folder
}

/// Sweeps `parent` as next processes do, until what was locked here is free everywhere and `names` are left.
fn sweep_until_left(parent: &Path, left: &[&str]) -> Swept {
    let mut swept = Swept::default();
    for _ in 0..1_000 {
        let next = OwnedFolder::create(system(), parent, "next", "spill").unwrap();
        swept = swept + next.swept();
        next.remove().unwrap();
        if names(parent) == left {
            return swept;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("{:?} are left, and not {left:?}", names(parent));
}

#[test]
fn a_folder_has_an_owner_file_beside_it_and_both_go_with_it() {
    let parent = tempfile::tempdir().unwrap();
    for how in ["dropped", "removed", "panicked over"] {
        let folder = OwnedFolder::create(system(), parent.path(), "logs", "spill").unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(&format!(".logs.spill-{}-", std::process::id())), "{name}");
        assert_eq!(names(parent.path()), [name.clone(), format!("{name}.owner")]);
        fs::create_dir(folder.path().join("inner")).unwrap();
        write(folder.files().as_ref(), &folder.path().join("inner/file"), 10);
        match how {
            "dropped" => drop(folder),
            "removed" => folder.remove().unwrap(),
            _ => {
                let panicked = std::thread::spawn(move || {
                    let _folder = folder;
                    std::panic::resume_unwind(Box::new(()));
                });
                panicked.join().unwrap_err();
            }
        }
        assert_eq!(names(parent.path()), [""; 0], "{how}");
    }
}

#[test]
fn a_folder_that_got_another_name_is_kept() {
    let parent = tempfile::tempdir().unwrap();
    let folder = OwnedFolder::create(system(), parent.path(), "index", "tmp").unwrap();
    write(folder.files().as_ref(), &folder.path().join("file"), 10);
    fs::rename(folder.path(), parent.path().join("index")).unwrap();
    folder.keep().unwrap();
    assert_eq!(names(parent.path()), ["index"]);
    assert_eq!(names(&parent.path().join("index")), ["file"]);
}

#[test]
fn a_process_that_dies_after_the_rename_loses_its_owner_file_alone() {
    let parent = tempfile::tempdir().unwrap();
    let path = orphan(parent.path(), &[("file", 10)]);
    fs::rename(path, parent.path().join("index")).unwrap();
    let next = OwnedFolder::create(system(), parent.path(), "next", "tmp").unwrap();
    assert_eq!((next.swept().folders, next.swept().bytes, next.swept().failed), (0, 0, 0));
    next.remove().unwrap();
    assert_eq!(names(parent.path()), ["index"]);
    assert_eq!(names(&parent.path().join("index")), ["file"]);
}

#[test]
fn a_folder_that_somebody_else_removed_is_as_good_as_removed() {
    let parent = tempfile::tempdir().unwrap();
    let folder = OwnedFolder::create(system(), parent.path(), "logs", "spill").unwrap();
    fs::remove_dir(folder.path()).unwrap();
    folder.remove().unwrap();
    assert_eq!(names(parent.path()), [""; 0]);
}

#[test]
fn clones_share_a_spill_folder_which_goes_with_the_last_or_when_it_is_removed() {
    let parent = tempfile::tempdir().unwrap();
    let folder = SpillFolder::builder(parent.path()).create().unwrap();
    let clone = folder.clone();
    drop(folder);
    assert!(clone.path().is_dir());
    drop(clone);
    assert_eq!(names(parent.path()), [""; 0]);

    let folder = SpillFolder::builder(parent.path()).create().unwrap();
    let clone = folder.clone();
    folder.remove().unwrap();
    assert_eq!(names(parent.path()), [""; 0]);
    clone.remove().unwrap();
}

#[test]
fn any_label_makes_a_name() {
    let parent = tempfile::tempdir().unwrap();
    for label in ["", "..", "a/b", "/etc", &"n".repeat(255), "x.owner"] {
        let folder = OwnedFolder::create(system(), parent.path(), label, "spill").unwrap();
        assert_eq!(folder.path().parent(), Some(parent.path()), "{label}");
        assert_eq!(names(parent.path()).len(), 2);
        folder.remove().unwrap();
    }
    assert_eq!(names(parent.path()), [""; 0]);
}

#[test]
fn a_parent_that_cannot_be_used_is_named_with_what_to_change() {
    let parent = tempfile::tempdir().unwrap();
    let (missing, file) = (parent.path().join("missing"), parent.path().join("file"));
    fs::write(&file, "x").unwrap();
    for (path, why) in
        [(&missing, "no such folder: create it, or name another one"), (&file, "not a folder: name another one")]
    {
        let error = SpillFolder::create(system(), path, "logs", DiskQuota::unlimited()).unwrap_err();
        assert!(matches!(&error, SpillError::Folder { path: named, .. } if named == path), "{error:?}");
        assert_eq!(error.to_string(), format!("{}: {why}", path.display()));
    }
    assert_eq!(names(parent.path()), ["file"]);
}

/// B61: an operator reads how many folders there were, and of how many bytes.
#[test]
fn what_was_swept_is_told_as_an_event() {
    let parent = tempfile::tempdir().unwrap();
    orphan(parent.path(), &[("run-0", 2_000), ("run-1", 48)]);
    orphan(parent.path(), &[]);
    let path = parent.path().display();
    let events = events_of(|| {
        let folder = OwnedFolder::create(system(), parent.path(), "logs", "spill").unwrap();
        assert_eq!((folder.swept().folders, folder.swept().bytes, folder.swept().failed), (2, 2_048, 0));
    });
    let told = format!("removed 2 folders of dead processes, 2 KiB parent={path} folders=2 bytes=2048");
    assert_eq!(events, [(Level::INFO, told)]);
    let events = events_of(|| drop(OwnedFolder::create(system(), parent.path(), "logs", "spill").unwrap()));
    assert_eq!(events, [], "nothing is there any more");

    orphan(parent.path(), &[("run-0", 1)]);
    let faults = Faults::new(Fault::None);
    drop(OwnedFolder::create(faults.files(), parent.path(), "logs", "spill").unwrap());
    let removal = faults.calls().iter().position(|call| call.what == "remove file").unwrap();
    orphan(parent.path(), &[("run-0", 1)]);
    let events = events_of(|| {
        let faults = Faults::new(Fault::At(removal, EIO));
        drop(OwnedFolder::create(faults.files(), parent.path(), "logs", "spill").unwrap());
    });
    let told = format!("what dead processes left cannot be removed: the next start tries again parent={path} failed=1");
    assert_eq!(events, [(Level::WARN, told)]);
}
