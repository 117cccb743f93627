//! The shared form of a writer's account.

use super::cell::Handle;
use super::reservation::Reservation;
use crate::error::ReserveError;

/// An account that several threads change: a clone each, all of them the same total.
///
/// Loses nothing under concurrent changes: each is one locked instruction on the account's own line (2 ns alone; more when
/// threads really meet). It holds changes back like a [`Reporter`](crate::Reporter) and publishes at the quantum; what is
/// left is published when the last clone and the last reservation are gone. It has no arenas: those belong to a writer.
///
/// # Memory ordering
///
/// As for a reporter: releases are Release, exact reads Acquire, charges Relaxed. A refused attempt changes nothing and
/// orders nothing.
///
/// ```
/// let limiter = plimsoll::GlobalMemoryLimiter::builder().unlimited().build()?;
/// let cache = limiter.shared_reporter("dictionary cache");
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         let cache = cache.clone();
///         scope.spawn(move || (0..1_000).for_each(|_| cache.charge(3)));
///     }
/// });
/// assert_eq!(limiter.held_bytes(), 12_000);
/// cache.release(12_000);
/// # Ok::<(), plimsoll::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SharedReporter {
    pub(crate) handle: Handle,
}

impl SharedReporter {
    pub(crate) fn new(handle: Handle) -> Self {
        SharedReporter { handle }
    }

    /// Records `bytes` more. Cannot be refused.
    ///
    /// # Panics
    ///
    /// As [`Reporter::charge`](crate::Reporter::charge).
    #[inline(always)]
    pub fn charge(&self, bytes: usize) {
        self.handle.0.charge_shared(bytes);
    }

    /// Gives `bytes` back.
    ///
    /// # Panics
    ///
    /// In debug builds if that is more than is held; in release builds as for
    /// [`Reporter::release`](crate::Reporter::release).
    #[inline(always)]
    pub fn release(&self, bytes: usize) {
        self.handle.0.release_shared(bytes);
    }

    /// Records `bytes` more if the account's cap allows it.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] if the total would pass the cap; then nothing has changed.
    pub fn try_charge(&self, bytes: usize) -> Result<(), ReserveError> {
        let cell = &self.handle.0;
        cell.try_charge_shared(bytes).map_err(|kind| cell.core.refusal(cell, bytes, kind))
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

    /// Charges `bytes`, before they are allocated, if the account's cap allows it.
    ///
    /// # Errors
    ///
    /// As [`try_charge`](Self::try_charge).
    pub fn try_reserve(&self, bytes: usize) -> Result<Reservation, ReserveError> {
        self.try_charge(bytes)?;
        Ok(Reservation::new(self.handle.clone(), bytes))
    }

    /// What the account holds, exact.
    pub fn held_bytes(&self) -> usize {
        self.handle.0.total_bytes()
    }

    /// Whether the account holds more than its cap.
    pub fn over_cap(&self) -> bool {
        self.handle.0.over_cap()
    }

    /// What [`over_cap`](Self::over_cap) compares with; none if the account is not capped.
    pub fn cap_bytes(&self) -> Option<usize> {
        self.handle.0.cap()
    }

    /// Gives the account a cap of its own, in effect with the next `try_` call; none goes back to the limiter's. A call that
    /// is under way on another thread may still be answered by the old one.
    pub fn set_cap_bytes(&self, bytes: Option<usize>) {
        let cell = &self.handle.0;
        cell.core.set_cap(cell, bytes);
    }

    /// Publishes what is held back now.
    pub fn flush(&self) {
        let cell = &self.handle.0;
        cell.core.flush(cell);
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.handle.0.name
    }
}
