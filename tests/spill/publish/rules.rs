//! What may be published, and onto what.
use super::{Case, Shape};
use plimsoll::spill::files::system;
use plimsoll::spill::publish::{Publication, SyncPolicy, replace_file};
use plimsoll::spill::{SpillError, SpillResult};
use std::path::Path;

fn begin(place: &Path) -> Publication {
    Publication::begin(system(), place, SyncPolicy::Final).unwrap()
}

fn commit(publication: Publication) -> SpillResult<()> {
    publication.commit(|| Ok::<(), SpillError>(())).map(drop)
}

/// The text of an error without the folder of the test.
fn text<T: std::fmt::Debug>(root: &Path, result: SpillResult<T>) -> String {
    let text = result.unwrap_err().to_string().replace(&format!("{}/", root.display()), "");
    let Some((head, tail)) = text.split_once(".tmp-") else { return text };
    format!("{head}.tmp{}", tail.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'))
}

#[test]
fn only_what_was_added_and_all_of_it_is_published() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let place = root.join("index");

    let publication = begin(&place);
    std::fs::write(publication.path().join("stray"), "x").unwrap();
    assert_eq!(text(root, commit(publication)), "publishing .index.tmp/stray: it was not added");

    let mut publication = begin(&place);
    publication.create_folder("sub").unwrap();
    let unfinished = publication.create("sub/open").unwrap();
    assert_eq!(text(root, commit(publication)), "publishing .index.tmp/sub/open: it was not added");
    drop(unfinished);

    let mut publication = begin(&place);
    publication.add("absent", None).unwrap();
    assert_eq!(text(root, commit(publication)), "publishing .index.tmp/absent: it was added and is not there");

    let mut publication = begin(&place);
    publication.write("a", b"x").unwrap();
    publication.add("a", None).unwrap();
    assert_eq!(text(root, commit(publication)), "publishing .index.tmp/a: it was added twice");
    assert_eq!(std::fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn names_stay_within_the_publication() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let mut publication = begin(&root.join("index"));
    for name in ["", "/etc/x", "..", "../x", "a/../b"] {
        let result = publication.write(name, b"x");
        assert!(text(root, result).ends_with(": not a name within the publication"), "{name:?}");
        assert!(publication.create_folder(name).is_err() && publication.add(name, None).is_err(), "{name:?}");
    }
    let error = publication.write("sub/x", b"x");
    assert_eq!(text(root, error), "creating .index.tmp/sub/x: its folder is not in the publication");
    for name in ["a/b", "", "..", "index"] {
        let result = Publication::begin_as(system(), &root.join("index"), name, SyncPolicy::None);
        assert!(text(root, result).ends_with(": not a name beside the place"), "{name:?}");
    }
    for path in ["", "..", "/"] {
        let result = Publication::begin(system(), Path::new(path), SyncPolicy::None);
        assert_eq!(text(root, result), format!("publishing to {path}: the path does not end in a name"));
    }
}

#[test]
fn a_temporary_name_can_be_given_and_is_never_taken_from_somebody() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("index");
    let named = || Publication::begin_as(system(), &place, "making", SyncPolicy::Final);
    let mut publication = named().unwrap();
    assert_eq!(publication.path(), root.path().join("making"));
    assert!(text(root.path(), named()).starts_with("creating making: "));
    publication.write("a", b"x").unwrap();
    commit(publication).unwrap();
    assert_eq!(std::fs::read(place.join("a")).unwrap(), b"x");
    assert!(!root.path().join("making").exists());
}

#[test]
fn a_folder_that_is_there_is_replaced_only_if_that_was_asked_for() {
    let case = Case::new(Shape::Exchanged);
    let old = case.tree();
    let publish = |replace| {
        let mut publication = begin(&case.place()).replacing(replace);
        publication.write("new", b"x").unwrap();
        commit(publication)
    };
    assert_eq!(text(case.root(), publish(false)), "replacing index: it is not empty");
    assert_eq!(case.tree(), old);
    publish(true).unwrap();
    assert_eq!(case.tree().keys().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), ["index", "index/new"]);
    // an empty one is nobody's
    std::fs::remove_file(case.place().join("new")).unwrap();
    publish(false).unwrap();
    assert!(case.place().join("new").exists());
    std::fs::remove_dir_all(case.place()).unwrap();
    std::fs::write(case.place(), "a file").unwrap();
    assert_eq!(text(case.root(), publish(true)), "replacing index: it is not a folder");
    std::fs::remove_file(case.place()).unwrap();
    std::fs::create_dir(case.place()).unwrap();
    let result = replace_file(&system(), &case.place(), b"x", SyncPolicy::Final);
    assert_eq!(text(case.root(), result), "replacing index: it is a folder");
    assert_eq!(case.tree().len(), 1);
}

#[test]
fn two_replacements_at_once_do_not_take_each_others_folders() {
    for shape in [Shape::Exchanged, Shape::Aside, Shape::FileExchanged, Shape::FileOver] {
        let case = Case::new(shape);
        let before = case.tree();
        let other = system().open(&case.place()).unwrap();
        assert!(other.try_lock().unwrap());
        assert_eq!(text(case.root(), case.publish()), "replacing index: another process is replacing it");
        assert_eq!(case.tree(), before);
        drop(other);
        case.publish().unwrap();
        assert_eq!(case.tree(), case.after());
    }
}

#[cfg(unix)]
#[test]
fn links_in_what_is_replaced_are_removed_and_not_followed() {
    let case = Case::new(Shape::Exchanged);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("precious"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), case.place().join("link")).unwrap();
    case.publish().unwrap();
    assert_eq!(case.tree(), case.after());
    assert!(outside.path().join("precious").exists());
}

/// Many at once: each is published whole or told that another is in the way, and nobody's folder is swept away.
#[test]
fn publications_at_the_same_time_end_with_one_of_them_whole() {
    let case = Case::new(Shape::Exchanged);
    let publish = |number: usize| -> SpillResult<()> {
        let mut publication = begin(&case.place()).replacing(true);
        for name in ["a", "b", "c"] {
            publication.write(name, number.to_string().as_bytes())?;
        }
        commit(publication)
    };
    let published: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let done = |round: &usize| match publish(thread * 100 + round) {
                        Ok(()) => true,
                        Err(error) => {
                            assert!(error.to_string().ends_with(": another process is replacing it"), "{error}");
                            false
                        }
                    };
                    (0..25).filter(done).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(published > 0);
    let tree = case.tree();
    let contents: Vec<_> = tree.values().flatten().collect();
    assert!(contents.len() == 3 && contents.windows(2).all(|pair| pair[0] == pair[1]), "{tree:?}");
    assert_eq!(tree.len(), 4, "{tree:?}");
}
