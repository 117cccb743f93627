//! The process-wide sums: what is published, what is reserved, what may be held back.
//!
//! **Reserved** is the sum of the upper ends of all windows: no true total is above it, but for the one change that each
//! owner is making. It is what limits are compared with before anything is granted. All of them are written at the ends of
//! windows only, by whoever holds the lock of the cell that the change belongs to.

use super::cell::clamp;
use super::reconcile::Drift;
use crate::sync::{AtomicUsize, Ordering, mutant};
use crossbeam_utils::CachePadded;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ledger {
    sums: CachePadded<Sums>,
    granted: CachePadded<AtomicUsize>,
    /// Windows that are not closed: cells that may hold credit which they do not use.
    open: CachePadded<AtomicUsize>,
    peaks: CachePadded<Peaks>,
}

/// What a publish moves, together.
#[derive(Debug)]
struct Sums {
    published: AtomicUsize,
    reserved: AtomicUsize,
    /// What of `published` is held by writers without an arena.
    apart: AtomicUsize,
}

#[derive(Debug)]
struct Peaks {
    reserved: AtomicUsize,
    overdraft: AtomicUsize,
}

/// What the sums should be, from the cells.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) published: usize,
    pub(crate) reserved: usize,
    pub(crate) granted: usize,
    pub(crate) apart: usize,
    pub(crate) open: usize,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let zero = || AtomicUsize::new(0);
        Ledger {
            sums: CachePadded::new(Sums { published: zero(), reserved: zero(), apart: zero() }),
            granted: CachePadded::new(zero()),
            open: CachePadded::new(zero()),
            peaks: CachePadded::new(Peaks { reserved: zero(), overdraft: zero() }),
        }
    }

    /// The lagged sum. Bytes that came back through one counter and were charged on another can make the raw sum
    /// negative for a moment; that reads as 0.
    pub(crate) fn published_bytes(&self) -> usize {
        clamp(self.sums.published.load(Ordering::Acquire))
    }

    /// What is published, and what owners may take without asking.
    pub(crate) fn reserved_bytes(&self) -> usize {
        clamp(self.sums.reserved.load(Ordering::Acquire))
    }

    /// What of the lagged sum is held by writers without an arena.
    pub(crate) fn apart_bytes(&self) -> usize {
        clamp(self.sums.apart.load(Ordering::Relaxed))
    }

    /// The sum of the rooms: the most that the lagged sum can differ from the exact one.
    pub(crate) fn granted_bytes(&self) -> usize {
        self.granted.load(Ordering::Acquire)
    }

    /// The largest that was ever reserved: no true total was higher.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peaks.reserved.load(Ordering::Relaxed)
    }

    /// The largest overdraft.
    pub(crate) fn overdraft_peak_bytes(&self) -> usize {
        self.peaks.overdraft.load(Ordering::Relaxed)
    }

    /// What was recorded beyond the hard limit after all credit was called back.
    pub(crate) fn overdrawn(&self, bytes: usize) {
        self.peaks.overdraft.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Moves the lagged sum, after the cell's own word was stored.
    pub(crate) fn publish(&self, moved: isize) {
        // AcqRel, after the store of `held`: whoever crosses a threshold here and walks the cells sees every byte that is
        // in the sum. Relaxed or Release alone would let it miss some (models `crosser_*`).
        let order = if mutant("crosser_unordered") { Ordering::Relaxed } else { Ordering::AcqRel };
        self.sums.published.fetch_add(moved as usize, order);
    }

    /// Moves what writers without an arena have in the lagged sum. Relaxed: a number of its own.
    pub(crate) fn set_apart(&self, moved: isize) {
        self.sums.apart.fetch_add(moved as usize, Ordering::Relaxed);
    }

    /// Reserves `bytes` more whatever the limits say: they exist. Answers what is reserved then.
    pub(crate) fn reserve(&self, bytes: usize) -> usize {
        let sum = clamp(self.sums.reserved.fetch_add(bytes, Ordering::AcqRel).wrapping_add(bytes));
        self.raise_peak(sum);
        sum
    }

    /// Reserves `bytes` more, unless all that is reserved would pass `limit`. Answers what is reserved then.
    pub(crate) fn try_reserve(&self, bytes: usize, limit: usize) -> Option<usize> {
        // From a read-modify-write and not a load, so that a model explores every order.
        let mut reserved = self.sums.reserved.fetch_add(0, Ordering::Relaxed);
        loop {
            let sum = clamp(reserved).saturating_add(bytes);
            if sum > limit {
                return None;
            }
            let new = reserved.wrapping_add(bytes);
            match self.sums.reserved.compare_exchange_weak(reserved, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.raise_peak(sum);
                    return Some(sum);
                }
                Err(seen) => reserved = seen,
            }
        }
    }

    /// Gives back what was reserved, after the window that it was for has shrunk.
    pub(crate) fn give_back(&self, bytes: usize) {
        // Release: whoever takes these bytes sees what was freed.
        self.sums.reserved.fetch_sub(bytes, Ordering::AcqRel);
    }

    fn raise_peak(&self, sum: usize) {
        // Looked at first: a peak is rarely new, and a load leaves the line shared.
        if sum > self.peaks.reserved.load(Ordering::Relaxed) {
            self.peaks.reserved.fetch_max(sum, Ordering::Relaxed);
        }
    }

    /// A window opens, before any credit is taken for it.
    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    /// A window has closed, after its credit is back.
    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether no cell holds credit that it does not use. Acquire: then everything that was given back is seen.
    pub(crate) fn all_closed(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// Before a window grows: `bytes` more may be held back, unless all rooms together would pass `limit`.
    pub(crate) fn try_grant(&self, bytes: usize, limit: usize) -> bool {
        // From a read-modify-write and not a load, so that a model explores every order.
        let mut granted = self.granted.fetch_add(0, Ordering::Relaxed);
        loop {
            match granted.checked_add(bytes) {
                Some(more) if more <= limit => {
                    match self.granted.compare_exchange_weak(granted, more, Ordering::AcqRel, Ordering::Relaxed) {
                        Ok(_) => return true,
                        Err(seen) => granted = seen,
                    }
                }
                _ => return false,
            }
        }
    }

    /// Sets every sum to what it should be, while every cell is locked. Answers how far each was from it.
    pub(crate) fn repair(&self, right: &Totals) -> Drift {
        let mend = |sum: &AtomicUsize, right: usize| sum.swap(right, Ordering::AcqRel).wrapping_sub(right) as isize;
        Drift {
            published_bytes: mend(&self.sums.published, right.published),
            reserved_bytes: mend(&self.sums.reserved, right.reserved),
            granted_bytes: mend(&self.granted, right.granted),
            apart_bytes: mend(&self.sums.apart, right.apart),
            open_windows: mend(&self.open, right.open),
        }
    }

    /// After a window shrank.
    pub(crate) fn take_back(&self, bytes: usize) {
        self.granted.fetch_sub(bytes, Ordering::AcqRel);
    }
}
