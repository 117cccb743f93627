//! The operating system with calls that fail, are interrupted or do half of what was asked, and a record of all calls.

use plimsoll::spill::files::{Entry, Files, Identity, OpenFile, system};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Errors of the system, by their numbers on Linux.
pub(crate) const EIO: i32 = 5;
pub(crate) const EINTR: i32 = 4;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOSPC: i32 = 28;

/// One call: which, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) what: &'static str,
    pub(crate) path: PathBuf,
}

/// What happens to calls, which are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The call of this number fails with this error; others go on.
    At(usize, i32),
    /// The call of this number fails with the first error, every later one with the second.
    Broken(usize, i32, i32),
    /// The call of this number and every later one fails and does nothing: what a process that is killed there leaves.
    Dead(usize),
    /// Every call fails with `EINTR` twice before it succeeds.
    Interrupted,
    /// Reads and writes move at most this many bytes.
    Short(usize),
}

struct State {
    system: Arc<dyn Files>,
    fault: Mutex<Fault>,
    calls: Mutex<Vec<Call>>,
    interrupted: Mutex<usize>,
}

/// See the module. Clones are the same.
#[derive(Clone)]
pub(crate) struct Faults(Arc<State>);

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({:?})", self.0.fault.lock().unwrap())
    }
}

impl Faults {
    pub(crate) fn new(fault: Fault) -> Faults {
        Faults::over(system(), fault)
    }

    /// The same over something else than the operating system.
    pub(crate) fn over(files: Arc<dyn Files>, fault: Fault) -> Faults {
        Faults(Arc::new(State {
            system: files,
            fault: Mutex::new(fault),
            calls: Mutex::default(),
            interrupted: Mutex::default(),
        }))
    }

    /// What is handed to the code under test.
    pub(crate) fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    /// The same system without a fault, and without the calls so far: the next process.
    pub(crate) fn revived(&self) -> Faults {
        Faults::over(self.0.system.clone(), Fault::None)
    }

    /// Another fault from here on; calls go on being counted.
    pub(crate) fn set(&self, fault: Fault) {
        *self.0.fault.lock().unwrap() = fault;
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.0.calls.lock().unwrap().clone()
    }

    /// How many of these calls there have been.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.0.calls.lock().unwrap().iter().filter(|call| call.what == what).count()
    }

    /// Whether the next call goes on.
    fn call(&self, what: &'static str, path: &Path) -> io::Result<()> {
        let fault = *self.0.fault.lock().unwrap();
        if fault == Fault::Interrupted {
            let mut interrupted = self.0.interrupted.lock().unwrap();
            *interrupted += 1;
            if !interrupted.is_multiple_of(3) {
                return Err(io::Error::from_raw_os_error(EINTR));
            }
        }
        let mut calls = self.0.calls.lock().unwrap();
        let number = calls.len();
        calls.push(Call { what, path: path.to_owned() });
        match fault {
            Fault::At(at, error) if at == number => Err(io::Error::from_raw_os_error(error)),
            Fault::Broken(at, first, _) if at == number => Err(io::Error::from_raw_os_error(first)),
            Fault::Broken(at, _, later) if number > at => Err(io::Error::from_raw_os_error(later)),
            Fault::Dead(from) if number >= from => Err(io::Error::other("the process is dead")),
            _ => Ok(()),
        }
    }

    /// How many of `bytes` bytes a call may move.
    fn most(&self, bytes: usize) -> usize {
        match *self.0.fault.lock().unwrap() {
            Fault::Short(most) => bytes.min(most),
            _ => bytes,
        }
    }

    fn opened(&self, path: &Path, file: Box<dyn OpenFile>) -> Box<dyn OpenFile> {
        Box::new(FaultyFile { faults: self.clone(), path: path.to_owned(), file })
    }
}

impl Files for Faults {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call("create", path)?;
        self.0.system.create_new(path).map(|file| self.opened(path, file))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call("open", path)?;
        self.0.system.open(path).map(|file| self.opened(path, file))
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call("open for writing", path)?;
        self.0.system.open_for_writing(path).map(|file| self.opened(path, file))
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.call("create folder", path)?;
        self.0.system.create_folder(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.call("list", folder)?;
        self.0.system.list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        self.call("look", path)?;
        self.0.system.look(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call("remove file", path)?;
        self.0.system.remove_file(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.call("remove folder", path)?;
        self.0.system.remove_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename", from)?;
        self.0.system.rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.call("exchange", one)?;
        self.0.system.exchange(one, other)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call("sync folder", folder)?;
        self.0.system.sync_folder(folder)
    }
    fn in_memory(&self, folder: &Path) -> io::Result<bool> {
        self.call("in memory", folder)?;
        self.0.system.in_memory(folder)
    }
}

#[derive(Debug)]
struct FaultyFile {
    faults: Faults,
    path: PathBuf,
    file: Box<dyn OpenFile>,
}

impl OpenFile for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.faults.call("read", &self.path)?;
        let most = self.faults.most(bytes.len());
        self.file.read_at(&mut bytes[..most], offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.faults.call("write", &self.path)?;
        self.file.write_at(&bytes[..self.faults.most(bytes.len())], offset)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.faults.call("length", &self.path)?;
        self.file.bytes()
    }
    fn identity(&self) -> io::Result<Identity> {
        self.faults.call("identity", &self.path)?;
        self.file.identity()
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.faults.call("cut", &self.path)?;
        self.file.cut(bytes)
    }
    fn give_back(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.faults.call("give back", &self.path)?;
        self.file.give_back(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.faults.call("sync", &self.path)?;
        self.file.sync()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.faults.call("lock", &self.path)?;
        self.file.try_lock()
    }
}
