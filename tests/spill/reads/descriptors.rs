//! A bounded number of open files for any number of readers.
use super::watched::Watched;
use super::{content, recorded};
use crate::faults::{EMFILE, Fault};
use plimsoll::spill::SpillError;
use plimsoll::spill::files::system;
use plimsoll::spill::read::{Descriptors, Reader};
use std::path::Path;
use std::thread;

#[test]
fn a_thousand_files_are_read_through_eight_descriptors() {
    const FILES: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        std::fs::write(folder.path().join(number.to_string()), content(number as u64, 256)).unwrap();
    }
    let watched = Watched::new(system());
    let descriptors = Descriptors::new(watched.files(), 8);
    let readers: Vec<Reader> =
        (0..FILES).map(|number| descriptors.reader(folder.path().join(number.to_string()))).collect();
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let readers = &readers;
            scope.spawn(move || {
                for place in content(thread + 77, 4 * 4_000).chunks(4) {
                    let number = (usize::from(place[0]) | usize::from(place[1]) << 8) % FILES;
                    let at = usize::from(place[2] / 2);
                    let mut bytes = vec![0; usize::from(place[3] / 2) + 1];
                    readers[number].read_exact_at(&mut bytes, at as u64).unwrap();
                    assert!(bytes == content(number as u64, 256)[at..at + bytes.len()], "file {number} at {at}");
                }
            });
        }
    });
    assert_eq!(watched.most_open(), 8, "all of them, and never more");
    let opens: u64 = readers.iter().map(Reader::opens).sum();
    assert_eq!((watched.open_now(), descriptors.open(), descriptors.most()), (8, 8, 8));
    assert_eq!((watched.opens() as u64, descriptors.closed()), (opens, opens - 8));
    drop(readers);
    assert_eq!((watched.open_now(), descriptors.open()), (0, 0), "a reader that goes closes its file");
}

#[test]
fn files_within_the_limit_are_opened_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let watched = Watched::new(system());
    let descriptors = Descriptors::new(watched.files(), 20);
    let readers: Vec<_> = (0..20)
        .map(|number| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, content(number, 10)).unwrap();
            descriptors.reader(path)
        })
        .collect();
    for _ in 0..50 {
        readers.iter().for_each(|reader| reader.read_exact_at(&mut [0; 10], 0).unwrap());
    }
    assert!(readers.iter().all(|reader| reader.opens() == 1));
    assert_eq!(descriptors.closed(), 0);
}

#[test]
fn what_was_read_lately_is_not_what_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let watched = Watched::new(system());
    let descriptors = Descriptors::new(watched.files(), 4);
    let readers = ["a", "b", "c", "d", "e", "f", "g"].map(|name| {
        std::fs::write(folder.path().join(name), name).unwrap();
        descriptors.reader(folder.path().join(name))
    });
    let read = |name: &str| {
        let reader = readers.iter().find(|reader| reader.path().ends_with(name)).unwrap();
        reader.read_exact_at(&mut [0; 1], 0).unwrap();
    };
    let open = || watched.open_paths().iter().map(|path| name(path)).collect::<Vec<_>>();
    ["a", "b", "c", "d", "e"].into_iter().for_each(read);
    // all had been read alike, so any of the first four went; the other three have not been read since
    let older: Vec<String> = open().into_iter().filter(|name| name != "e").collect();
    assert_eq!((older.len(), descriptors.closed()), (3, 1));
    for new in ["f", "g"] {
        let keep = open().into_iter().find(|name| older.contains(name)).unwrap();
        read("e");
        read(&keep);
        read(new);
        let now = open();
        assert!(now.contains(&keep) && now.contains(&"e".to_owned()) && now.contains(&new.to_owned()), "{now:?}");
    }
    // the others come and go, one of them for each read of e: by age alone e would have to go every third time
    for time in 0..120 {
        read("e");
        read(["a", "b", "c", "d", "f", "g"][time % 6]);
    }
    let [others, e] = [[0, 1, 2, 3, 5, 6].map(|other| readers[other].opens()).iter().sum(), readers[4].opens()];
    assert!(others > 120 && e <= 5, "e, read all the time, was opened {e} times, the others {others} times");
}

/// A handle that was closed is opened again by its name. Another file under that name is not read as if it was the first.
#[test]
fn a_file_that_was_replaced_meanwhile_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("segment"), folder.path().join("other"));
    std::fs::write(&other, b"other").unwrap();
    let renamed = |path: &Path| {
        std::fs::write(path.with_extension("new"), b"second").unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    };
    let written_again = |path: &Path| {
        // the same file with the same length: only the time says it
        thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(path, b"second").unwrap();
    };
    let removed_first = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(path, b"second").unwrap();
    };
    let longer = |path: &Path| std::fs::write(path, b"second and third").unwrap();
    let changes: [&dyn Fn(&Path); 4] = [&renamed, &written_again, &removed_first, &longer];
    for (change, bytes) in changes.into_iter().zip([6, 6, 6, 16]) {
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, b"first.").unwrap();
        let watched = Watched::new(system());
        let descriptors = Descriptors::new(watched.files(), 1);
        let (reader, another) = (descriptors.reader(&path), descriptors.reader(&other));
        let mut buffer = [0; 6];
        reader.read_exact_at(&mut buffer, 0).unwrap();
        another.read_exact_at(&mut [0; 5], 0).unwrap();
        reader.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!((&buffer, reader.opens()), (b"first.", 2), "opened again, and it is the same");
        another.read_exact_at(&mut [0; 5], 0).unwrap();
        change(&path);
        for _ in 0..2 {
            let error = reader.read_exact_at(&mut buffer, 0).unwrap_err();
            assert!(matches!(&error, SpillError::Corrupt { path: named, offset: 0, .. } if *named == path), "{error}");
            let why = format!("no longer the file that was opened first (6 bytes then, {bytes} now)");
            assert_eq!(error.to_string(), format!("{}, offset 0: {why}", path.display()));
            assert_eq!((&buffer, watched.open_now()), (b"first.", 0), "nothing of it is read, nothing stays open");
        }
        another.read_exact_at(&mut [0; 5], 0).unwrap();
    }
}

#[test]
fn an_open_that_fails_gives_its_place_back() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3).map(|number| folder.path().join(number.to_string())).collect();
    paths.iter().for_each(|path| std::fs::write(path, b"content").unwrap());
    let faults = recorded();
    let watched = Watched::new(faults.files());
    let descriptors = Descriptors::new(watched.files(), 2);
    let readers: Vec<_> = paths.iter().map(|path| descriptors.reader(path)).collect();
    for time in 0..10 {
        let number = time % 3;
        // the open, and the look at what was opened
        faults.set(Fault::At(faults.calls().len() + time % 2, EMFILE));
        let open = watched.open_paths().contains(&paths[number]);
        let read = readers[number].read_exact_at(&mut [0; 7], 0);
        if !open {
            assert_eq!(read.unwrap_err().io_error().and_then(std::io::Error::raw_os_error), Some(EMFILE));
        }
        faults.set(Fault::None);
        assert!(descriptors.open() == watched.open_now() && descriptors.open() <= 2);
        readers[number].read_exact_at(&mut [0; 7], 0).unwrap();
    }
    assert_eq!((descriptors.open(), watched.most_open()), (2, 2));
}

#[test]
fn there_is_at_least_one_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, b"content").unwrap();
    let descriptors = Descriptors::new(system(), 0);
    assert_eq!(descriptors.most(), 1);
    descriptors.reader(&path).read_exact_at(&mut [0; 7], 0).unwrap();
}
