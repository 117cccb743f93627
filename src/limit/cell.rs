//! The cell: what one writer holds, and the window in which it may change without telling anybody.
//!
//! Invariant: only the owner stores `held` (in the shared form everybody, by locked operations); `lo`, `hi` and `try_hi`
//! are stored by whoever holds `window`, the cell's own small lock. A change **stores first and checks then**: it stores
//! `held`, then loads one end of the window, and goes to the slow path ([`super::window`]) when it is outside. So a
//! change inside the window is two loads, a store and a compare on words that nobody else writes.
//!
//! Bytes that are dropped without the owner at hand (a reservation on another thread) go to `returned`; the owner takes
//! them off `held` on its next slow path. The cell's total is `held - returned`, at every instant.

use super::core::Core;
use super::credit::Ahead;
use super::registry::Member;
use super::window::Window;
use crate::error::Refusal;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, light_fence, mutant, own_load, rmw_fence};
use std::sync::Arc;

/// The largest amount that a counter holds: half of `usize`, so that a total below zero can be told from a large one.
pub(crate) const MAX_BYTES: usize = isize::MAX as usize;

/// The words that a change touches.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Hot {
    /// Bytes charged minus bytes released by the owner.
    pub(crate) held: AtomicUsize,
    /// A release below this goes to the slow path.
    pub(crate) lo: AtomicUsize,
    /// A charge above this goes to the slow path.
    pub(crate) hi: AtomicUsize,
    /// A `try_` charge above this goes to the slow path before anything is stored; never above `hi` at rest.
    pub(crate) try_hi: AtomicUsize,
}

/// Who may change a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One owner at a time, with plain stores.
    Owned,
    /// Everybody, with locked operations.
    Shared,
}

/// One writer's account. See the module.
///
/// Wherever it is allocated, the hot words are so far from both ends of the allocation that no other writer's words
/// share a line with them (a test below says so); around them stands what is rarely written.
/// Aligning them instead would cost 128 bytes a writer.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cell {
    pub(crate) window: Mutex<Window>,
    pub(crate) core: Arc<Core>,
    pub(crate) id: u64,
    pub(crate) hot: Hot,
    pub(crate) name: Box<str>,
    /// The writer's cap in bytes; `usize::MAX` is none.
    pub(crate) cap_bytes: AtomicUsize,
    pub(crate) form: Form,
    /// Bytes were released without the owner once: an exact read takes the lock from then on.
    pub(crate) returns: AtomicBool,
    /// Bytes released without the owner; part of `held` until the owner's next slow path. Under `window`.
    pub(crate) returned: AtomicUsize,
    /// Reporter, reservations and arenas that refer to the cell; the last one retires it.
    pub(crate) handles: AtomicUsize,
    /// Live arenas: a writer is a cell that has one.
    pub(crate) arenas: AtomicUsize,
    /// Where it stands in the registry.
    slot: AtomicUsize,
}

impl Cell {
    pub(crate) fn new(core: Arc<Core>, id: u64, name: &str, form: Form, cap_bytes: usize) -> Self {
        Cell {
            hot: Hot {
                held: AtomicUsize::new(0),
                lo: AtomicUsize::new(0),
                hi: AtomicUsize::new(0),
                try_hi: AtomicUsize::new(0),
            },
            returned: AtomicUsize::new(0),
            returns: AtomicBool::new(false),
            window: Mutex::new(Window::closed()),
            cap_bytes: AtomicUsize::new(cap_bytes),
            handles: AtomicUsize::new(1),
            arenas: AtomicUsize::new(0),
            slot: AtomicUsize::new(0),
            form,
            id,
            name: name.into(),
            core,
        }
    }

    /// What the cell holds: exact at some instant during the call, and not older than the last change that happens
    /// before it. Never negative: a mistake that took it below zero reads as 0 until it is mended.
    pub(crate) fn total_bytes(&self) -> usize {
        if !self.returns.load(Ordering::Relaxed) || mutant("read_without_lock") {
            // Acquire, from a release: whoever is given the bytes must see what was freed.
            let held = self.hot.held.load(Ordering::Acquire);
            // Looked at again: bytes that were given back and charged anew in between would count twice. It is set once and
            // for ever, so there is no way back to false.
            if !self.returns.load(Ordering::Relaxed) || mutant("read_without_lock") {
                return clamp(held);
            }
        }
        // `returned` is written under the lock, so it stands still while `held` is read.
        let _window = self.window.lock();
        let returned = self.returned.load(Ordering::Relaxed);
        clamp(self.hot.held.load(Ordering::Acquire)).saturating_sub(returned)
    }

    /// What of the total is in the lagged sum.
    pub(crate) fn published_bytes(&self) -> usize {
        self.window.lock().published_bytes()
    }

    /// Owner: records `bytes` more. Cannot be refused.
    #[inline(always)]
    pub(crate) fn charge(&self, bytes: usize) {
        let (new, wrapped) = own_load(&self.hot.held).overflowing_add(bytes);
        if wrapped {
            return self.charge_beyond_counter(bytes);
        }
        // Relaxed: a charge gives nobody anything; the slow path publishes with its own ordering.
        self.hot.held.store(new, Ordering::Relaxed);
        light_fence();
        if new > self.hot.hi.load(Ordering::Relaxed) {
            self.charged_outside(bytes);
        }
    }

    /// Owner: gives `bytes` back.
    #[inline(always)]
    pub(crate) fn release(&self, bytes: usize) {
        let (new, wrapped) = own_load(&self.hot.held).overflowing_sub(bytes);
        if wrapped {
            return self.release_more_than_held(bytes);
        }
        self.release_to(new);
    }

    /// Owner: gives back `bytes` that a reservation or an arena has charged before, so that they cannot be missing.
    /// A mistake elsewhere may have taken them all the same: then the total wraps, which the signed compare catches.
    #[inline(always)]
    pub(crate) fn release_charged(&self, bytes: usize) {
        self.release_to(own_load(&self.hot.held).wrapping_sub(bytes));
    }

    #[inline(always)]
    fn release_to(&self, new: usize) {
        // Release, to an exact reader's Acquire: whoever sees the bytes as free sees that they are no longer used.
        self.hot.held.store(new, Ordering::Release);
        light_fence();
        if (new as isize) < self.hot.lo.load(Ordering::Relaxed) as isize {
            self.released_outside();
        }
    }

    /// Owner: records `bytes` more, or says who refuses and leaves everything as it was.
    #[inline(always)]
    pub(crate) fn try_charge(&self, bytes: usize) -> Result<(), Refusal> {
        let (new, wrapped) = own_load(&self.hot.held).overflowing_add(bytes);
        // What cannot fit is never stored: to somebody who moves the window it would look like bytes that are spent.
        if wrapped || new > self.hot.try_hi.load(Ordering::Relaxed) {
            return self.try_charge_outside(bytes);
        }
        self.hot.held.store(new, Ordering::Relaxed);
        light_fence();
        if new > self.hot.hi.load(Ordering::Relaxed) && !mutant("try_checks_before_only") {
            return self.try_charge_stored(bytes);
        }
        Ok(())
    }

    /// Anybody, shared form: records `bytes` more.
    #[inline(always)]
    pub(crate) fn charge_shared(&self, bytes: usize) {
        let new = self.hot.held.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        rmw_fence();
        if new > self.hot.hi.load(Ordering::Relaxed) || new < bytes {
            self.charged_shared_outside(new, bytes);
        }
    }

    /// Anybody, shared form: gives `bytes` back.
    #[inline(always)]
    pub(crate) fn release_shared(&self, bytes: usize) {
        let old = self.hot.held.fetch_sub(bytes, Ordering::Release);
        rmw_fence();
        let new = old.wrapping_sub(bytes);
        if (new as isize) < self.hot.lo.load(Ordering::Relaxed) as isize || old < bytes {
            self.released_shared_outside(old, bytes);
        }
    }

    /// Anybody, shared form: records `bytes` more, or says who refuses and leaves everything as it was.
    pub(crate) fn try_charge_shared(&self, bytes: usize) -> Result<(), Refusal> {
        // From a read-modify-write and not a load, so that a model explores every order.
        let mut held = self.hot.held.fetch_add(0, Ordering::Relaxed);
        loop {
            let (new, wrapped) = held.overflowing_add(bytes);
            if wrapped || new > self.hot.try_hi.load(Ordering::Relaxed) {
                return self.core.try_charge_shared_outside(self, bytes);
            }
            match self.hot.held.compare_exchange_weak(held, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    rmw_fence();
                    if new > self.hot.hi.load(Ordering::Relaxed) && !mutant("shared_try_checks_before_only") {
                        return self.core.try_charge_shared_stored(self, bytes);
                    }
                    return Ok(());
                }
                Err(seen) => held = seen,
            }
        }
    }

    /// The writer's cap; none if it has none.
    pub(crate) fn cap(&self) -> Option<usize> {
        let cap = self.cap_bytes.load(Ordering::Relaxed);
        (cap != usize::MAX).then_some(cap)
    }

    /// Whether the total is above the writer's cap.
    pub(crate) fn over_cap(&self) -> bool {
        self.total_bytes() > self.cap_bytes.load(Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn released_outside(&self) {
        self.core.settle_as_owner(self, Ahead::Share);
    }

    #[cold]
    #[inline(never)]
    fn try_charge_stored(&self, bytes: usize) -> Result<(), Refusal> {
        self.core.try_charge_stored(self, bytes)
    }

    #[cold]
    #[inline(never)]
    fn charged_outside(&self, bytes: usize) {
        self.core.charged_outside(self, bytes);
    }

    #[cold]
    #[inline(never)]
    fn charged_shared_outside(&self, new: usize, bytes: usize) {
        self.core.charged_shared_outside(self, new, bytes);
    }

    #[cold]
    #[inline(never)]
    fn charge_beyond_counter(&self, bytes: usize) {
        self.core.charge_beyond_counter(self, bytes);
    }

    #[cold]
    #[inline(never)]
    fn release_more_than_held(&self, bytes: usize) {
        self.core.release_more_than_held(self, bytes);
    }

    #[cold]
    #[inline(never)]
    fn released_shared_outside(&self, old: usize, bytes: usize) {
        self.core.released_shared_outside(self, old, bytes);
    }

    #[cold]
    #[inline(never)]
    fn try_charge_outside(&self, bytes: usize) -> Result<(), Refusal> {
        self.core.try_charge_outside(self, bytes)
    }
}

impl Member for Cell {
    fn slot(&self) -> &AtomicUsize {
        &self.slot
    }
}

/// A counter as an amount: below zero reads as 0.
#[inline]
pub(crate) fn clamp(bytes: usize) -> usize {
    if bytes > MAX_BYTES { 0 } else { bytes }
}

/// A counted reference to a cell; the last one of a cell retires it.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) Arc<Cell>);

impl Handle {
    /// Whether both refer to the same writer.
    #[inline(always)]
    pub(crate) fn same(&self, other: &Handle) -> bool {
        Arc::as_ptr(&self.0) == Arc::as_ptr(&other.0)
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        // Relaxed: the one who clones holds a handle, so the count cannot reach 0 meanwhile.
        self.0.handles.fetch_add(1, Ordering::Relaxed);
        Handle(Arc::clone(&self.0))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // AcqRel: the last one sees every change that the others made through theirs.
        let order = if mutant("handle_relaxed") { Ordering::Relaxed } else { Ordering::AcqRel };
        if self.0.handles.fetch_sub(1, order) == 1 {
            self.0.core.retire(&self.0);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    #[test]
    fn no_other_allocation_shares_a_line_with_the_hot_words() {
        const LINE: usize = 64;
        // An `Arc` puts its two counts in front.
        let counts = 2 * size_of::<usize>();
        let (begin, size) = (counts + offset_of!(Cell, hot), counts + size_of::<Cell>());
        let end = begin + size_of::<Hot>();
        assert_eq!(align_of::<Cell>(), align_of::<usize>());
        for address in (0..LINE).step_by(align_of::<Cell>()) {
            let first = (address + begin) / LINE * LINE;
            let last = (address + end - 1) / LINE * LINE + LINE;
            assert!(first >= address && last <= address + size, "at {address}: {first} to {last}");
        }
        assert!(size <= 200, "{size}");
    }
}
