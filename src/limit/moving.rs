//! Moving somebody else's window: the one primitive under everything that does not wait for an owner.
//!
//! Lock the cell; `hi = 0`, `lo = MAX`, so that the owner's next change comes to the slow path and waits for the lock;
//! process-wide barrier; load `held`; settle on the owner's behalf; set the new window; unlock. The barrier makes every
//! change that missed the closed window visible to that load. One barrier serves a batch of cells.

use super::cell::{Cell, MAX_BYTES};
use super::core::Core;
use super::window::Window;
use crate::sync::{MutexGuard, Ordering, process_barrier};
use std::sync::Arc;

/// Cells whose windows are closed under one barrier: owners wait meanwhile, so not too many.
const BATCH: usize = 64;

impl Core {
    /// Publishes, on their owners' behalf, what cells hold back, and deals them new windows. Without the process-wide
    /// barrier it does nothing and answers false. The caller must not hold the lock of any cell.
    pub(crate) fn settle_others(&self, cells: &[Arc<Cell>]) -> bool {
        let (moved, all) = self.settle_others_quietly(cells);
        self.after_publish(moved);
        all
    }

    /// The same without the decision that may follow: how the sum moved.
    fn settle_others_quietly(&self, cells: &[Arc<Cell>]) -> (isize, bool) {
        if !self.barrier {
            return (0, false);
        }
        let mut moved = 0isize;
        let all = cells.chunks(BATCH).all(|batch| {
            let fenced = self.settle_batch(batch);
            moved = moved.wrapping_add(fenced.unwrap_or(0));
            fenced.is_some()
        });
        (moved, all)
    }

    /// The same for every cell there is.
    pub(crate) fn settle_everybody(&self) -> bool {
        let (moved, all) = self.settle_everybody_quietly();
        self.after_publish(moved);
        all
    }

    /// The same without the decision that may follow, for who holds a lock.
    pub(crate) fn settle_everybody_quietly(&self) -> (isize, bool) {
        let cells: Vec<_> = self.registry.cells.walk(<[_]>::to_vec);
        self.settle_others_quietly(&cells)
    }

    /// One barrier for all of `batch`: how the sum moved. None, and no window is moved, if the barrier failed.
    fn settle_batch(&self, batch: &[Arc<Cell>]) -> Option<isize> {
        let mut locked: [Option<(&Cell, MutexGuard<'_, Window>)>; BATCH] = std::array::from_fn(|_| None);
        // Two who lock several cells each would wait for one another.
        let _alone = self.moving.lock();
        for (slot, cell) in locked.iter_mut().zip(batch) {
            let window = cell.window.lock();
            cell.hot.hi.store(0, Ordering::Relaxed);
            cell.hot.lo.store(MAX_BYTES, Ordering::Relaxed);
            *slot = Some((cell, window));
        }
        if !process_barrier() {
            locked.iter().flatten().for_each(|(cell, window)| self.open(cell, window));
            return None;
        }
        Some(
            locked
                .iter_mut()
                .flatten()
                .fold(0isize, |moved, (cell, window)| moved.wrapping_add(self.publish(cell, window))),
        )
    }
}
