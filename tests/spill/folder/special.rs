//! The operating system with another answer to a few calls.

use plimsoll::spill::files::{Entry, Files, Identity, OpenFile, system};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Hook = Box<dyn FnMut(&Path) + Send>;

/// Clones are the same.
#[derive(Clone)]
pub(super) struct Special(Arc<State>);

struct State {
    system: Arc<dyn Files>,
    in_memory: Option<bool>,
    locks: bool,
    before_lock: Mutex<Hook>,
}

impl fmt::Debug for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Special")
    }
}

impl Special {
    fn files(in_memory: Option<bool>, locks: bool, before_lock: Hook) -> Arc<dyn Files> {
        Arc::new(Special(Arc::new(State { system: system(), in_memory, locks, before_lock: Mutex::new(before_lock) })))
    }

    /// Everything is in memory, or nothing; none: that cannot be told.
    pub(super) fn in_memory(in_memory: Option<bool>) -> Arc<dyn Files> {
        Special::files(in_memory, true, Box::new(|_| {}))
    }

    /// Files cannot be locked.
    pub(super) fn without_locks() -> Arc<dyn Files> {
        Special::files(Some(false), false, Box::new(|_| {}))
    }

    /// Something happens before each lock is taken.
    pub(super) fn before_lock(hook: impl FnMut(&Path) + Send + 'static) -> Arc<dyn Files> {
        Special::files(Some(false), true, Box::new(hook))
    }

    fn opened(&self, path: &Path, file: Box<dyn OpenFile>) -> Box<dyn OpenFile> {
        Box::new(SpecialFile { special: self.clone(), path: path.to_owned(), file })
    }
}

impl Files for Special {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.system.create_new(path).map(|file| self.opened(path, file))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.system.open(path).map(|file| self.opened(path, file))
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.system.open_for_writing(path).map(|file| self.opened(path, file))
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.0.system.create_folder(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.system.list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        self.0.system.look(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.system.remove_file(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.0.system.remove_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.system.rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.0.system.exchange(one, other)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.0.system.sync_folder(folder)
    }
    fn in_memory(&self, _: &Path) -> io::Result<bool> {
        self.0.in_memory.ok_or(io::ErrorKind::Unsupported.into())
    }
}

#[derive(Debug)]
struct SpecialFile {
    special: Special,
    path: PathBuf,
    file: Box<dyn OpenFile>,
}

impl OpenFile for SpecialFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
    fn identity(&self) -> io::Result<Identity> {
        self.file.identity()
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.file.cut(bytes)
    }
    fn give_back(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.file.give_back(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn try_lock(&self) -> io::Result<bool> {
        (self.special.0.before_lock.lock().unwrap())(&self.path);
        if self.special.0.locks { self.file.try_lock() } else { Err(io::ErrorKind::Unsupported.into()) }
    }
}
