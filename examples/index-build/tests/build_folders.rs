//! The index folder: what may be replaced, what stays as it was, and that nothing temporary stays.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{json_log, log, names, options, run, write};
use index_build::manifest::Manifest;
use index_build::options::{BuildOptions, SpillOnRam, Sync};
use std::fs;
use std::path::{Path, PathBuf};

struct Case {
    folder: tempfile::TempDir,
    input: PathBuf,
    index: PathBuf,
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let input = write(folder.path(), "a.log", log(300).as_bytes());
        let index = folder.path().join("index");
        Case { folder, input, index }
    }

    fn options(&self) -> BuildOptions {
        let input = std::slice::from_ref(&self.input);
        BuildOptions { index: self.index.clone(), sync: Sync::Final, ..options(self.folder.path(), input) }
    }

    /// Files of the index folder with their contents.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let read = |name: String| {
            let bytes = fs::read(self.index.join(&name)).expect("a file of the index");
            (name, bytes)
        };
        names(&self.index).into_iter().map(read).collect()
    }
}

#[test]
fn an_absent_or_empty_folder_needs_no_force_and_takes_it() {
    for (exists, force) in [(false, false), (false, true), (true, false), (true, true)] {
        let case = Case::new();
        if exists {
            fs::create_dir(&case.index).unwrap();
        }
        let report = run(&BuildOptions { force, ..case.options() }).unwrap();
        assert_eq!(names(case.folder.path()), ["a.log", "index"]);
        let manifest = Manifest::read(&case.index).unwrap();
        assert_eq!((manifest.documents, manifest.segments.len() as u64), (report.documents, report.segments));
        let files: u64 = case.contents().iter().map(|(_, bytes)| bytes.len() as u64).sum();
        assert_eq!(files, report.index_bytes);
    }
}

#[test]
fn an_index_is_replaced_only_with_force_and_only_by_a_build_that_went_well() {
    let case = Case::new();
    let first = run(&case.options()).unwrap();
    let before = case.contents();
    let error = run(&case.options()).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("--force"), "{error}");
    assert_eq!(case.contents(), before);
    // a build that fails in the middle
    let bad = write(case.folder.path(), "b.jsonl", (json_log(200) + "{").as_bytes());
    let failing = BuildOptions { force: true, inputs: vec![bad.clone()], ..case.options() };
    assert_eq!(run(&failing).unwrap_err().exit_code(), 1);
    assert_eq!(case.contents(), before);
    fs::remove_file(bad).unwrap();
    fs::write(&case.input, log(100)).unwrap();
    let second = run(&BuildOptions { force: true, ..case.options() }).unwrap();
    assert!(second.documents < first.documents);
    assert_eq!(Manifest::read(&case.index).unwrap().documents, second.documents);
    assert_eq!(names(case.folder.path()), ["a.log", "index"], "the old index is gone");
}

#[test]
fn what_is_no_index_of_ours_stays_untouched_even_with_force() {
    for name in ["notes.txt", "manifest.json"] {
        let case = Case::new();
        fs::create_dir(&case.index).unwrap();
        fs::write(case.index.join(name), "precious").unwrap();
        for force in [false, true] {
            let error = run(&BuildOptions { force, ..case.options() }).unwrap_err();
            assert!(error.exit_code() == 2, "{error}");
            assert_eq!(case.contents(), [(name.to_owned(), b"precious".to_vec())]);
        }
        assert_eq!(names(case.folder.path()), ["a.log", "index"]);
    }
    let case = Case::new();
    fs::write(&case.index, "a file").unwrap();
    let error = run(&BuildOptions { force: true, ..case.options() }).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("not a folder"), "{error}");
}

#[test]
fn missing_parents_are_created_and_go_again_when_the_build_fails() {
    let case = Case::new();
    let index = case.folder.path().join("x/y/index");
    let failing =
        BuildOptions { index: index.clone(), inputs: vec![case.folder.path().join("absent")], ..case.options() };
    run(&failing).unwrap_err();
    assert_eq!(names(case.folder.path()), ["a.log"]);
    // and when only some of them can be created
    let impossible = case.folder.path().join("x/y").join("z".repeat(300)).join("index");
    let error = run(&BuildOptions { index: impossible, ..case.options() }).unwrap_err();
    assert_eq!((error.exit_code(), names(case.folder.path())), (1, vec!["a.log".to_owned()]), "{error}");
    run(&BuildOptions { index: index.clone(), ..case.options() }).unwrap();
    assert_eq!(names(&case.folder.path().join("x/y")), ["index"]);
    for nameless in ["/", ".."] {
        let error = run(&BuildOptions { index: nameless.into(), ..case.options() }).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}

#[test]
fn an_index_folder_may_have_the_longest_name_there_is() {
    let case = Case::new();
    for name in ["n".repeat(255), "\u{E9}".repeat(127)] {
        let index = case.folder.path().join(&name);
        run(&BuildOptions { index: index.clone(), ..case.options() }).unwrap();
        run(&BuildOptions { index: index.clone(), force: true, ..case.options() }).unwrap();
        assert_eq!(names(case.folder.path()), ["a.log", name.as_str()]);
        fs::remove_dir_all(index).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_no_index_folder() {
    let case = Case::new();
    for to in ["absent", "index"] {
        std::os::unix::fs::symlink(to, &case.index).unwrap();
        let error = run(&case.options()).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("leads nowhere"), "{error}");
        assert_eq!(names(case.folder.path()), ["a.log", "index"]);
        fs::remove_file(&case.index).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_an_index_folder_is_followed() {
    let case = Case::new();
    let real = case.folder.path().join("real");
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &case.index).unwrap();
    run(&case.options()).unwrap();
    run(&BuildOptions { force: true, ..case.options() }).unwrap();
    assert!(fs::symlink_metadata(&case.index).unwrap().is_symlink());
    assert_eq!(names(case.folder.path()), ["a.log", "index", "real"]);
    Manifest::read(&real).unwrap();
}

#[test]
fn spills_go_where_they_are_asked_to_and_nothing_of_them_stays() {
    let case = Case::new();
    let spill = case.folder.path().join("spills");
    fs::create_dir(&spill).unwrap();
    let options = BuildOptions { spill_dir: Some(spill.clone()), writer_cap_bytes: Some(4 << 10), ..case.options() };
    let report = run(&options).unwrap();
    assert!(report.own_spills > 0 && report.runs >= report.own_spills && report.spilled_bytes > 0);
    assert!(names(&spill).is_empty());
    assert_eq!(names(case.folder.path()), ["a.log", "index", "spills"]);
}

#[cfg(target_os = "linux")]
#[test]
fn spills_into_memory_are_shown_charged_or_refused() {
    let ram = Path::new("/dev/shm");
    let magic = rustix::fs::statfs(ram).map(|file_system| file_system.f_type);
    if magic.is_err() || magic.is_ok_and(|magic| magic as u32 != 0x0102_1994) {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "SKIPPED: /dev/shm is no file system in memory here");
        return;
    }
    let ram = tempfile::tempdir_in(ram).unwrap();
    let build = |spill_on_ram| {
        let case = Case::new();
        let spill_dir = Some(ram.path().to_owned());
        run(&BuildOptions { spill_dir, spill_on_ram, writer_cap_bytes: Some(4 << 10), ..case.options() })
    };
    for how in [SpillOnRam::Warn, SpillOnRam::Charge] {
        let report = build(how).unwrap();
        assert_eq!(report.spill_ram_bytes, report.spilled_bytes);
        assert_eq!((report.held_at_end_bytes, report.accounting_errors), (0, 0));
    }
    let error = build(SpillOnRam::Refuse).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("--spill-on-ram"), "{error}");
    assert!(names(ram.path()).is_empty());
}
