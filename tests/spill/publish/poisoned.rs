//! B51: what a failed sync means.
use super::{ALL, Case};
use crate::faults::{EIO, Fault};
use plimsoll::spill::SpillError;
use plimsoll::spill::publish::{Publication, SyncPolicy};
use std::collections::BTreeSet;

/// B51: the first sync of each file and folder fails, the next would say that all is well.
#[test]
fn a_file_whose_sync_failed_is_never_synced_again_and_a_retry_writes_a_new_one() {
    for shape in ALL {
        let case = Case::new(shape);
        case.publish().unwrap();
        let syncs: Vec<usize> =
            (0..).zip(case.faults.calls()).filter(|(_, call)| call.what == "sync").map(|(number, _)| number).collect();
        for failing in syncs {
            let case = Case::new(shape);
            let input = case.root().join("run");
            std::fs::write(&input, "what it is made from").unwrap();
            case.faults.set(Fault::At(failing, EIO));
            let error = case.publish().unwrap_err();
            let first = case.faults.calls();
            let poisoned = first[failing].path.clone();
            assert_eq!(first[failing].what, "sync");
            assert!(error.to_string().starts_with(&format!("syncing {}: ", poisoned.display())), "{error}");
            assert!(!first.iter().any(|call| call.what == "rename" || call.what == "exchange"), "no name after it");
            // neither this file again, nor any other of a publication that is over
            assert!(!first[failing + 1..].iter().any(|call| call.what.starts_with("sync")));
            assert!(input.exists() && !poisoned.exists());

            case.publish().unwrap();
            let retry = &case.faults.calls()[first.len()..];
            let paths = |calls: &[crate::faults::Call]| -> BTreeSet<std::path::PathBuf> {
                calls.iter().filter(|call| call.what == "create").map(|call| call.path.clone()).collect()
            };
            assert!(paths(&first).is_disjoint(&paths(retry)), "a new file has a new name");
            assert!(!retry.iter().any(|call| call.path == poisoned));
            std::fs::remove_file(input).unwrap();
            assert_eq!(case.tree(), case.after());
        }
    }
}

/// B51: an error of the parent's sync takes the name back.
#[test]
fn a_name_that_is_not_known_to_be_durable_is_taken_back() {
    for shape in super::FOLDERS {
        let case = Case::new(shape);
        case.publish().unwrap();
        let step =
            case.faults.calls().iter().rposition(|call| call.what == "rename" || call.what == "exchange").unwrap();
        let syncs = case.faults.calls()[step..].iter().filter(|call| call.what == "sync folder").count();
        assert_eq!(syncs, if shape == super::Shape::MissingParents { 3 } else { 1 });
        for sync in step + 1..=step + syncs {
            let case = Case::new(shape);
            case.faults.set(Fault::At(sync, EIO));
            let error = case.publish().unwrap_err();
            assert_eq!(case.faults.calls()[sync].what, "sync folder");
            assert_eq!(error.io_error().unwrap().raw_os_error(), Some(EIO));
            assert_eq!(case.tree(), case.before(), "{shape:?}");
        }
    }
}

/// B51: the publication itself remembers, whatever is asked of it afterwards.
#[test]
fn after_a_failed_sync_a_publication_says_so_for_ever() {
    let case = Case::new(super::Shape::Exchanged);
    let mut publication = case.written(SyncPolicy::Final).unwrap();
    case.faults.set(Fault::At(case.faults.calls().len() + 3, EIO));
    let sync = |publication: &mut Publication| publication.sync(|| Ok::<(), SpillError>(())).unwrap_err();
    assert_eq!(sync(&mut publication).io_error().unwrap().raw_os_error(), Some(EIO));
    let syncs = case.faults.count("sync");
    let path = publication.path().to_owned();
    for _ in 0..2 {
        let error = sync(&mut publication).to_string();
        assert_eq!(error, format!("syncing {}: an earlier try has failed", path.display()));
    }
    assert!(publication.write("more", b"x").unwrap_err().to_string().ends_with(": the publication is complete"));
    let error = publication.commit(|| Ok::<(), SpillError>(())).unwrap_err();
    assert!(error.to_string().ends_with(": an earlier try has failed"), "{error}");
    assert_eq!((case.faults.count("sync"), case.tree()), (syncs, case.before()));
}

/// What is synced can be read before it is published, and only the step and the parent's sync are left.
#[test]
fn a_publication_can_be_synced_first_and_committed_later() {
    let case = Case::new(super::Shape::Exchanged);
    let mut publication = case.written(SyncPolicy::Final).unwrap();
    for _ in 0..2 {
        publication.sync(|| Ok::<(), SpillError>(())).unwrap();
    }
    assert_eq!((case.faults.count("sync"), case.faults.count("sync folder")), (4, 2));
    assert!(std::fs::read(publication.path().join("manifest")).is_ok());
    assert!(publication.create_folder("more").is_err() && publication.add("a", None).is_err());
    let published = publication.commit(|| Ok::<(), SpillError>(())).unwrap();
    assert_eq!((published.synced_files, published.synced_folders), (4, 3));
    assert_eq!((case.faults.count("sync"), case.faults.count("sync folder")), (4, 3));
    assert_eq!(case.tree(), case.after());
}
