//! The two process-wide sums, each on a line of its own: what is published, and what may be held back.
//!
//! Both are written at quantum boundaries only, by whoever holds the lock of the cell that the change belongs to.

use super::cell::clamp;
use crate::sync::{AtomicUsize, Ordering, mutant};
use crossbeam_utils::CachePadded;

/// Published and granted bytes, and the highest sum of both.
#[derive(Debug)]
pub(crate) struct Ledger {
    published: CachePadded<AtomicUsize>,
    granted: CachePadded<AtomicUsize>,
    peak: CachePadded<AtomicUsize>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Ledger {
            published: CachePadded::new(AtomicUsize::new(0)),
            granted: CachePadded::new(AtomicUsize::new(0)),
            peak: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    /// The lagged sum. Bytes that came back through one counter and were charged on another can make the raw sum
    /// negative for a moment; that reads as 0.
    pub(crate) fn published_bytes(&self) -> usize {
        clamp(self.published.load(Ordering::Acquire))
    }

    /// The sum of the rooms: the most that the lagged sum can differ from the exact one.
    pub(crate) fn granted_bytes(&self) -> usize {
        self.granted.load(Ordering::Acquire)
    }

    /// The largest of published + granted at any publish: no true total was higher.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Moves the lagged sum, after the cell's own word was stored.
    pub(crate) fn publish(&self, moved: isize) {
        // AcqRel, after the store of `held`: whoever crosses a threshold here and walks the cells sees every byte that is
        // in the sum. Relaxed or Release alone would let it miss some (models `crosser_*`).
        let order = if mutant("crosser_unordered") { Ordering::Relaxed } else { Ordering::AcqRel };
        let sum = clamp(self.published.fetch_add(moved as usize, order).wrapping_add(moved as usize));
        if moved > 0 {
            let most = sum.saturating_add(self.granted.load(Ordering::Relaxed));
            // Looked at first: a peak is rarely new, and a load leaves the line shared.
            if most > self.peak.load(Ordering::Relaxed) {
                self.peak.fetch_max(most, Ordering::Relaxed);
            }
        }
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

    /// After a window shrank.
    pub(crate) fn take_back(&self, bytes: usize) {
        self.granted.fetch_sub(bytes, Ordering::AcqRel);
    }
}
