//! Every system call of spooling and merging fails once, is interrupted, or does a part of what was asked.

use crate::faults::{Call, EIO, EMFILE, ENOSPC, Fault, Faults};
use crate::records::{Count, Plain, collect, file_bytes, merged, plainly, records, write};
use plimsoll::spill::files::system;
use plimsoll::spill::merge::MergeLimits;
use plimsoll::spill::run::RunFile;
use plimsoll::spill::{DiskQuota, RunReader, SpillError, SpillFolder, SpillResult, Spool};

const LIMITS: MergeLimits = MergeLimits { block_bytes: 1024, fan_in: 3 };

/// A record that makes a hole in a file worth while.
fn big(number: u32) -> Plain {
    let mut plain = records(number);
    plain.insert(b"big".to_vec(), vec![number.to_be_bytes().repeat(900)]);
    plain
}

/// A folder with faults in its calls, and all that is counted.
struct Case {
    _parent: tempfile::TempDir,
    faults: Faults,
    folder: SpillFolder,
    quota: DiskQuota,
    count: Count,
    /// errors that came up, with what was being done
    errors: Vec<(&'static str, Option<i32>)>,
}

impl Case {
    fn new(quota_bytes: u64) -> Case {
        let parent = tempfile::tempdir().unwrap();
        let (faults, quota) = (Faults::new(Fault::None), DiskQuota::new(quota_bytes));
        let folder = SpillFolder::create(faults.files(), parent.path(), "runs", quota.clone()).unwrap();
        Case { _parent: parent, faults, folder, quota, count: Count::default(), errors: Vec::new() }
    }

    /// Does a step until it succeeds: one fault is at most one error.
    fn step<T>(&mut self, mut step: impl FnMut(&mut Count) -> SpillResult<T>) -> T {
        loop {
            match step(&mut self.count) {
                Ok(done) => return done,
                Err(error) => {
                    let SpillError::Io { what, .. } = &error else { panic!("{error}") };
                    self.errors.push((what, error.io_error().unwrap().raw_os_error()));
                    assert!(self.errors.len() < 2, "{error}, after {:?}", self.errors);
                }
            }
        }
    }

    /// Writes runs, gives one up, merges in passes, removes.
    fn whole(&mut self) {
        let folder = self.folder.clone();
        let mut spool = Spool::new(&folder, "s");
        for number in 0..12 {
            let before = (spool.len(), spool.disk_bytes());
            self.step(|count| {
                assert_eq!(spool.len(), before.0, "what failed is not there");
                write(&mut spool, 1024, &big(number), count)
            });
            assert_eq!(self.count.held, spool.allocated_bytes());
            assert!(file_bytes(&folder).iter().sum::<u64>() <= self.quota.used_bytes());
        }
        self.step(|count| {
            let mut run = spool.begin(1024, 0, count)?;
            let written = run.begin_record(b"given up", count).and_then(|()| run.piece(&[1; 3000], true));
            run.abandon(count);
            written
        });
        let plain = self.step(|count| merged(&mut spool, LIMITS, count)).0;
        assert!(plain == plainly((0..12).map(big)), "nothing is lost, and all of it is in order");
        assert_eq!(self.count.held, spool.allocated_bytes());
        self.step(|count| spool.clear(count));
        assert_eq!((self.count.held, self.quota.used_bytes(), spool.disk_bytes()), (0, 0, 0));
        drop(spool);
        assert!(file_bytes(&folder).is_empty(), "nothing is left on disk");
    }
}

/// The calls of a whole case without a fault.
fn calls() -> Vec<Call> {
    let mut case = Case::new(u64::MAX);
    case.whole();
    assert!(case.errors.is_empty());
    case.faults.calls()
}

/// B46: nothing is lost, left or counted, whichever call fails, and the error that is told is the one that came.
#[test]
fn any_call_may_fail_once_and_nothing_is_lost_or_left() {
    let calls = calls();
    for what in ["create", "open for writing", "length", "read", "write", "cut", "give back", "remove file"] {
        assert!(calls.iter().any(|call| call.what == what), "{what} is in it");
    }
    assert!(calls.len() > 200, "{}", calls.len());
    let created = Case::new(u64::MAX).faults.calls().len();
    for (number, call) in calls.iter().enumerate().skip(created) {
        let opens = call.what.starts_with("open") || call.what == "create";
        for error in [EIO, ENOSPC, EMFILE] {
            if error == EMFILE && !opens || call.what == "remove folder" {
                continue;
            }
            let mut case = Case::new(u64::MAX);
            case.faults.set(Fault::At(number, error));
            case.whole();
            let told = match call.what {
                "create" => Some("creating"),
                "open for writing" => Some("opening"),
                "length" | "read" => Some("reading"),
                "write" => Some("writing"),
                "remove file" => Some("removing"),
                // what could not be cut off or given back stays counted until its file goes
                "cut" | "give back" => None,
                other => panic!("{other}"),
            };
            let expected: Vec<_> = told.into_iter().map(|what| (what, Some(error))).collect();
            assert_eq!(case.errors, expected, "call {number}, {call:?}, error {error}");
        }
    }
}

#[test]
fn calls_that_are_interrupted_or_do_a_part_are_finished() {
    for fault in [Fault::Interrupted, Fault::Short(1), Fault::Short(7)] {
        let mut case = Case::new(u64::MAX);
        case.faults.set(fault);
        case.whole();
        assert!(case.errors.is_empty(), "{fault:?}: {:?}", case.errors);
    }
}

/// B54, at the runs: a process that dies at any call of a merge and of the removal after it leaves, for every record, the run
/// that it came from or the one that it went to; and an account that is even, if it lives to see that.
#[test]
fn a_merge_that_dies_at_any_call_leaves_the_old_runs_or_the_new() {
    let expected = plainly((0..12).map(big));
    let prepared = || {
        let mut case = Case::new(u64::MAX);
        let mut spool = Spool::new(&case.folder, "s");
        for number in 0..12 {
            write(&mut spool, 1024, &big(number), &mut case.count).unwrap();
        }
        (case, spool)
    };
    let (mut case, mut spool) = prepared();
    let first = case.faults.calls().len();
    assert!(merged(&mut spool, LIMITS, &mut case.count).unwrap().0 == expected);
    let cleared_from = case.faults.calls().len();
    spool.clear(&mut case.count).unwrap();
    let last = case.faults.calls().len();
    assert!(last - first >= 100 && cleared_from < last);
    for number in first..=last {
        let (mut case, mut spool) = prepared();
        case.faults.set(Fault::Dead(number));
        match merged(&mut spool, LIMITS, &mut case.count) {
            Ok((plain, _)) => assert!(number >= cleared_from && plain == expected),
            Err(error) => assert!(error.io_error().is_some() && number < cleared_from, "{number}: {error}"),
        }
        assert_eq!(case.count.held, spool.allocated_bytes(), "{number}");
        // what another process sees
        let path = case.folder.path().join("s-0001.spool");
        let file = RunFile::open(&*system(), &path).unwrap();
        let mut other = Count::default();
        let readers: Vec<_> = spool.runs().map(|run| RunReader::open(&file, run, &mut other).unwrap()).collect();
        assert!(collect(readers, &mut other).unwrap() == expected, "{number}");
        let length = file_bytes(&case.folder)[0];
        let removed = spool.clear(&mut case.count);
        assert_eq!(removed.is_ok(), number >= last, "{number}: {removed:?}");
        let left = file_bytes(&case.folder);
        assert_eq!(left, if number >= last { vec![] } else { vec![length] });
        assert_eq!(
            (case.count.held > 0, spool.is_empty()),
            (number < last, true),
            "only the file's name is still known"
        );
        assert_eq!(spool.disk_bytes(), case.quota.used_bytes(), "what is there is counted");
        assert_eq!(case.quota.used_bytes() > 0, number < last);
        case.faults.set(Fault::None);
        spool.clear(&mut case.count).unwrap();
        assert_eq!((case.count.held, case.quota.used_bytes(), file_bytes(&case.folder).len()), (0, 0, 0));
    }
}

/// The quota as another thing that fails at any place: it is the first error, and the same runs fit once there is room.
#[test]
fn a_quota_of_any_size_is_kept_and_nothing_is_lost() {
    let (mut refused, mut passed) = (0, 0);
    for quota_bytes in (0..140_000).step_by(1999) {
        let mut case = Case::new(quota_bytes);
        let mut spool = Spool::new(&case.folder, "s");
        let mut written = 0;
        while written < 12 && write(&mut spool, 1024, &big(written), &mut case.count).is_ok() {
            written += 1;
        }
        let whole: u64 = spool.runs().map(|run| run.bytes()).sum();
        assert_eq!(case.quota.used_bytes(), if written == 0 { 0 } else { whole + 28 }, "whole runs only");
        let merging = merged(&mut spool, LIMITS, &mut case.count);
        assert!(case.quota.used_bytes() <= quota_bytes);
        match merging {
            Ok((plain, _)) => {
                passed += usize::from(written == 12);
                assert!(plain == plainly((0..written).map(big)));
            }
            Err(error) => {
                refused += 1;
                assert!(
                    matches!(error, SpillError::Quota { limit_bytes, .. } if limit_bytes == quota_bytes),
                    "{error}"
                );
                // a merge of all at once needs no room
                let wide = MergeLimits { fan_in: 100, ..LIMITS };
                let plain = merged(&mut spool, wide, &mut case.count).unwrap().0;
                assert!(plain == plainly((0..written).map(big)));
            }
        }
        spool.clear(&mut case.count).unwrap();
        assert_eq!((case.count.held, case.quota.used_bytes()), (0, 0));
    }
    assert!(refused > 5 && passed > 5, "{refused} refused, {passed} passed");
}
