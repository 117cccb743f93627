//! What a build leaves behind when it is killed or its files are damaged, and what the next one and readers make of it.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{json_log, log, names, options, run, write};
use index_build::error::Error;
use index_build::manifest::{FILE_NAME, Manifest, index_sha256};
use index_build::options::{BuildOptions, Sync};
use index_build::query::Index;
use index_build::segment::{Decoder, Segment};
use plimsoll::spill::files::system;
use plimsoll::spill::read::Reader;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with an index of several segments.
fn indexed() -> (tempfile::TempDir, BuildOptions) {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.log", log(2000).as_bytes());
    let options =
        BuildOptions { index: folder.path().join("index"), sync: Sync::Final, ..options(folder.path(), &[input]) };
    run(&options).unwrap();
    (folder, options)
}

/// B54: a torn, empty or NUL-filled manifest is an error that names it; the segments stay readable, each for itself.
#[test]
fn a_damaged_manifest_is_named_and_the_segments_stay_readable() {
    let (_folder, options) = indexed();
    let index = &options.index;
    let manifest = Manifest::read(index).unwrap();
    assert!(manifest.segments.len() > 3);
    let path = index.join(FILE_NAME);
    let good = fs::read(&path).unwrap();
    for damaged in [Vec::new(), vec![0; good.len()], vec![0; 1], good[..good.len() / 2].to_vec()] {
        fs::write(&path, &damaged).unwrap();
        match Index::open(index).map(drop) {
            Err(Error::Corrupt { path: told, .. }) => assert_eq!(told, path),
            other => panic!("{other:?}"),
        }
        assert!(matches!(index_sha256(index), Err(Error::Corrupt { path: told, .. }) if told == path));
        for entry in &manifest.segments {
            let segment = Segment::open(index, entry.number, &|path| Reader::new(system(), path)).unwrap();
            let documents = (segment.number(), segment.documents());
            assert_eq!(documents, (entry.number, entry.documents));
            let field = segment.field("text").unwrap();
            let (mut terms, mut decoder, mut listed) = (segment.terms(field), Decoder::new().unwrap(), 0);
            while terms.advance(&mut decoder).unwrap() {
                listed += 1;
            }
            assert_eq!(listed, field.stats.terms);
        }
        // it is no index of ours any more, so nobody replaces it by accident
        let error = run(&BuildOptions { force: true, ..options.clone() }).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(FILE_NAME), "{error}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, good).unwrap();
    Index::open(index).unwrap();
}

/// B54: a manifest that names a file which is gone, or cut, is an error that names that file.
#[test]
fn a_file_that_the_manifest_names_and_is_not_there_is_named() {
    let (_folder, options) = indexed();
    let name = Manifest::read(&options.index).unwrap().segments[1].files[1].name.clone();
    let path = options.index.join(&name);
    let good = fs::read(&path).unwrap();
    for damage in ["gone", "cut", "empty"] {
        match damage {
            "gone" => fs::remove_file(&path).unwrap(),
            "cut" => fs::write(&path, &good[..good.len() - 1]).unwrap(),
            _ => fs::write(&path, "").unwrap(),
        }
        let error = Index::open(&options.index).map(drop).unwrap_err();
        assert!(error.exit_code() == 1 && error.to_string().contains(&name), "{damage}: {error}");
        Segment::open(&options.index, 0, &|path| Reader::new(system(), path)).unwrap();
    }
}

/// Where an index waits while it is replaced on a system that cannot exchange names.
fn aside(index: &Path) -> PathBuf {
    index.with_file_name(".index.tmp-old")
}

/// B54: a build that was killed while the place was empty.
#[test]
fn an_index_that_was_left_aside_is_read_there_and_put_back() {
    let (folder, options) = indexed();
    let before = index_sha256(&options.index).unwrap();
    fs::rename(&options.index, aside(&options.index)).unwrap();
    let index = Index::open(&options.index).unwrap();
    assert_eq!(index.dir(), aside(&options.index));
    drop(index);
    // without --force it is an index that is in the way, with it one that is replaced
    let error = run(&options).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("--force"), "{error}");
    assert_eq!(names(folder.path()), ["a.log", "index"]);
    assert_eq!(index_sha256(&options.index).unwrap(), before);
    fs::rename(&options.index, aside(&options.index)).unwrap();
    run(&BuildOptions { force: true, ..options.clone() }).unwrap();
    assert_eq!(names(folder.path()), ["a.log", "index"]);
    // and a build that fails leaves the old one in its place
    fs::rename(&options.index, aside(&options.index)).unwrap();
    let bad = write(folder.path(), "b.jsonl", (json_log(200) + "{").as_bytes());
    let failing = BuildOptions { force: true, inputs: vec![bad.clone()], ..options.clone() };
    assert_eq!(run(&failing).unwrap_err().exit_code(), 1);
    fs::remove_file(bad).unwrap();
    assert_eq!(names(folder.path()), ["a.log", "index"]);
    assert_eq!(index_sha256(&options.index).unwrap(), before);
}

/// B46, B54: what a killed build leaves beside the index goes with the next one.
#[cfg(unix)]
#[test]
fn the_half_index_of_a_killed_build_is_removed_by_the_next() {
    let (folder, options) = indexed();
    let half = folder.path().join(".index.tmp-1-0");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("seg-000000.terms"), [0; 100]).unwrap();
    run(&BuildOptions { force: true, ..options }).unwrap();
    assert_eq!(names(folder.path()), ["a.log", "index"]);
}

/// R3: exactly the files that stay and their folders are synced, each once.
#[test]
fn a_build_says_how_many_files_and_folders_it_synced() {
    let (folder, options) = indexed();
    let files = names(&options.index).len() as u64;
    for (index, folders) in [("index", 2), ("x/y/other", 4)] {
        let options = BuildOptions { index: folder.path().join(index), force: true, ..options.clone() };
        let report = run(&options).unwrap();
        assert_eq!(report.syncs, files + folders, "the index folder, its parent, and above what was created");
        assert!(report.sync_seconds > 0.0 && report.sync_seconds < report.seconds);
        let report = run(&BuildOptions { sync: Sync::None, ..options }).unwrap();
        assert_eq!((report.syncs, report.sync_seconds), (0, 0.0));
    }
}
