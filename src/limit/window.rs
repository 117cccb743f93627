//! Windows: settling a cell, dealing it a new window, and moving the windows of others.
//!
//! Under a cell's lock lives what it has published. Invariants, with `published` for `base - returned_published`:
//! 1. the process-wide sum is the sum of what the cells have published, at every instant (one atomic add each);
//! 2. a cell's total differs from what it published by at most its room, but for the one change that its owner is making:
//!    `lo = base - room`, `hi = base + room`, and what is returned but not published is at most `returned_room`;
//! 3. `granted` is raised before a window grows and lowered after it shrank, so it is never below the sum of the rooms.
//!
//! How somebody else's window is moved is in `moving`.

use super::cell::{Cell, Form, MAX_BYTES, clamp};
use super::core::Core;
use crate::error::{Refusal, ReserveError};
use crate::sync::{Ordering, fence, mutant, own_load};

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
    pub(crate) fn fold(&self, cell: &Cell, window: &mut Window) -> Option<usize> {
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
    pub(crate) fn publish(&self, cell: &Cell, window: &mut Window) -> isize {
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
    pub(crate) fn open(&self, cell: &Cell, window: &Window) {
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
}
