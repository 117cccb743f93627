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

    /// Before a window grows.
    pub(crate) fn grant(&self, bytes: usize) {
        self.granted.fetch_add(bytes, Ordering::AcqRel);
    }

    /// After a window shrank.
    pub(crate) fn take_back(&self, bytes: usize) {
        self.granted.fetch_sub(bytes, Ordering::AcqRel);
    }
}
