//! What all threads of a build share: the plan, the next batch, who may begin, what was spilled, and how it ended.
use crate::accounting::{Account, Charge, Mode};
use crate::build::admission::Admission;
use crate::build::outcome::Outcome;
use crate::build::plan::Plan;
use crate::build::turns::Turns;
use crate::build::watch::Watch;
use crate::error::{Error, Result};
use crate::input::Cutter;
use plimsoll::spill::SpillFolder;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Figures of the report, counted on the way. All Relaxed: read when every thread has ended.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) runs: AtomicU64,
    pub(super) spilled_bytes: AtomicU64,
    pub(super) forced_spills: AtomicU64,
    pub(super) own_spills: AtomicU64,
    pub(super) merge_passes: AtomicU64,
    /// handles of finished segment files that are still open
    pub(super) open_files: AtomicUsize,
    /// the most fields that a batch has had
    pub(super) fields: AtomicUsize,
    /// what the last segment's writer held when it was new
    pub(super) segment_bytes: AtomicUsize,
}

/// One build, as its threads see it.
#[derive(Debug)]
pub(super) struct Shared<'a, M: Mode> {
    pub(super) plan: &'a Plan,
    pub(super) mode: &'a M,
    pub(super) watch: &'a Watch,
    /// where segments are written
    pub(super) index: &'a Path,
    /// where runs are written
    pub(super) spill: &'a SpillFolder,
    /// runs are kept in memory, and these bytes are charged for them
    pub(super) spill_charge: Option<Mutex<M::Account>>,
    /// what stays until the index is published: the input's list, what the batches came to
    pub(super) kept: Mutex<M::Account>,
    pub(super) cutter: Mutex<Cutter<'a>>,
    pub(super) admission: Admission,
    pub(super) turns: Turns,
    pub(super) outcome: Outcome,
    pub(super) counts: Counts,
}

/// Room for `bytes` that are about to be charged to an account of the build's own, where nobody can wait.
pub(super) fn room(account: &mut impl Account, what: &str, bytes: usize) -> Result<()> {
    if account.room(bytes) {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{} for {what} are refused by --hard-limit: give a larger one, or larger --batch-bytes",
        plimsoll::Bytes(bytes)
    )))
}

/// The signal that asks a build to stop, as an error.
pub(super) fn signalled(signal: &AtomicI32) -> Result<()> {
    match signal.load(Ordering::Relaxed) {
        0 => Ok(()),
        signal => Err(Error::Interrupted { signal }),
    }
}

impl<M: Mode> Shared<'_, M> {
    /// Whether batch `number` may go on.
    pub(super) fn go_on(&self, number: u32) -> Result<()> {
        signalled(&self.watch.signal)?;
        self.outcome.go_on(number)
    }

    /// Memory was given back: who waits may look again.
    pub(super) fn freed(&self) {
        if M::HARD {
            self.turns.moved();
            self.turns.freed();
        } else {
            self.admission.freed();
        }
    }

    /// A run was sealed.
    pub(super) fn run_written(&self, bytes: u64) {
        self.counts.runs.fetch_add(1, Ordering::Relaxed);
        self.watch.runs.fetch_add(1, Ordering::Relaxed);
        self.counts.spilled_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What a spool has on disk has changed from what was told before.
    pub(super) fn on_disk(&self, told: &mut u64, now: u64) {
        let before = std::mem::replace(told, now);
        if let Some(charge) = &self.spill_charge {
            let mut charge = charge.lock().unwrap_or_else(PoisonError::into_inner);
            if now > before {
                charge.charge((now - before) as usize);
            } else {
                charge.release((before - now) as usize);
            }
        }
    }
}
