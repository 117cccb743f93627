//! Two files and one descriptor: nobody waits for ever, and no file is closed while it is read.

use super::{fails, outcomes};
use crate::spill::files::{Entry, Files, OpenFile};
use crate::spill::read::Descriptors;
use loom::thread;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Files of one byte, counted.
#[derive(Debug, Default)]
struct Counted {
    open: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Byte(Arc<AtomicUsize>);

impl Drop for Byte {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl OpenFile for Byte {
    fn read_at(&self, bytes: &mut [u8], _: u64) -> io::Result<usize> {
        // between the system's call and its end anything may happen
        thread::yield_now();
        bytes.fill(7);
        Ok(bytes.len())
    }
    fn bytes(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        unreachable!()
    }
    fn cut(&self, _: u64) -> io::Result<()> {
        unreachable!()
    }
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        unreachable!()
    }
    fn sync(&self) -> io::Result<()> {
        unreachable!()
    }
    fn try_lock(&self) -> io::Result<bool> {
        unreachable!()
    }
}

impl Files for Counted {
    fn open(&self, _: &Path) -> io::Result<Box<dyn OpenFile>> {
        assert_eq!(self.open.fetch_add(1, Relaxed), 0, "two files are open at once");
        Ok(Box::new(Byte(Arc::clone(&self.open))))
    }
    fn create_new(&self, _: &Path) -> io::Result<Box<dyn OpenFile>> {
        unreachable!()
    }
    fn open_for_writing(&self, _: &Path) -> io::Result<Box<dyn OpenFile>> {
        unreachable!()
    }
    fn create_folder(&self, _: &Path) -> io::Result<()> {
        unreachable!()
    }
    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        unreachable!()
    }
    fn look(&self, _: &Path) -> io::Result<Entry> {
        unreachable!()
    }
    fn remove_file(&self, _: &Path) -> io::Result<()> {
        unreachable!()
    }
    fn remove_folder(&self, _: &Path) -> io::Result<()> {
        unreachable!()
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!()
    }
    fn exchange(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!()
    }
    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        unreachable!()
    }
    fn in_memory(&self, _: &Path) -> io::Result<bool> {
        unreachable!()
    }
}

/// Each of two threads reads its file; answers how often the first was opened, and how often one was closed for another.
fn two_files_take_turns() -> (u64, u64) {
    let files = Counted::default();
    let open = Arc::clone(&files.open);
    let descriptors = Descriptors::new(Arc::new(files), 1);
    let (first, second) = (descriptors.reader("first"), descriptors.reader("second"));
    let thread = thread::spawn(move || {
        let mut byte = [0];
        second.read_exact_at(&mut byte, 0).expect("it is there");
        assert_eq!(byte, [7]);
        second
    });
    for _ in 0..2 {
        first.read_exact_at(&mut [0], 0).expect("it is there");
    }
    let second = thread.join().expect("no panic");
    assert_eq!((descriptors.open(), open.load(Relaxed), second.opens()), (1, 1, 1));
    let outcome = (first.opens(), descriptors.closed());
    drop((first, second));
    assert_eq!((descriptors.open(), open.load(Relaxed)), (0, 0));
    outcome
}

#[test]
fn loom_who_waits_for_a_descriptor_is_woken() {
    let seen = outcomes(two_files_take_turns);
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 2)]);
}

#[test]
fn loom_mutant_a_reader_that_looks_for_waiters_before_it_lets_go() {
    fails("no_rmw_fence", two_files_take_turns);
}

#[test]
fn loom_mutant_a_waiter_that_looks_before_it_is_seen() {
    fails("wait_unordered", two_files_take_turns);
}
