//! Bytes that go from one writer to another: what is reserved for them goes along, so that nobody else can take it in
//! between and nothing is reserved twice.

use super::cell::{Cell, Form};
use super::core::Core;
use super::credit::Ahead;
use super::window::{Settled, close, note_returned};
use crate::sync::{Ordering, fence, own_load};

impl Core {
    /// The caller owns `to`. Nobody's code runs between the two sides, nor before `moved`, which says that the bytes belong
    /// to `to` now.
    pub(crate) fn transfer(&self, from: &Cell, to: &Cell, bytes: usize, moved: impl FnOnce()) {
        if bytes == 0 {
            return moved();
        }
        let transfer = self.registry.transfer();
        let out = self.take_out(from, bytes);
        let settled = out.and(self.put_in(to, bytes));
        drop(transfer);
        moved();
        self.after_settling(to, settled);
        if to.has_arena() && !from.has_arena() {
            self.reserve_is_used_less();
        }
    }

    /// One side of a transfer: `bytes` less are held and published here, and stay reserved.
    fn take_out(&self, from: &Cell, bytes: usize) -> Settled {
        let mut window = from.window.lock();
        match from.form {
            Form::Owned => {
                let behind = note_returned(from, &mut window, bytes);
                window.returned_published = window.returned_published.wrapping_add(behind);
                let moved = (behind as isize).wrapping_neg();
                self.ledger.publish(moved);
                self.set_apart(from, &mut window);
                if behind > bytes {
                    self.give_credit_back(behind - bytes);
                }
                Settled { moved, ..Settled::default() }
            }
            Form::Shared => {
                close(from);
                fence(Ordering::SeqCst);
                from.hot.held.fetch_sub(bytes, Ordering::Release);
                // Its share of what is reserved is the less by this, and the receiver's the more.
                window.base = window.base.wrapping_sub(bytes);
                let moved = (bytes as isize).wrapping_neg();
                self.ledger.publish(moved);
                let settled = self.publish(from, &mut window, Ahead::Share, 0);
                Settled { moved, ..Settled::default() }.and(settled)
            }
        }
    }

    /// The other side: `bytes` more are held and published here, for which room is reserved already.
    fn put_in(&self, to: &Cell, bytes: usize) -> Settled {
        let mut window = to.window.lock();
        let mut surplus = None;
        match to.form {
            Form::Owned => {
                surplus = self.fold(to, &mut window);
                to.hot.held.store(own_load(&to.hot.held).wrapping_add(bytes), Ordering::Release);
            }
            Form::Shared => {
                close(to);
                fence(Ordering::SeqCst);
                to.hot.held.fetch_add(bytes, Ordering::Release);
            }
        }
        window.base = window.base.wrapping_add(bytes);
        self.ledger.publish(bytes as isize);
        let moved = bytes as isize;
        let settled = self.publish(to, &mut window, Ahead::Full, 0);
        Settled { moved, surplus, ..Settled::default() }.and(settled)
    }
}
