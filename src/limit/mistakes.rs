//! Callers' mistakes: told with the writer's name, mended, and asserted in debug builds (never while unwinding).

use super::cell::{Cell, MAX_BYTES, clamp};
use super::core::Core;
use super::credit::Ahead;
use super::window::Settled;
use crate::sync::{Ordering, own_load};

impl Core {
    /// A charge that left the window: settle, unless it took the counter beyond what it can hold.
    pub(crate) fn charged_outside(&self, cell: &Cell, bytes: usize) {
        let held = own_load(&cell.hot.held);
        if held > MAX_BYTES && bytes > MAX_BYTES - clamp(held.wrapping_sub(bytes)) {
            cell.hot.held.store(held.wrapping_sub(bytes), Ordering::Release);
            return self.charge_beyond_counter(cell, bytes);
        }
        self.taken_back_by_panic(cell, bytes, || self.settle_as_owner(cell, Ahead::Full));
    }

    /// The same for the shared form. Between the charge and its being taken back others may see the total as 0.
    pub(crate) fn charged_shared_outside(&self, cell: &Cell, new: usize, bytes: usize) {
        let beyond = (new > MAX_BYTES || new < bytes) && bytes > MAX_BYTES - clamp(new.wrapping_sub(bytes));
        if beyond {
            cell.hot.held.fetch_sub(bytes, Ordering::Release);
        }
        let recorded = if beyond { 0 } else { bytes };
        self.taken_back_by_panic(cell, recorded, || self.settle_shared(cell, Ahead::Full, recorded));
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
        let settled = self.publish(cell, &mut window, Ahead::Share, 0);
        drop(window);
        self.after_settling(cell, Settled { surplus: Some(surplus), ..settled });
    }

    /// A release of the shared form that left the window, or took more than there was: then the surplus is put back.
    pub(crate) fn released_shared_outside(&self, cell: &Cell, old: usize, bytes: usize) {
        let surplus = bytes.saturating_sub(clamp(old));
        if surplus > 0 {
            cell.hot.held.fetch_add(surplus, Ordering::Relaxed);
        }
        self.settle_shared(cell, Ahead::Share, 0);
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

    /// A reservation, an arena or a workspace was changed through an account that is not its own.
    pub(crate) fn wrong_account(&self, holder: &str, owner: &str, given: &str, bytes: usize) {
        self.telemetry.wrong_reporter(holder, owner, given, bytes);
        // Not while unwinding: a second panic would end the process.
        if cfg!(debug_assertions) && !std::thread::panicking() {
            panic!("plimsoll: {holder} of {owner} was changed through {given}");
        }
    }
}
