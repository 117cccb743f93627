//! B54: a process that is killed at any call.
use super::{ALL, Case, Shape, Tree, tree};
use crate::faults::{EIO, Fault, Faults};
use plimsoll::spill::SpillError;
use plimsoll::spill::files::system;
use plimsoll::spill::publish::{present, recover};
use std::path::Path;

/// What a reader finds: the tree at the place or where the place's content waits.
fn found(place: &Path) -> Option<Tree> {
    let path = present(&*system(), place).ok()?;
    Some(if path.is_dir() { tree(&path) } else { [("".into(), Some(std::fs::read(path).unwrap()))].into() })
}

/// B54: a kill at every call leaves the old content or the new, whole, and the next publication cleans up.
#[test]
fn a_kill_at_any_call_leaves_old_or_new_and_never_neither() {
    let mut points = 0;
    for shape in ALL {
        let finished = Case::new(shape);
        let old = found(&finished.place());
        finished.publish().unwrap();
        let new = found(&finished.place());
        assert!(new.is_some() && old != new);
        let (mut olds, mut news) = (0, 0);
        for number in 0..finished.faults.calls().len() {
            let case = Case::new(shape);
            case.faults.set(Fault::Dead(number));
            // removal of what was replaced is all that may fail without an error
            let _ = case.publish();
            let now = found(&case.place());
            assert!(now == old || now == new, "{shape:?} at {number}: {now:?}");
            if now == old {
                olds += 1;
                assert_eq!(news, 0, "{shape:?} at {number}: the new one was there before");
            } else {
                news += 1;
            }
            points += 1;

            let next = Case { faults: case.faults.revived(), ..case };
            let published = next.publish().unwrap();
            assert_eq!(next.tree(), next.after(), "{shape:?} after {number}: {published:?}");
        }
        assert!(olds > 5 && news > 0, "{shape:?}: {olds} {news}");
    }
    assert!(points > 150, "{points}");
}

/// B54: while the place is empty for a moment, readers are told where the old content waits, and it is put back there.
#[test]
fn what_a_killed_replacement_left_aside_is_found_and_put_back() {
    for empty_folder in [false, true] {
        let case = Case::new(Shape::Aside);
        case.publish().unwrap();
        let renames = |case: &Case| -> Vec<usize> {
            (0..).zip(case.faults.calls()).filter(|(_, call)| call.what == "rename").map(|(number, _)| number).collect()
        };
        let [_, second] = renames(&case)[..] else { panic!("to the third name, from the first") };
        let case = Case::new(Shape::Aside);
        let old = tree(&case.place());
        case.faults.set(Fault::Dead(second));
        case.publish().unwrap_err();
        assert!(!case.place().exists());
        assert_eq!(found(&case.place()), Some(old.clone()));
        if empty_folder {
            std::fs::create_dir(case.place()).unwrap();
        }
        assert!(recover(&*system(), &case.place()).unwrap());
        assert_eq!(tree(&case.place()), old);
        assert!(!recover(&*system(), &case.place()).unwrap(), "there is nothing left to put back");
    }
}

/// A replacement that is going on belongs to whoever does it.
#[test]
fn what_a_living_neighbour_has_aside_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let (place, aside) = (root.path().join("index"), root.path().join(".index.tmp-old"));
    std::fs::create_dir(&aside).unwrap();
    let handle = system().open(&aside).unwrap();
    assert!(handle.try_lock().unwrap());
    assert!(!recover(&*system(), &place).unwrap() && aside.exists() && !place.exists());
    assert_eq!(present(&*system(), &place).unwrap(), aside);
    drop(handle);
    assert!(recover(&*system(), &place).unwrap() && place.exists());
    assert!(present(&*system(), &root.path().join("absent")).is_err());
}

/// Only a folder can have been left aside, and only an empty place makes anybody look there.
#[test]
fn what_cannot_have_been_left_aside_is_not_looked_at() {
    let root = tempfile::tempdir().unwrap();
    let (place, aside) = (root.path().join("index"), root.path().join(".index.tmp-old"));
    std::fs::write(&aside, "somebody's").unwrap();
    let absent = present(&*system(), &place).unwrap_err();
    assert_eq!(absent.io_error().unwrap().kind(), std::io::ErrorKind::NotFound);
    assert!(absent.to_string().starts_with(&format!("reading {}: ", place.display())), "{absent}");
    assert!(!recover(&*system(), &place).unwrap() && aside.exists() && !place.exists());
    std::fs::remove_file(&aside).unwrap();
    std::fs::create_dir(&aside).unwrap();
    for number in 0..5 {
        let faults = Faults::new(Fault::At(number, EIO));
        let error = |result: SpillError| result.io_error().unwrap().raw_os_error();
        if number == 0 {
            assert_eq!(error(present(&*faults.files(), &place).unwrap_err()), Some(EIO));
        }
        let faults = Faults::new(Fault::At(number, EIO));
        assert_eq!(error(recover(&*faults.files(), &place).unwrap_err()), Some(EIO));
        assert!(aside.exists() && !place.exists());
    }
    // a file in the place, and a folder that is not empty, are what is there
    std::fs::write(&place, "a file").unwrap();
    assert!(!recover(&*system(), &place).unwrap() && aside.exists());
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir_all(place.join("new")).unwrap();
    assert!(!recover(&*system(), &place).unwrap() && aside.exists() && place.join("new").exists());
    assert_eq!(present(&*system(), &place).unwrap(), place);
}
