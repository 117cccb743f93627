//! Loss of power, as a model: a disk in memory that records every call with its content, and what it may hold after a
//! crash behind any of them. A file's content is safe after its sync, a name after the sync of its folder; of the rest any
//! beginning may be there, or all but one change, with contents lost, as zeros, or whole.
mod crash;
mod disk;

use crash::violations;
use disk::{Disk, Tree};
use plimsoll::spill::files::{Files, write_all_at};
use plimsoll::spill::publish::{Publication, SyncPolicy, replace_file};
use plimsoll::spill::{SpillError, SpillResult};
use std::path::Path;
use std::sync::Arc;

const PLACE: &str = "/store/index";

/// A disk with an old folder, or an old file, or none, all of it durable.
fn disk(old: &[(&str, &str)], exchange: bool) -> Disk {
    let disk = Disk::new(exchange);
    disk.create_folder(Path::new("/store")).unwrap();
    for (path, content) in old {
        let path = Path::new(path);
        if path.parent() == Some(Path::new(PLACE)) && disk.look(Path::new(PLACE)).is_err() {
            disk.create_folder(Path::new(PLACE)).unwrap();
        }
        write_all_at(&*disk.create_new(path).unwrap(), content.as_bytes(), 0).unwrap();
    }
    disk.all_is_durable();
    disk
}

fn publish(disk: &Disk, place: &str, policy: SyncPolicy) -> SpillResult<()> {
    let mut publication = Publication::begin(disk.files(), Path::new(place), policy)?.replacing(true);
    let file = publication.create("a")?;
    for (bytes, offset) in [(b"first ", 0), (b"second", 6)] {
        write_all_at(&*file, bytes, offset).map_err(SpillError::io("writing", Path::new("a")))?;
    }
    publication.add("a", Some(file))?;
    publication.create_folder("sub")?;
    drop(publication.create("sub/b")?);
    publication.add("sub/b", None)?;
    publication.write("manifest", b"a sub/b")?;
    publication.commit(|| Ok::<(), SpillError>(()))?;
    disk.acknowledge();
    Ok(())
}

const OLD: [(&str, &str); 2] = [("/store/index/a", "old"), ("/store/index/manifest", "a")];

/// B52: in every state after a loss of power an acknowledged publication is whole; before that, old or new.
#[test]
fn an_acknowledged_folder_survives_every_crash_and_is_never_half_there() {
    for (old, place, exchange) in
        [(&[][..], PLACE, true), (&[], "/store/x/y/index", true), (&OLD, PLACE, true), (&OLD, PLACE, false)]
    {
        let disk = disk(old, exchange);
        let before = disk.tree(place);
        publish(&disk, place, SyncPolicy::Final).unwrap();
        let after = disk.tree(place).unwrap();
        assert_eq!(after.len(), 4);
        let again = |image: &Disk| publish(image, place, SyncPolicy::Final);
        let (states, violations) = violations(&disk, place, before.as_ref(), &after, Some(&again));
        assert!(violations.is_empty(), "{place} {exchange}: {} of {states}: {}", violations.len(), violations[0]);
        assert!(states > 500, "{states}");
    }
}

/// B52, B54: the same for a manifest.
#[test]
fn an_acknowledged_file_survives_every_crash_and_is_never_torn() {
    for (old, exchange) in [(&[][..], true), (&[(PLACE, "old")], true), (&[(PLACE, "old")], false)] {
        let disk = disk(old, exchange);
        let before = disk.tree(PLACE);
        let replace = |disk: &Disk| {
            replace_file(&disk.files(), Path::new(PLACE), b"a whole new manifest", SyncPolicy::Final)?;
            disk.acknowledge();
            Ok(())
        };
        replace(&disk).unwrap();
        let (states, violations) =
            violations(&disk, PLACE, before.as_ref(), &disk.tree(PLACE).unwrap(), Some(&replace));
        assert!(violations.is_empty(), "{exchange}: {} of {states}: {}", violations.len(), violations[0]);
        assert!(states > 50, "{states}");
    }
}

/// B46, B52, B54: a process is killed, the next one cleans up after it and publishes, and then the power goes: what the
/// first has replaced is not removed before the new content's name is safe.
#[test]
fn what_a_killed_process_left_is_cleaned_up_without_a_risk() {
    for exchange in [true, false] {
        let disk = disk(&OLD, exchange);
        let before = disk.tree(PLACE);
        publish(&disk, PLACE, SyncPolicy::Final).unwrap();
        let after = disk.tree(PLACE).unwrap();
        let kills = disk.changes_in("/store");
        assert!(kills.len() >= 3, "{kills:?}");
        for changes in kills {
            let killed = disk.killed_after(changes);
            publish(&killed, PLACE, SyncPolicy::Final).unwrap();
            let (states, violations) = violations(&killed, PLACE, before.as_ref(), &after, None);
            assert!(
                violations.is_empty(),
                "{exchange}, {changes}: {} of {states}: {}",
                violations.len(),
                violations[0]
            );
        }
    }
}

/// Steps of a publication, some of them left out or in the wrong order.
fn by_hand(old: &[(&str, &str)], steps: &[&str]) -> (Disk, Option<Tree>, Tree) {
    let disk = disk(old, true);
    let before = disk.tree(PLACE);
    let new = Path::new("/store/new");
    let file = new.join("manifest");
    disk.create_folder(new).unwrap();
    let handle = disk.create_new(&file).unwrap();
    let mut made = new;
    for step in steps {
        match *step {
            "write" => write_all_at(&*handle, b"a whole new manifest", 0).unwrap(),
            "sync" => handle.sync().unwrap(),
            "sync folder" => disk.sync_folder(made).unwrap(),
            "rename" => disk.rename(new, Path::new(PLACE)).unwrap(),
            "exchange" => disk.exchange(new, Path::new(PLACE)).unwrap(),
            "remove old" => {
                disk.remove_file(&file).unwrap();
                disk.remove_file(&new.join("a")).unwrap();
                disk.remove_folder(new).unwrap();
            }
            "sync parent" => disk.sync_folder(Path::new("/store")).unwrap(),
            "done" => disk.acknowledge(),
            step => panic!("{step}"),
        }
        if ["rename", "exchange"].contains(step) {
            made = Path::new(PLACE);
        }
    }
    let after = disk.tree(PLACE).unwrap();
    (disk, before, after)
}

/// The model notices every step that is missing or too early, so that it can be believed when it notices nothing.
#[test]
fn the_model_notices_what_is_missing() {
    let right = ["write", "sync", "sync folder", "rename", "sync parent", "done"];
    let replaced = ["write", "sync", "sync folder", "exchange", "sync parent", "remove old", "done"];
    let check = |old: &[(&str, &str)], steps: &[&str]| {
        let (disk, before, after) = by_hand(old, steps);
        violations(&disk, PLACE, before.as_ref(), &after, None).1
    };
    assert!(check(&[], &right).is_empty() && check(&OLD, &replaced).is_empty());
    for missing in ["sync", "sync folder", "sync parent"] {
        let without =
            |steps: &[&'static str]| steps.iter().copied().filter(|step| *step != missing).collect::<Vec<_>>();
        assert!(!check(&[], &without(&right)).is_empty(), "{missing}");
        assert!(!check(&OLD, &without(&replaced)).is_empty(), "{missing}");
    }
    for (steps, one, other) in
        [(&right[..], 2, 3), (&right, 1, 3), (&right, 4, 5), (&right, 0, 1), (&replaced, 4, 5), (&replaced, 2, 3)]
    {
        let mut steps = steps.to_vec();
        steps.swap(one, other);
        let old: &[(&str, &str)] = if steps.contains(&"exchange") { &OLD } else { &[] };
        assert!(!check(old, &steps).is_empty(), "{steps:?}");
    }
}

/// What was asked for: a publication without syncs may be lost.
#[test]
fn without_syncs_the_model_loses_what_was_acknowledged() {
    let disk = disk(&OLD, true);
    let before = disk.tree(PLACE);
    publish(&disk, PLACE, SyncPolicy::None).unwrap();
    let after = disk.tree(PLACE).unwrap();
    assert!(!violations(&disk, PLACE, before.as_ref(), &after, None).1.is_empty());
}

impl Disk {
    fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }
}
