//! What is in a spool file, and what is read of one that somebody changed.

use crate::records::{Count, collect, folder, plainly, records, write};
use plimsoll::spill::files::system;
use plimsoll::spill::run::{Run, RunFile, RunReader};
use plimsoll::spill::{DiskQuota, SpillError, SpillResult, Spool};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// Two runs of several blocks in one file, and what that file is.
struct Two {
    _parent: tempfile::TempDir,
    _spool: Spool,
    runs: [Run; 2],
    path: PathBuf,
    bytes: Vec<u8>,
}

fn two() -> Two {
    let parent = tempfile::tempdir().unwrap();
    let folder = folder(parent.path(), &DiskQuota::unlimited());
    let mut spool = Spool::new(&folder, "two");
    let runs = [0, 100]
        .map(|from| write(&mut spool, 256, &plainly((from..from + 16).map(records)), &mut Count::default()).unwrap());
    let path = folder.path().join("two-0001.spool");
    let bytes = std::fs::read(&path).unwrap();
    assert!(runs.iter().all(|run| run.bytes() > 4 * 256), "several blocks");
    assert_eq!(bytes.len() as u64, runs[1].offset() + runs[1].bytes());
    Two { _parent: parent, _spool: spool, runs, path, bytes }
}

/// Reads a run of a file as a whole, with an account that must be even afterwards.
fn read(path: &Path, run: &Run) -> SpillResult<crate::records::Plain> {
    let mut count = Count::default();
    let file = RunFile::open(&*system(), path)?;
    let said = RunReader::open(&file, run, &mut count).and_then(|reader| {
        assert!(count.peak == RunReader::bytes_for(run) && count.held == reader.allocated_bytes());
        collect(vec![reader], &mut count)
    });
    assert!(count.held == 0 && count.peak <= RunReader::bytes_for(run), "a reader never takes more");
    said
}

#[test]
fn a_run_with_any_byte_changed_is_an_error_that_names_file_and_offset() {
    let two = two();
    let [first, second] = &two.runs;
    let whole = read(&two.path, second).unwrap();
    for at in (0..28).chain(second.offset() as usize..two.bytes.len()) {
        // the header of the file with both bits
        for flip in [1u8, 0x80].into_iter().filter(|&flip| at < 28 || (flip == 1) == at.is_multiple_of(2)) {
            let mut changed = two.bytes.clone();
            changed[at] ^= flip;
            std::fs::write(&two.path, &changed).unwrap();
            let error = read(&two.path, second).unwrap_err();
            let SpillError::Corrupt { path, offset, .. } = &error else { panic!("{error}") };
            assert_eq!(path, &two.path);
            let near = *offset <= at as u64 + 8 && *offset + 256 + 8 + 8 + 24 > at as u64;
            assert!(near || at < 28, "byte {at}: {error}");
            if at >= 28 && at.is_multiple_of(50) {
                assert_eq!(read(&two.path, first).unwrap(), plainly((0..16).map(records)), "the other is whole");
            }
        }
    }
    std::fs::write(&two.path, &two.bytes).unwrap();
    assert_eq!(read(&two.path, second).unwrap(), whole);
}

#[test]
fn a_file_that_is_cut_is_an_error_wherever_it_ends() {
    let two = two();
    let behind = two.runs[1].offset() as usize;
    for length in (0..40).chain((40..behind).step_by(97)).chain(behind..two.bytes.len()) {
        std::fs::write(&two.path, &two.bytes[..length]).unwrap();
        assert!(matches!(read(&two.path, &two.runs[1]), Err(SpillError::Corrupt { .. })), "{length} bytes");
    }
}

/// A lost write shows: old blocks of the same place, of another run or of another file have right check-sums of their own.
#[test]
fn blocks_of_another_place_run_or_file_are_refused() {
    let (here, there) = (two(), two());
    let start = |run: &Run| run.offset() as usize + 16;
    let [first, second] = &here.runs;
    // each block is 8 + 256 bytes
    let swaps: [(&[u8], usize, usize); 3] = [
        (&here.bytes, start(second), start(second) + 264),
        (&here.bytes, start(first), start(second)),
        (&there.bytes, start(second), start(second)),
    ];
    for (from, source, target) in swaps {
        let mut changed = here.bytes.clone();
        changed[target..target + 264].copy_from_slice(&from[source..source + 264]);
        assert_ne!(changed, here.bytes);
        std::fs::write(&here.path, &changed).unwrap();
        let error = read(&here.path, second).unwrap_err();
        assert!(error.to_string().contains("the check-sum of a block is wrong"), "{error}");
    }
    // all of another run, with its header and seal
    std::fs::write(&here.path, &here.bytes).unwrap();
    let other = Run::at(second.serial(), first.offset(), first.bytes(), first.records(), 400, 256);
    assert!(read(&here.path, &other).unwrap_err().to_string().contains("the header of the run is wrong"));
}

#[test]
fn a_run_that_is_said_to_be_what_it_is_not_is_refused_before_anything_is_allocated() {
    let two = two();
    let run = two.runs[0];
    let at = |offset, bytes, records, longest, block_bytes| {
        read(&two.path, &Run::at(run.serial(), offset, bytes, records, longest, block_bytes)).unwrap_err().to_string()
    };
    let (offset, bytes, records, longest) = (run.offset(), run.bytes(), run.records(), run.longest_key_bytes());
    for (error, why) in [
        (at(u64::MAX, bytes, records, longest, 256), "the file ends within"),
        (at(offset, u64::MAX - offset, records, longest, 256), "the file ends within"),
        (at(offset, u64::MAX, records, longest, 256), "the file ends within"),
        (at(0, bytes, records, longest, 256), "is impossible"),
        (at(offset, 40, records, 0, 256), "is impossible"),
        (at(offset, bytes, records, usize::MAX, 256), "is impossible"),
        (at(offset, bytes, records, longest, 1 << 20), "blocks of 1048576 bytes are not written"),
        (at(offset, bytes, records, longest, 0), "blocks of 0 bytes are not written"),
        (at(offset, bytes, records, longest, 257), "the header of the run is wrong"),
        (at(offset, bytes, records + 1, longest, 256), "the counts of the seal"),
        (at(offset, bytes, records, longest - 1, 256), "the length of a key is impossible"),
        (at(offset, bytes - 1, records, longest, 256), "the seal is not at the end"),
        (at(offset, bytes + 1, records, longest, 256), "the seal is not at the end"),
    ] {
        assert!(error.contains(why) && error.contains("two-0001.spool, offset "), "{error}");
    }
}

#[test]
fn a_file_of_another_kind_version_or_byte_order_is_told_apart() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.spool");
    let header = |version: u32, order: u32| {
        let mut header = b"plimspl\n".to_vec();
        header.extend_from_slice(&[version.to_le_bytes(), order.to_le_bytes(), [7; 4], [7; 4]].concat());
        header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
        header
    };
    let open = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        RunFile::open(&*system(), &path)
    };
    assert!(open(&header(1, 0x0102_0304)).is_ok());
    for (bytes, why) in [
        (header(2, 0x0102_0304), "version 2 is not 1"),
        (header(1, 0x0403_0201), "written in another byte order"),
        (vec![0; 28], "not a spool file"),
        (vec![], "28 more bytes are missing"),
        (header(1, 0x0102_0304)[..27].to_vec(), "28 more bytes are missing"),
    ] {
        let error = open(&bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(matches!(RunFile::open(&*system(), &parent.path().join("b")), Err(SpillError::Io { what: "opening", .. })));
}

/// A run with right check-sums around any payload; without a seal, or with one that counts right.
fn forged(payload: &[u8], seal: Option<u64>) -> (Vec<u8>, Run) {
    let identity = 5u64.to_le_bytes();
    let mut bytes = b"plimspl\n".to_vec();
    bytes.extend_from_slice(&[1u32.to_le_bytes(), 0x0102_0304u32.to_le_bytes()].concat());
    bytes.extend_from_slice(&identity);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    let seed = crc32c::crc32c_append(crc32c::crc32c(&identity), &9u64.to_le_bytes());
    bytes.extend_from_slice(&9u64.to_le_bytes());
    bytes.extend_from_slice(&256u32.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c_append(seed, &256u32.to_le_bytes()).to_le_bytes());
    let mut block = |number: u64, length: usize, content: &[u8]| {
        let head = [&number.to_le_bytes()[..], &(length as u32).to_le_bytes(), content].concat();
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c_append(seed, &head).to_le_bytes());
        bytes.extend_from_slice(content);
    };
    let mut blocks = 0;
    for part in payload.chunks(256) {
        block(blocks, part.len(), part);
        blocks += 1;
    }
    let records = seal.unwrap_or(1);
    if seal.is_some() {
        block(blocks, 0, &[records, payload.len() as u64, blocks].map(u64::to_le_bytes).concat());
    } else {
        block(blocks, 200, &[1; 200]);
    }
    let run = Run::at(9, 28, bytes.len() as u64 - 28, records, payload.len().min(400), 256);
    (bytes, run)
}

/// Reads what was forged to its end or its error.
fn read_forged(payload: &[u8], seal: Option<u64>) -> SpillResult<crate::records::Plain> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged");
    let (bytes, run) = forged(payload, seal);
    std::fs::write(&path, bytes).unwrap();
    read(&path, &run)
}

#[test]
fn what_no_writer_writes_is_refused() {
    assert_eq!(read_forged(b"\0\x01a\x02x\x03y\0\x01\x01b\0", Some(2)).unwrap().len(), 2, "this one is right");
    for (payload, records, why) in [
        (&b"\0\x01b\0\0\x01a\0"[..], 2, "keys do not ascend"),
        (b"\0\x02ab\0\x01\x01b\0", 2, "keys do not ascend"),
        (b"\0\x01a\0\x01\0\0", 2, "the length of a key is impossible"),
        (b"\x01\x01a\0", 1, "the length of a key is impossible"),
        (b"\0\xff\x7fa\0", 1, "the length of a key is impossible"),
        (b"\0\x01a\x02x\0", 1, "a record ends inside a span"),
        (b"\0\x01a\xff\xff\xff\x01x\0", 1, "a piece is longer than the run"),
        (b"\0\x01a\x0bx", 1, "the seal comes inside a piece"),
        (b"\0\x01a\x0b", 1, "the seal comes inside a piece"),
        (b"\0\x03a", 0, "the seal comes inside a record"),
        (b"\0\x01a", 1, "the seal comes inside a record"),
        (b"\0", 0, "the seal comes inside a record"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1, "a number is too long"),
        (b"\0\x01a\0", 2, "the counts of the seal are not those of the run"),
    ] {
        let error = read_forged(payload, Some(records)).unwrap_err().to_string();
        assert!(error.contains(why), "{payload:?}: {error}");
    }
}

proptest! {
    /// The account of the reader is checked while it is read: no more than one block and one key, whatever is in the file.
    #[test]
    fn no_payload_makes_a_reader_panic_or_take_more_than_it_said(
        payload in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4, Just(0xFFu8)], 1..900)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forged");
        let (bytes, run) = forged(&payload, None);
        std::fs::write(&path, bytes).unwrap();
        let (file, mut count) = (RunFile::open(&*system(), &path).unwrap(), Count::default());
        let mut reader = RunReader::open(&file, &run, &mut count).unwrap();
        let taken = reader.allocated_bytes();
        let failed = loop {
            match reader.advance() {
                Ok(true) => {}
                Ok(false) => break false,
                Err(_) => break true,
            }
        };
        prop_assert!(failed, "there is no seal");
        prop_assert_eq!(reader.allocated_bytes(), taken);
        reader.release(&mut count);
        prop_assert_eq!(count.held, 0);
    }
}
