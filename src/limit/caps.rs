//! Caps of writers while they run. A cap is stored under the cell's lock together with the end of the window that it bounds,
//! so it is in effect with the writer's next `try_` call; nobody's window has to be moved for it.

use super::cell::Cell;
use super::core::Core;
use super::settings::NONE;
use crate::sync::Ordering;

impl Core {
    /// Every writer without a cap of its own has the limiter's from here on.
    pub(crate) fn caps_changed(&self) {
        self.registry.cells.walk(|cells| cells.iter().for_each(|cell| self.follow_cap(cell)));
    }

    /// The limiter's cap, unless the writer has its own.
    pub(crate) fn follow_cap(&self, cell: &Cell) {
        let window = cell.window.lock();
        let cap = self.settings.writer_cap_bytes();
        if !window.own_cap && cell.cap_bytes.load(Ordering::Relaxed) != cap {
            cell.cap_bytes.store(cap, Ordering::Relaxed);
            self.open(cell, &window);
        }
    }

    /// A cap of the writer's own; none goes back to the limiter's.
    pub(crate) fn set_cap(&self, cell: &Cell, bytes: Option<usize>) {
        let mut window = cell.window.lock();
        window.own_cap = bytes.is_some();
        cell.cap_bytes.store(bytes.unwrap_or(NONE), Ordering::Relaxed);
        self.open(cell, &window);
        drop(window);
        self.follow_cap(cell);
    }
}
