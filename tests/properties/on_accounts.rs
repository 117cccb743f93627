//! Calls on a reporter, in either form.

use crate::model::{MOST, World};
use crate::ops::Op;
use crate::writer::{elsewhere, with_account};

impl World {
    pub(crate) fn step_of_account(&mut self, op: Op, who: usize, which: usize, bytes: usize) {
        let expected = self.expect(who, bytes);
        if with_account!(self.writers[who], |account| account.name().len()).is_none() && op != Op::DropWriter {
            return;
        }
        match op {
            Op::Charge => {
                self.records(bytes, 0);
                let writer = &mut self.writers[who];
                with_account!(writer, |account| account.charge(bytes));
                writer.charged += bytes;
            }
            Op::ChargeElsewhere => self.charge_elsewhere(who, bytes),
            Op::Release => {
                let writer = &mut self.writers[who];
                let bytes = bytes.min(writer.charged);
                with_account!(writer, |account| account.release(bytes));
                writer.charged -= bytes;
            }
            Op::TryCharge => {
                let result = with_account!(self.writers[who], |account| account.try_charge(bytes));
                if self.answered(expected, bytes, result.expect("there")) {
                    self.writers[who].charged += bytes;
                }
            }
            Op::TryHuge => {
                // Granted only if nothing stands in the way, which would be more than the sums hold.
                let asked = [usize::MAX, MOST + 1, MOST, MOST - bytes][which % 4];
                let expected = self.expect(who, asked);
                if expected.is_err() {
                    let result = with_account!(self.writers[who], |account| account.try_charge(asked));
                    self.answered(expected, asked, result.expect("there"));
                }
            }
            Op::Reserve => {
                self.records(bytes, 0);
                let reservation = with_account!(self.writers[who], |account| account.reserve(bytes));
                self.writers[who].push(reservation.expect("there"), bytes);
            }
            Op::TryReserve => {
                let result = with_account!(self.writers[who], |account| account.try_reserve(bytes)).expect("there");
                let (reservation, result) = match result {
                    Ok(reservation) => (Some(reservation), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                self.answered(expected, bytes, result);
                if let Some(reservation) = reservation {
                    self.writers[who].push(reservation, bytes);
                }
            }
            Op::Flush => drop(with_account!(self.writers[who], |account| account.flush())),
            Op::DropReporter => {
                let writer = &mut self.writers[who];
                with_account!(writer, |account| account.release(writer.charged));
                writer.charged = 0;
                drop((writer.reporter.take(), writer.shared.take()));
            }
            _ => {
                let mut gone = self.writers.swap_remove(who);
                with_account!(gone, |account| account.release(gone.charged));
                match which % 3 {
                    0 => drop((gone.reporter.take(), gone.shared.take())),
                    1 => gone.arenas.clear(),
                    _ => gone.held.clear(),
                }
                drop(gone);
            }
        }
    }

    /// The owner moves to another thread, and back; of a shared account another thread has a clone.
    fn charge_elsewhere(&mut self, who: usize, bytes: usize) {
        self.records(bytes, 0);
        let writer = &mut self.writers[who];
        writer.charged += bytes;
        if let Some(reporter) = writer.reporter.take() {
            writer.reporter = Some(elsewhere(move || {
                reporter.charge(bytes);
                reporter
            }));
        } else if let Some(shared) = writer.shared.clone() {
            elsewhere(move || shared.charge(bytes));
        }
    }
}
