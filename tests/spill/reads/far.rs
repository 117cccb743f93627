//! Places that 31 or 32 bits cannot say, in a file that no address space of the test could hold.
use crate::faults::EINTR;
use plimsoll::spill::SpillError;
use plimsoll::spill::files::{Files, OpenFile, system, write_all_at};
use plimsoll::spill::read::{Descriptors, Reader, Source};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const LENGTH: u64 = 5 << 30;
const READ: usize = 1 << 20;
const PLACES: [u64; 3] = [(1 << 31) - 1, 1 << 31, (1 << 32) + 7];

/// What is written at `offset`; never 0, which is what the holes read as.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1
}

fn bytes(offset: u64, length: usize) -> Vec<u8> {
    (offset..offset + length as u64).map(byte).collect()
}

/// Reads one byte a call, and every other call is interrupted.
#[derive(Debug, Default)]
struct Slow(Arc<AtomicUsize>);

#[derive(Debug)]
struct SlowFile(Box<dyn OpenFile>, Arc<AtomicUsize>);

impl OpenFile for SlowFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.1.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return Err(io::Error::from_raw_os_error(EINTR));
        }
        let most = bytes.len().min(1);
        self.0.read_at(&mut bytes[..most], offset)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }
    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.0.cut(bytes)
    }
    fn give_back(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.0.give_back(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

impl Files for Slow {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(SlowFile(system().open(path)?, Arc::clone(&self.0))))
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        system().create_new(path)
    }
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        system().open_for_writing(path)
    }
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        system().create_folder(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        system().list(folder)
    }
    fn look(&self, path: &Path) -> io::Result<plimsoll::spill::files::Entry> {
        system().look(path)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        system().remove_file(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        system().remove_folder(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        system().rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        system().exchange(one, other)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        system().sync_folder(folder)
    }
    fn in_memory(&self, folder: &Path) -> io::Result<bool> {
        system().in_memory(folder)
    }
}

/// A sparse file of 5 GiB with something at its places, and nothing where a cut offset would look.
fn sparse(path: &Path) {
    let file = system().create_new(path).unwrap();
    file.cut(LENGTH).unwrap();
    write_all_at(&*file, &bytes(PLACES[0], READ + 1), PLACES[0]).unwrap();
    write_all_at(&*file, &bytes(PLACES[2], READ), PLACES[2]).unwrap();
    write_all_at(&*file, &bytes(LENGTH - 100, 100), LENGTH - 100).unwrap();
}

fn check(reader: &Reader) {
    assert_eq!(reader.bytes().unwrap(), LENGTH);
    let mut read = vec![0; READ];
    for place in PLACES {
        read.fill(0);
        reader.read_exact_at(&mut read, place).unwrap();
        assert!(read == bytes(place, READ), "at {place}");
    }
    for hole in [0, 7, (1 << 32) - (1 << 20), PLACES[2] - READ as u64] {
        reader.read_exact_at(&mut read[..64], hole).unwrap();
        assert_eq!(read[..64], [0; 64], "at {hole}");
    }
    let end = LENGTH - 100;
    reader.read_exact_at(&mut read[..100], end).unwrap();
    assert_eq!(read[..100], bytes(end, 100));
    let error = reader.read_exact_at(&mut read, end).unwrap_err();
    let SpillError::End { offset, asked_bytes, .. } = &error else { panic!("{error}") };
    assert_eq!((*offset, *asked_bytes), (end, READ));
    let text = format!("offset {end}: the file ends within the {READ} bytes asked for");
    assert!(error.to_string().ends_with(&text), "{error}");
    let mut out = b"kept".to_vec();
    assert!(matches!(reader.append_at(&mut out, READ, end), Err(SpillError::End { asked_bytes: READ, .. })));
    assert_eq!(out, b"kept");
}

/// B50: positioned reads that trust one call, or offsets cut to 31 or 32 bits.
#[test]
fn offsets_beyond_31_and_32_bits_read_the_right_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far");
    sparse(&path);
    check(&Reader::new(system(), &path));
    check(&Descriptors::new(system(), 1).reader(&path));
}

/// B50: one byte a call, every other call interrupted.
#[test]
fn far_places_are_read_right_one_byte_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far");
    sparse(&path);
    let slow = Slow::default();
    let calls = Arc::clone(&slow.0);
    check(&Reader::new(Arc::new(slow), &path));
    assert!(calls.load(Ordering::Relaxed) > 2 * 3 * READ, "they were really so slow");
}

/// B50: nothing is mapped, so a limit on the address space far below the file's length does not matter.
#[cfg(target_os = "linux")]
#[test]
fn an_address_space_smaller_than_the_file_does_not_matter() {
    const LIMIT_KIB: usize = 512 << 10;
    let run = |limit: usize, test: &str| {
        let script = format!("ulimit -v {limit} && exec \"$0\" --exact {test} --test-threads=1");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
        let output = command.env("MALLOC_ARENA_MAX", "1").output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (succeeded, said) = run(LIMIT_KIB, "reads::far::offsets_beyond_31_and_32_bits_read_the_right_place");
    assert!(succeeded && said.contains("1 passed"), "{said}");
    // the limit is one: what needs more fails under it
    let (succeeded, said) = run(LIMIT_KIB, "reads::far::a_gibibyte_at_once_if_there_is_a_limit");
    assert!(!succeeded && said.contains("1 failed"), "{said}");
}

/// Asks for a GiB where the address space is limited, and is no test otherwise: the one above runs it in a child.
#[cfg(target_os = "linux")]
#[test]
fn a_gibibyte_at_once_if_there_is_a_limit() {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    if !limit.contains("unlimited") {
        assert!(Vec::<u8>::new().try_reserve_exact(1 << 30).is_ok(), "refused");
    }
}
