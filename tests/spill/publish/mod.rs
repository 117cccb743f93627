//! Publishing: every call made to fail, the order of the calls, what a kill leaves, what a failed sync means.
mod between;
mod cleanup;
mod faults_everywhere;
mod killed;
mod order;
mod poisoned;
mod rules;

use crate::faults::{Fault, Faults};
use plimsoll::spill::files::{Entry, Files, OpenFile, system};
use plimsoll::spill::publish::{Publication, Published, SyncPolicy, replace_file};
use plimsoll::spill::{SpillError, SpillResult};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything below a folder: files with their bytes, folders without.
pub(super) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

pub(super) fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut left = vec![root.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let content = (!path.is_dir()).then(|| std::fs::read(&path).unwrap());
            if content.is_none() {
                left.push(path.clone());
            }
            tree.insert(path.strip_prefix(root).unwrap().to_owned(), content);
        }
    }
    tree
}

/// What a test publishes, and onto what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A folder where nothing is.
    New,
    /// The same with missing parents.
    MissingParents,
    /// A folder that replaces another, by an exchange of names.
    Exchanged,
    /// The same where names cannot be exchanged.
    Aside,
    /// One file where nothing is.
    FileNew,
    /// One file that replaces another.
    FileExchanged,
    /// The same where names cannot be exchanged.
    FileOver,
}

pub(super) const FOLDERS: [Shape; 4] = [Shape::New, Shape::MissingParents, Shape::Exchanged, Shape::Aside];
pub(super) const ALL: [Shape; 7] = [
    Shape::New,
    Shape::MissingParents,
    Shape::Exchanged,
    Shape::Aside,
    Shape::FileNew,
    Shape::FileExchanged,
    Shape::FileOver,
];

/// A folder of its own for one publication.
pub(super) struct Case {
    root: tempfile::TempDir,
    pub(super) shape: Shape,
    pub(super) faults: Faults,
}

const NEW: [(&str, &[u8]); 4] = [
    ("a", b"the first file, in two writes"),
    ("b", b"by another hand"),
    ("manifest", b"a b sub/c"),
    ("sub/c", b"deep"),
];

impl Case {
    pub(super) fn new(shape: Shape) -> Case {
        // in memory where that can be: thousands of syncs, of which only the calls matter
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let files: Arc<dyn Files> = match shape {
            Shape::Aside | Shape::FileOver => Arc::new(WithoutExchange(system())),
            _ => system(),
        };
        let case = Case { root, shape, faults: Faults::over(files, Fault::None) };
        let place = case.place();
        match shape {
            Shape::New | Shape::MissingParents | Shape::FileNew => {}
            Shape::Exchanged | Shape::Aside => {
                std::fs::create_dir_all(place.join("old folder")).unwrap();
                std::fs::write(place.join("a"), "old").unwrap();
                std::fs::write(place.join("old folder/x"), "older").unwrap();
            }
            Shape::FileExchanged | Shape::FileOver => std::fs::write(place, "old").unwrap(),
        }
        case
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn place(&self) -> PathBuf {
        self.root().join(if self.shape == Shape::MissingParents { "x/y/index" } else { "index" })
    }

    pub(super) fn tree(&self) -> Tree {
        tree(self.root())
    }

    /// What is there when nothing has been published.
    pub(super) fn before(&self) -> Tree {
        Case::new(self.shape).tree()
    }

    /// What is there when everything went well.
    pub(super) fn after(&self) -> Tree {
        let place = self.place().strip_prefix(self.root()).unwrap().to_owned();
        let folders = place.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let mut after: Tree = folders.map(|folder| (folder.to_owned(), None)).collect();
        if self.is_file() {
            after.insert(place, Some(NEW[0].1.to_vec()));
        } else {
            after.insert(place.join("sub"), None);
            after.extend(NEW.map(|(name, bytes)| (place.join(name), Some(bytes.to_vec()))));
            after.insert(place, None);
        }
        after
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.shape, Shape::FileNew | Shape::FileExchanged | Shape::FileOver)
    }

    pub(super) fn publish(&self) -> SpillResult<Published> {
        self.publish_with(SyncPolicy::Final)
    }

    pub(super) fn publish_with(&self, policy: SyncPolicy) -> SpillResult<Published> {
        if self.is_file() {
            return replace_file(&self.faults.files(), &self.place(), NEW[0].1, policy);
        }
        self.written(policy)?.commit(|| Ok::<(), SpillError>(()))
    }

    /// A publication that needs only its commit.
    pub(super) fn written(&self, policy: SyncPolicy) -> SpillResult<Publication> {
        let mut publication = Publication::begin(self.faults.files(), &self.place(), policy)?.replacing(true);
        let path = publication.path().join("a");
        let file = publication.create("a")?;
        let (head, rest) = NEW[0].1.split_at(10);
        for (bytes, offset) in [(head, 0), (rest, 10)] {
            plimsoll::spill::files::write_all_at(&*file, bytes, offset).map_err(SpillError::io("writing", &path))?;
        }
        publication.add("a", Some(file))?;
        // by a program that knows nothing of all this
        std::fs::write(publication.path().join("b"), NEW[1].1).map_err(SpillError::io("writing", &path))?;
        publication.add("b", None)?;
        publication.create_folder("sub")?;
        publication.write("sub/c", NEW[3].1)?;
        publication.write("manifest", NEW[2].1)?;
        Ok(publication)
    }
}

/// A file system that cannot exchange names.
#[derive(Debug)]
struct WithoutExchange(Arc<dyn Files>);

impl Files for WithoutExchange {
    fn exchange(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.create_new(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.open(path)
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.open_for_writing(path)
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.0.create_folder(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        self.0.look(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.0.remove_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.0.sync_folder(folder)
    }
    fn in_memory(&self, folder: &Path) -> io::Result<bool> {
        self.0.in_memory(folder)
    }
}
