//! What has to hold after every call.

use crate::model::World;
use crate::writer::{Writer, with_account};
use plimsoll::{Decision, Reservation, Snapshot};

impl World {
    pub(crate) fn look(&mut self) {
        self.writers.retain(|writer| !writer.is_gone());
        self.look_at_sums();
        self.look_at_limits();
        let snapshot = self.limiter.snapshot();
        self.look_at_writers(&snapshot);
        self.look_at_decisions(&snapshot);
        let errors = self.limiter.stats().accounting_errors;
        self.check(errors == 0, || "an accounting error".into());
    }

    fn look_at_sums(&mut self) {
        let (held, published) = (self.limiter.held_bytes(), self.limiter.published_bytes());
        let (sum, bound, reserved) = (self.total(), self.limiter.lag_bound_bytes(), self.limiter.reserved_bytes());
        self.check(held == sum, || format!("held {held} and not {sum}"));
        self.check(held.abs_diff(published) <= bound, || format!("published {published} of {held} within {bound}"));
        self.check(reserved >= held, || format!("{held} held and {reserved} reserved"));
        if let Some(limit) = self.settings.lag_limit()
            && self.settings.barrier
        {
            self.check(bound <= limit, || format!("{bound} granted of {limit}"));
        }
        let drift = self.limiter.reconcile();
        self.check(drift.is_none(), || format!("drift: {drift}"));
    }

    fn look_at_limits(&mut self) {
        let (published, reserved) = (self.limiter.published_bytes(), self.limiter.reserved_bytes());
        let hard = self.settings.hard_limit;
        let limit = self.settings.budget_bytes().or(hard);
        let left = limit.map_or(usize::MAX, |limit| limit.saturating_sub(published));
        let available = self.limiter.available_bytes();
        self.check(available == left, || format!("{available} available and not {left}"));
        if !self.moves {
            return;
        }
        let (total, over) = (self.total(), hard.map_or(0, |hard| self.total().saturating_sub(hard)));
        let (says, stats) = (self.limiter.overdraft_bytes(), self.limiter.stats());
        self.check(says == over, || format!("{says} over the hard limit and not {over}"));
        let most = hard.map_or(usize::MAX, |hard| hard.max(total));
        self.check(reserved <= most, || format!("{reserved} reserved of {hard:?} with {total} held"));
        let (peak, times) = (self.overdraft_peak, self.overdrafts);
        self.check((stats.overdraft_peak_bytes, stats.overdrafts) == (peak, times), || {
            format!("{} overdrafts of up to {peak}, and not as in {stats:?}", times)
        });
    }

    fn look_at_writers(&mut self, snapshot: &Snapshot) {
        let right = snapshot.held_bytes == self.total() && snapshot.writers.len() == self.writers.len();
        self.check(right, || "the snapshot's sum".into());
        let mut wrong = vec![];
        for writer in &self.writers {
            let total = writer.total();
            let shown = snapshot.writers.iter().find(|shown| shown.name == writer.name).map(|shown| shown.held_bytes);
            let own = with_account!(writer, |account| (account.held_bytes(), account.over_cap()));
            let reservations: Vec<usize> = writer.held.iter().map(Reservation::bytes).collect();
            if shown != Some(total)
                || own.is_some_and(|own| own != (total, total > writer.cap))
                || reservations != writer.bytes
                || writer.arenas.iter().any(|(arena, bytes)| arena.bytes() != *bytes)
            {
                wrong.push(format!("{} holds {total}, shown {shown:?}, says {own:?}", writer.name));
            }
        }
        self.errors.extend(wrong);
    }

    fn look_at_decisions(&mut self, snapshot: &Snapshot) {
        let requests = self.limiter.stats().requests;
        if requests != self.requests {
            self.requests = requests;
            let last = snapshot.last_decision.as_deref();
            self.check(last.is_some_and(is_right), || format!("a wrong decision {last:?}"));
        }
        let Some(budget) = self.settings.budget_bytes() else { return };
        if self.settings.backoff || !self.settings.barrier {
            return;
        }
        // Over by the lagged sum too, whatever is held back of the reserve's use: then somebody has decided.
        let (published, bound) = (snapshot.published_bytes, snapshot.lag_bound_bytes);
        let kept = self.unused_reserve().saturating_sub(bound);
        let over = (self.total().min(published) + kept).saturating_sub(budget);
        let floor = self.settings.floor.max(1);
        let arenas = || self.writers.iter().flat_map(|writer: &Writer| &writer.arenas);
        let left = arenas().filter(|(arena, bytes)| !arena.spill_requested() && *bytes >= floor).count();
        let covered = snapshot.in_flight_bytes;
        self.check(over <= covered || left == 0, || format!("{over} over, {covered} in flight, {left} arenas left"));
    }
}

/// No more than needed and no less, unless it says what is missing.
fn is_right(decision: &Decision) -> bool {
    let need = decision.overage_bytes.saturating_sub(decision.in_flight_bytes);
    let covered: usize = decision.victims.iter().map(|victim| victim.1).sum();
    let smallest = decision.victims.iter().map(|victim| victim.1).min().unwrap_or(0);
    decision.requests == decision.victims.len()
        && covered - smallest < need
        && (covered >= need || decision.shortfall_bytes == need - covered)
}
