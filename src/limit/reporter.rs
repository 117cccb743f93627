//! The single-owner form of a writer's account.

use super::arena::ArenaHandle;
use super::arena_cell::ArenaCell;
use super::cell::Handle;
use super::reservation::Reservation;
use crate::error::{Refusal, ReserveError};
use std::cell::Cell as NotSync;
use std::marker::PhantomData;

/// One index writer's account: exact at once for everybody who asks, published process-wide in quanta.
///
/// Single owner at a time: it may move to another thread (`Send`), and cannot be used from two (`!Sync`). A change is a
/// handful of plain instructions on words that nobody else writes. When what it holds back reaches the quantum
/// (1 MiB unless the budget makes it smaller), all of it is published together; the rest is published when it is dropped,
/// also while unwinding. For components on several threads there is [`SharedReporter`](crate::SharedReporter).
///
/// # Reporter or Reservation?
///
/// [`charge`](Self::charge) and [`release`](Self::release) record what exists and have to be balanced by the caller. A
/// [`Reservation`] remembers its bytes and gives them back by itself. Both change the same total.
///
/// # Memory ordering
///
/// Whoever reads [`held_bytes`](Self::held_bytes) or walks all writers sees each total as it was at some instant, and not
/// older than the last change that happens before the read. A total from which bytes are gone synchronises with the
/// release that gave them back (Release, Acquire): what was freed is no longer in use. A charge is Relaxed.
///
/// ```
/// let limiter = plimsoll::GlobalMemoryLimiter::builder().unlimited().build()?;
/// let reporter = limiter.reporter("logs/message");
/// reporter.charge(120);
/// assert_eq!((reporter.held_bytes(), limiter.held_bytes(), limiter.published_bytes()), (120, 120, 0));
/// reporter.release(120);
/// # Ok::<(), plimsoll::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Reporter {
    pub(crate) handle: Handle,
    /// Not `Sync`: the cell has one writing thread.
    one_writer: PhantomData<NotSync<()>>,
}

/// A change is stored before anything can panic, so a reporter behind a reference is right after a caught panic.
impl std::panic::RefUnwindSafe for Reporter {}

impl Reporter {
    pub(crate) fn new(handle: Handle) -> Self {
        Reporter { handle, one_writer: PhantomData }
    }

    /// Records `bytes` more. Cannot be refused; memory that exists is counted, whatever the limits say.
    ///
    /// # Panics
    ///
    /// In debug builds if the total would pass half of `usize`; in release builds that is counted as an accounting error
    /// and not recorded.
    #[inline(always)]
    pub fn charge(&self, bytes: usize) {
        self.handle.0.charge(bytes);
    }

    /// Gives `bytes` back.
    ///
    /// # Panics
    ///
    /// In debug builds if that is more than is held. In release builds the total becomes 0, the surplus is counted in
    /// [`Stats::accounting_errors`](crate::Stats::accounting_errors) and told with the writer's name.
    #[inline(always)]
    pub fn release(&self, bytes: usize) {
        self.handle.0.release(bytes);
    }

    /// Records `bytes` more if the writer's cap allows it.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] if the total would pass the cap, or what a counter can hold; then nothing has changed.
    #[inline(always)]
    pub fn try_charge(&self, bytes: usize) -> Result<(), ReserveError> {
        self.handle.0.try_charge(bytes).map_err(|kind| self.refusal(bytes, kind))
    }

    #[cold]
    #[inline(never)]
    fn refusal(&self, bytes: usize, kind: Refusal) -> ReserveError {
        let cell = &self.handle.0;
        cell.core.refusal(cell, bytes, kind)
    }

    /// Charges `bytes` and answers the reservation that gives them back. Cannot be refused.
    ///
    /// # Panics
    ///
    /// As [`charge`](Self::charge).
    pub fn reserve(&self, bytes: usize) -> Reservation {
        self.charge(bytes);
        Reservation::new(self.handle.clone(), bytes)
    }

    /// Charges `bytes`, before they are allocated, if the writer's cap allows it.
    ///
    /// # Errors
    ///
    /// As [`try_charge`](Self::try_charge).
    pub fn try_reserve(&self, bytes: usize) -> Result<Reservation, ReserveError> {
        self.try_charge(bytes)?;
        Ok(Reservation::new(self.handle.clone(), bytes))
    }

    /// Registers a spillable arena of this writer. Its bytes are part of the writer's total.
    pub fn arena(&self, name: &str) -> ArenaHandle {
        self.arena_with_address_space(name, usize::MAX)
    }

    /// The same for an arena whose addresses end at `max_bytes`: it is asked to spill before it gets there (at 31/32 of
    /// it), and [`try_grow_bytes`](ArenaHandle::try_grow_bytes) refuses to go beyond.
    pub fn arena_with_address_space(&self, name: &str, max_bytes: usize) -> ArenaHandle {
        let arena = self.handle.0.core.join_arena(&self.handle, name, max_bytes.min(ArenaCell::MAX_BYTES));
        ArenaHandle::new(self.handle.clone(), arena)
    }

    /// What this writer holds, exact.
    pub fn held_bytes(&self) -> usize {
        self.handle.0.total_bytes()
    }

    /// Whether the writer holds more than its cap (never, without one): the moment to spill by itself.
    pub fn over_cap(&self) -> bool {
        self.handle.0.over_cap()
    }

    /// What [`over_cap`](Self::over_cap) compares with; none if the writer is not capped.
    pub fn cap_bytes(&self) -> Option<usize> {
        self.handle.0.cap()
    }

    /// Gives the writer a cap of its own, in effect with its next `try_` call; none goes back to the limiter's.
    ///
    /// Takes the cell's own lock, which is free but for a moment.
    pub fn set_cap_bytes(&self, bytes: Option<usize>) {
        let cell = &self.handle.0;
        cell.core.set_cap(cell, bytes);
    }

    /// Publishes what is held back now, without waiting for a quantum: before a long pause, say.
    ///
    /// Takes the cell's own lock, which is free but for a moment.
    pub fn flush(&self) {
        let cell = &self.handle.0;
        cell.core.flush(cell);
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.handle.0.name
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // Reservations and arenas may live on; nobody is left who could publish for them later.
        let cell = &self.handle.0;
        cell.core.orphan(cell);
    }
}
