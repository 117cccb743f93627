//! Recomputing the process-wide sums from the cells.
//!
//! A sum moves only while the cell that it belongs to is locked. So with every cell locked at once, and nobody joining or
//! leaving, sums and cells can be compared to the byte. Transfers are kept away: they move one side after the other.

use super::core::Core;
use super::ledger::Totals;
use super::window::Window;
use crate::sync::MutexGuard;
use std::fmt;

/// What [`reconcile`](crate::GlobalMemoryLimiter::reconcile) found: how far each sum was from what the cells say, in bytes.
/// Above 0 the sum said too much. All 0 is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drift {
    /// Of the lagged sum.
    pub published_bytes: isize,
    /// Of what is reserved.
    pub reserved_bytes: isize,
    /// Of the lag bound.
    pub granted_bytes: isize,
    /// Of what writers without an arena have published.
    pub apart_bytes: isize,
    /// Of the number of open windows; the only one that is not in bytes.
    pub open_windows: isize,
}

impl Drift {
    /// Whether every sum was right.
    pub fn is_none(&self) -> bool {
        *self == Drift::default()
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "published {:+} B, reserved {:+} B, granted {:+} B, apart {:+} B, open windows {:+}",
            self.published_bytes, self.reserved_bytes, self.granted_bytes, self.apart_bytes, self.open_windows
        )
    }
}

impl Core {
    /// Compares, repairs, and tells of a drift once: the next look finds none.
    pub(crate) fn reconcile(&self) -> Drift {
        let drift = {
            let _no_transfer = self.registry.keep_transfers_away();
            let _alone = self.moving.lock();
            self.registry.cells.walk(|cells| {
                let windows: Vec<MutexGuard<'_, Window>> = cells.iter().map(|cell| cell.window.lock()).collect();
                let right = windows.iter().fold(Totals::default(), |sum, window| sum.with(window));
                self.ledger.repair(&right)
            })
        };
        if !drift.is_none() {
            self.telemetry.drifted(&drift);
        }
        drift
    }
}

impl Totals {
    fn with(mut self, window: &Window) -> Self {
        let published = window.base.wrapping_sub(window.returned_published);
        self.published = self.published.wrapping_add(published);
        self.reserved = self.reserved.wrapping_add(published).wrapping_add(window.ahead);
        self.granted = self.granted.wrapping_add(window.room).wrapping_add(window.returned_room);
        self.apart = self.apart.wrapping_add(window.apart);
        self.open = self.open.wrapping_add(usize::from(window.open));
        self
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{GlobalMemoryLimiter, MIB};

    #[test]
    fn a_drift_is_found_repaired_and_told_once() {
        let limiter = GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).build().expect("valid");
        let reporter = limiter.reporter("writer");
        reporter.charge(5 * MIB + 3);
        let reservation = reporter.reserve(7);
        drop(std::thread::spawn(move || drop(reservation)).join());
        assert_eq!(limiter.reconcile(), Drift::default());
        let (published, reserved) = (limiter.published_bytes(), limiter.reserved_bytes());

        let ledger = &limiter.core().ledger;
        ledger.publish(-100);
        ledger.reserve(7);
        assert!(ledger.try_grant(9, usize::MAX));
        ledger.set_apart(-5);
        ledger.opened();
        let drift = limiter.reconcile();
        assert_eq!(drift.to_string(), "published -100 B, reserved +7 B, granted +9 B, apart -5 B, open windows +1");
        assert_eq!((limiter.published_bytes(), limiter.reserved_bytes()), (published, reserved));
        assert!(limiter.reconcile().is_none(), "repaired");
        reporter.release(5 * MIB + 3);
        drop(reporter);
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
        assert!(limiter.reconcile().is_none() && ledger.all_closed());
    }
}
