//! What somebody else does between two calls of a publication.
use super::{WithoutExchange, tree};
use plimsoll::spill::files::{Entry, Files, OpenFile, system};
use plimsoll::spill::publish::{Publication, SyncPolicy};
use plimsoll::spill::{SpillError, SpillResult};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Act = Box<dyn FnOnce() + Send>;

/// The system's calls; before the first one of a kind on a path, somebody else acts.
struct Between {
    files: Arc<dyn Files>,
    at: (&'static str, PathBuf),
    act: Mutex<Option<Act>>,
    synced: Mutex<Vec<PathBuf>>,
}

impl Between {
    fn before(what: &'static str, path: PathBuf, act: impl FnOnce() + Send + 'static) -> Arc<Between> {
        Between::over(system(), what, path, act)
    }

    fn over(
        files: Arc<dyn Files>,
        what: &'static str,
        path: PathBuf,
        act: impl FnOnce() + Send + 'static,
    ) -> Arc<Between> {
        let act: Act = Box::new(act);
        Arc::new(Between { files, at: (what, path), act: Mutex::new(Some(act)), synced: Mutex::default() })
    }

    fn call(&self, what: &str, path: &Path) -> &dyn Files {
        if self.at.0 == what && self.at.1 == path {
            let act = self.act.lock().unwrap().take();
            act.into_iter().for_each(|act| act());
        }
        &*self.files
    }
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Between({:?})", self.at)
    }
}

impl Files for Between {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call("create", path).create_new(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call("open", path).open(path)
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call("open for writing", path).open_for_writing(path)
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.call("create folder", path).create_folder(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.call("list", folder).list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        self.call("look", path).look(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call("remove file", path).remove_file(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.call("remove folder", path).remove_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename", from).rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.call("exchange", other).exchange(one, other)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.synced.lock().unwrap().push(folder.to_owned());
        self.call("sync folder", folder).sync_folder(folder)
    }
    fn in_memory(&self, folder: &Path) -> io::Result<bool> {
        self.call("in memory", folder).in_memory(folder)
    }
}

fn publish(files: Arc<dyn Files>, place: &Path, replace: bool, bytes: &[u8]) -> SpillResult<()> {
    let mut publication = Publication::begin(files, place, SyncPolicy::Final)?.replacing(replace);
    publication.write("a", bytes)?;
    publication.commit(|| Ok::<(), SpillError>(())).map(drop)
}

/// A parent that another process creates first is as little durable as one of our own: the folder that its name is in is
/// synced too.
#[test]
fn parents_that_somebody_else_has_just_created_are_synced() {
    let root = tempfile::tempdir().unwrap();
    let (x, y) = (root.path().join("x"), root.path().join("x/y"));
    let neighbours = x.clone();
    let files = Between::before("create folder", x.clone(), move || std::fs::create_dir(neighbours).unwrap());
    publish(files.clone(), &y.join("index"), false, b"x").unwrap();
    let synced = files.synced.lock().unwrap().clone();
    assert_eq!(synced[1..], [y, x, root.path().to_owned()]);
}

/// A publication that may not replace anything finds the place empty; before it takes it, another one has published there.
#[cfg(unix)]
#[test]
fn what_came_to_an_empty_place_meanwhile_is_not_replaced_unasked() {
    for what in ["list", "open", "exchange"] {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("index");
        std::fs::create_dir(&place).unwrap();
        let neighbours = place.clone();
        let theirs = Arc::new(Mutex::new(None));
        let told = theirs.clone();
        let files = Between::before(what, place.clone(), move || {
            *told.lock().unwrap() = Some(publish(system(), &neighbours, false, b"theirs"));
        });
        let ours = publish(files, &place, false, b"ours");
        let theirs = theirs.lock().unwrap().take().unwrap();
        assert!(ours.is_ok() != theirs.is_ok(), "{what}: {ours:?} {theirs:?}");
        let won: &[u8] = if ours.is_ok() { b"ours" } else { b"theirs" };
        assert_eq!(std::fs::read(place.join("a")).unwrap(), won, "{what}");
        assert_eq!(tree(root.path()).len(), 2, "{what}: nothing else stays");
    }
}

/// Where names cannot be exchanged, a replacement leaves the place empty for a moment: another publication does not take
/// that for a place where nothing is.
#[cfg(unix)]
#[test]
fn a_place_that_is_empty_while_it_is_replaced_is_not_taken() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("index");
    publish(system(), &place, false, b"old").unwrap();
    let neighbours = place.clone();
    let theirs = Arc::new(Mutex::new(None));
    let told = theirs.clone();
    let plain = || -> Arc<dyn Files> { Arc::new(WithoutExchange(system())) };
    let files = Between::over(plain(), "rename", root.path().join("making"), move || {
        *told.lock().unwrap() = Some(publish(plain(), &neighbours, false, b"theirs"));
    });
    let ours = Publication::begin_as(files, &place, "making", SyncPolicy::Final).unwrap();
    let mut ours = ours.replacing(true);
    ours.write("a", b"ours").unwrap();
    ours.commit(|| Ok::<(), SpillError>(())).unwrap();
    let theirs = theirs.lock().unwrap().take().unwrap().unwrap_err();
    assert!(theirs.to_string().ends_with(": another process is replacing it"), "{theirs}");
    assert_eq!(std::fs::read(place.join("a")).unwrap(), b"ours");
    assert_eq!(tree(root.path()).len(), 2);
}
