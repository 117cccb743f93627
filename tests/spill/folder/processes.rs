//! B61 with real processes: this test binary starts itself again, and kills what it started.

use super::{names, write};
use plimsoll::spill::{DiskQuota, SpillFolder};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const PARENT: &str = "PLIMSOLL_TEST_SPILL_PARENT";
const RUN_BYTES: usize = 10_000;
const RUNS: usize = 5;

/// A process with a spill folder in `parent`.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(parent: &Path) -> Process {
        let test = "folder::processes::a_process_that_spills_until_it_is_told_to_end_or_killed";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(PARENT, parent)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { child, lines }
    }

    /// The next line that it says; a line that a test's name stands before begins after it.
    fn says(&mut self) -> String {
        loop {
            let line = self.lines.next().expect("the process goes on").unwrap();
            if let Some((_, said)) = line.split_once("child: ") {
                return said.to_owned();
            }
        }
    }

    /// Folders, bytes and failures of its sweep, and its own folder, once five runs are there.
    fn spilling(&mut self) -> ([u64; 3], PathBuf) {
        let swept: Vec<u64> = self.says().split(' ').map(|number| number.parse().unwrap()).collect();
        let folder = self.says();
        assert_eq!(self.says(), "spilling");
        (swept.try_into().unwrap(), folder.into())
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to end, and what it says then.
    fn end(mut self) -> String {
        writeln!(self.child.stdin.take().unwrap(), "end").unwrap();
        let said = self.says();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

#[test]
#[ignore = "started by the other tests, as a process of its own"]
fn a_process_that_spills_until_it_is_told_to_end_or_killed() {
    let Some(parent) = std::env::var_os(PARENT) else { return };
    let mut stdout = std::io::stdout();
    let folder = SpillFolder::builder(parent).label("logs").quota(DiskQuota::unlimited()).create().unwrap();
    let swept = folder.swept();
    writeln!(stdout, "child: {} {} {}", swept.folders, swept.bytes, swept.failed).unwrap();
    writeln!(stdout, "child: {}", folder.path().display()).unwrap();
    for run in 0..RUNS {
        folder.take(RUN_BYTES as u64).unwrap();
        write(folder.files().as_ref(), &folder.path().join(format!("run-{run}")), RUN_BYTES);
    }
    // the sixth is never whole
    let _torn = folder.files().create_new(&folder.path().join("run-5")).unwrap();
    _torn.write_at(b"half", 0).unwrap();
    writeln!(stdout, "child: spilling").unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let whole =
        |run: usize| fs::read(folder.path().join(format!("run-{run}"))).is_ok_and(|bytes| bytes == vec![7; RUN_BYTES]);
    writeln!(stdout, "child: {}", if (0..RUNS).all(whole) { "all runs are there" } else { "runs are missing" })
        .unwrap();
    folder.remove().unwrap();
}

fn bytes_in(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// B61: a crash loop does not fill the disk, and does not delete what a living neighbour spilled.
#[test]
fn fifty_killed_processes_leave_no_more_than_one_and_a_living_neighbour_keeps_its_runs() {
    let parent = tempfile::tempdir().unwrap();
    let mut neighbour = Process::start(parent.path());
    let (swept, neighbours) = neighbour.spilling();
    assert_eq!(swept, [0, 0, 0]);
    let mut left = [0, 0, 0];
    for round in 0..50 {
        let mut process = Process::start(parent.path());
        let (swept, folder) = process.spilling();
        assert_eq!(swept, left, "round {round}: what the killed one left is gone before the first run is written");
        process.kill();
        assert_eq!(names(&folder).len(), RUNS + 1);
        left = [1, bytes_in(&folder), 0];
        assert_eq!(left[1], (RUNS * RUN_BYTES + 4) as u64);
        // the neighbour's folder and owner file, and those of this round
        assert_eq!(names(parent.path()).len(), 4, "round {round}");
        assert_eq!(names(&neighbours).len(), RUNS + 1);
    }
    assert_eq!(neighbour.end(), "all runs are there");
    let mut last = Process::start(parent.path());
    assert_eq!(last.spilling().0, left);
    assert_eq!(last.end(), "all runs are there");
    assert_eq!(names(parent.path()), [""; 0]);
}

/// B61: each leftover is swept by one of two, and neither sweeps the other.
#[test]
fn two_processes_that_start_at_once_sweep_each_leftover_once_and_not_each_other() {
    let parent = tempfile::tempdir().unwrap();
    for _ in 0..10 {
        for _ in 0..3 {
            super::orphan(parent.path(), &[("run-0", 100), ("run-1", 11)]);
        }
        let mut pair = [Process::start(parent.path()), Process::start(parent.path())];
        let [(one, _), (other, _)] = [0, 1].map(|at| pair[at].spilling());
        assert_eq!([one[0] + other[0], one[1] + other[1], one[2] + other[2]], [3, 333, 0]);
        assert_eq!(names(parent.path()).len(), 4);
        for process in pair {
            assert_eq!(process.end(), "all runs are there");
        }
        assert_eq!(names(parent.path()), [""; 0]);
    }
}
