//! How large a window is, and how windows shrink when reporters come.
//!
//! The rooms of all live reporters together stay within the **lag budget**: a window grows only by what can be granted
//! ([`Core::deal_room`]). So that everybody gets the same, rooms are dealt for a number of seats, a power of two: each is
//! the lag budget divided by it (at most 1 MiB; 0 if that is below 4 KiB). A reporter that comes when all seats are taken
//! has the number doubled and everybody's window moved before it takes its own, so a join costs a constant on average.
//! When less than a quarter of the seats is taken, the number is halved; windows grow on their owners' next slow path.
//!
//! Who takes a window while somebody else is moving them may find nothing to be granted. It then publishes every change,
//! and each of those asks again. Without the process-wide barrier nobody's window can be moved: then that lasts until
//! others come by and give back.

use super::core::Core;
use super::credit::Ahead;
use super::settings::Settings;
use crate::sync::{AtomicUsize, Mutex, Ordering, mutant};

/// For how many reporters windows are dealt.
#[derive(Debug)]
pub(crate) struct Deal {
    /// By which the lag budget is divided. Relaxed: who raises it locks every cell afterwards, and so it is seen under
    /// their locks; an owner that still deals by the old number is moved after that.
    seats: AtomicUsize,
    /// Held while the number changes.
    lock: Mutex<()>,
}

impl Deal {
    pub(crate) fn new() -> Self {
        Deal { seats: AtomicUsize::new(1), lock: Mutex::new(()) }
    }

    /// By which the lag budget is divided now.
    pub(crate) fn seats(&self) -> usize {
        self.seats.load(Ordering::Relaxed)
    }

    /// The room of one window: one byte less than the quantum, so that a difference of a whole quantum is published.
    pub(crate) fn room(&self, settings: &Settings) -> usize {
        settings.quantum_bytes(self.seats()).saturating_sub(1)
    }
}

impl Core {
    /// A reporter is in the list, the `number`th alive: there is a seat for it afterwards.
    pub(crate) fn seat(&self, number: usize) {
        if number <= self.deal.seats() {
            return;
        }
        let alone = self.deal.lock.lock();
        if number <= self.deal.seats() {
            return;
        }
        let before = self.deal.room(&self.settings);
        self.deal.seats.store(number.next_power_of_two(), Ordering::Relaxed);
        let mut moved = 0;
        if self.deal.room(&self.settings) < before && !mutant("join_without_moving") {
            (moved, _) = self.settle_list(Ahead::Share, |_| true);
        }
        drop(alone);
        // What the others had held back may be too much; who is asked then may register reporters.
        self.after_publish(moved);
    }

    /// A reporter has left and `live` are alive: perhaps the rooms are dealt for fewer from here on.
    pub(crate) fn unseat(&self, live: usize) {
        if live >= self.deal.seats() / 4 {
            return;
        }
        let _alone = self.deal.lock.lock();
        let seats = self.deal.seats();
        if self.registry.live() < seats / 4 {
            self.deal.seats.store(seats / 2, Ordering::Relaxed);
        }
    }
}
