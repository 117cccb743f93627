//! A spool: what is written is read back, what is not whole is not there, what is consumed goes back.

use crate::faults::{EIO, EMFILE, ENOSPC, Fault, Faults};
use crate::records::{Count, collect, file_bytes, folder, merged, plainly, records, write};
use plimsoll::spill::merge::MergeLimits;
use plimsoll::spill::{DiskQuota, RunWriter, SpillError, SpillFolder, SpillResult, Spool};
use proptest::prelude::*;

#[test]
fn runs_are_read_back_from_one_file_and_all_of_it_goes() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let folder = folder(parent.path(), &quota);
    let mut spool = Spool::new(&folder, "b000001-f0000");
    assert!(spool.is_empty() && file_bytes(&folder).is_empty(), "there is no file before there is a run");
    for number in 0..40 {
        let run = write(&mut spool, 256, &records(number), &mut count).unwrap();
        assert_eq!((run.records(), run.block_bytes()), (records(number).len() as u64, 256));
        assert_eq!(count.held, spool.allocated_bytes(), "a sealed run's buffers are released");
    }
    assert_eq!(spool.len(), 40);
    let bytes: u64 = spool.runs().map(|run| run.bytes()).sum();
    assert_eq!(file_bytes(&folder), [bytes + 28], "one file: its header and whole runs");
    assert_eq!((quota.used_bytes(), spool.disk_bytes()), (bytes + 28, bytes + 28));
    let readers = spool.open(&mut count).unwrap();
    assert_eq!(readers.len(), 40);
    let held: usize = readers.iter().map(|reader| reader.allocated_bytes()).sum();
    assert_eq!(count.held, held + spool.allocated_bytes(), "a reader takes what is charged for it");
    assert_eq!(collect(readers, &mut count).unwrap(), plainly((0..40).map(records)));
    assert_eq!(spool.clear(&mut count).unwrap(), bytes + 28);
    assert!(spool.is_empty() && file_bytes(&folder).is_empty());
    assert_eq!((quota.used_bytes(), count.held), (0, 0));
    // and once more
    write(&mut spool, 256, &records(1), &mut count).unwrap();
    drop(spool);
    assert!(file_bytes(&folder).is_empty() && quota.used_bytes() == 0, "a spool that is dropped leaves nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn merging_any_runs_at_any_fan_in_gives_what_was_written(
        runs in proptest::collection::vec(proptest::collection::btree_map(
            proptest::collection::vec(prop_oneof![Just(0u8), 97u8..100, Just(255)], 0..12),
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..3), 0..12), 0..30),
        fan_in in 2usize..6,
        block_bytes in prop_oneof![Just(256usize), Just(300), Just(65536)],
        limit in prop_oneof![Just(1usize << 40), 3000usize..9000]
    ) {
        let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
        let folder = folder(parent.path(), &quota);
        let mut spool = Spool::new(&folder, "s");
        for run in &runs {
            write(&mut spool, block_bytes, run, &mut count).unwrap();
        }
        if block_bytes < 1000 {
            count.limit = limit + spool.allocated_bytes();
        }
        let (plain, _) = merged(&mut spool, MergeLimits { block_bytes, fan_in }, &mut count).unwrap();
        prop_assert_eq!(plain, plainly(runs));
        spool.clear(&mut count).unwrap();
        prop_assert_eq!((count.held, quota.used_bytes()), (0, 0), "everything is released");
        prop_assert!(file_bytes(&folder).is_empty());
    }
}

#[test]
fn a_run_that_is_given_up_leaves_the_file_as_it_was() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let folder = folder(parent.path(), &quota);
    let mut spool = Spool::new(&folder, "s");
    for before in 0..3 {
        let (files, used, held) = (file_bytes(&folder), quota.used_bytes(), count.held);
        let mut run = spool.begin(256, 0, &mut count).unwrap();
        run.begin_record(b"a", &mut count).unwrap();
        run.piece(&[7; 5000], true).unwrap();
        assert!(quota.used_bytes() >= used + 4000, "blocks are counted when they are written");
        run.abandon(&mut count);
        assert_eq!((file_bytes(&folder), quota.used_bytes()), (files, used));
        assert_eq!((spool.len(), count.held), (before, held));
        write(&mut spool, 256, &records(before as u32), &mut count).unwrap();
    }
    // a panic drops it: the file is as it was as well, and the buffers are the account's to settle
    let (files, used, held) = (file_bytes(&folder), quota.used_bytes(), count.held);
    let mut run = spool.begin(256, 0, &mut count).unwrap();
    run.begin_record(b"a", &mut count).unwrap();
    run.piece(&[7; 5000], true).unwrap();
    let buffers = run.allocated_bytes();
    drop(run);
    assert_eq!((file_bytes(&folder), quota.used_bytes(), count.held), (files, used, held + buffers));
    assert_eq!(merged(&mut spool, MergeLimits::default(), &mut count).unwrap().0, plainly((0..3).map(records)));
}

#[test]
fn what_cannot_be_read_back_is_not_written() {
    let (parent, mut count) = (tempfile::tempdir().unwrap(), Count::default());
    let folder = folder(parent.path(), &DiskQuota::unlimited());
    let mut spool = Spool::new(&folder, "s");
    let keys: [(&[u8], &[u8]); 5] = [(b"b", b"a"), (b"a", b"a"), (b"ab", b"a"), (b"", b""), (b"a", b"")];
    for (first, second) in keys {
        let mut run = spool.begin(256, 0, &mut count).unwrap();
        run.begin_record(first, &mut count).unwrap();
        run.end_record().unwrap();
        let error = run.begin_record(second, &mut count).unwrap_err();
        assert!(matches!(error, SpillError::Corrupt { .. }), "{error}");
        assert!(run.finish(&mut count).is_err(), "and the run is not sealed");
    }
    let mut run = spool.begin(256, 0, &mut count).unwrap();
    run.begin_record(b"", &mut count).unwrap();
    run.piece(b"x", false).unwrap();
    run.piece(b"", false).unwrap();
    assert!(run.end_record().unwrap_err().to_string().contains("inside a span"));
    run.abandon(&mut count);
    let mistakes: [fn(&mut RunWriter<'_>, &mut Count) -> SpillResult<()>; 4] = [
        |run, _| run.piece(b"x", true),
        |run, _| run.end_record(),
        |run, count| run.begin_record(b"a", count).and_then(|()| run.begin_record(b"b", count)),
        |run, count| {
            run.begin_record(b"a", count)?;
            run.end_record()?;
            run.end_record()
        },
    ];
    for mistake in mistakes {
        let mut run = spool.begin(256, 0, &mut count).unwrap();
        assert!(matches!(mistake(&mut run, &mut count), Err(SpillError::Corrupt { .. })));
        assert!(run.finish(&mut count).is_err());
    }
    let mut run = spool.begin(256, 0, &mut count).unwrap();
    run.begin_record(b"a", &mut count).unwrap();
    assert!(run.finish(&mut count).is_err(), "a record that was not ended");
    assert!(spool.is_empty() && file_bytes(&folder).is_empty());
    assert_eq!(count.held, 0);
}

/// B46: the quota's error is the first one; what was written of the run is gone and given back, and the next one works.
#[test]
fn a_quota_that_is_reached_loses_nothing() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::new(7000), Count::default());
    let folder = folder(parent.path(), &quota);
    let mut spool = Spool::new(&folder, "s");
    let big = plainly([[(b"key".to_vec(), vec![vec![1; 5000]])].into()]);
    write(&mut spool, 256, &records(1), &mut count).unwrap();
    let used = quota.used_bytes();
    for _ in 0..3 {
        write(&mut spool, 256, &big, &mut count).unwrap();
        let error = write(&mut spool, 256, &big, &mut count).unwrap_err();
        let SpillError::Quota { used_bytes, limit_bytes: 7000, .. } = error else { panic!("{error}") };
        assert!(used_bytes > 5000);
        assert_eq!(file_bytes(&folder), [quota.used_bytes()], "whole runs only");
        spool.clear(&mut count).unwrap();
        assert_eq!((quota.used_bytes(), count.held), (0, 0));
        write(&mut spool, 256, &records(1), &mut count).unwrap();
        assert_eq!(quota.used_bytes(), used);
    }
}

fn faulty(parent: &std::path::Path, quota: &DiskQuota) -> (Faults, SpillFolder) {
    let faults = Faults::new(Fault::None);
    let folder = SpillFolder::create(faults.files(), parent, "runs", quota.clone()).unwrap();
    (faults, folder)
}

/// B46: a file that cannot be cut back takes no more runs; what is there stays counted until it is gone.
#[test]
fn a_file_that_cannot_be_cut_is_left_alone_and_counted() {
    for runs_before in [0u32, 2] {
        let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
        let (faults, folder) = faulty(parent.path(), &quota);
        let mut spool = Spool::new(&folder, "s");
        for number in 0..runs_before {
            write(&mut spool, 256, &records(number), &mut count).unwrap();
        }
        let (held, whole) = (count.held, quota.used_bytes());
        let mut run = spool.begin(256, 0, &mut count).unwrap();
        run.begin_record(b"a", &mut count).unwrap();
        run.piece(&[7; 1000], true).unwrap();
        let written = quota.used_bytes() - whole;
        assert!(written > 700);
        let dead = faults.calls().len();
        faults.set(Fault::Dead(dead));
        let error = run.piece(&[7; 1000], true).unwrap_err();
        assert!(matches!(&error, SpillError::Io { what: "writing", bytes: 264, .. }), "{error}");
        run.abandon(&mut count);
        faults.set(Fault::None);
        assert!(quota.used_bytes() >= whole + written, "what is there is counted");
        assert!(file_bytes(&folder).iter().sum::<u64>() <= quota.used_bytes());
        assert!(count.held == spool.allocated_bytes() && (runs_before == 0 || count.held == held));
        for number in runs_before..5 {
            write(&mut spool, 256, &records(number), &mut count).unwrap();
        }
        assert_eq!(file_bytes(&folder).len(), 2, "the next run began another file");
        let limits = MergeLimits { block_bytes: 256, fan_in: 2 };
        assert_eq!(merged(&mut spool, limits, &mut count).unwrap().0, plainly((0..5).map(records)));
        spool.clear(&mut count).unwrap();
        assert_eq!((quota.used_bytes(), count.held, file_bytes(&folder).len()), (0, 0, 0));
    }
}

/// A file system that cannot take back parts of a file: consumed runs go with their files, pass by pass.
#[test]
fn without_holes_in_files_each_pass_has_a_file_and_the_one_before_goes() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let (faults, folder) = faulty(parent.path(), &quota);
    let mut spool = Spool::new(&folder, "s");
    for number in 0..200 {
        write(&mut spool, 256, &records(number), &mut count).unwrap();
    }
    let all = quota.used_bytes();
    let limits = MergeLimits { block_bytes: 256, fan_in: 2 };
    // the first hole of the merge is refused: what an equal spool does says which call that is
    let (other, other_folder) = faulty(folder.path(), &quota);
    let mut same = Spool::new(&other_folder, "s");
    for number in 0..200 {
        write(&mut same, 256, &records(number), &mut count).unwrap();
    }
    merged(&mut same, limits, &mut count).unwrap();
    same.clear(&mut count).unwrap();
    let hole = other.calls().iter().position(|call| call.what == "give back").unwrap();
    drop((same, other_folder));

    faults.set(Fault::At(hole, EIO));
    let (plain, passes) = merged(&mut spool, limits, &mut count).unwrap();
    assert_eq!((plain, passes), (plainly((0..200).map(records)), 8));
    assert!(quota.used_bytes() < 2 * all, "{} of {all} bytes", quota.used_bytes());
    assert_eq!((faults.count("give back"), file_bytes(&folder).len()), (1, 1), "it is not tried again");
    spool.clear(&mut count).unwrap();
    assert_eq!((quota.used_bytes(), count.held), (0, 0));
}

/// Consumed runs go back to the file system during the merge, so it takes little more than what is merged.
#[test]
#[cfg(target_os = "linux")]
fn consumed_runs_make_room_while_the_merge_goes_on() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let folder = folder(parent.path(), &quota);
    let mut spool = Spool::new(&folder, "s");
    let big = |number: u32| plainly([[(number.to_be_bytes().to_vec(), vec![vec![number as u8; 20_000]])].into()]);
    for number in 0..64 {
        write(&mut spool, 4096, &big(number), &mut count).unwrap();
    }
    let all = quota.used_bytes();
    // as much again and a group more would be needed for a pass in one piece
    let tight = DiskQuota::new(all + 8 * 20_100 + 64 * 1024);
    let folder_of_tight = folder_in(parent.path(), &tight);
    let mut other = Spool::new(&folder_of_tight, "s");
    for number in 0..64 {
        write(&mut other, 4096, &big(number), &mut count).unwrap();
    }
    let limits = MergeLimits { block_bytes: 4096, fan_in: 8 };
    let (plain, passes) = merged(&mut other, limits, &mut count).unwrap();
    assert_eq!((plain, passes), (plainly((0..64).map(big)), 2));
    assert!(tight.used_bytes() <= all + 64 * 1024, "{} of {all}", tight.used_bytes());
    // a file system keeps its own blocks: what is counted is what the file takes on disk
    let on_disk: u64 = std::fs::read_dir(folder_of_tight.path())
        .unwrap()
        .map(|file| std::os::unix::fs::MetadataExt::blocks(&file.unwrap().metadata().unwrap()) * 512)
        .sum();
    assert!(on_disk <= tight.used_bytes() + 64 * 1024, "{on_disk} on disk, {} counted", tight.used_bytes());
    spool.clear(&mut count).unwrap();
    other.clear(&mut count).unwrap();
    assert_eq!((quota.used_bytes(), tight.used_bytes(), count.held), (0, 0, 0));
}

#[cfg(target_os = "linux")]
fn folder_in(parent: &std::path::Path, quota: &DiskQuota) -> SpillFolder {
    SpillFolder::create(plimsoll::spill::files::system(), parent, "tight", quota.clone()).unwrap()
}

/// A thousand writers have a thousand spools and no descriptor; a merge opens a file once, however many runs are in it.
#[test]
#[cfg(target_os = "linux")]
fn a_spool_that_is_not_used_has_no_descriptor_and_a_merge_opens_a_file_once() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let (faults, folder) = faulty(parent.path(), &quota);
    let mut spool = Spool::new(&folder, "s");
    for number in 0..100 {
        write(&mut spool, 256, &records(number), &mut count).unwrap();
    }
    assert!(!open_files_in(&folder), "nothing is open between runs");
    let before = faults.count("open for writing");
    let (plain, passes) = merged(&mut spool, MergeLimits { block_bytes: 256, fan_in: 3 }, &mut count).unwrap();
    assert_eq!((plain.len(), passes), (plainly((0..100).map(records)).len(), 5));
    assert_eq!(faults.count("open for writing"), before + 2, "once for the passes, once for the last merge");
    assert!(!open_files_in(&folder));
    spool.clear(&mut count).unwrap();
}

/// Whether this process has a file of the folder open.
#[cfg(target_os = "linux")]
fn open_files_in(folder: &SpillFolder) -> bool {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(Result::ok)
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(folder.path())))
}

/// B46: no room or no descriptor for a new file.
#[test]
fn a_file_that_cannot_be_created_is_an_error_with_nothing_taken() {
    for error in [ENOSPC, EMFILE] {
        let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
        let (faults, folder) = faulty(parent.path(), &quota);
        let mut spool = Spool::new(&folder, "s");
        let (call, number) = (faults.calls().len(), records(1));
        faults.set(Fault::At(call, error));
        let failed = write(&mut spool, 256, &number, &mut count).unwrap_err();
        assert_eq!(failed.io_error().unwrap().raw_os_error(), Some(error));
        assert!(matches!(&failed, SpillError::Io { what: "creating", path, .. } if path.starts_with(folder.path())));
        assert_eq!((count.held, quota.used_bytes(), file_bytes(&folder).len()), (0, 0, 0));
        write(&mut spool, 256, &number, &mut count).unwrap();
        assert_eq!(merged(&mut spool, MergeLimits::default(), &mut count).unwrap().0, number);
    }
}
