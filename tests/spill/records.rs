//! What the tests of runs and merges share: records, an account that counts and refuses, a target that collects.

use plimsoll::spill::merge::{MergeLimits, Target, Unwatched, merge, open_reduced};
use plimsoll::spill::run::Run;
use plimsoll::spill::{Charge, DiskQuota, RunReader, SpillError, SpillFolder, SpillResult, Spool};
use plimsoll::{GlobalMemoryLimiter, ReserveError};
use std::collections::BTreeMap;
use std::path::Path;

/// Key -> spans.
pub(crate) type Plain = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Counts what is charged; refuses what would be more than `limit`.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) held: usize,
    pub(crate) peak: usize,
    pub(crate) limit: usize,
}

impl Default for Count {
    fn default() -> Self {
        Count { held: 0, peak: 0, limit: usize::MAX }
    }
}

/// An error as a limiter makes it.
pub(crate) fn refusal() -> ReserveError {
    let limiter = GlobalMemoryLimiter::builder().hard_limit_bytes(1 << 20).build().unwrap();
    limiter.reporter("full").try_charge(2 << 20).unwrap_err()
}

impl Charge for Count {
    fn charge(&mut self, bytes: usize) {
        self.held += bytes;
        self.peak = self.peak.max(self.held);
    }
    fn release(&mut self, bytes: usize) {
        self.held = self.held.checked_sub(bytes).expect("no more is released than was charged");
    }
    fn try_charge(&mut self, bytes: usize) -> Result<(), ReserveError> {
        if self.held + bytes > self.limit {
            return Err(refusal());
        }
        self.charge(bytes);
        Ok(())
    }
}

/// Collects records.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    pub(crate) plain: Plain,
    key: Option<Vec<u8>>,
    span: Vec<u8>,
}

impl<C> Target<C> for Collect {
    type Error = SpillError;
    fn begin(&mut self, key: &[u8], _: &mut C) -> SpillResult<()> {
        assert!(self.key.as_deref().is_none_or(|last| last < key), "keys ascend");
        self.plain.insert(key.to_vec(), Vec::new());
        self.key = Some(key.to_vec());
        Ok(())
    }
    fn piece(&mut self, bytes: &[u8], last: bool, _: &mut C) -> SpillResult<()> {
        self.span.extend_from_slice(bytes);
        if last {
            let span = std::mem::take(&mut self.span);
            self.plain.get_mut(self.key.as_ref().unwrap()).unwrap().push(span);
        }
        Ok(())
    }
    fn end(&mut self, _: &mut C) -> SpillResult<()> {
        assert!(self.span.is_empty(), "a record ends with a span");
        Ok(())
    }
}

/// Writes a run: each span as pieces of 7 bytes, or in a few dozen if it is long.
pub(crate) fn write(spool: &mut Spool, block_bytes: usize, records: &Plain, account: &mut Count) -> SpillResult<Run> {
    let mut run = spool.begin(block_bytes, 0, account)?;
    let written = (|| {
        for (key, spans) in records {
            run.begin_record(key, account)?;
            for span in spans {
                let (mut rest, most) = (span.as_slice(), 7.max(span.len() / 40));
                while rest.len() > most {
                    run.piece(&rest[..most], false)?;
                    rest = &rest[most..];
                }
                run.piece(rest, true)?;
            }
            run.end_record()?;
        }
        Ok(())
    })();
    match written {
        Ok(()) => run.finish(account),
        Err(error) => {
            run.abandon(account);
            Err(error)
        }
    }
}

/// The records of some readers, which are released.
pub(crate) fn collect(mut readers: Vec<RunReader>, account: &mut Count) -> SpillResult<Plain> {
    let mut collect = Collect::default();
    let merged = merge(&mut readers, &mut collect, account, &mut Unwatched);
    readers.into_iter().for_each(|reader| reader.release(account));
    merged.map(|()| collect.plain)
}

/// All records of a spool, merged in bounded passes; and the passes.
pub(crate) fn merged(spool: &mut Spool, limits: MergeLimits, account: &mut Count) -> SpillResult<(Plain, u64)> {
    let (readers, passes) = open_reduced(spool, 0, limits, account, &mut Unwatched)?;
    collect(readers, account).map(|plain| (plain, passes))
}

/// The records of run `number`: a key that all runs have, some that a few have, one of its own, a long one.
pub(crate) fn records(number: u32) -> Plain {
    let mut plain = Plain::new();
    let mut put = |key: String, span: String| plain.insert(key.into_bytes(), vec![span.into_bytes()]);
    put("same".to_owned(), format!("run {number}"));
    put(format!("shared-{}", number % 7), format!("{number}"));
    put(format!("{:08x}", number.wrapping_mul(0x9E37_79B9)), "own ".repeat(number as usize % 9));
    if number.is_multiple_of(5) {
        put(format!("long-{}", "k".repeat(number as usize % 300)), "p".repeat(600));
    }
    plain
}

/// What merging these runs makes.
pub(crate) fn plainly(runs: impl IntoIterator<Item = Plain>) -> Plain {
    let mut all = Plain::new();
    for (key, spans) in runs.into_iter().flatten() {
        all.entry(key).or_default().extend(spans);
    }
    all
}

/// A spill folder of the system's calls, or of others.
pub(crate) fn folder(parent: &Path, quota: &DiskQuota) -> SpillFolder {
    SpillFolder::create(plimsoll::spill::files::system(), parent, "runs", quota.clone()).unwrap()
}

/// The lengths of the files in a folder.
pub(crate) fn file_bytes(folder: &SpillFolder) -> Vec<u64> {
    let files = std::fs::read_dir(folder.path()).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).collect()
}
