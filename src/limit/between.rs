//! Decisions between two walks, where there are many arenas.
//!
//! A walk over all writers costs some 30 ns each. With thousands of them, at a budget that lasts, that would be paid for
//! every victim. So a walk leaves behind who is in flight and who would be next, and the decisions that follow take from
//! there: what is in flight is read again, the **lagged sum** says how much is over (near the line it differs from the exact
//! one by a least window for each writer that runs), and the next in order are asked, each looked at again before. A new
//! walk is taken when nobody is left to ask, when enough notifications have paid for one, when a shortfall ends, and
//! whenever somebody polls. With few arenas, with a selector of the caller's, and where only writers count, every decision
//! walks.
//!
//! While a shortfall lasts there is nobody to ask but arenas that could not be asked before: one that grows asks itself.

use super::arena_cell::{ArenaCell, State};
use super::core::Core;
use super::decide::{Look, Verdict, view};
use super::decision::{Decision, PressureSource, Shortfall};
use super::record::{self, Asked};
use super::selector::{ArenaView, Plan};
use std::cmp::Reverse;
use std::sync::{Arc, Weak};

/// Up to so many arenas every decision walks.
const FEW: usize = 256;
/// How many writers' share of a walk one notification pays for.
const PAID_BY_NOTICE: usize = 4;
/// At least so many next victims are kept, and one for so many arenas.
const NEXT: usize = 64;
const ARENAS_FOR_NEXT: usize = 8;

/// What the last walk left behind. Weak: an arena refers to its writer, that to the limiter, and that to this.
#[derive(Debug, Default)]
pub(crate) struct Between {
    /// Victims to come, the next one last.
    next: Vec<Weak<ArenaCell>>,
    /// Those in flight when they were looked at last.
    in_flight: Vec<Weak<ArenaCell>>,
    /// What notifications have paid since, in writers.
    paid: usize,
    /// There was a walk, and it may serve.
    serves: bool,
}

impl Core {
    /// After a walk over `views` in which `victims` were asked: keeps what the next decisions need.
    pub(crate) fn remember(&self, between: &mut Between, views: &[ArenaView], victims: &[usize], floor: usize) {
        between.next.clear();
        between.in_flight.clear();
        between.paid = 0;
        between.serves = views.len() > FEW && self.selector.get().is_none() && !self.settings.writer_share();
        self.decider.set_rests(between.serves);
        if !between.serves {
            return;
        }
        let mut next: Vec<usize> = (0..views.len()).filter(|&index| views[index].is_eligible(floor)).collect();
        let kept = (NEXT + views.len() / ARENAS_FOR_NEXT + victims.len()).min(next.len());
        let order = |&index: &usize| (Reverse(views[index].bytes), views[index].id);
        if kept < next.len() {
            next.select_nth_unstable_by_key(kept, order);
            next.truncate(kept);
        }
        next.sort_unstable_by_key(|index| Reverse(order(index)));
        self.registry.arenas.walk(|arenas| {
            let known = |index: usize| record::find(arenas, index, views[index].id).map(Arc::downgrade);
            let flying = (0..views.len()).filter(|&index| views[index].in_flight).chain(victims.iter().copied());
            between.in_flight.extend(flying.filter_map(known));
            // Those that were asked just now are passed over when their turn comes.
            between.next.extend(next.iter().filter_map(|&index| known(index)));
        });
    }

    /// Whether the last walk serves for this decision too; `notices` have brought it about.
    pub(crate) fn rests(&self, between: &mut Between, notices: usize) -> bool {
        between.paid = between.paid.saturating_add(notices.saturating_mul(PAID_BY_NOTICE));
        between.serves && between.paid < self.registry.live()
    }

    /// A decision without a walk; none if it takes one.
    pub(crate) fn decide_resting(
        &self,
        between: &mut Between,
        shortfall: Option<Shortfall>,
        budget: usize,
        floor: usize,
    ) -> Option<Verdict> {
        let quiet = Verdict {
            walked: false,
            covered_bytes: 0,
            short: true,
            unmet: false,
            shortfall,
            record: None,
            wakers: Vec::new(),
        };
        if self.decider.lacks_victims() {
            // Its end is for a walk to find.
            return (!self.relieved()).then_some(quiet);
        }
        let (overage_bytes, source) = self.overage(self.counted_bytes(), budget);
        if shortfall.is_some() && overage_bytes == 0 {
            return None;
        }
        let now = self.decider.now_ms();
        let look = |arena: &ArenaCell| {
            let word = arena.word();
            (word, view(arena, word, arena.bytes(), now))
        };
        let mut in_flight_bytes = 0usize;
        between.in_flight.retain(|arena| {
            let Some(arena) = arena.upgrade() else { return false };
            let (word, view) = look(&arena);
            in_flight_bytes = in_flight_bytes.saturating_add(view.in_flight_bytes);
            matches!(word.state(), State::Requested | State::Running)
        });
        let mut need = overage_bytes.saturating_sub(in_flight_bytes);
        let mut asked = Asked::default();
        while need > 0 {
            let Some(arena) = between.next.pop() else {
                between.serves = false;
                break;
            };
            let Some(arena) = arena.upgrade() else { continue };
            let (word, view) = look(&arena);
            if view.is_eligible(floor) && arena.request(word, view.bytes) {
                asked.covered_bytes = asked.covered_bytes.saturating_add(view.bytes);
                asked.hit(&arena, view.bytes);
                between.in_flight.push(Arc::downgrade(&arena));
                need = need.saturating_sub(view.bytes);
            }
        }
        if need > 0 && asked.count == 0 {
            return None;
        }
        let record = (asked.count > 0).then(|| {
            let published_bytes = self.ledger.published_bytes();
            let exact_bytes = published_bytes;
            let kept_free_bytes = self.unused_reserve_bytes();
            let look = Look {
                budget_bytes: budget,
                floor_bytes: floor,
                exact_bytes,
                kept_free_bytes,
                published_bytes,
                overage_bytes,
                source,
            };
            let plan = Plan { in_flight_bytes, ..Plan::default() };
            Decision { walked: false, ..self.record(&look, &[], &plan, &asked) }
        });
        if let Some(record) = &record {
            self.telemetry.requested(record);
        }
        let covered_bytes = in_flight_bytes.saturating_add(asked.covered_bytes);
        Some(Verdict {
            covered_bytes,
            short: false,
            unmet: need > 0 || asked.shrunk,
            record,
            wakers: asked.wakers,
            ..quiet
        })
    }

    /// During a shortfall that lacks victims, where a walk is dear: an arena that can be asked is asked by whoever let it
    /// grow. True if it was.
    pub(crate) fn asks_itself(&self, arena: &ArenaCell) -> bool {
        if !(self.decider.rests() && self.decider.lacks_victims()) {
            return false;
        }
        let asked = arena.request(arena.word(), arena.bytes());
        if asked {
            self.telemetry.asked_itself();
            let waker = arena.waker.lock().clone();
            if let Some(waker) = waker {
                self.wake(&waker);
            }
        }
        asked
    }

    /// What is over with `held_bytes` held, and by which term. The terms overlap: the deepest counts, never their sum.
    pub(crate) fn overage(&self, held_bytes: usize, budget: usize) -> (usize, PressureSource) {
        let pressure = self.decider.pressure();
        [
            (held_bytes.saturating_sub(budget), PressureSource::Budget),
            (pressure.system_short_bytes, PressureSource::System),
            (pressure.process_over_bytes, PressureSource::Process),
        ]
        .into_iter()
        .reduce(|deepest, next| if next.0 > deepest.0 { next } else { deepest })
        .unwrap_or((0, PressureSource::Budget))
    }
}
