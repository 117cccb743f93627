//! What is put right when a subscriber's, selector's or recorder's panic passes through a call.
//!
//! A charge that does not return has recorded nothing: neither has whoever called it kept a reservation for it. A release,
//! and whatever else happened before the panic, stands.

use super::cell::{Cell, Form};
use super::core::Core;
use super::credit::Ahead;
use crate::sync::Ordering;

/// Runs something if it is dropped, which it is while unwinding alone.
#[derive(Debug)]
pub(crate) struct OnUnwind<F: FnMut()>(F);

impl<F: FnMut()> OnUnwind<F> {
    pub(crate) fn new(mend: F) -> Self {
        OnUnwind(mend)
    }

    /// It went well.
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<F: FnMut()> Drop for OnUnwind<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Core {
    /// Runs what may call user code after `bytes` were charged on `cell`; a panic takes them back.
    pub(crate) fn taken_back_by_panic<R>(&self, cell: &Cell, bytes: usize, then: impl FnOnce() -> R) -> R {
        let take_back = OnUnwind::new(|| self.take_back(cell, bytes));
        let answer = then();
        take_back.disarm();
        answer
    }

    /// Nobody is told and nobody decides.
    fn take_back(&self, cell: &Cell, bytes: usize) {
        match cell.form {
            Form::Owned => {
                self.give_back_quietly(cell, bytes);
            }
            Form::Shared => {
                let mut window = cell.window.lock();
                cell.hot.held.fetch_sub(bytes, Ordering::Release);
                let _settled = self.publish(cell, &mut window, Ahead::Share, 0);
            }
        }
    }
}
