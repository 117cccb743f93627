//! Moving somebody else's window: the one primitive under everything that does not wait for an owner.
//!
//! Lock the cell; `hi = 0`, `lo = MAX`, so that the owner's next change comes to the slow path and waits for the lock;
//! process-wide barrier; load `held`; settle on the owner's behalf; set the new window; unlock. The barrier makes every
//! change that missed the closed window visible to that load. One barrier serves a batch of cells.
//!
//! Nothing is allocated here: a refusal may come by.

use super::cell::Cell;
use super::core::Core;
use super::credit::Ahead;
use super::window::{Window, close};
use crate::sync::{BATCH, MutexGuard, process_barrier};
use std::sync::Arc;

type Batch<'a> = [Option<(&'a Cell, MutexGuard<'a, Window>)>; BATCH];

impl Core {
    /// Publishes, on their owners' behalf, what cells hold back, and deals them new windows. Without the process-wide
    /// barrier it does nothing and answers false. The caller must not hold the lock of any cell.
    pub(crate) fn settle_others(&self, cells: &[Arc<Cell>]) -> bool {
        let (moved, all) = {
            let _alone = self.moving.lock();
            self.settle_batches(cells.iter().map(|cell| &**cell), Ahead::Share)
        };
        self.after_publish(moved);
        all
    }

    /// The same for every cell there is.
    pub(crate) fn settle_everybody(&self) -> bool {
        let (moved, all) = self.settle_list(Ahead::Share, |_| true);
        self.after_publish(moved);
        all
    }

    /// The same for those that `wanted` says yes to, without the decision that may follow, for who holds a lock: how the
    /// sum moved, and whether all windows could be moved. Nobody joins or leaves meanwhile.
    pub(crate) fn settle_list(&self, ahead: Ahead, wanted: impl Fn(&Cell) -> bool) -> (isize, bool) {
        if !self.barrier {
            return (0, false);
        }
        // Two who lock several cells each would wait for one another. Before the list: a joiner waits for that one.
        let _alone = self.moving.lock();
        self.registry
            .cells
            .walk(|cells| self.settle_batches(cells.iter().map(|cell| &**cell).filter(|cell| wanted(cell)), ahead))
    }

    /// Under the lock `moving`. If the barrier fails the rest is left as it was.
    fn settle_batches<'a>(&self, mut cells: impl Iterator<Item = &'a Cell>, ahead: Ahead) -> (isize, bool) {
        let mut moved = 0isize;
        if !self.barrier {
            return (moved, false);
        }
        loop {
            let mut batch: Batch<'a> = std::array::from_fn(|_| None);
            for (slot, cell) in batch.iter_mut().zip(&mut cells) {
                let window = cell.window.lock();
                close(cell);
                *slot = Some((cell, window));
            }
            if batch[0].is_none() {
                return (moved, true);
            }
            if !process_barrier() {
                batch.iter().flatten().for_each(|(cell, window)| self.open(cell, window));
                return (moved, false);
            }
            for (cell, window) in batch.iter_mut().flatten() {
                moved = moved.wrapping_add(self.publish(cell, window, ahead, 0).moved);
            }
        }
    }
}
