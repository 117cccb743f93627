//! Memory that is taken before it is needed.

use crate::error::ReserveError;
use crate::spill::charge::Charge;
use crate::spill::folder::SpillFolder;
use crate::spill::merge::{MergeLimits, heap_bytes};
use crate::spill::run::{RunReader, RunWriter};
use crate::spill::spool::Spool;

/// What the writer of one run, or the smallest merge (two readers and a writer), takes at most in bytes, the growth of the
/// lists of a spool in `folder` with a name of so many bytes included.
pub fn flush_bytes(folder: &SpillFolder, name_bytes: usize, limits: MergeLimits, longest_key_bytes: usize) -> usize {
    let writer = RunWriter::most_bytes(limits.block_bytes, longest_key_bytes);
    let reader = RunReader::most_bytes(limits.block_bytes, longest_key_bytes);
    // a pass has a list of its own for what it makes
    2 * Spool::most_growth_bytes(folder, name_bytes) + writer + 2 * reader + heap_bytes(2)
}

/// Memory for the flush that saves the process: taken from an account by a call that may be refused, when there is some,
/// and spent without one. It is an account itself: what is charged to it comes out of what was taken, and only what goes
/// beyond is charged to the account behind it. Nobody else can have it, whoever waits, and a budget that is full does not
/// matter to it.
///
/// It is for one thing at a time: a run that is written, or a merge of two runs ([`flush_bytes`]). What it holds counts
/// as held from the first moment, and goes back when it is dropped. A spool's lists stay charged when a run is sealed, a
/// few bytes each: [`Earmark::refill`] makes up for them after a flush, when there is room again.
#[derive(Debug)]
pub struct Earmark<C: Charge> {
    account: C,
    /// what can be charged when nothing is
    room: usize,
    /// what was taken for that, and for what stays charged
    bytes: usize,
    charged: usize,
}

impl<C: Charge> Earmark<C> {
    /// Takes `bytes`.
    ///
    /// # Errors
    /// The account's limit refuses; nothing has changed.
    pub fn take(mut account: C, bytes: usize) -> Result<Earmark<C>, ReserveError> {
        account.try_charge(bytes)?;
        Ok(Earmark { account, room: bytes, bytes, charged: 0 })
    }

    /// What was taken, in bytes.
    pub fn taken_bytes(&self) -> usize {
        self.bytes
    }

    /// What is charged to it, in bytes; more than was taken if the account behind it was charged as well.
    pub fn charged_bytes(&self) -> usize {
        self.charged
    }

    /// Takes as much as was taken at first beside what is charged now; gives back what is more than that.
    ///
    /// # Errors
    /// The account's limit refuses; nothing has changed, and what is left can be charged as before.
    pub fn refill(&mut self) -> Result<(), ReserveError> {
        let held = self.bytes + self.beyond(self.charged);
        let wanted = self.charged.saturating_add(self.room);
        if wanted > held {
            self.account.try_charge(wanted - held)?;
        } else {
            self.account.release(held - wanted);
        }
        self.bytes = wanted;
        Ok(())
    }

    /// What is charged beyond what was taken, if so much is charged.
    fn beyond(&self, charged: usize) -> usize {
        charged.saturating_sub(self.bytes)
    }
}

impl<C: Charge> Charge for Earmark<C> {
    fn charge(&mut self, bytes: usize) {
        let charged = self.charged.saturating_add(bytes);
        let more = self.beyond(charged) - self.beyond(self.charged);
        if more > 0 {
            self.account.charge(more);
        }
        self.charged = charged;
    }

    fn release(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.charged, "no more is released than was charged");
        let charged = self.charged.saturating_sub(bytes);
        let less = self.beyond(self.charged) - self.beyond(charged);
        if less > 0 {
            self.account.release(less);
        }
        self.charged = charged;
    }

    fn try_charge(&mut self, bytes: usize) -> Result<(), ReserveError> {
        let charged = self.charged.saturating_add(bytes);
        let more = self.beyond(charged) - self.beyond(self.charged);
        if more > 0 {
            self.account.try_charge(more)?;
        }
        self.charged = charged;
        Ok(())
    }
}

impl<C: Charge> Drop for Earmark<C> {
    fn drop(&mut self) {
        self.account.release(self.bytes + self.beyond(self.charged));
    }
}
