//! Sequential reading beside positioned reading.
use super::{both, content, recorded};
use crate::faults::{EIO, Fault};
use plimsoll::spill::SpillError;
use plimsoll::spill::files::system;
use plimsoll::spill::read::{Cursor, Reader};
use std::io::{BufReader, Read};
use std::sync::Arc;

/// R4: positioned reads do not move the sequential cursor.
#[test]
fn a_cursor_goes_on_where_it_was_whatever_is_read_by_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let all = content(3, 10_000);
    std::fs::write(&path, &all).unwrap();
    for reader in both(&system(), &path) {
        let (mut one, mut other) = (reader.cursor(), reader.cursor());
        let (mut read, mut at) = (Vec::new(), 9_990u64);
        while read.len() < all.len() {
            assert_eq!(one.position(), read.len() as u64);
            let mut bytes = [0; 333];
            let count = one.read(&mut bytes).unwrap();
            read.extend_from_slice(&bytes[..count]);
            let mut elsewhere = [0; 10];
            reader.read_exact_at(&mut elsewhere, at).unwrap();
            assert_eq!(elsewhere, all[at as usize..at as usize + 10]);
            at = at * 7 % 9_990;
            let mut byte = [0];
            other.read_exact(&mut byte).unwrap();
            assert_eq!(byte[0], all[other.position() as usize - 1]);
        }
        assert!(read == all);
        assert_eq!((one.read(&mut [0; 5]).unwrap(), one.position()), (0, 10_000), "at the end, it stays there");
        assert_eq!((other.position(), reader.opens()), (31, 1));
        one.set_position(9_999);
        assert_eq!((one.read(&mut [0; 5]).unwrap(), one.position()), (1, 10_000));
        for nothing_there in [10_001, i64::MAX as u64 - 3, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            one.set_position(nothing_there);
            assert_eq!(one.read(&mut [0; 5]).unwrap(), 0, "{nothing_there}");
        }
    }
}

#[test]
fn a_cursor_may_keep_its_reader_and_go_through_a_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(3, 100_000)).unwrap();
    let faults = recorded();
    let reader = Arc::new(Reader::new(faults.files(), &path));
    let mut read = Vec::new();
    BufReader::with_capacity(10_000, Cursor::new(Arc::clone(&reader))).read_to_end(&mut read).unwrap();
    assert!(read == content(3, 100_000));
    assert_eq!(reader.opens(), 1);
}

#[test]
fn a_failed_read_names_the_file_and_leaves_the_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, b"content").unwrap();
    let faults = recorded();
    let reader = Reader::new(faults.files(), &path);
    let mut cursor = reader.cursor();
    cursor.read_exact(&mut [0; 3]).unwrap();
    faults.set(Fault::At(faults.calls().len(), EIO));
    let error = cursor.read(&mut [0; 4]).unwrap_err();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<SpillError>()).unwrap();
    assert!(
        matches!(inner, SpillError::Io { what: "reading", path: named, bytes: 4, .. } if *named == path),
        "{error}"
    );
    assert_eq!(inner.io_error().map(std::io::Error::kind), Some(error.kind()));
    let mut rest = String::new();
    cursor.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "tent");
}
