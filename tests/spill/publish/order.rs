//! What is synced, how often, and in which order.
use super::{ALL, Case, FOLDERS, Shape};
use crate::faults::Call;
use plimsoll::spill::publish::SyncPolicy;
use std::path::{Path, PathBuf};

fn position(calls: &[Call], what: &str, path: &Path) -> Vec<usize> {
    let same = |(_, call): &(usize, &Call)| call.what == what && call.path == path;
    calls.iter().enumerate().filter(same).map(|(number, _)| number).collect()
}

/// B52, R3: each file that stays and its folders are synced once, and nothing else is; all writes of a file, its sync, the
/// folder's sync, the step, the parent's sync, and only then `Ok`.
#[test]
fn what_stays_is_synced_once_and_in_order() {
    for shape in FOLDERS {
        let case = Case::new(shape);
        let published = case.publish().unwrap();
        let calls = case.faults.calls();
        let temporary = calls.iter().find(|call| call.what == "create").unwrap().path.parent().unwrap().to_owned();
        assert_ne!(temporary, case.place());

        let mut synced: Vec<PathBuf> =
            calls.iter().filter(|call| call.what == "sync").map(|call| call.path.clone()).collect();
        synced.sort();
        assert_eq!(synced, ["a", "b", "manifest", "sub/c"].map(|name| temporary.join(name)), "{shape:?}");
        let folders: Vec<&Path> =
            calls.iter().filter(|call| call.what == "sync folder").map(|call| &*call.path).collect();
        let (sub, root, place) = (temporary.join("sub"), case.root(), case.place());
        let mut expected = vec![&*sub, &*temporary, place.parent().unwrap()];
        if shape == Shape::MissingParents {
            let [x, root] = [root.join("x"), root.to_owned()];
            expected.extend([&*x, &*root]);
            assert_eq!(folders, expected);
        } else {
            assert_eq!(folders, expected, "{shape:?}");
        }
        assert_eq!((published.synced_files, published.synced_folders), (4, folders.len() as u64));
        assert_eq!(published.replaced, matches!(shape, Shape::Exchanged | Shape::Aside));
        assert!(published.unsupported_folder_syncs == 0 && published.left_behind.is_empty());

        let step = if shape == Shape::Exchanged { "exchange" } else { "rename" };
        let [step] = position(&calls, step, &temporary)[..] else { panic!("{shape:?}: one step") };
        let [folder] = position(&calls, "sync folder", &temporary)[..] else { panic!("{shape:?}") };
        let [inner] = position(&calls, "sync folder", &sub)[..] else { panic!("{shape:?}") };
        let [parent] = position(&calls, "sync folder", place.parent().unwrap())[..] else { panic!("{shape:?}") };
        for name in ["a", "b", "manifest", "sub/c"] {
            let path = temporary.join(name);
            let [sync] = position(&calls, "sync", &path)[..] else { panic!("{shape:?} {name}") };
            assert!(position(&calls, "write", &path).iter().all(|&write| write < sync), "{shape:?} {name}");
            assert!(sync < inner, "{shape:?} {name}");
        }
        assert!(inner < folder && folder < step && step < parent, "{shape:?}");
        let removed = calls.iter().position(|call| call.what.starts_with("remove"));
        assert!(
            removed.is_none_or(|removed| removed > parent),
            "{shape:?}: the old one stays until the new one is safe"
        );
    }
}

/// The same for one file.
#[test]
fn a_single_file_is_synced_once_before_it_gets_its_name() {
    for (shape, step) in [(Shape::FileNew, "rename"), (Shape::FileExchanged, "exchange"), (Shape::FileOver, "rename")] {
        let case = Case::new(shape);
        let published = case.publish().unwrap();
        let steps = ["create", "write", "sync", "rename", "exchange", "sync folder", "remove file"];
        let calls = case.faults.calls();
        let mut shown: Vec<&str> = calls.iter().map(|call| call.what).filter(|what| steps.contains(what)).collect();
        // where names cannot be exchanged that was tried first
        shown.dedup_by(|later, before| shape == Shape::FileOver && (*before, *later) == ("exchange", "rename"));
        let step = if shape == Shape::FileOver { "exchange" } else { step };
        let mut expected = vec!["create", "write", "sync", step, "sync folder"];
        if shape == Shape::FileExchanged {
            expected.push("remove file");
        }
        assert_eq!(shown, expected, "{shape:?}");
        assert_eq!((published.synced_files, published.synced_folders), (1, 1));
        assert_eq!(published.replaced, shape != Shape::FileNew);
    }
}

#[test]
fn without_syncs_there_is_none() {
    for shape in ALL {
        let case = Case::new(shape);
        let published = case.publish_with(SyncPolicy::None).unwrap();
        assert_eq!(case.tree(), case.after());
        assert_eq!(case.faults.count("sync") + case.faults.count("sync folder"), 0);
        assert_eq!(case.faults.count("open for writing"), 0, "nothing is opened for a sync");
        assert_eq!((published.synced_files, published.synced_folders), (0, 0));
        assert!(published.sync_time.is_zero());
    }
}
