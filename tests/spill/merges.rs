//! Merges of many runs: in bounded passes, with few descriptors and little memory, side by side; nothing is dropped.

use crate::faults::{EIO, Fault, Faults};
use crate::records::{Collect, Count, Plain, collect, folder, merged, plainly, records, write};
use plimsoll::spill::merge::{
    MergeLimits, Source, Target, Unwatched, Watch, merge, most_open_files, open_reduced, reduce,
};
use plimsoll::spill::{Charge, DiskQuota, RunReader, RunWriter, SpillError, SpillFolder, SpillResult, Spool};
use plimsoll::{GlobalMemoryLimiter, KIB, MIB};
use std::collections::BTreeMap;

fn spool_of(runs: u32, block_bytes: usize, folder: &SpillFolder, count: &mut Count) -> Spool {
    let mut spool = Spool::new(folder, "s");
    for number in 0..runs {
        write(&mut spool, block_bytes, &records(number), count).unwrap();
    }
    spool
}

/// Adds up what it hears of.
#[derive(Debug, Default)]
struct Heard {
    groups: u64,
    written: u64,
    disk: u64,
    records: i64,
}

impl<C> Watch<C> for Heard {
    type Error = SpillError;
    fn record_begins(&mut self, _: &mut C) {
        self.records += 1;
    }
    fn record_ends(&mut self, _: &mut C) {
        self.records -= 1;
    }
    fn merged(&mut self, written_bytes: u64, disk_bytes: u64) {
        self.groups += 1;
        self.written += written_bytes;
        self.disk = disk_bytes;
    }
}

/// B44: 900 runs at a fan-in of 16 are 57, then 4, then one; the result is that of a merge without a limit.
#[test]
fn nine_hundred_runs_are_merged_in_three_passes_of_sixteen() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let folder = folder(parent.path(), &quota);
    let mut spool = spool_of(900, 4096, &folder, &mut count);
    let wide = merged(&mut spool, MergeLimits { block_bytes: 4096, fan_in: 1000 }, &mut count).unwrap();
    assert_eq!((wide.0 == plainly((0..900).map(records)), wide.1), (true, 1));
    let lists = spool.allocated_bytes();
    count.peak = 0;
    let mut heard = Heard::default();
    let limits = MergeLimits { block_bytes: 4096, fan_in: 16 };
    let (readers, passes) = open_reduced(&mut spool, 0, limits, &mut count, &mut heard).unwrap();
    assert_eq!((passes, readers.len(), spool.len(), heard.groups), (3, 4, 4, 57 + 4), "900, 57, 4, 1");
    assert_eq!((heard.disk, heard.records), (spool.disk_bytes(), 0));
    assert!(heard.written > spool.runs().map(|run| run.bytes()).sum());
    assert!(collect(readers, &mut count).unwrap() == wide.0);
    assert!(count.peak <= lists + 16 * RunReader::most_bytes(4096, 400) + RunWriter::most_bytes(4096, 400) + 4096);
    spool.clear(&mut count).unwrap();
    assert_eq!((count.held, quota.used_bytes()), (0, 0));
}

/// What the child of the next test does: 900 runs of 64 KiB each, eight merges side by side, with few descriptors.
fn merge_with_few_descriptors() {
    const RUNS: u32 = 900;
    let most = most_open_files();
    assert_eq!(most, 64);
    let run = |number: u32| -> Plain { [(number.to_be_bytes().to_vec(), vec![vec![number as u8; 64 << 10]])].into() };
    let parent = tempfile::tempdir().unwrap();
    let folder = folder(parent.path(), &DiskQuota::unlimited());
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let folder = &folder;
            scope.spawn(move || {
                let mut count = Count::default();
                let mut spool = Spool::new(folder, &format!("t{thread}"));
                // one thread has them all; the others' merges are beside it
                let runs = if thread == 0 { RUNS } else { 40 };
                for number in 0..runs {
                    write(&mut spool, 64 << 10, &run(number), &mut count).unwrap();
                }
                let limits = MergeLimits { block_bytes: 64 << 10, fan_in: 16 };
                let (plain, passes) = merged(&mut spool, limits, &mut count).unwrap();
                assert!(plain == plainly((0..runs).map(run)));
                assert_eq!(passes, if thread == 0 { 3 } else { 2 });
                // nothing but this file is open for it
                let mut floor = Spool::new(folder, &format!("f{thread}"));
                for number in 0..33 {
                    write(&mut floor, 256, &records(number), &mut count).unwrap();
                }
                let least = MergeLimits::of(0, 0);
                assert_eq!((least.fan_in, least.block_bytes), (2, 256), "a floor of two");
                assert_eq!(merged(&mut floor, least, &mut count).unwrap(), (plainly((0..33).map(records)), 6));
                spool.clear(&mut count).unwrap();
                floor.clear(&mut count).unwrap();
                assert_eq!(count.held, 0);
            });
        }
    });
}

/// B44: a limit of 64 open files, 900 runs of 64 KiB, eight merges side by side.
#[test]
#[cfg(unix)]
fn many_runs_are_merged_side_by_side_with_few_descriptors() {
    const CHILD: &str = "PLIMSOLL_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        let few = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
        merge_with_few_descriptors();
        return;
    }
    let test = "merges::many_runs_are_merged_side_by_side_with_few_descriptors";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let said = child.args([test, "--exact"]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("1 passed"), "{text}");
}

/// B48: however many runs one writer has, everything that was written is read: keys, spans, bytes.
#[test]
fn no_run_is_dropped_however_many_there_are() {
    for runs in [1u32, 63, 64, 65, 77, 300, 70_000] {
        let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
        let folder = folder(parent.path(), &quota);
        let mut spool = Spool::new(&folder, "s");
        for number in 0..runs {
            let own: Plain = [
                (b"same".to_vec(), vec![number.to_be_bytes().to_vec()]),
                (format!("own {number}").into_bytes(), vec![vec![], number.to_be_bytes().to_vec()]),
            ]
            .into();
            write(&mut spool, 256, &own, &mut count).unwrap();
        }
        assert_eq!(spool.len(), runs as usize);
        assert!(count.held < 4096 + runs as usize * 64, "the list is charged: {}", count.held);
        let limits = MergeLimits { block_bytes: 4096, fan_in: 64 };
        let (plain, passes) = merged(&mut spool, limits, &mut count).unwrap();
        let expected = match runs {
            1..=64 => 1,
            65..=4096 => 2,
            // 70,000, 1,094, 18, 1
            _ => 3,
        };
        assert_eq!(passes, expected, "{runs} runs");
        assert_eq!(plain.len(), runs as usize + 1);
        let same: Vec<u32> =
            plain[&b"same"[..]].iter().map(|span| u32::from_be_bytes(span[..].try_into().unwrap())).collect();
        assert!(same.iter().copied().eq(0..runs), "in the order in which they were written");
        let own: u64 = plain.values().flatten().map(|span| span.len() as u64).sum();
        assert_eq!(own, 8 * u64::from(runs));
        spool.clear(&mut count).unwrap();
        assert_eq!((count.held, quota.used_bytes()), (0, 0));
    }
}

/// B45: a budget of 16 MiB holds a merge of 256 runs and of 4,000, whatever their buffers would like to be.
#[test]
fn a_merge_stays_in_its_budget() {
    for runs in [256u32, 4000] {
        let (parent, quota) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited());
        let folder = folder(parent.path(), &quota);
        let limiter = GlobalMemoryLimiter::builder().hard_limit_bytes(16 * MIB).build().unwrap();
        let reporter = limiter.reporter("merge");
        let mut account = &reporter;
        let limits = MergeLimits::of(16 * MIB, most_open_files());
        assert_eq!(limits.block_bytes, 64 * KIB);
        assert!((200..=255).contains(&limits.fan_in), "{limits:?}");
        let mut spool = Spool::new(&folder, "s");
        let mut expected = BTreeMap::new();
        for number in 0..runs {
            let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
            let mut run = spool.begin(limits.block_bytes, 4, &mut account).unwrap();
            run.begin_record(&key, &mut account).unwrap();
            run.piece(&vec![number as u8; 70_000 / (1 + runs as usize / 1000)], true).unwrap();
            run.end_record().unwrap();
            run.finish(&mut account).unwrap();
            expected.insert(key, number as u8);
        }
        /// Compares with what is expected, and holds nothing.
        struct Same(std::collections::btree_map::IntoIter<[u8; 4], u8>, u8);
        impl<C> Target<C> for Same {
            type Error = SpillError;
            fn begin(&mut self, key: &[u8], _: &mut C) -> SpillResult<()> {
                let (expected, fill) = self.0.next().unwrap();
                assert_eq!(key, expected);
                self.1 = fill;
                Ok(())
            }
            fn piece(&mut self, bytes: &[u8], _: bool, _: &mut C) -> SpillResult<()> {
                assert!(bytes.iter().all(|&byte| byte == self.1));
                Ok(())
            }
            fn end(&mut self, _: &mut C) -> SpillResult<()> {
                Ok(())
            }
        }
        // asked for more than the budget holds, readers are refused, and groups are smaller
        let wide = MergeLimits { fan_in: 100_000, ..limits };
        let (mut readers, passes) = open_reduced(&mut spool, 0, wide, &mut account, &mut Unwatched).unwrap();
        assert!(passes >= 2, "{passes}");
        let mut same = Same(expected.into_iter(), 0);
        merge(&mut readers, &mut same, &mut account, &mut Unwatched).unwrap();
        assert!(same.0.next().is_none(), "all of them");
        readers.into_iter().for_each(|reader| reader.release(&mut account));
        spool.clear(&mut account).unwrap();
        drop(spool);
        let stats = limiter.stats();
        assert!(stats.peak_held_bytes <= 16 * MIB && stats.overdraft_peak_bytes == 0, "{stats:?}");
        assert!(stats.peak_held_bytes > 8 * MIB, "the budget is made use of: {stats:?}");
        assert_eq!((reporter.held_bytes(), quota.used_bytes()), (0, 0));
    }
}

/// B45: an error in the middle of a merge gives back all that the merge held; the runs stay, and merging them again works.
#[test]
fn a_read_error_in_a_merge_gives_back_all_that_it_held() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let faults = Faults::new(Fault::None);
    let folder = SpillFolder::create(faults.files(), parent.path(), "runs", quota.clone()).unwrap();
    let mut spool = spool_of(256, 1024, &folder, &mut count);
    let (held, used) = (count.held, quota.used_bytes());
    let limits = MergeLimits { block_bytes: 1024, fan_in: 300 };
    let readers = spool.open(&mut count).unwrap();
    assert!(count.held > held + 256 * 100);
    faults.set(Fault::At(faults.calls().len() + 100, EIO));
    let error = collect(readers, &mut count).unwrap_err();
    assert!(matches!(&error, SpillError::Io { what: "reading", bytes, .. } if *bytes > 0), "{error}");
    assert_eq!((count.held, quota.used_bytes(), spool.len()), (held, used, 256));
    let narrow = MergeLimits { fan_in: 16, ..limits };
    faults.set(Fault::At(faults.calls().len() + 100, EIO));
    let error = merged(&mut spool, narrow, &mut count).unwrap_err();
    assert!(error.to_string().starts_with("reading "), "{error}");
    assert!(count.held <= held + 2048 && count.held == spool.allocated_bytes());
    assert_eq!(merged(&mut spool, narrow, &mut count).unwrap().0, plainly((0..256).map(records)));
    spool.clear(&mut count).unwrap();
    assert_eq!((count.held, quota.used_bytes()), (0, 0));
}

/// Whatever memory there is for it, a merge makes the same or is refused; two readers and a writer are enough.
#[test]
fn a_merge_takes_fewer_sources_before_it_is_refused() {
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let folder = folder(parent.path(), &quota);
    let (mut refused, mut most) = (0, 0);
    for room in (500..60_000).step_by(1700) {
        let mut spool = spool_of(50, 2048, &folder, &mut count);
        let lists = spool.allocated_bytes();
        count.limit = lists + room;
        let limits = MergeLimits { block_bytes: 2048, fan_in: 50 };
        let least = RunWriter::most_bytes(256, 310) + 2 * RunReader::most_bytes(2048, 310) + 2048;
        match merged(&mut spool, limits, &mut count) {
            Ok((plain, passes)) => {
                assert!(plain == plainly((0..50).map(records)));
                most = most.max(passes);
            }
            Err(error) => {
                assert!(matches!(error, SpillError::Memory(_)) && room < least, "{room}: {error}");
                assert_eq!((count.held, spool.len()), (lists, 50), "and nothing is lost");
                refused += 1;
            }
        }
        count.limit = usize::MAX;
        spool.clear(&mut count).unwrap();
        assert_eq!((count.held, quota.used_bytes()), (0, 0));
    }
    assert!(refused > 0 && most >= 4, "{refused} refused, at most {most} passes");
}

#[test]
fn limits_follow_from_memory_and_descriptors() {
    for (workspace, files, block, fan_in) in [
        (0, usize::MAX, 256, 2),
        (16 * KIB, usize::MAX, 470, 16),
        (MIB, usize::MAX, 61_400, 16),
        (64 * MIB, usize::MAX, 64 * KIB, 1017),
        (1 << 40, usize::MAX, 64 * KIB, 1024),
        (64 * MIB, 17, 64 * KIB, 16),
        (64 * MIB, 0, 64 * KIB, 2),
    ] {
        let limits = MergeLimits::of(workspace, files);
        assert!(
            limits.block_bytes <= block.max(256) && limits.block_bytes * 10 >= block * 9,
            "{workspace}: {limits:?}"
        );
        assert!(limits.fan_in <= fan_in && limits.fan_in * 20 >= fan_in * 19 - 20, "{workspace}: {limits:?}");
        let reader = RunReader::most_bytes(limits.block_bytes, 256);
        let all = limits.fan_in * reader + RunWriter::most_bytes(limits.block_bytes, 256);
        assert!(all <= workspace || limits.fan_in == 2, "{workspace}: {limits:?}");
    }
    let default = MergeLimits::default();
    assert_eq!((default.block_bytes, default.fan_in), (64 * KIB, 16));
}

/// What a builder still holds in memory is a source beside its runs, and comes last.
#[test]
fn memory_is_merged_behind_the_runs() {
    enum Either {
        Run(RunReader),
        Memory(std::vec::IntoIter<(&'static [u8], &'static [u8])>, &'static [u8], &'static [u8]),
    }
    impl<C: Charge> Source<C> for Either {
        fn advance(&mut self, account: &mut C) -> SpillResult<bool> {
            match self {
                Either::Run(reader) => Source::advance(reader, account),
                Either::Memory(rest, key, value) => Ok(rest.next().map(|next| (*key, *value) = next).is_some()),
            }
        }
        fn prefix(&self) -> u64 {
            plimsoll::spill::run::prefix(Source::<C>::key(self))
        }
        fn key(&self) -> &[u8] {
            match self {
                Either::Run(reader) => reader.key(),
                Either::Memory(_, key, _) => key,
            }
        }
        fn drain<T, E>(&mut self, target: &mut T, account: &mut C) -> Result<(), E>
        where
            T: Target<C>,
            E: From<SpillError> + From<T::Error>,
        {
            match self {
                Either::Run(reader) => Source::drain(reader, target, account),
                Either::Memory(_, _, value) => Ok(target.piece(value, true, account)?),
            }
        }
    }
    let (parent, mut count) = (tempfile::tempdir().unwrap(), Count::default());
    let folder = folder(parent.path(), &DiskQuota::unlimited());
    let mut spool = spool_of(5, 256, &folder, &mut count);
    let limits = MergeLimits { block_bytes: 256, fan_in: 4 };
    let passes = reduce(&mut spool, 1, limits, &mut count, &mut Unwatched).unwrap();
    assert_eq!((passes, spool.len()), (1, 2), "four sources with the memory");
    let mut sources: Vec<_> = spool.open(&mut count).unwrap().into_iter().map(Either::Run).collect();
    let memory: Vec<(&'static [u8], &'static [u8])> = vec![(b"absent elsewhere", b"1"), (b"same", b"memory")];
    sources.push(Either::Memory(memory.into_iter(), b"", b""));
    let mut all = Collect::default();
    merge(&mut sources, &mut all, &mut count, &mut Unwatched).unwrap();
    let mut expected = plainly((0..5).map(records));
    expected.insert(b"absent elsewhere".to_vec(), vec![b"1".to_vec()]);
    expected.get_mut(&b"same"[..]).unwrap().push(b"memory".to_vec());
    assert_eq!(all.plain, expected);
}

/// Who watches can end a merge; the runs are as they were, in their order.
#[test]
fn a_merge_that_is_told_to_stop_loses_nothing() {
    struct Stopping(u32);
    #[derive(Debug)]
    enum Why {
        Asked,
        Spill(#[allow(dead_code, reason = "shown when the test fails")] SpillError),
    }
    impl From<SpillError> for Why {
        fn from(error: SpillError) -> Why {
            Why::Spill(error)
        }
    }
    impl<C> Watch<C> for Stopping {
        type Error = Why;
        fn go_on(&mut self) -> Result<(), Why> {
            self.0 -= 1;
            if self.0 == 0 { Err(Why::Asked) } else { Ok(()) }
        }
    }
    let (parent, quota, mut count) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited(), Count::default());
    let folder = folder(parent.path(), &quota);
    let big = |number: u32| -> Plain {
        (0..500).map(|record| (format!("{record:03} {}", number % 3).into_bytes(), vec![vec![number as u8]])).collect()
    };
    let all = plainly((0..20).map(big));
    for looks in 1..=8 {
        let mut spool = Spool::new(&folder, "s");
        (0..20).for_each(|number| {
            write(&mut spool, 1024, &big(number), &mut count).unwrap();
        });
        let limits = MergeLimits { block_bytes: 1024, fan_in: 3 };
        let stopped = reduce(&mut spool, 0, limits, &mut count, &mut Stopping(looks)).unwrap_err();
        assert!(matches!(stopped, Why::Asked), "{stopped:?}");
        assert_eq!(count.held, spool.allocated_bytes());
        assert_eq!(merged(&mut spool, limits, &mut count).unwrap().0, all, "stopped at look {looks}");
        spool.clear(&mut count).unwrap();
    }
    assert_eq!((count.held, quota.used_bytes()), (0, 0));
}

/// A merge that ends by a panic of whoever watches it, at any record: the spool has all its runs, in their order, and one
/// that comes later is behind them.
#[test]
fn a_merge_that_panics_leaves_all_runs_in_their_order() {
    struct Panicking(u32);
    impl<C> Watch<C> for Panicking {
        type Error = SpillError;
        fn record_begins(&mut self, _: &mut C) {
            self.0 -= 1;
            assert!(self.0 > 0, "on purpose");
        }
    }
    let (parent, quota) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited());
    let folder = folder(parent.path(), &quota);
    let limits = MergeLimits { block_bytes: 1024, fan_in: 3 };
    let wide = MergeLimits { fan_in: 100, ..limits };
    for records_before in (1..80).step_by(6) {
        let mut count = Count::default();
        let mut spool = spool_of(20, 1024, &folder, &mut count);
        let merging = std::panic::AssertUnwindSafe(|| {
            reduce(&mut spool, 0, limits, &mut count, &mut Panicking(records_before)).unwrap()
        });
        std::panic::catch_unwind(merging).unwrap_err();
        write(&mut spool, 1024, &records(20), &mut count).unwrap();
        assert!(merged(&mut spool, wide, &mut count).unwrap().0 == plainly((0..21).map(records)), "{records_before}");
        spool.clear(&mut count).unwrap();
        assert_eq!(quota.used_bytes(), 0);
    }
}

/// Who watches is asked however few records the runs have.
#[test]
fn a_merge_of_many_small_runs_is_asked_whether_to_go_on() {
    struct Looks(u32);
    impl<C> Watch<C> for Looks {
        type Error = SpillError;
        fn go_on(&mut self) -> Result<(), SpillError> {
            self.0 += 1;
            Ok(())
        }
    }
    let (parent, mut count) = (tempfile::tempdir().unwrap(), Count::default());
    let folder = folder(parent.path(), &DiskQuota::unlimited());
    let mut spool = spool_of(300, 256, &folder, &mut count);
    let (limits, mut looks) = (MergeLimits { block_bytes: 256, fan_in: 3 }, Looks(0));
    reduce(&mut spool, 0, limits, &mut count, &mut looks).unwrap();
    assert!(looks.0 >= 100, "asked {} times while 300 runs became {}", looks.0, spool.len());
}

// a spool, its readers and what it holds can go to another thread
static_assertions::assert_impl_all!(Spool: Send, Sync);
static_assertions::assert_impl_all!(RunReader: Send, Sync);
