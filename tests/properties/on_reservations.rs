//! Calls on a reservation.

use crate::model::{Expected, World};
use crate::ops::Op;
use crate::writer::{elsewhere, with_account};
use plimsoll::Reservation;

impl World {
    pub(crate) fn step_of_reservation(&mut self, op: Op, who: usize, which: usize, bytes: usize) {
        let number = self.writers[who].held.len();
        if number == 0 {
            return;
        }
        let n = which % number;
        match op {
            Op::Split | Op::Take | Op::Merge => self.rearrange(op, who, n, bytes),
            Op::Transfer | Op::TransferElsewhere | Op::TransferAway => self.transfer(op, who, n, bytes),
            Op::Free | Op::FreeElsewhere | Op::FreeWith | Op::DropReservation | Op::DropElsewhere => {
                self.free(op, who, n);
            }
            _ => self.resize(op, who, n, bytes),
        }
    }

    /// Through the account, which has to be there.
    fn resize(&mut self, op: Op, who: usize, n: usize, bytes: usize) {
        let before = self.writers[who].bytes[n];
        if with_account!(self.writers[who], |account| account.name().len()).is_none() {
            return;
        }
        let more = match op {
            Op::TryResize | Op::Resize => bytes.saturating_sub(before),
            _ => bytes,
        };
        // Giving back is never refused, and neither is staying as it is.
        let expected: Expected = match op {
            Op::TryResize if bytes <= before => Ok(()),
            _ => self.expect(who, more),
        };
        if matches!(op, Op::Grow | Op::Resize | Op::ReplaceCommit | Op::ReplaceDrop) {
            self.records(more, 0);
        }
        let writer = &mut self.writers[who];
        let one = &mut writer.held[n];
        let mut tried = None;
        let now = match op {
            Op::Grow => {
                with_account!(writer, |account| one.grow(account, bytes));
                before + bytes
            }
            Op::Shrink => {
                with_account!(writer, |account| one.shrink(account, bytes.min(before)));
                before - bytes.min(before)
            }
            Op::Resize => {
                with_account!(writer, |account| one.resize(account, bytes));
                bytes
            }
            Op::ReplaceCommit => {
                with_account!(writer, |account| one.replace(account, bytes).commit());
                bytes
            }
            Op::ReplaceDrop => {
                with_account!(writer, |account| drop(one.replace(account, bytes)));
                before
            }
            Op::TryGrow => {
                tried = with_account!(writer, |account| one.try_grow(account, bytes));
                before + bytes
            }
            Op::TryResize => {
                tried = with_account!(writer, |account| one.try_resize(account, bytes));
                bytes
            }
            _ => {
                tried = with_account!(writer, |account| one.try_replace(account, bytes).map(|both| both.commit()));
                bytes
            }
        };
        let granted = tried.is_none_or(|result| self.answered(expected, more, result));
        self.writers[who].bytes[n] = if granted { now } else { before };
    }

    /// No total moves.
    fn rearrange(&mut self, op: Op, who: usize, n: usize, bytes: usize) {
        let writer = &mut self.writers[who];
        let before = writer.bytes[n];
        match op {
            Op::Split => match writer.held[n].split(bytes) {
                Some(part) => {
                    writer.bytes[n] = before.wrapping_sub(bytes);
                    writer.push(part, bytes);
                }
                None => self.check(bytes > before, || "split refused what was there".into()),
            },
            Op::Take => {
                let all = writer.held[n].take();
                writer.bytes[n] = 0;
                writer.push(all, before);
            }
            _ => {
                let (other, more) = writer.pop(n);
                if writer.held.is_empty() {
                    return writer.push(other, more);
                }
                let m = bytes % writer.held.len();
                writer.bytes[m] += more;
                writer.held[m].merge(other).expect("of one account");
            }
        }
    }

    fn free(&mut self, op: Op, who: usize, n: usize) {
        let writer = &mut self.writers[who];
        match op {
            Op::Free => {
                let answers = (writer.held[n].free(), writer.held[n].free());
                let before = std::mem::take(&mut writer.bytes[n]);
                self.check(answers == (before, 0), || format!("gave {answers:?} back and not {before}"));
            }
            Op::FreeElsewhere => {
                let (mut one, before) = writer.pop(n);
                let (one, freed) = elsewhere(move || {
                    let freed = one.free();
                    (one, freed)
                });
                writer.push(one, 0);
                self.check(freed == before, || format!("gave {freed} back and not {before}"));
            }
            Op::FreeWith => {
                let (gone, _) = writer.pop(n);
                // If its reporter is gone it is dropped, which is right as well.
                with_account!(writer, |account| gone.free_with(account));
            }
            Op::DropReservation => drop(writer.pop(n)),
            _ => {
                let (gone, _) = writer.pop(n);
                elsewhere(move || drop(gone));
            }
        }
    }

    fn transfer(&mut self, op: Op, who: usize, n: usize, to: usize) {
        let (mut gone, bytes) = self.writers[who].pop(n);
        if op == Op::TransferAway {
            gone.transfer(&self.abroad);
            let right = self.abroad.held_bytes() == bytes && gone.writer() == self.abroad.name();
            return self.check(right, || "not what went abroad".into());
        }
        let to = to % self.writers.len();
        let receiver = &mut self.writers[to];
        let arrived = match (&mut receiver.reporter, &receiver.shared) {
            (owned @ Some(_), _) if op == Op::TransferElsewhere => {
                let reporter = owned.take().expect("there");
                let (reporter, moved) = elsewhere(move || (reporter, gone));
                *owned = Some(reporter);
                gone = moved;
                with_account!(receiver, |account| gone.transfer(account)).is_some()
            }
            (None, Some(shared)) if op == Op::TransferElsewhere => {
                let shared = shared.clone();
                gone = elsewhere(move || {
                    gone.transfer(&shared);
                    gone
                });
                true
            }
            _ => with_account!(receiver, |account| gone.transfer(account)).is_some(),
        };
        let holder = if arrived { to } else { who };
        self.check_transferred(&gone, holder);
        self.writers[holder].push(gone, bytes);
    }

    fn check_transferred(&mut self, gone: &Reservation, holder: usize) {
        let right = gone.writer() == self.writers[holder].name;
        self.check(right, || "it went to somebody else".into());
    }
}
