//! Windows: settling a cell and dealing it a new window.
//!
//! Under a cell's lock lives what it has published and what is reserved for it. Invariants, with `published` for
//! `base - returned_published`:
//! 1. the process-wide sum is the sum of what the cells have published, at every instant (one atomic add each);
//! 2. a cell's total differs from what it published by at most its room, but for the one change that its owner is making:
//!    `lo = base - room`, `hi = base + ahead` with `ahead <= room`, and what is returned but not published is at most
//!    `returned_room`;
//! 3. `granted` is raised before a window grows and lowered after it shrank, so it is never below the sum of the rooms;
//! 4. what is reserved process-wide is the sum of `published + ahead`, raised before `hi` is and lowered after it.
//!
//! What is taken ahead is in `credit`, how somebody else's window is moved in `moving`.

use super::cell::{Cell, Form, MAX_BYTES, clamp};
use super::core::Core;
use super::credit::Ahead;
use crate::sync::{Ordering, fence, mutant, own_load};

/// What a cell has published, and how far it may go from there. Lives under the cell's lock.
#[derive(Debug)]
pub(crate) struct Window {
    /// `held` when it was last published.
    pub(crate) base: usize,
    /// How far `held` may rise above `base`: reserved, and not used yet.
    pub(crate) ahead: usize,
    /// How far the total may be from what is published.
    pub(crate) room: usize,
    /// What of `returned` is published.
    pub(crate) returned_published: usize,
    /// How much of `returned` may be held back.
    pub(crate) returned_room: usize,
    /// What of the published bytes is in the sum of the writers without an arena.
    pub(crate) apart: usize,
    /// Bytes are dropped without the owner here, so the next deal gives both sides room.
    pub(crate) returns: bool,
    /// Counted as open: it may hold credit.
    pub(crate) open: bool,
    /// The writer's cap is its own, not the limiter's.
    pub(crate) own_cap: bool,
    /// The owner is gone: every further change is published at once.
    pub(crate) orphaned: bool,
}

/// What came of settling, for what has to be done without the cell's lock.
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "somebody may have to be asked"]
pub(crate) struct Settled {
    /// How the lagged sum moved.
    pub(crate) moved: isize,
    /// What the line leaves is no longer worth a window.
    pub(crate) short: bool,
    /// What exists is recorded beyond what the cell may reserve up to.
    pub(crate) over: bool,
    /// A mistake took the total below zero by so much; it is mended.
    pub(crate) surplus: Option<usize>,
}

impl Settled {
    pub(crate) fn and(self, later: Settled) -> Settled {
        Settled {
            moved: self.moved.wrapping_add(later.moved),
            short: self.short || later.short,
            over: self.over || later.over,
            surplus: self.surplus.or(later.surplus),
        }
    }
}

impl Window {
    /// Nothing published, no room.
    pub(crate) fn closed() -> Self {
        Window {
            base: 0,
            ahead: 0,
            room: 0,
            returned_published: 0,
            returned_room: 0,
            apart: 0,
            returns: false,
            open: false,
            own_cap: false,
            orphaned: false,
        }
    }

    /// What the cell has in the process-wide sum; below zero reads as 0.
    pub(crate) fn published_bytes(&self) -> usize {
        clamp(self.base.wrapping_sub(self.returned_published))
    }

    /// Up to where `held` is reserved. Negative for a moment after returned bytes were taken off.
    pub(crate) fn reach(&self) -> isize {
        self.base.wrapping_add(self.ahead) as isize
    }

    /// What `held` lacks of being reserved.
    pub(crate) fn need(&self, held: usize) -> usize {
        usize::try_from((held as isize).saturating_sub(self.reach())).unwrap_or(0)
    }
}

impl Core {
    /// Owner's slow path: publish everything held back, record what exists, take a new window.
    pub(crate) fn settle_as_owner(&self, cell: &Cell, ahead: Ahead) {
        let settled = self.settle_owned_quietly(cell, ahead);
        self.after_settling(cell, settled);
    }

    /// The same without what may follow.
    pub(crate) fn settle_owned_quietly(&self, cell: &Cell, ahead: Ahead) -> Settled {
        let mut window = cell.window.lock();
        let surplus = self.fold(cell, &mut window);
        Settled { surplus, ..self.publish(cell, &mut window, ahead, usize::MAX) }
    }

    /// Slow path of the shared form; `charged` of what is held are recorded already and may not be reserved yet.
    pub(crate) fn settle_shared(&self, cell: &Cell, ahead: Ahead, charged: usize) {
        let settled = {
            let mut window = cell.window.lock();
            // Who waited for the lock may find that somebody has settled for both.
            if window.covers(cell) { Settled::default() } else { self.publish(cell, &mut window, ahead, charged) }
        };
        self.after_settling(cell, settled);
    }

    /// Publishes what a cell holds back without waiting for its window to fill, as its owner.
    pub(crate) fn flush(&self, cell: &Cell) {
        match cell.form {
            Form::Owned => self.settle_as_owner(cell, Ahead::Share),
            Form::Shared => {
                let settled = self.publish(cell, &mut cell.window.lock(), Ahead::Share, 0);
                self.after_settling(cell, settled);
            }
        }
    }

    /// The owner goes: publish, and hold nothing back from here on.
    pub(crate) fn orphan(&self, cell: &Cell) {
        cell.window.lock().orphaned = true;
        let settled = match cell.form {
            Form::Owned => self.settle_owned_quietly(cell, Ahead::Nothing),
            Form::Shared => self.publish(cell, &mut cell.window.lock(), Ahead::Nothing, 0),
        };
        self.after_settling(cell, Settled { surplus: None, ..settled });
        if let Some(surplus) = settled.surplus {
            // On drop a mistake is told and never asserted.
            self.telemetry.released_too_much(&cell.name, surplus);
        }
    }

    /// What a settled cell brings about, under no lock: a decision, credit called back, a mistake told.
    pub(crate) fn after_settling(&self, cell: &Cell, settled: Settled) {
        self.after_publish(settled.moved);
        if settled.short {
            self.call_idle_back(cell);
        }
        if settled.over {
            self.overdrawn(cell);
        }
        if let Some(surplus) = settled.surplus {
            self.mistake_released_too_much(cell, surplus);
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

    /// Publishes the difference and deals a window; under the cell's lock. Of what is held above the reach, `charged`
    /// bytes are recorded and reserved now; what is above that is somebody's attempt, who waits for the lock.
    pub(crate) fn publish(&self, cell: &Cell, window: &mut Window, ahead: Ahead, charged: usize) -> Settled {
        if cell.form == Form::Shared {
            // Others change it meanwhile: from here on they come to the slow path, and what came before is seen below.
            close(cell);
            if !mutant("shared_settles_open") {
                fence(Ordering::SeqCst);
            }
        }
        // Acquire: an owner's release must not be published before what it freed is seen to be free.
        let held = clamp(cell.hot.held.load(Ordering::Acquire));
        let returned = own_load(&cell.returned);
        let need = window.need(held);
        let recorded = need.min(charged);
        let spent = if mutant("unreserved_is_spent") { held } else { held.wrapping_sub(need - recorded) };
        let over = recorded > 0 && self.ledger.reserve(recorded) > self.top_bytes(cell);
        let moved = (spent.wrapping_sub(window.base) as isize)
            .wrapping_sub(returned.wrapping_sub(window.returned_published) as isize);
        // What is reserved for it and was not used, and what came back without its owner.
        let unused = usize::try_from(window.reach().wrapping_sub(spent as isize)).unwrap_or(0);
        let came_back = returned.wrapping_sub(window.returned_published);

        let rooms_before = window.room + window.returned_room;
        let rooms = if window.orphaned { 0 } else { self.deal_room(rooms_before, ahead) };
        if rooms > 0 && !window.open {
            window.open = true;
            self.ledger.opened();
        }
        window.returned_room = if window.returns { rooms / 2 } else { 0 };
        window.room = rooms - window.returned_room;
        let (taken, short) = self.take_ahead(cell, window.room.min(MAX_BYTES - clamp(spent)), unused, ahead);
        window.base = spent;
        window.returned_published = returned;
        window.ahead = taken;

        // The sum before the window: whoever may hold back anew has what it held back before in the sum.
        if moved != 0 {
            self.ledger.publish(moved);
        }
        self.set_apart(cell, window);
        self.open(cell, window);
        if rooms < rooms_before && !mutant("take_back_missing") {
            self.ledger.take_back(rooms_before - rooms);
        }
        let closing = window.open && rooms == 0;
        if closing && mutant("closed_before_its_credit_is_back") {
            self.ledger.closed();
        }
        let back = unused.saturating_sub(taken) + came_back;
        if back > 0 {
            self.give_credit_back(back);
        }
        if closing {
            window.open = false;
            if !mutant("closed_before_its_credit_is_back") {
                self.ledger.closed();
            }
        }
        if moved != 0 {
            self.telemetry.published();
        }
        Settled { moved, short, over, surplus: None }
    }

    /// The room for a window that has `before` now; what it grows by is granted. Less than wanted only where idle windows
    /// cannot be moved and their room is all there is.
    fn deal_room(&self, before: usize, ahead: Ahead) -> usize {
        if ahead == Ahead::Nothing || self.closes_windows() {
            return 0;
        }
        let wanted = self.deal.room(&self.settings);
        let more = wanted.saturating_sub(before);
        if more == 0 || self.ledger.try_grant(more, self.settings.lag_limit_bytes()) { wanted } else { before }
    }

    /// Stores the ends of a window; under the cell's lock.
    pub(crate) fn open(&self, cell: &Cell, window: &Window) {
        // A caller's mistake may have taken the base below 0: then every charge comes to the slow path, which mends it.
        let hi = clamp(window.reach() as usize);
        let lo = clamp(window.base).saturating_sub(window.room);
        // Relaxed: the ends carry nothing; whoever closes a window orders itself by the barrier and the lock.
        cell.hot.lo.store(lo, Ordering::Relaxed);
        cell.hot.try_hi.store(hi.min(cell.cap_bytes.load(Ordering::Relaxed)), Ordering::Relaxed);
        cell.hot.hi.store(hi, Ordering::Relaxed);
    }

    /// What the cell has published counts apart while it has no arena.
    pub(crate) fn set_apart(&self, cell: &Cell, window: &mut Window) {
        let apart = if cell.has_arena() { 0 } else { window.base.wrapping_sub(window.returned_published) };
        if apart != window.apart {
            self.ledger.set_apart(apart.wrapping_sub(window.apart) as isize);
            window.apart = apart;
        }
    }

    /// Releases bytes without the owner at hand. Published at once unless the window has room for it.
    pub(crate) fn give_back(&self, cell: &Cell, bytes: usize) {
        if cell.form == Form::Shared {
            return cell.release_shared(bytes);
        }
        let moved = self.give_back_quietly(cell, bytes);
        self.after_publish(moved);
    }

    pub(crate) fn give_back_quietly(&self, cell: &Cell, bytes: usize) -> isize {
        if bytes == 0 {
            return 0;
        }
        let mut window = cell.window.lock();
        let behind = note_returned(cell, &mut window, bytes);
        if behind <= window.returned_room {
            return 0;
        }
        window.returned_published = window.returned_published.wrapping_add(behind);
        let moved = (behind as isize).wrapping_neg();
        self.ledger.publish(moved);
        self.set_apart(cell, &mut window);
        self.give_credit_back(behind);
        self.telemetry.published();
        moved
    }
}

impl Window {
    /// Whether a shared cell needs nothing: what is held is within the window. Under the cell's lock.
    fn covers(&self, cell: &Cell) -> bool {
        // From a read-modify-write: in a model a load could be older than what brought the caller here.
        let held = clamp(cell.hot.held.fetch_add(0, Ordering::Relaxed));
        self.need(held) == 0 && held >= self.base.saturating_sub(self.room)
    }
}

/// Bytes came back without the owner: counted under the lock. Answers what of them is not published.
pub(crate) fn note_returned(cell: &Cell, window: &mut Window, bytes: usize) -> usize {
    let returned = own_load(&cell.returned).wrapping_add(bytes);
    if !window.returns {
        window.returns = true;
        cell.returns.store(true, Ordering::Relaxed);
        // Whoever sees a later change of `held`, also a charge that is stored Relaxed, sees that it has to take the lock.
        fence(Ordering::Release);
    }
    // Relaxed: read under the lock alone, which hands on what was freed.
    cell.returned.store(returned, Ordering::Relaxed);
    returned.wrapping_sub(window.returned_published)
}

/// Closes a window: every change that begins after this was seen comes to the slow path. Under the cell's lock.
pub(crate) fn close(cell: &Cell) {
    cell.hot.hi.store(0, Ordering::Relaxed);
    cell.hot.try_hi.store(0, Ordering::Relaxed);
    cell.hot.lo.store(MAX_BYTES, Ordering::Relaxed);
}
