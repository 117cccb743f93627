//! A disk that is full: what was to be spilled is still there, and goes on when there is room.

use crate::faults::{ENOSPC, Fault, Faults};
use crate::records::{Count, file_bytes, merged};
use plimsoll::spill::files::{Entry, Files, OpenFile, system};
use plimsoll::spill::merge::MergeLimits;
use plimsoll::spill::{Charge, DiskQuota, SpillError, SpillFolder, SpillResult, Spool};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A disk of so many bytes. A write that does not fit does the part that fits, and then fails, as file systems do.
#[derive(Debug, Clone)]
struct Disk(Arc<Mutex<(u64, HashMap<PathBuf, u64>)>>, Arc<dyn Files>);

impl Disk {
    fn new(bytes: u64, files: Arc<dyn Files>) -> Disk {
        Disk(Arc::new(Mutex::new((bytes, HashMap::new()))), files)
    }

    fn set_bytes(&self, bytes: u64) {
        self.0.lock().unwrap().0 = bytes;
    }

    fn used_bytes(&self) -> u64 {
        self.0.lock().unwrap().1.values().sum()
    }

    fn on_disk(&self, path: &Path, file: Box<dyn OpenFile>) -> Box<dyn OpenFile> {
        Box::new(OnDisk(self.clone(), path.to_owned(), file))
    }
}

impl Files for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.1.create_new(path).map(|file| self.on_disk(path, file))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.1.open(path).map(|file| self.on_disk(path, file))
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.1.open_for_writing(path).map(|file| self.on_disk(path, file))
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.1.create_folder(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.1.list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<Entry> {
        self.1.look(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.1.remove_file(path)?;
        self.0.lock().unwrap().1.remove(path);
        Ok(())
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.1.remove_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.1.rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.1.exchange(one, other)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.1.sync_folder(folder)
    }
    fn in_memory(&self, folder: &Path) -> io::Result<bool> {
        self.1.in_memory(folder)
    }
}

#[derive(Debug)]
struct OnDisk(Disk, PathBuf, Box<dyn OpenFile>);

impl OpenFile for OnDisk {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.2.read_at(bytes, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.0.0.lock().unwrap();
        let room = disk.0.saturating_sub(disk.1.values().sum());
        // this test only appends
        assert_eq!(offset, self.2.bytes().unwrap());
        let now = bytes.len().min(room as usize);
        if now == 0 {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        let written = self.2.write_at(&bytes[..now], offset)?;
        *disk.1.entry(self.1.clone()).or_default() += written as u64;
        Ok(written)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.2.bytes()
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        let cut = self.2.bytes()? - bytes;
        self.2.cut(bytes)?;
        *self.0.0.lock().unwrap().1.get_mut(&self.1).unwrap() -= cut;
        Ok(())
    }
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        self.2.sync()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.2.try_lock()
    }
}

const MIB: usize = 1 << 20;

/// A builder with a budget: documents in memory, spilled when they are more than it holds.
struct Builder {
    spool: Spool,
    documents: BTreeMap<Vec<u8>, Vec<u8>>,
    held: usize,
    count: Count,
}

impl Builder {
    fn new(folder: &SpillFolder) -> Builder {
        Builder { spool: Spool::new(folder, "s"), documents: BTreeMap::new(), held: 0, count: Count::default() }
    }

    /// The document is there in any case; an error is that of the spill that it made necessary.
    fn add(&mut self, number: u32, budget: usize) -> SpillResult<()> {
        let (key, text) = document(number);
        self.held += key.len() + text.len();
        self.count.charge(key.len() + text.len());
        self.documents.insert(key, text);
        if self.held >= budget { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> SpillResult<()> {
        let mut run = self.spool.begin(64 << 10, 0, &mut self.count)?;
        let written = (|| {
            for (key, text) in &self.documents {
                run.begin_record(key, &mut self.count)?;
                run.piece(text, true)?;
                run.end_record()?;
            }
            Ok(())
        })();
        match written {
            Ok(()) => run.finish(&mut self.count)?,
            Err(error) => {
                run.abandon(&mut self.count);
                return Err(error);
            }
        };
        self.documents.clear();
        self.count.release(std::mem::take(&mut self.held));
        Ok(())
    }
}

const DOCUMENT_BYTES: usize = 64 << 10;
const DOCUMENTS: u32 = (40 * MIB / DOCUMENT_BYTES) as u32;

fn document(number: u32) -> (Vec<u8>, Vec<u8>) {
    (number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec(), number.to_be_bytes().repeat(DOCUMENT_BYTES / 4))
}

/// B46: 40 MiB of input with a budget of 4 MiB on a disk of 8 MiB, and on one that ends with the last byte of a seal.
#[test]
fn a_full_disk_keeps_what_was_to_be_spilled_and_the_same_writer_finishes() {
    let whole_run = {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(system(), parent.path(), "runs", DiskQuota::unlimited()).unwrap();
        let mut builder = Builder::new(&folder);
        let mut number = 0;
        while builder.spool.is_empty() {
            builder.add(number, 4 * MIB).unwrap();
            number += 1;
        }
        builder.spool.disk_bytes()
    };
    let mid_write = 8 * MIB as u64;
    for disk_bytes in [mid_write, whole_run - 1, 1, 0] {
        let (parent, quota) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited());
        let disk = Disk::new(MIB as u64, system());
        let folder = SpillFolder::create(Arc::new(disk.clone()), parent.path(), "runs", quota.clone()).unwrap();
        // beside the owner file
        let owner_bytes = disk.used_bytes();
        disk.set_bytes(owner_bytes + disk_bytes);
        let mut builder = Builder::new(&folder);
        let mut errors = 0;
        for number in 0..DOCUMENTS {
            let Err(error) = builder.add(number, 4 * MIB) else { continue };
            errors += 1;
            let SpillError::Io { what: "writing", path, bytes, source } = &error else { panic!("{error}") };
            assert!(path.starts_with(folder.path()) && *bytes > 0 && source.raw_os_error() == Some(ENOSPC), "{error}");
            assert!(error.to_string().starts_with(&format!("writing {bytes} bytes, ")), "{error}");
            // the arena is whole and still charged, the run is gone
            assert!(
                builder.held >= 4 * MIB
                    && builder.held == builder.documents.iter().map(|(k, t)| k.len() + t.len()).sum()
            );
            assert_eq!(builder.count.held, builder.held + builder.spool.allocated_bytes());
            let whole: u64 = builder.spool.runs().map(|run| run.bytes()).sum();
            let expected = if builder.spool.is_empty() { 0 } else { whole + 28 };
            assert_eq!((quota.used_bytes(), disk.used_bytes() - owner_bytes), (expected, expected), "whole runs only");
            assert_eq!(file_bytes(&folder).iter().sum::<u64>(), expected);
            // somebody makes room, and the same writer goes on
            disk.set_bytes(200 * MIB as u64);
            builder.flush().unwrap();
        }
        assert_eq!(errors, 1, "a disk of {disk_bytes}");
        // and on the very last flush
        disk.set_bytes(disk.used_bytes());
        builder.add(DOCUMENTS, usize::MAX).unwrap();
        let error = builder.flush().unwrap_err();
        assert_eq!(error.io_error().unwrap().raw_os_error(), Some(ENOSPC));
        disk.set_bytes(200 * MIB as u64);
        builder.flush().unwrap();
        assert_eq!(builder.count.held, builder.spool.allocated_bytes());

        let plain = merged(&mut builder.spool, MergeLimits::of(MIB, 64), &mut builder.count).unwrap().0;
        assert_eq!(plain.len(), DOCUMENTS as usize + 1);
        assert!((0..=DOCUMENTS).map(document).all(|(key, text)| plain[&key] == [text]), "every document is found");
        builder.spool.clear(&mut builder.count).unwrap();
        assert_eq!((builder.count.held, quota.used_bytes(), disk.used_bytes()), (0, 0, owner_bytes));
    }
}

/// B46: the same where the file cannot even be created, or opened again.
#[test]
fn a_disk_without_room_for_a_name_is_an_error_of_the_same_kind() {
    for (number, what) in [(1, "creating"), (4, "opening")] {
        let (parent, quota) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited());
        let faults = Faults::new(Fault::None);
        let folder = SpillFolder::create(faults.files(), parent.path(), "runs", quota.clone()).unwrap();
        let created = faults.calls().len();
        let mut builder = Builder::new(&folder);
        if what == "opening" {
            builder.add(0, 0).unwrap();
        }
        let calls = faults.calls().len();
        assert!(calls - created < number + 3);
        faults.set(Fault::At(calls, ENOSPC));
        let error = builder.add(1, 0).unwrap_err();
        assert!(error.to_string().starts_with(what) && error.to_string().contains(".spool: "), "{error}");
        assert_eq!((builder.documents.len(), builder.held), (1, DOCUMENT_BYTES + 4));
        assert_eq!(builder.count.held, builder.held + builder.spool.allocated_bytes());
        builder.flush().unwrap();
        assert!(builder.documents.is_empty() && !builder.spool.is_empty());
    }
}
