//! Windows: settling a cell, dealing it a new window, and moving the windows of others.
//!
//! Under a cell's lock lives what it has published. Invariants, with `published` for `base - returned_published`:
//! 1. the process-wide sum is the sum of what the cells have published, at every instant (one atomic add each);
//! 2. a cell's total differs from what it published by at most its room, but for the one change that its owner is making:
//!    `lo = base - room`, `hi = base + room`, and what is returned but not published is at most `returned_room`;
//! 3. `granted` is raised before a window grows and lowered after it shrank, so it is never below the sum of the rooms.
//!
//! Moving somebody else's window, in steps: lock the cell; `hi = 0`, `lo = MAX`, so that the owner's next change comes to
//! the slow path and waits for the lock; process-wide barrier; load `held`; settle on the owner's behalf; set the new
//! window; unlock. The barrier makes every change that missed the closed window visible to that load. One barrier serves a
//! batch of cells.

use super::cell::{Cell, Form, MAX_BYTES, clamp};
use super::core::Core;
use crate::error::{Refusal, ReserveError};
use crate::sync::{MutexGuard, Ordering, fence, mutant, own_load, process_barrier};
use std::sync::Arc;

/// Cells whose windows are closed under one barrier: owners wait meanwhile, so not too many.
const BATCH: usize = 64;

/// What a cell has published and may hold back. Lives under the cell's lock.
#[derive(Debug)]
pub(crate) struct Window {
    /// `held` when it was last published.
    pub(crate) base: usize,
    /// What of `returned` is published.
    pub(crate) returned_published: usize,
    /// How far `held` may move from `base`.
    pub(crate) room: usize,
    /// How much of `returned` may be held back.
    pub(crate) returned_room: usize,
    /// Bytes are dropped without the owner here, so the next deal gives both sides room.
    pub(crate) returns: bool,
    /// The owner is gone: every further change is published at once.
    pub(crate) orphaned: bool,
}

impl Window {
    /// Nothing published, no room.
    pub(crate) fn closed() -> Self {
        Window { base: 0, returned_published: 0, room: 0, returned_room: 0, returns: false, orphaned: false }
    }

    /// What the cell has in the process-wide sum; below zero reads as 0.
    pub(crate) fn published_bytes(&self) -> usize {
        clamp(self.base.wrapping_sub(self.returned_published))
    }
}

impl Core {
    /// Owner's slow path: publish everything held back, take a new window.
    pub(crate) fn settle_as_owner(&self, cell: &Cell) {
        let (moved, mended) = self.settle_owned_quietly(cell);
        self.after_publish(moved);
        if let Some(surplus) = mended {
            self.mistake_released_too_much(cell, surplus);
        }
    }

    /// The same without what may follow: how the sum moved, and the surplus of a mistake that was mended.
    fn settle_owned_quietly(&self, cell: &Cell) -> (isize, Option<usize>) {
        let mut window = cell.window.lock();
        let mended = self.fold(cell, &mut window);
        (self.publish(cell, &mut window), mended)
    }

    /// Slow path of the shared form.
    pub(crate) fn settle_shared(&self, cell: &Cell) {
        let moved = self.settle_shared_quietly(cell);
        self.after_publish(moved);
    }

    /// Others change `held` meanwhile, so it settles until the window holds what it finds.
    fn settle_shared_quietly(&self, cell: &Cell) -> isize {
        let mut window = cell.window.lock();
        let mut moved = self.publish(cell, &mut window);
        loop {
            // Full fence, against the one after a change: either that change sees the new window, or this load sees it.
            fence(Ordering::SeqCst);
            let held = clamp(cell.hot.held.load(Ordering::Acquire));
            if held.abs_diff(window.base) <= window.room || mutant("settle_shared_once") {
                break;
            }
            moved = moved.wrapping_add(self.publish(cell, &mut window));
        }
        moved
    }

    /// Publishes what a cell holds back without waiting for its window to fill, as its owner.
    pub(crate) fn flush(&self, cell: &Cell) {
        match cell.form {
            Form::Owned => self.settle_as_owner(cell),
            Form::Shared => self.settle_shared(cell),
        }
    }

    /// The owner goes: publish, and hold nothing back from here on.
    pub(crate) fn orphan(&self, cell: &Cell) {
        cell.window.lock().orphaned = true;
        let (moved, mended) = self.settle_owned_quietly(cell);
        self.after_publish(moved);
        if let Some(surplus) = mended {
            // On drop a mistake is told and never asserted.
            self.telemetry.released_too_much(&cell.name, surplus);
        }
    }

    /// Takes the returned bytes off `held`; owner only. Some(surplus) if that took it below zero: then it is 0 now.
    fn fold(&self, cell: &Cell, window: &mut Window) -> Option<usize> {
        let returned = own_load(&cell.returned);
        let held = own_load(&cell.hot.held);
        let total = (held as isize).wrapping_sub(returned as isize);
        if returned != 0 || total < 0 {
            let new = total.max(0) as usize;
            // Release: an exact reader that sees `returned` empty sees this.
            cell.hot.held.store(new, Ordering::Release);
            if returned != 0 {
                window.base = window.base.wrapping_sub(window.returned_published);
                window.returned_published = 0;
                // Relaxed: read under the lock alone.
                cell.returned.store(0, Ordering::Relaxed);
            }
        }
        if total < 0 { Some(total.unsigned_abs()) } else { None }
    }

    /// Publishes the difference and deals a window; under the cell's lock. Answers how the sum moved.
    fn publish(&self, cell: &Cell, window: &mut Window) -> isize {
        // Acquire: an owner's release must not be published before what it freed is seen to be free.
        let held = clamp(cell.hot.held.load(Ordering::Acquire));
        let returned = own_load(&cell.returned);
        let moved = (held.wrapping_sub(window.base) as isize)
            .wrapping_sub(returned.wrapping_sub(window.returned_published) as isize);
        window.base = held;
        window.returned_published = returned;
        let before = window.room + window.returned_room;
        let after = if window.orphaned { 0 } else { self.deal_room(before) };
        window.returned_room = if window.returns { after / 2 } else { 0 };
        window.room = after - window.returned_room;
        // The sum before the window: whoever may hold back anew has what it held back before in the sum.
        if moved != 0 {
            self.ledger.publish(moved);
        }
        self.open(cell, window);
        if after < before && !mutant("take_back_missing") {
            self.ledger.take_back(before - after);
        }
        if moved != 0 {
            self.telemetry.published();
        }
        moved
    }

    /// The room for a window that has `before` now; what it grows by is granted. Less than wanted only where idle windows
    /// cannot be moved and their room is all there is.
    fn deal_room(&self, before: usize) -> usize {
        let wanted = self.deal.room(&self.settings);
        let more = wanted.saturating_sub(before);
        if more == 0 || self.ledger.try_grant(more, self.settings.lag_limit_bytes()) { wanted } else { before }
    }

    /// Stores the ends of a window; under the cell's lock.
    fn open(&self, cell: &Cell, window: &Window) {
        let hi = window.base.saturating_add(window.room).min(MAX_BYTES);
        let lo = window.base.saturating_sub(window.room);
        // Relaxed: the ends carry nothing; whoever closes a window orders itself by the barrier and the lock.
        cell.hot.lo.store(lo, Ordering::Relaxed);
        cell.hot.try_hi.store(hi.min(cell.cap_bytes.load(Ordering::Relaxed)), Ordering::Relaxed);
        cell.hot.hi.store(hi, Ordering::Relaxed);
    }

    /// A `try_` charge that the window does not cover. Nothing is stored before it is sure.
    pub(crate) fn try_charge_outside(&self, cell: &Cell, bytes: usize) -> bool {
        let mut window = cell.window.lock();
        let mended = self.fold(cell, &mut window);
        let held = own_load(&cell.hot.held);
        let cap = cell.cap_bytes.load(Ordering::Relaxed).min(MAX_BYTES);
        let granted = match held.checked_add(bytes) {
            Some(new) if new <= cap => {
                cell.hot.held.store(new, Ordering::Relaxed);
                true
            }
            _ => false,
        };
        // A refusal publishes nothing new, but a window that a fold has moved must be set again.
        let moved = self.publish(cell, &mut window);
        drop(window);
        self.after_publish(moved);
        if let Some(surplus) = mended {
            self.mistake_released_too_much(cell, surplus);
        }
        granted
    }

    /// Why a `try_` charge of `bytes` was refused, read again for the error.
    pub(crate) fn refusal(&self, cell: &Cell, bytes: usize) -> ReserveError {
        let held_bytes = cell.total_bytes();
        let cap = cell.cap_bytes.load(Ordering::Relaxed);
        if cap == usize::MAX || bytes > MAX_BYTES {
            return ReserveError { asked_bytes: bytes, held_bytes, limit_bytes: MAX_BYTES, kind: Refusal::Overflow };
        }
        ReserveError { asked_bytes: bytes, held_bytes, limit_bytes: cap, kind: Refusal::WriterCap }
    }

    /// Releases bytes without the owner at hand. Published at once unless the window has room for it.
    pub(crate) fn give_back(&self, cell: &Cell, bytes: usize) {
        if cell.form == Form::Shared {
            return cell.release_shared(bytes);
        }
        let moved = self.give_back_quietly(cell, bytes);
        self.after_publish(moved);
    }

    fn give_back_quietly(&self, cell: &Cell, bytes: usize) -> isize {
        if bytes == 0 {
            return 0;
        }
        let mut window = cell.window.lock();
        let returned = own_load(&cell.returned).wrapping_add(bytes);
        if !window.returns {
            window.returns = true;
            cell.returns.store(true, Ordering::Relaxed);
            // Whoever sees a later change of `held`, also a charge that is stored Relaxed, sees that it has to take the lock.
            fence(Ordering::Release);
        }
        // Relaxed: read under the lock alone, which hands on what was freed.
        cell.returned.store(returned, Ordering::Relaxed);
        let behind = returned.wrapping_sub(window.returned_published);
        if behind <= window.returned_room {
            return 0;
        }
        window.returned_published = returned;
        let moved = (behind as isize).wrapping_neg();
        self.ledger.publish(moved);
        self.telemetry.published();
        moved
    }

    /// Bytes go from one cell to another; the caller owns `to`. Nobody's code runs between the two sides.
    pub(crate) fn transfer(&self, from: &Cell, to: &Cell, bytes: usize) {
        let transfer = self.registry.transfer();
        let mut moved = match from.form {
            Form::Owned => self.give_back_quietly(from, bytes),
            Form::Shared => {
                from.hot.held.fetch_sub(bytes, Ordering::Release);
                self.settle_shared_quietly(from)
            }
        };
        let mut mended = None;
        match to.form {
            Form::Owned => {
                to.hot.held.store(own_load(&to.hot.held).wrapping_add(bytes), Ordering::Release);
                let (up, surplus) = self.settle_owned_quietly(to);
                (moved, mended) = (moved.wrapping_add(up), surplus);
            }
            Form::Shared => {
                to.hot.held.fetch_add(bytes, Ordering::Release);
                moved = moved.wrapping_add(self.settle_shared_quietly(to));
            }
        }
        drop(transfer);
        self.after_publish(moved);
        if let Some(surplus) = mended {
            self.mistake_released_too_much(to, surplus);
        }
    }

    /// A charge that left the window: settle, unless it took the counter beyond what it can hold.
    pub(crate) fn charged_outside(&self, cell: &Cell, bytes: usize) {
        let held = own_load(&cell.hot.held);
        if held > MAX_BYTES && bytes > MAX_BYTES - clamp(held.wrapping_sub(bytes)) {
            cell.hot.held.store(held.wrapping_sub(bytes), Ordering::Release);
            return self.charge_beyond_counter(cell, bytes);
        }
        self.settle_as_owner(cell);
    }

    /// The same for the shared form. Between the charge and its being taken back others may see the total as 0.
    pub(crate) fn charged_shared_outside(&self, cell: &Cell, new: usize, bytes: usize) {
        let beyond = (new > MAX_BYTES || new < bytes) && bytes > MAX_BYTES - clamp(new.wrapping_sub(bytes));
        if beyond {
            cell.hot.held.fetch_sub(bytes, Ordering::Release);
        }
        self.settle_shared(cell);
        if beyond {
            self.charge_beyond_counter(cell, bytes);
        }
    }

    /// A charge that no counter can hold: told, and not recorded.
    pub(crate) fn charge_beyond_counter(&self, cell: &Cell, bytes: usize) {
        self.telemetry.charged_beyond_counter(&cell.name, bytes);
        if cfg!(debug_assertions) && !std::thread::panicking() {
            panic!("plimsoll: {} charged {bytes} bytes, beyond what a counter can hold", cell.name);
        }
    }

    /// The owner released more than the cell has: it is 0 from here on, the surplus is told.
    pub(crate) fn release_more_than_held(&self, cell: &Cell, bytes: usize) {
        let mut window = cell.window.lock();
        let missing = self.fold(cell, &mut window).unwrap_or(0);
        let surplus = bytes.saturating_sub(own_load(&cell.hot.held)).saturating_add(missing);
        cell.hot.held.store(0, Ordering::Release);
        let moved = self.publish(cell, &mut window);
        drop(window);
        self.after_publish(moved);
        self.mistake_released_too_much(cell, surplus);
    }

    /// A release of the shared form that left the window, or took more than there was: then the surplus is put back.
    pub(crate) fn released_shared_outside(&self, cell: &Cell, old: usize, bytes: usize) {
        let surplus = bytes.saturating_sub(clamp(old));
        if surplus > 0 {
            cell.hot.held.fetch_add(surplus, Ordering::Relaxed);
        }
        self.settle_shared(cell);
        if surplus > 0 {
            self.mistake_released_too_much(cell, surplus);
        }
    }

    pub(crate) fn mistake_released_too_much(&self, cell: &Cell, surplus: usize) {
        self.telemetry.released_too_much(&cell.name, surplus);
        if cfg!(debug_assertions) && !std::thread::panicking() {
            panic!("plimsoll: {} released {surplus} bytes more than it held", cell.name);
        }
    }

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
