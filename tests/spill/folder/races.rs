//! Creators and sweepers that meet.

use super::special::Special;
use super::{names, orphan, sweep_until_left, write};
use plimsoll::spill::OwnedFolder;
use plimsoll::spill::files::{OpenFile, system};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// B61: a process that is killed between its first two calls leaves an empty owner file.
#[test]
fn a_newborn_owner_file_of_a_dead_process_is_removed() {
    let parent = tempfile::tempdir().unwrap();
    for content in ["", "plimsoll: while"] {
        fs::write(parent.path().join(".logs.spill-1-1.owner"), content).unwrap();
        let folder = OwnedFolder::create(system(), parent.path(), "logs", "spill").unwrap();
        assert_eq!((folder.swept().folders, folder.swept().bytes, folder.swept().failed), (0, 0, 0));
        assert_eq!(names(parent.path()).len(), 2);
    }
}

/// Sweeps `parent` as another process would.
fn another_sweep(parent: &Path) {
    OwnedFolder::create(system(), parent, "other", "spill").unwrap().remove().unwrap();
}

#[test]
fn a_creator_whose_owner_file_was_swept_before_it_was_locked_takes_the_next_name() {
    let parent = tempfile::tempdir().unwrap();
    let (path, mut first) = (parent.path().to_owned(), None);
    let swept = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&swept);
    let files = Special::before_lock(move |owner| {
        if first.is_none() {
            another_sweep(&path);
            assert!(!owner.exists(), "nobody had its lock");
            *seen.lock().unwrap() += 1;
            first = Some(owner.to_owned());
        }
        assert_eq!(first.as_ref() == Some(&owner.to_owned()), !owner.exists());
    });
    let folder = OwnedFolder::create(files, parent.path(), "logs", "spill").unwrap();
    assert_eq!(*swept.lock().unwrap(), 1);
    assert!(folder.path().is_dir());
    another_sweep(parent.path());
    assert!(folder.path().is_dir(), "its lock is the right file's");
    assert_eq!(names(parent.path()).len(), 2);
}

#[test]
fn a_creator_whose_name_another_has_taken_meanwhile_takes_the_next_name() {
    let parent = tempfile::tempdir().unwrap();
    let (path, mut calls) = (parent.path().to_owned(), 0);
    // as another process of that number in another container: swept, and created again
    let files = Special::before_lock(move |owner| {
        calls += 1;
        if calls == 1 {
            another_sweep(&path);
            fs::write(owner, "somebody else's").unwrap();
        }
    });
    let folder = OwnedFolder::create(files, parent.path(), "logs", "spill").unwrap();
    let other: Vec<_> = names(parent.path()).into_iter().filter(|name| !folder.path().ends_with(name)).collect();
    assert_eq!(other.len(), 2);
    folder.remove().unwrap();
    let [left] = <[String; 1]>::try_from(names(parent.path())).unwrap();
    assert_eq!(fs::read_to_string(parent.path().join(left)).unwrap(), "somebody else's");
}

#[test]
fn a_creator_whose_lock_a_sweep_has_takes_the_next_name() {
    let parent = tempfile::tempdir().unwrap();
    let held: Arc<Mutex<Vec<Box<dyn OpenFile>>>> = Arc::default();
    let sweep = Arc::clone(&held);
    let files = Special::before_lock(move |owner| {
        let mut held = sweep.lock().unwrap();
        if held.is_empty() {
            let file = system().open_for_writing(owner).unwrap();
            assert!(file.try_lock().unwrap());
            held.push(file);
        }
    });
    let folder = OwnedFolder::create(files, parent.path(), "logs", "spill").unwrap();
    assert!(folder.path().is_dir());
    assert_eq!(names(parent.path()).len(), 3, "the other one is the sweep's to remove");
    held.lock().unwrap().clear();
    folder.remove().unwrap();
    sweep_until_left(parent.path(), &[]);
}

#[test]
fn a_sweep_whose_owner_file_went_and_came_again_leaves_the_new_one_alone() {
    let parent = tempfile::tempdir().unwrap();
    let orphan = orphan(parent.path(), &[("run", 10)]);
    let mut done = false;
    // another sweep is faster, and the name is used again by a process that lives
    let files = Special::before_lock(move |owner| {
        if !std::mem::replace(&mut done, true) {
            let content = fs::read(owner).unwrap();
            fs::remove_file(owner).unwrap();
            fs::write(owner, content).unwrap();
        }
    });
    let folder = OwnedFolder::create(files, parent.path(), "logs", "spill").unwrap();
    assert_eq!(folder.swept().folders, 0);
    assert_eq!(names(&orphan), ["run"]);
}

#[test]
fn where_files_cannot_be_locked_nothing_is_swept_and_nothing_stays() {
    let parent = tempfile::tempdir().unwrap();
    let orphan = orphan(parent.path(), &[("run", 10)]);
    let folder = OwnedFolder::create(Special::without_locks(), parent.path(), "logs", "spill").unwrap();
    assert_eq!((folder.swept().folders, folder.swept().failed), (0, 0));
    assert_eq!(names(parent.path()).len(), 3, "no owner file that nobody could lock");
    another_sweep_leaves(&folder, parent.path());
    folder.remove().unwrap();
    assert!(!orphan.exists());
    assert_eq!(names(parent.path()), [""; 0]);
}

/// The orphan goes, and the folder without an owner file stays.
fn another_sweep_leaves(folder: &OwnedFolder, parent: &Path) {
    another_sweep(parent);
    assert!(folder.path().is_dir());
}

#[test]
fn eight_threads_that_create_and_remove_in_one_parent_never_lose_a_folder() {
    let parent = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..50 {
                    let folder = OwnedFolder::create(system(), parent.path(), "logs", "spill").unwrap();
                    write(folder.files().as_ref(), &folder.path().join("run"), 100);
                    assert_eq!((folder.swept().folders, folder.swept().failed), (0, 0), "all are alive");
                    std::thread::yield_now();
                    assert_eq!(fs::metadata(folder.path().join("run")).unwrap().len(), 100, "round {round}");
                    folder.remove().unwrap();
                }
            });
        }
    });
    assert_eq!(names(parent.path()), [""; 0]);
}
