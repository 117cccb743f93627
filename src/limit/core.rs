//! What all handles of one limiter share, and the life of a cell in it.

use super::arena_cell::ArenaCell;
use super::cell::{Cell, Form, Handle};
use super::credit::Credit;
use super::deal::Deal;
use super::decide::{Decider, NOTICE};
use super::ledger::Ledger;
use super::registry::Registry;
use super::selector::{LargestFirst, SpillSelector};
use super::settings::Settings;
use super::signal::SignalSource;
use crate::sync::{Mutex, Ordering, mutant, own_load};
use crate::telemetry::Telemetry;
use once_cell::sync::OnceCell;
use std::sync::Arc;

/// The state of one limiter. Cells refer to it and it to them; a cell leaves with its last handle, which breaks the ring.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) ledger: Ledger,
    pub(crate) registry: Registry,
    pub(crate) deal: Deal,
    pub(crate) credit: Credit,
    /// Held by whoever moves several windows at once.
    pub(crate) moving: Mutex<()>,
    pub(crate) decider: Decider,
    pub(crate) telemetry: Telemetry,
    /// Whether the process-wide barrier may be used; decided once.
    pub(crate) barrier: bool,
    /// Set once: by the builder, or when the process-wide limiter is installed.
    pub(crate) selector: OnceCell<Box<dyn SpillSelector>>,
    pub(crate) signals: OnceCell<Box<dyn SignalSource>>,
}

/// A panic leaves nothing half done behind: every change stores its words before user code (a subscriber, a selector, a
/// waker) can run, and what was charged by a call that does not return is taken back (`unwind`). So whoever catches one may
/// go on with everything that refers to these.
mod unwind_safe {
    use super::{ArenaCell, Cell, Core};
    use std::panic::{RefUnwindSafe, UnwindSafe};

    impl UnwindSafe for Core {}
    impl RefUnwindSafe for Core {}
    impl UnwindSafe for Cell {}
    impl RefUnwindSafe for Cell {}
    impl UnwindSafe for ArenaCell {}
    impl RefUnwindSafe for ArenaCell {}
}

impl Core {
    pub(crate) fn selector(&self) -> &dyn SpillSelector {
        self.selector.get().map_or(&LargestFirst, |selector| &**selector)
    }

    /// Registers a writer.
    pub(crate) fn join(self: &Arc<Self>, name: &str, form: Form, cap_bytes: Option<usize>) -> Handle {
        let cap = cap_bytes.unwrap_or_else(|| self.settings.writer_cap_bytes());
        let cell = Arc::new(Cell::new(Arc::clone(self), self.registry.next_id(), name, form, cap));
        cell.window.lock().own_cap = cap_bytes.is_some();
        let number = self.registry.add_cell(Arc::clone(&cell));
        // The limiter's cap may have changed before it was in the list.
        self.follow_cap(&cell);
        self.seat(number);
        // Its first window: nothing is published yet, and nothing has to be until the first quantum is full.
        self.flush(&cell);
        Handle(cell)
    }

    /// Registers an arena of a writer.
    pub(crate) fn join_arena(&self, owner: &Handle, name: &str, max_bytes: usize) -> Arc<ArenaCell> {
        let arena = Arc::new(ArenaCell::new(self.registry.next_id(), name, Arc::clone(&owner.0), max_bytes));
        self.registry.arenas.add(Arc::clone(&arena));
        self.gains_arena(&owner.0);
        arena
    }

    /// With its first arena a writer can spill: the reserve is no longer for it.
    pub(crate) fn gains_arena(&self, cell: &Cell) {
        if cell.arenas.fetch_add(1, Ordering::Relaxed) == 0 {
            self.set_apart(cell, &mut cell.window.lock());
            self.reserve_is_used_less();
        }
    }

    /// Without its last arena the reserve is for it again.
    pub(crate) fn loses_arena(&self, cell: &Cell) {
        if cell.arenas.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.set_apart(cell, &mut cell.window.lock());
        }
    }

    /// Bytes count for writers that can spill from here on, and the reserve has to be kept free beside them: as if so much
    /// had been charged. Under no lock.
    pub(crate) fn reserve_is_used_less(&self) {
        if self.settings.reserve_bytes() > 0 {
            self.call_back_if_over();
            self.after_publish(1);
        }
    }

    /// An arena leaves; its bytes were given back before.
    pub(crate) fn leave_arena(&self, owner: &Cell, arena: &ArenaCell) {
        self.leave_arena_quietly(owner, arena);
        // Always: a decider that looked before may count on what this arena was to free.
        if !mutant("leave_silent") {
            self.decide(NOTICE);
        }
    }

    /// The same without a decision.
    pub(crate) fn leave_arena_quietly(&self, owner: &Cell, arena: &ArenaCell) {
        arena.leave();
        self.telemetry.keep_notifications(&arena.notifications);
        self.registry.arenas.remove(arena);
        self.loses_arena(owner);
    }

    /// The last handle of a cell is gone: whatever is left is drained and told, and the cell leaves.
    pub(crate) fn retire(&self, cell: &Arc<Cell>) {
        let left = cell.total_bytes();
        // Nobody else can change the cell any more: a handle is needed for that.
        if cell.form == Form::Owned {
            let returned = cell.returned.load(Ordering::Relaxed);
            cell.hot.held.store(returned, Ordering::Release);
        } else {
            let held = own_load(&cell.hot.held);
            cell.hot.held.fetch_sub(held, Ordering::Release);
        }
        self.orphan(cell);
        let live = self.registry.remove_cell(cell);
        self.unseat(live);
        if left > 0 {
            self.telemetry.unbalanced(&cell.name, left);
        }
    }
}
