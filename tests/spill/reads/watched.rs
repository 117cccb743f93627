//! Files that know how many of them are open, and a hook before each read.
use plimsoll::spill::files::{Entry, Files, Identity, OpenFile};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Hook = Box<dyn Fn(&Path) + Send + Sync>;

struct State {
    inner: Arc<dyn Files>,
    open: Mutex<Open>,
    before_read: Hook,
}

#[derive(Default)]
struct Open {
    now: BTreeMap<PathBuf, usize>,
    most: usize,
    opens: usize,
}

/// Opens files through `inner`. Clones are the same.
#[derive(Clone)]
pub(crate) struct Watched(Arc<State>);

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Files>) -> Watched {
        Watched::with_hook(inner, |_| {})
    }

    pub(crate) fn with_hook(inner: Arc<dyn Files>, hook: impl Fn(&Path) + Send + Sync + 'static) -> Watched {
        Watched(Arc::new(State { inner, open: Mutex::default(), before_read: Box::new(hook) }))
    }

    pub(crate) fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    /// What is open now.
    pub(crate) fn open_paths(&self) -> Vec<PathBuf> {
        self.0.open.lock().unwrap().now.keys().cloned().collect()
    }

    pub(crate) fn open_now(&self) -> usize {
        self.0.open.lock().unwrap().now.values().sum()
    }

    /// The most that were open at once.
    pub(crate) fn most_open(&self) -> usize {
        self.0.open.lock().unwrap().most
    }

    pub(crate) fn opens(&self) -> usize {
        self.0.open.lock().unwrap().opens
    }
}

impl Files for Watched {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = self.0.inner.open(path)?;
        let mut open = self.0.open.lock().unwrap();
        open.opens += 1;
        *open.now.entry(path.to_owned()).or_default() += 1;
        open.most = open.most.max(open.now.values().sum());
        drop(open);
        Ok(Box::new(WatchedFile { watched: self.clone(), path: path.to_owned(), file: Some(file) }))
    }
    fn create_new(&self, _: &Path) -> io::Result<Box<dyn OpenFile>> {
        unreachable!("readers open files, and nothing else")
    }
    fn open_for_writing(&self, _: &Path) -> io::Result<Box<dyn OpenFile>> {
        unreachable!("readers open files, and nothing else")
    }
    fn create_folder(&self, _: &Path) -> io::Result<()> {
        unreachable!("readers open files, and nothing else")
    }
    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        unreachable!("readers open files, and nothing else")
    }
    fn look(&self, _: &Path) -> io::Result<Entry> {
        unreachable!("readers open files, and nothing else")
    }
    fn remove_file(&self, _: &Path) -> io::Result<()> {
        unreachable!("readers open files, and nothing else")
    }
    fn remove_folder(&self, _: &Path) -> io::Result<()> {
        unreachable!("readers open files, and nothing else")
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!("readers open files, and nothing else")
    }
    fn exchange(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!("readers open files, and nothing else")
    }
    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        unreachable!("readers open files, and nothing else")
    }
    fn in_memory(&self, _: &Path) -> io::Result<bool> {
        unreachable!("readers open files, and nothing else")
    }
}

#[derive(Debug)]
struct WatchedFile {
    watched: Watched,
    path: PathBuf,
    file: Option<Box<dyn OpenFile>>,
}

impl OpenFile for WatchedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.watched.0.before_read)(&self.path);
        self.file.as_ref().unwrap().read_at(bytes, offset)
    }
    fn identity(&self) -> io::Result<Identity> {
        self.file.as_ref().unwrap().identity()
    }
    fn bytes(&self) -> io::Result<u64> {
        self.file.as_ref().unwrap().bytes()
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        unreachable!("readers read, and nothing else")
    }
    fn cut(&self, _: u64) -> io::Result<()> {
        unreachable!("readers read, and nothing else")
    }
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        unreachable!("readers read, and nothing else")
    }
    fn sync(&self) -> io::Result<()> {
        unreachable!("readers read, and nothing else")
    }
    fn try_lock(&self) -> io::Result<bool> {
        unreachable!("readers read, and nothing else")
    }
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        // closed first, so that it is not counted as closed while it is open
        self.file = None;
        let mut open = self.watched.0.open.lock().unwrap();
        let count = open.now.get_mut(&self.path).unwrap();
        *count -= 1;
        if *count == 0 {
            open.now.remove(&self.path);
        }
    }
}
