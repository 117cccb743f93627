//! Many threads at once: one open, overlapping reads, and nobody held up.
use super::watched::Watched;
use super::{both, content};
use plimsoll::spill::files::system;
use plimsoll::spill::read::Descriptors;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Waits until something is so, for a while.
fn wait_until(what: &str, so: impl Fn() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_micros(50));
    }
}

/// R4: overlapping concurrent reads. Every thread has to be inside its read before any of them comes back, so a lock that
/// is held during input and output would end this test by its time limit.
#[test]
fn reads_of_one_file_overlap_in_time() {
    const THREADS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let all = content(5, 4_096);
    std::fs::write(&path, &all).unwrap();
    for kind in 0..2 {
        let inside = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&inside);
        let watched = Watched::with_hook(system(), move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            wait_until("all threads read at the same time", || counted.load(Ordering::SeqCst) >= THREADS);
        });
        let reader = &both(&watched.files(), &path)[kind];
        thread::scope(|scope| {
            for number in 0..THREADS {
                let all = &all;
                scope.spawn(move || {
                    // the ranges overlap too
                    let at = number * 100;
                    let mut bytes = [0; 1_000];
                    reader.read_exact_at(&mut bytes, at as u64).unwrap();
                    assert_eq!(bytes, all[at..at + 1_000]);
                });
            }
        });
        assert_eq!((inside.load(Ordering::SeqCst), reader.opens()), (THREADS, 1));
    }
}

/// R4: creating a stream lazily is serialised.
#[test]
fn a_file_is_opened_once_however_many_threads_ask_first() {
    const THREADS: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content(5, 100)).unwrap();
    for round in 0..50 {
        let watched = Watched::new(system());
        let reader = &both(&watched.files(), &path)[round % 2];
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mut bytes = [0; 100];
                    start.wait();
                    reader.read_exact_at(&mut bytes, 0).unwrap();
                    assert!(bytes == *content(5, 100));
                });
            }
        });
        assert_eq!((reader.opens(), watched.opens(), watched.most_open()), (1, 1, 1));
    }
}

/// While a read of one file hangs, it is read by others, and other files are opened, read and closed.
#[test]
fn a_read_that_hangs_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..6).map(|number| folder.path().join(number.to_string())).collect();
    paths.iter().for_each(|path| std::fs::write(path, b"content").unwrap());
    let (hangs, hung) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let hook = {
        let (hangs, hung, first) = (Arc::clone(&hangs), Arc::clone(&hung), paths[0].clone());
        move |path: &std::path::Path| {
            if *path == first && hung.fetch_add(1, Ordering::SeqCst) == 0 {
                wait_until("the test comes to its end", || !hangs.load(Ordering::SeqCst));
            }
        }
    };
    let watched = Watched::with_hook(system(), hook);
    let descriptors = Descriptors::new(watched.files(), 2);
    let readers: Vec<_> = paths.iter().map(|path| descriptors.reader(path)).collect();
    thread::scope(|scope| {
        let reading = scope.spawn(|| readers[0].read_exact_at(&mut [0; 7], 0).unwrap());
        wait_until("the first read hangs", || hung.load(Ordering::SeqCst) == 1);
        for _ in 0..20 {
            for reader in &readers {
                reader.read_exact_at(&mut [0; 7], 0).unwrap();
            }
        }
        assert!(!reading.is_finished());
        assert_eq!((readers[0].opens(), watched.most_open()), (1, 2), "what is being read is not closed");
        assert!(watched.open_paths().contains(&paths[0]));
        hangs.store(false, Ordering::SeqCst);
    });
    for reader in &readers[1..] {
        assert_eq!(reader.opens(), 20, "the others take turns");
    }
}

/// With every descriptor in use, the next file waits, and its reader is woken when a read ends: by an error or a panic too.
#[test]
fn who_finds_all_files_being_read_waits_for_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    std::fs::write(&a, b"content").unwrap();
    std::fs::write(&b, b"content").unwrap();
    for panics in [false, true] {
        let (hangs, hung) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let hook = {
            let (hangs, hung, a) = (Arc::clone(&hangs), Arc::clone(&hung), a.clone());
            move |path: &std::path::Path| {
                if *path == a {
                    hung.store(true, Ordering::SeqCst);
                    wait_until("the test goes on", || !hangs.load(Ordering::SeqCst));
                    assert!(!panics, "on purpose");
                }
            }
        };
        let watched = Watched::with_hook(system(), hook);
        let descriptors = Descriptors::new(watched.files(), 1);
        let (first, second) = (descriptors.reader(&a), descriptors.reader(&b));
        thread::scope(|scope| {
            let reading =
                scope.spawn(|| catch_unwind(AssertUnwindSafe(|| first.read_exact_at(&mut [0; 7], 0))).is_err());
            wait_until("the only descriptor is in use", || hung.load(Ordering::SeqCst));
            let waiting = [(); 2].map(|()| scope.spawn(|| second.read_exact_at(&mut [0; 7], 0).unwrap()));
            thread::sleep(Duration::from_millis(20));
            assert!(waiting.iter().all(|thread| !thread.is_finished()));
            assert_eq!((second.opens(), watched.open_now()), (0, 1));
            hangs.store(false, Ordering::SeqCst);
            assert_eq!(reading.join().unwrap(), panics);
        });
        assert_eq!((second.opens(), watched.most_open(), descriptors.closed()), (1, 1, 1));
    }
}

/// More threads than descriptors, all the time: a wake-up that is lost would hang this test.
#[test]
fn threads_that_wait_for_each_others_files_all_come_through() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..6).map(|number| folder.path().join(number.to_string())).collect();
    for (number, path) in (0..).zip(&paths) {
        std::fs::write(path, content(number, 64)).unwrap();
    }
    let watched = Watched::with_hook(system(), |_| thread::yield_now());
    let descriptors = Descriptors::new(watched.files(), 1);
    let readers: Vec<_> = paths.iter().map(|path| descriptors.reader(path)).collect();
    thread::scope(|scope| {
        for thread in 0..6 {
            let readers = &readers;
            scope.spawn(move || {
                for time in 0..500 {
                    let number = (thread + time) % readers.len();
                    let mut bytes = [0; 64];
                    readers[number].read_exact_at(&mut bytes, 0).unwrap();
                    assert!(bytes == *content(number as u64, 64));
                }
            });
        }
    });
    assert_eq!((watched.most_open(), descriptors.open()), (1, 1));
    drop(readers);
    assert_eq!((watched.open_now(), descriptors.open()), (0, 0));
}
