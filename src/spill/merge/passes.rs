//! Many runs become few: while a spool has more runs than may be merged at once, contiguous groups of them are merged into
//! bigger runs, oldest first, so that the order of the runs stays the order in which they were written.
//!
//! A group is there until the run that it becomes is sealed, so whatever fails, the runs of the spool are all that was
//! spilled, in order, and merging them again makes the same.

use super::limits::MergeLimits;
use super::traits::Watch;
use super::ways::merge;
use crate::spill::charge::Charge;
use crate::spill::error::SpillError;
use crate::spill::run::{LEAST_BLOCK_BYTES, RunReader};
use crate::spill::spool::{Spool, release_all};

/// Merges groups of runs until they and `other` further sources can be merged at once. Returns the passes it took.
/// Each reader is charged; where one is refused, a group is as many as were not, at least 2, and runs
/// are written in smaller blocks if need be. Blocks on the file system.
///
/// # Errors
/// What reading or writing says, `watch`, or a charge if two readers and a writer are refused. The spool's runs are all
/// there then, and a further call goes on.
pub fn reduce<C, W>(
    spool: &mut Spool,
    other: usize,
    limits: MergeLimits,
    account: &mut C,
    watch: &mut W,
) -> Result<u64, W::Error>
where
    C: Charge,
    W: Watch<C>,
{
    let fan_in = limits.fan_in.max(2);
    let mut passes = 0;
    while spool.len() > 1 && spool.len().saturating_add(other) > fan_in {
        passes += 1;
        let passed = pass(InPass::of(spool).0, MergeLimits { fan_in, ..limits }, account, watch);
        spool.settle(account);
        if let Err(stop) = passed {
            spool.rest();
            return Err(match stop {
                Stop::Spill(error) => error.into(),
                Stop::Watch(error) => error,
            });
        }
    }
    spool.rest();
    Ok(passes)
}

/// Reduces a spool's runs as [`reduce`] does and opens what is left, to be merged with `other` further sources; where a
/// reader is refused, there is another pass. Returns the readers and the passes, that of their own merge included if there
/// are any.
///
/// # Errors
/// As [`reduce`]; nothing stays open or charged.
pub fn open_reduced<C, W>(
    spool: &mut Spool,
    other: usize,
    mut limits: MergeLimits,
    account: &mut C,
    watch: &mut W,
) -> Result<(Vec<RunReader>, u64), W::Error>
where
    C: Charge,
    W: Watch<C>,
{
    let mut passes = u64::from(!spool.is_empty());
    loop {
        passes += reduce(spool, other, limits, account, watch)?;
        let (readers, opened) = spool.open_some(usize::MAX, account);
        let Err(error) = opened else { return Ok((readers, passes)) };
        let fits = readers.len() + other;
        release_all(readers, account);
        let sources = spool.len() + other;
        if !matches!(error, SpillError::Memory(_)) || spool.len() < 2 || sources <= 2 {
            return Err(error.into());
        }
        limits.fan_in = fits.min(sources - 1).max(2);
    }
}

/// A pass that goes on. When it ends, by a panic of the caller's too, all runs are one list again.
struct InPass<'s>(&'s mut Spool);

impl InPass<'_> {
    fn of(spool: &mut Spool) -> InPass<'_> {
        spool.begin_pass();
        InPass(spool)
    }
}

impl Drop for InPass<'_> {
    fn drop(&mut self) {
        self.0.end_pass();
        if std::thread::panicking() {
            self.0.rest();
        }
    }
}

/// Why a group was not merged.
enum Stop<E> {
    Spill(SpillError),
    Watch(E),
}

impl<E> From<SpillError> for Stop<E> {
    fn from(error: SpillError) -> Self {
        Stop::Spill(error)
    }
}

/// The caller's watch, with errors that tell memory from the rest.
struct Told<'w, W>(&'w mut W);

impl<C, W: Watch<C>> Watch<C> for Told<'_, W> {
    type Error = Stop<W::Error>;
    #[inline]
    fn go_on(&mut self) -> Result<(), Self::Error> {
        self.0.go_on().map_err(Stop::Watch)
    }
    #[inline]
    fn record_begins(&mut self, account: &mut C) {
        self.0.record_begins(account);
    }
    #[inline]
    fn record_ends(&mut self, account: &mut C) {
        self.0.record_ends(account);
    }
}

fn pass<C, W>(spool: &mut Spool, limits: MergeLimits, account: &mut C, watch: &mut W) -> Result<(), Stop<W::Error>>
where
    C: Charge,
    W: Watch<C>,
{
    // a last one alone stays as it is, behind what the others become
    while spool.left() > 1 {
        watch.go_on().map_err(Stop::Watch)?;
        let group = spool.left().min(limits.fan_in);
        let mut block_bytes = limits.block_bytes;
        let (merged, written) = loop {
            match merge_group(spool, group, block_bytes, account, watch) {
                // a smaller buffer for what is written may leave room for two readers
                Err(Stop::Spill(SpillError::Memory(_))) if block_bytes > LEAST_BLOCK_BYTES => {
                    block_bytes = (block_bytes / 2).max(LEAST_BLOCK_BYTES);
                }
                merged => break merged?,
            }
        };
        spool.consume(merged, account);
        watch.merged(written, spool.disk_bytes());
    }
    Ok(())
}

/// Merges the oldest runs that are left into one; returns how many, and the bytes of that one.
fn merge_group<C, W>(
    spool: &mut Spool,
    group: usize,
    block_bytes: usize,
    account: &mut C,
    watch: &mut W,
) -> Result<(usize, u64), Stop<W::Error>>
where
    C: Charge,
    W: Watch<C>,
{
    let longest = spool.left_runs().take(group).map(|run| run.longest_key_bytes()).max().unwrap_or(0);
    let mut run = spool.begin(block_bytes, longest, account)?;
    let heap = super::heap_bytes(group);
    let merged = (|| {
        // taken first, so that the readers leave room for it
        account.try_charge(heap).map_err(SpillError::from)?;
        let (mut readers, opened) = run.spool.open_some(group, account);
        account.release(heap);
        match opened {
            Err(SpillError::Memory(_)) if readers.len() >= 2 => {}
            Ok(()) => {}
            Err(error) => {
                release_all(readers, account);
                return Err(error.into());
            }
        }
        let merged = merge(&mut readers, &mut run, account, &mut Told(watch));
        let count = readers.len();
        release_all(readers, account);
        merged.map(|()| count)
    })();
    match merged {
        Ok(count) => Ok((count, run.finish(account)?.bytes())),
        Err(stop) => {
            run.abandon(account);
            Err(stop)
        }
    }
}
