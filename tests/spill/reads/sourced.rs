//! Other sources where one fails.
use super::{content, recorded};
use crate::faults::{EIO, Fault, Faults};
use plimsoll::spill::files::system;
use plimsoll::spill::read::{Flaw, Reader, Source, SourcedReader};
use plimsoll::spill::{SpillError, SpillResult};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const BYTES: usize = 10_000;

/// Puts the content together from two others, as a parity file does.
#[derive(Debug)]
struct Xor<A, B>(A, B);

impl<A: Source, B: Source> Source for Xor<A, B> {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        let mut others = vec![0; bytes.len()];
        self.0.read_exact_at(bytes, offset)?;
        self.1.read_exact_at(&mut others, offset)?;
        bytes.iter_mut().zip(others).for_each(|(byte, other)| *byte ^= other);
        Ok(())
    }
    fn name(&self) -> &Path {
        Path::new("exclusive or")
    }
}

/// What a scripted source does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    /// Gives the right bytes.
    Serve,
    /// Puts half of the bytes, all of them wrong, and fails.
    FailHalfWay,
    /// Finds a wrong check-sum, if the request touches the bytes from 5,000 to 6,000.
    DamagedWithin,
    /// Appends wrong bytes, and leaves them there when it fails.
    LeaveBytes,
}

#[derive(Debug)]
struct Scripted {
    name: &'static str,
    does: Does,
    asked: AtomicU64,
}

impl Scripted {
    fn new(name: &'static str, does: Does) -> Arc<Scripted> {
        Arc::new(Scripted { name, does, asked: AtomicU64::new(0) })
    }
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Source for Scripted {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let end = offset as usize + bytes.len();
        match self.does {
            Does::FailHalfWay | Does::LeaveBytes => {
                let half = bytes.len() / 2;
                bytes[..half].fill(0xee);
                let failed = std::io::Error::from_raw_os_error(EIO);
                Err(SpillError::io_of("reading", self.name(), bytes.len() as u64)(failed))
            }
            Does::DamagedWithin if offset < 6_000 && end > 5_000 => {
                bytes.fill(0xdd);
                Err(SpillError::corrupt(self.name(), 5_000, "page does not match its checksum"))
            }
            Does::Serve | Does::DamagedWithin => {
                bytes.copy_from_slice(&content(9, BYTES)[offset as usize..end]);
                Ok(())
            }
        }
    }
    fn name(&self) -> &Path {
        Path::new(self.name)
    }
    fn append_at(&self, out: &mut Vec<u8>, bytes: usize, offset: u64) -> SpillResult<()> {
        let start = out.len();
        out.resize(start + bytes, 0xcc);
        let read = self.read_exact_at(&mut out[start..], offset);
        if read.is_err() && self.does != Does::LeaveBytes {
            out.truncate(start);
        }
        read
    }
}

/// A file and a copy of it.
fn copies(folder: &Path) -> [std::path::PathBuf; 2] {
    ["one", "two"].map(|name| {
        std::fs::write(folder.join(name), content(9, BYTES)).unwrap();
        folder.join(name)
    })
}

#[test]
fn while_the_first_source_is_well_the_others_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = copies(folder.path());
    let (first, second) = (recorded(), recorded());
    let reader = SourcedReader::new(Reader::new(first.files(), &one)).or(Reader::new(second.files(), &two));
    let mut out = Vec::new();
    for at in (0..100).map(|number| number * 97) {
        let mut bytes = [0; 97];
        reader.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes, content(9, BYTES)[at as usize..at as usize + 97]);
        reader.append_at(&mut out, 97, at).unwrap();
    }
    assert!(out == content(9, BYTES)[..9_700]);
    assert_eq!((first.count("open"), first.count("read"), second.calls().len()), (1, 200, 0));
    assert_eq!((reader.sources(), reader.retried()), (2, 0));
    assert_eq!([0, 1, 2].map(|number| reader.failed(number)), [Some(0), Some(0), None]);
}

/// R4: failure after partial output, retry on a spare. The destination is put back, and read afresh.
#[test]
fn a_failure_after_partial_output_is_made_good_by_the_spare() {
    for does in [Does::FailHalfWay, Does::LeaveBytes, Does::DamagedWithin] {
        let (first, spare) = (Scripted::new("first", does), Scripted::new("spare", Does::Serve));
        let reader = SourcedReader::new(Arc::clone(&first)).or(Arc::clone(&spare));
        let mut bytes = [0; 1_000];
        reader.read_exact_at(&mut bytes, 5_100).unwrap();
        assert_eq!(bytes, content(9, BYTES)[5_100..6_100], "{does:?}");
        let reader = SourcedReader::new(first).or(spare);
        let mut out = b"before".to_vec();
        reader.append_at(&mut out, 1_000, 5_100).unwrap();
        assert_eq!(out, [b"before", &content(9, BYTES)[5_100..6_100]].concat(), "{does:?}");
        assert_eq!((reader.failed(0), reader.failed(1), reader.retried()), (Some(1), Some(0), 1));
    }
}

/// R4: the same with files and the system's own calls, at each call of the first source.
#[test]
fn whichever_call_of_the_first_file_fails_the_copy_serves() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = copies(folder.path());
    for at in 0..5 {
        let faults = Faults::new(Fault::Short(400));
        let first = Reader::new(faults.files(), &one);
        let reader = SourcedReader::new(first).or(Reader::new(system(), &two));
        let mut out = b"before".to_vec();
        faults.set(if at < 2 { Fault::At(at, EIO) } else { Fault::Short(400) });
        // a copy that ends in the middle of what is asked for: output came before the failure
        if at >= 2 {
            let file = system().open_for_writing(&one).unwrap();
            file.cut(1_000 * (at as u64 - 1) + 500).unwrap();
        }
        reader.append_at(&mut out, 3_000, 1_000).unwrap();
        assert_eq!(out, [b"before", &content(9, BYTES)[1_000..4_000]].concat(), "call {at}");
        assert_eq!((reader.failed(0), reader.retried()), (Some(1), 1), "call {at}");
        std::fs::write(&one, content(9, BYTES)).unwrap();
    }
}

/// R4: reconstruction from others, and several failures at once.
#[test]
fn any_source_fits_a_reconstruction_too() {
    let folder = tempfile::tempdir().unwrap();
    let [_, other] = copies(folder.path());
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let neighbour = content(10, BYTES);
    let parity: Vec<u8> = neighbour.iter().zip(content(9, BYTES)).map(|(a, b)| a ^ b).collect();
    let (neighbour, parity) = (write("neighbour", &neighbour), write("parity", &parity));
    let xor = || Xor(Reader::new(system(), &neighbour), Reader::new(system(), &parity));
    let lost = || Reader::new(system(), folder.path().join("lost"));
    let short = write("short", &content(9, BYTES)[..100]);

    let reader = SourcedReader::new(lost()).or(xor());
    let mut bytes = vec![0; BYTES];
    reader.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == content(9, BYTES));

    let damaged = Scripted::new("damaged", Does::DamagedWithin);
    let reader = SourcedReader::new(lost()).or(damaged).or(Reader::new(system(), short)).or(xor()).or(lost());
    let mut out = b"before".to_vec();
    reader.append_at(&mut out, BYTES, 0).unwrap();
    assert!(out[6..] == content(9, BYTES));
    let failed: Vec<_> = (0..5).map(|number| reader.failed(number).unwrap()).collect();
    assert_eq!((failed, reader.retried()), (vec![1, 1, 1, 0, 0], 1));

    // one of what it is put together from is gone as well, but there is a copy in the end
    std::fs::remove_file(&parity).unwrap();
    let reader = SourcedReader::new(lost()).or(xor()).or(Reader::new(system(), other));
    reader.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == content(9, BYTES));
    assert_eq!((reader.failed(0), reader.failed(1), reader.failed(2)), (Some(1), Some(1), Some(0)));
}

#[test]
fn when_all_sources_fail_the_first_error_is_told_and_the_destination_is_as_it_was() {
    let half = Scripted::new("half", Does::FailHalfWay);
    let damaged = Scripted::new("damaged", Does::DamagedWithin);
    let leaves = Scripted::new("leaves", Does::LeaveBytes);
    let reader = SourcedReader::new(damaged).or(half).or(leaves);
    for _ in 0..2 {
        let mut out = b"before".to_vec();
        let error = reader.append_at(&mut out, 2_000, 4_500).unwrap_err();
        assert_eq!(out, b"before");
        assert!(matches!(&error, SpillError::Sources { sources: 3, .. }), "{error:?}");
        let text = "damaged, offset 5000: page does not match its checksum (and 2 further sources failed)";
        assert_eq!(error.to_string(), text);
    }
    // by now the other two rest, and they are asked all the same
    assert_eq!((reader.failed(0), reader.failed(1), reader.failed(2)), (Some(2), Some(2), Some(2)));
    assert_eq!(reader.retried(), 0);
    assert!(reader.read_exact_at(&mut [0; 2_000], 4_500).is_err());
    reader.read_exact_at(&mut [0; 100], 0).unwrap();

    let alone = SourcedReader::new(Scripted::new("half", Does::FailHalfWay));
    let error = alone.read_exact_at(&mut [0; 10], 0).unwrap_err();
    assert!(matches!(&error, SpillError::Io { what: "reading", bytes: 10, .. }), "what the only one said: {error}");
}

/// R4: other requests go on undisturbed. A wrong check-sum at one place sends the requests for that place elsewhere, and
/// no other.
#[test]
fn a_damaged_place_disturbs_no_request_for_another() {
    let (first, spare) = (Scripted::new("first", Does::DamagedWithin), Scripted::new("spare", Does::Serve));
    let reader = SourcedReader::new(Arc::clone(&first)).or(Arc::clone(&spare));
    let all = content(9, BYTES);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (reader, all) = (&reader, &all);
            scope.spawn(move || {
                for time in 0..100 {
                    let at = if thread == 0 { 5_500 } else { time * 40 };
                    let mut bytes = [0; 100];
                    reader.read_exact_at(&mut bytes, at).unwrap();
                    assert_eq!(bytes, all[at as usize..at as usize + 100]);
                }
            });
        }
    });
    assert_eq!((first.asked(), spare.asked()), (400, 100));
    assert_eq!((reader.failed(0), reader.failed(1), reader.retried()), (Some(100), Some(0), 100));
}

#[test]
fn a_source_whose_calls_fail_rests_and_gets_its_chance_again() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = copies(folder.path());
    let faults = Faults::new(Fault::Dead(0));
    let spare = Arc::new(Reader::new(system(), &two));
    let reader = SourcedReader::new(Reader::new(faults.files(), &one)).or(Arc::clone(&spare));
    let read = |times: usize| {
        for _ in 0..times {
            let mut bytes = [0; 100];
            reader.read_exact_at(&mut bytes, 50).unwrap();
            assert_eq!(bytes, content(9, BYTES)[50..150]);
        }
    };
    read(101);
    assert_eq!((reader.failed(0), faults.calls().len()), (Some(1), 1), "asked once, then left alone");
    read(1);
    assert_eq!((reader.failed(0), faults.calls().len()), (Some(2), 2), "asked again");
    faults.set(Fault::None);
    read(100);
    assert_eq!(faults.calls().len(), 2);
    read(50);
    assert_eq!((faults.count("read"), reader.failed(0), reader.retried()), (50, Some(2), 2), "and well again");
    // while it rests it is asked before the request is given up
    faults.set(Fault::At(faults.calls().len(), EIO));
    read(1);
    drop(spare);
    let lost =
        SourcedReader::new(Reader::new(faults.files(), &one)).or(Reader::new(system(), folder.path().join("none")));
    faults.set(Fault::At(faults.calls().len(), EIO));
    let error = lost.read_exact_at(&mut [0; 100], 0).unwrap_err();
    assert_eq!(error.io_error().and_then(std::io::Error::raw_os_error), Some(EIO), "the first error: {error}");
    let mut bytes = [0; 100];
    lost.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, content(9, BYTES)[..100]);
}

#[test]
fn what_a_check_refuses_comes_from_the_next_source() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = copies(folder.path());
    std::fs::write(&one, content(8, BYTES)).unwrap();
    let reader = SourcedReader::new(Reader::new(system(), &one)).or(Reader::new(system(), &two));
    let right = content(9, BYTES);
    let check = |bytes: &[u8]| {
        let flaw = bytes.iter().zip(&right[100..]).position(|(found, right)| found != right);
        flaw.map_or(Ok(()), |at| Err(Flaw { at, why: "another byte was written here" }))
    };
    let mut bytes = [0; 200];
    reader.read_checked_at(&mut bytes, 100, &check).unwrap();
    assert_eq!((&bytes[..], reader.failed(0)), (&right[100..300], Some(1)));
    std::fs::write(&two, content(8, BYTES)).unwrap();
    let error = reader.read_checked_at(&mut bytes, 100, &check).unwrap_err();
    let at = 100 + content(8, BYTES)[100..].iter().zip(&right[100..]).position(|(a, b)| a != b).unwrap();
    let text = format!("{}, offset {at}: another byte was written here (and 1 further sources failed)", one.display());
    assert_eq!(error.to_string(), text);
}

/// A length that a damaged file claims must not become an allocation of that length.
#[test]
fn appending_more_than_there_is_allocates_little() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = copies(folder.path());
    let reader = Reader::new(system(), &one);
    let sourced = SourcedReader::new(Reader::new(system(), &one)).or(Reader::new(system(), &two));
    let sources: [&dyn Source; 2] = [&reader, &sourced];
    for source in sources {
        for asked in [BYTES + 1, 1 << 30, 1 << 40, usize::MAX >> 1] {
            let mut out = b"before".to_vec();
            let error = source.append_at(&mut out, asked, 0).unwrap_err();
            let inner = match &error {
                SpillError::Sources { first, .. } => first,
                error => error,
            };
            let SpillError::End { offset: 0, asked_bytes, .. } = inner else { panic!("{error}") };
            assert_eq!((*asked_bytes, out.as_slice()), (asked, &b"before"[..]));
            assert!(out.capacity() <= (1 << 20) + 6, "{} for a file of {BYTES}", out.capacity());
        }
    }
    let mut large = vec![0; 3 << 20];
    large.iter_mut().zip(content(1, 3 << 20)).for_each(|(to, from)| *to = from);
    std::fs::write(&one, &large).unwrap();
    let mut out = vec![1, 2, 3];
    Reader::new(system(), &one).append_at(&mut out, (3 << 20) - 5, 5).unwrap();
    assert!(out[3..] == large[5..], "in several steps");
}
