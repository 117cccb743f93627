//! Files in memory, for readers that are given their system calls.

use plimsoll::spill::files::{Entry, Files, Identity, OpenFile};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Bytes = Arc<Mutex<Vec<u8>>>;

/// A tree of files; folders are names without bytes. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<PathBuf, Option<Bytes>>>>);

#[derive(Debug)]
struct MemoryFile(Bytes);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// The bytes of a file that is there.
    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        lock(&self.file(path).expect("the file is there")).clone()
    }

    /// Gives a file these bytes.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        lock(&self.0).insert(path.to_owned(), Some(Arc::new(Mutex::new(bytes))));
    }

    fn file(&self, path: &Path) -> io::Result<Bytes> {
        lock(&self.0).get(path).cloned().flatten().ok_or(ErrorKind::NotFound.into())
    }

    fn insert(&self, path: &Path, file: Option<Bytes>) -> io::Result<()> {
        let mut entries = lock(&self.0);
        if entries.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        entries.insert(path.to_owned(), file);
        Ok(())
    }

    fn opened(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(MemoryFile(self.file(path)?)))
    }
}

impl Files for Memory {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.insert(path, Some(Bytes::default()))?;
        self.opened(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.opened(path)
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.opened(path)
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.insert(path, None)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(lock(&self.0).keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        let entry = lock(&self.0).get(path).cloned().ok_or(ErrorKind::NotFound)?;
        let bytes = entry.as_ref().map_or(0, |file| lock(file).len() as u64);
        Ok(Entry {
            is_folder: entry.is_none(),
            is_file: entry.is_some(),
            bytes,
            identity: Identity { device: 0, node: 0, bytes, modified: None },
        })
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        lock(&self.0).remove(path).map(drop).ok_or(ErrorKind::NotFound.into())
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut entries = lock(&self.0);
        let entry = entries.remove(from).ok_or(ErrorKind::NotFound)?;
        entries.insert(to.to_owned(), entry);
        Ok(())
    }
    fn exchange(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn in_memory(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }
}

impl OpenFile for MemoryFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = lock(&self.0);
        let rest = usize::try_from(offset).ok().and_then(|from| file.get(from..)).unwrap_or_default();
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut file, from) = (lock(&self.0), offset as usize);
        let end = file.len().max(from + bytes.len());
        file.resize(end, 0);
        file[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }
    fn bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        lock(&self.0).resize(bytes as usize, 0);
        Ok(())
    }
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}
