//! How many batches are built at once: one fits when the fixed need of its writers can be had under the budget, next to
//! what is held. Growth is not estimated; that is what spills are for. One batch is always admitted, so somebody always
//! goes on. Whoever waits holds nothing, looks again every few milliseconds, and stops when the build does.
use crate::error::Result;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A wait looks again after this, also if nobody has said that bytes were freed.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Now {
    active: usize,
    /// needs of admitted batches that have not been charged yet
    pending_bytes: usize,
}

/// Lets batches in.
#[derive(Debug)]
pub(super) struct Admission {
    budget_bytes: Option<usize>,
    now: Mutex<Now>,
    freed: Condvar,
}

/// A batch that was let in. Dropped, it makes room.
#[derive(Debug)]
pub(super) struct Ticket<'a> {
    admission: &'a Admission,
    pending_bytes: usize,
}

impl Admission {
    pub(super) fn new(budget_bytes: Option<usize>) -> Admission {
        Admission { budget_bytes, now: Mutex::default(), freed: Condvar::new() }
    }

    /// Waits until `need` bytes fit. `held` says what is held, `go_on` whether to wait on.
    pub(super) fn admit(
        &self,
        need_bytes: usize,
        held: impl Fn() -> usize,
        go_on: impl Fn() -> Result<()>,
    ) -> Result<Ticket<'_>> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let taken = || held().saturating_add(now.pending_bytes).saturating_add(need_bytes);
            if now.active == 0 || self.budget_bytes.is_none_or(|budget| taken() <= budget) {
                now.active += 1;
                now.pending_bytes += need_bytes;
                return Ok(Ticket { admission: self, pending_bytes: need_bytes });
            }
            go_on()?;
            now = self.freed.wait_timeout(now, LOOK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Bytes were freed: who waits may look again.
    pub(super) fn freed(&self) {
        if self.budget_bytes.is_some() {
            self.freed.notify_all();
        }
    }
}

impl Ticket<'_> {
    /// The need has been charged: it no longer counts besides.
    pub(super) fn charged(&mut self) {
        let pending = std::mem::take(&mut self.pending_bytes);
        self.admission.now.lock().unwrap_or_else(PoisonError::into_inner).pending_bytes -= pending;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut now = self.admission.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.active -= 1;
        now.pending_bytes -= self.pending_bytes;
        drop(now);
        self.admission.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::cell::Cell;

    #[test]
    fn one_batch_is_always_admitted_and_further_ones_only_if_they_fit() {
        let admission = Admission::new(Some(100));
        let rounds = Cell::new(0);
        let thrice = || {
            rounds.set(rounds.get() + 1);
            if rounds.get() < 3 { Ok(()) } else { Err(Error::Interrupted { signal: 2 }) }
        };
        let mut first = admission.admit(200, || 500, thrice).unwrap();
        assert!(admission.admit(10, || 0, thrice).is_err(), "200 are pending");
        first.charged();
        rounds.set(0);
        assert!(admission.admit(10, || 95, thrice).is_err());
        assert_eq!(rounds.get(), 3, "it looked again each time");
        let second = admission.admit(10, || 90, thrice).unwrap();
        assert!(admission.admit(1, || 90, || Err(Error::Interrupted { signal: 2 })).is_err());
        drop((first, second));
        admission.admit(1000, || 1000, thrice).unwrap();
    }

    #[test]
    fn without_a_budget_nobody_waits() {
        let admission = Admission::new(None);
        let tickets: Vec<_> = (0..100).map(|_| admission.admit(usize::MAX / 200, || 0, || Ok(())).unwrap()).collect();
        assert_eq!(tickets.len(), 100);
    }
}
