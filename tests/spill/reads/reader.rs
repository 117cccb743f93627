//! One file, one open, and every way in which a call can go wrong.
use super::watched::Watched;
use super::{both, content, recorded};
use crate::faults::{EIO, EMFILE, ENOSPC, Fault};
use plimsoll::spill::SpillError;
use plimsoll::spill::files::system;
use plimsoll::spill::read::Reader;
use std::io;

/// R4: look-ups per warmed read: none.
#[test]
fn a_hundred_positioned_reads_use_one_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let all = content(1, 100 * 7);
    std::fs::write(&path, &all).unwrap();
    for kind in 0..2 {
        let faults = recorded();
        let reader = &both(&faults.files(), &path)[kind];
        assert_eq!((reader.opens(), faults.calls().len()), (0, 0), "nothing is opened before it is read");
        for (number, expected) in (0..).zip(all.chunks(7)) {
            let mut bytes = [0; 7];
            reader.read_exact_at(&mut bytes, 7 * number).unwrap();
            assert_eq!(bytes, expected);
        }
        assert_eq!(reader.opens(), 1);
        assert_eq!([faults.count("open"), faults.count("identity"), faults.count("read")], [1, 1, 100]);
        assert_eq!(faults.calls().len(), 102, "nothing else is asked of the system");
        assert_eq!((reader.bytes().unwrap(), faults.calls().len()), (700, 102));
    }
}

#[test]
fn the_end_of_the_file_is_an_error_with_offset_and_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(1, 1_000)).unwrap();
    for reader in both(&system(), &path) {
        let mut bytes = [0; 100];
        reader.read_exact_at(&mut bytes, 900).unwrap();
        assert_eq!(bytes, content(1, 1_000)[900..]);
        let far = [901, 1_000, 1_001, 1 << 31, 1 << 32, 1 << 40, i64::MAX as u64 - 50, i64::MAX as u64, u64::MAX - 1];
        for at in far.into_iter().chain([u64::MAX]) {
            let error = reader.read_exact_at(&mut bytes, at).unwrap_err();
            let SpillError::End { path: named, offset, asked_bytes } = &error else { panic!("{at}: {error}") };
            assert_eq!((named, *offset, *asked_bytes), (&path, at, 100));
            let text = format!("{}, offset {at}: the file ends within the 100 bytes asked for", path.display());
            assert_eq!(error.to_string(), text);
        }
        reader.read_exact_at(&mut [], 1_000).unwrap();
        assert_eq!((reader.read_at(&mut bytes, 990).unwrap(), reader.read_at(&mut bytes, 1_000).unwrap()), (10, 0));
        assert_eq!(reader.read_at(&mut bytes, u64::MAX).unwrap(), 0);
    }
}

#[test]
fn short_and_interrupted_calls_are_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let all = content(1, 999);
    std::fs::write(&path, &all).unwrap();
    for (fault, reads) in [(Fault::Short(1), 990), (Fault::Short(100), 10), (Fault::Interrupted, 1)] {
        for kind in 0..2 {
            let faults = recorded();
            faults.set(fault);
            let reader = &both(&faults.files(), &path)[kind];
            let mut bytes = vec![0; 990];
            reader.read_exact_at(&mut bytes, 9).unwrap();
            assert!(bytes == all[9..], "{fault:?}");
            assert_eq!((reader.opens(), faults.count("read")), (1, reads));
            let error = reader.read_exact_at(&mut bytes, 10).unwrap_err();
            assert!(matches!(error, SpillError::End { offset: 10, asked_bytes: 990, .. }), "{error}");
        }
    }
}

/// Every call of two reads fails once, with each error: that is what is reported, the next try succeeds, and nothing stays
/// open behind the reader.
#[test]
fn each_call_that_fails_is_reported_and_leaves_nothing_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(1, 1_000)).unwrap();
    let expected = ["opening", "looking at", "reading", "reading"];
    for errno in [EIO, EMFILE, ENOSPC] {
        for (at, expected) in expected.into_iter().enumerate() {
            for kind in 0..2 {
                let faults = recorded();
                faults.set(Fault::At(at, errno));
                let watched = Watched::new(faults.files());
                let [kept, lent] = both(&watched.files(), &path);
                let reader = if kind == 0 { kept } else { lent };
                let mut bytes = [0; 500];
                let reads: Vec<_> = (0..2).map(|_| reader.read_exact_at(&mut bytes, 500)).collect();
                let failed = usize::from(at == 3);
                assert!(reads[1 - failed].is_ok(), "{at}: the other read is fine");
                let error = reads[failed].as_ref().unwrap_err();
                let SpillError::Io { what, path: named, source, .. } = error else { panic!("{error}") };
                assert_eq!((*what, named, source.raw_os_error()), (expected, &path, Some(errno)));
                let counted = if expected == "reading" { "reading 500 bytes, ".into() } else { format!("{expected} ") };
                let named = format!("{counted}{}: {source}", path.display());
                assert_eq!(error.to_string(), named);
                assert_eq!(
                    reader.opens(),
                    if at < 2 { 2 } else { 1 },
                    "a failed open is tried again, an open file kept"
                );
                assert_eq!((bytes.as_slice(), watched.open_now()), (&content(1, 1_000)[500..], 1));
                drop(reader);
                assert_eq!(watched.open_now(), 0);
            }
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_no_panic_and_may_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for reader in both(&system(), &path) {
        let error = reader.bytes().unwrap_err();
        assert_eq!(error.io_error().map(io::Error::kind), Some(io::ErrorKind::NotFound), "{error}");
        std::fs::write(&path, b"now").unwrap();
        let mut bytes = [0; 3];
        reader.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!((&bytes, reader.bytes().unwrap(), reader.opens()), (b"now", 3, 2));
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_kept_handle_reads_its_file_whatever_happens_to_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, b"first").unwrap();
    let reader = Reader::new(system(), &path);
    assert_eq!(reader.bytes().unwrap(), 5);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"other").unwrap();
    let mut bytes = [0; 5];
    reader.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"first");
}

#[test]
fn readers_can_be_shared_and_say_what_they_take() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    for reader in both(&system(), std::path::Path::new("some/file")) {
        shared(&reader);
        assert!((9..1_000).contains(&reader.allocated_bytes()), "{}", reader.allocated_bytes());
        assert_eq!(reader.path(), std::path::Path::new("some/file"));
    }
}
