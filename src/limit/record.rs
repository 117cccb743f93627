//! How a decision becomes a record, and how many records are kept.
//!
//! Everything here is bounded: 64 records; in each at most 32 victims and 16 that were passed over by name, the rest as
//! numbers; of a name at most 256 bytes. All records of a limiter together stay below 1 MiB, whatever the names are.
//!
//! Only a decision that asked somebody, or with which a shortfall began, comes here. Who was passed over is found in one
//! pass over what the decider has copied, with the largest kept aside; names are made last, under no list's lock.

use super::arena_cell::ArenaCell;
use super::core::Core;
use super::decide::Look;
use super::decision::{Decision, PassedOver, PassedOverCounts, Shortfall};
use super::selector::{ArenaView, Plan};
use crate::sync::{Ordering, fence, mutant};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// Records that are kept: the last ones.
const HISTORY: usize = 64;
/// Victims that a record names; the rest is a number.
const NAMED_VICTIMS: usize = 32;
/// Arenas passed over that a record names; the rest is a number.
const NAMED_PASSED_OVER: usize = 16;
/// What a record keeps of a name.
const NAME_BYTES: usize = 256;

/// The last records, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    records: VecDeque<Arc<Decision>>,
    count: u64,
}

impl History {
    /// Gives the record its number and keeps it; answers the one that had to go.
    pub(crate) fn add(&mut self, mut decision: Decision) -> Option<Arc<Decision>> {
        self.count += 1;
        decision.number = self.count;
        let gone = if self.records.len() == HISTORY { self.records.pop_front() } else { None };
        self.records.push_back(Arc::new(decision));
        gone
    }

    pub(crate) fn all(&self) -> Vec<Arc<Decision>> {
        self.records.iter().cloned().collect()
    }
}

/// What came of asking.
#[derive(Default)]
pub(crate) struct Asked {
    /// What all victims of the plan have: asked, or at it already.
    pub(crate) covered_bytes: usize,
    /// How many were asked, and what those have.
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    /// One of them is smaller by now than it was when it was looked at: it covers less, and the decision is taken again.
    pub(crate) shrunk: bool,
    /// The first of them.
    victims: Vec<(Arc<ArenaCell>, usize)>,
    /// Victims of the plan whose owners were faster: their places in the look.
    missed: Vec<usize>,
    pub(crate) wakers: Vec<Arc<Waker>>,
}

impl Asked {
    /// A victim was asked.
    pub(crate) fn hit(&mut self, arena: &Arc<ArenaCell>, bytes: usize) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        // Asked, then read; its owner stores, then looks whether it is asked (`ArenaHandle::is_counted_on`). One of the two
        // sees the other.
        fence(Ordering::SeqCst);
        self.shrunk |= arena.bytes() < bytes && !mutant("asked_without_second_look");
        if self.victims.len() < NAMED_VICTIMS {
            self.victims.push((Arc::clone(arena), bytes));
        }
        self.wakers.extend(arena.waker.lock().clone());
    }

    /// The victim at `index` had moved on.
    pub(crate) fn missed(&mut self, index: usize) {
        self.missed.push(index);
    }
}

/// Who was not asked: all counted, and the places of the largest.
#[derive(Debug, Default)]
struct Passed {
    counts: PassedOverCounts,
    largest: Vec<(usize, PassedOver)>,
}

impl Passed {
    fn of(views: &[ArenaView], victims: &[usize], missed: &[usize], floor: usize) -> Self {
        let mut passed = Passed { counts: PassedOverCounts::default(), largest: Vec::with_capacity(NAMED_PASSED_OVER) };
        let mut victim = vec![false; views.len()];
        victims.iter().for_each(|&index| victim[index] = true);
        for (index, view) in views.iter().enumerate().filter(|&(index, _)| !victim[index]) {
            passed.add(views, index, reason(view, floor));
        }
        missed.iter().for_each(|&index| passed.add(views, index, PassedOver::MovedOn));
        passed
    }

    fn add(&mut self, views: &[ArenaView], index: usize, why: PassedOver) {
        *self.counts.of_mut(why) += 1;
        let key = |index: usize| (Reverse(views[index].bytes), views[index].id);
        let full = self.largest.len() == NAMED_PASSED_OVER;
        // There is nothing to tell of an empty one.
        if views[index].bytes == 0 || (full && self.largest.last().is_some_and(|last| key(last.0) < key(index))) {
            return;
        }
        if full {
            self.largest.pop();
        }
        let place = self.largest.partition_point(|other| key(other.0) < key(index));
        self.largest.insert(place, (index, why));
    }
}

/// Why an arena that is no victim was left alone.
fn reason(view: &ArenaView, floor: usize) -> PassedOver {
    if view.in_flight {
        PassedOver::InFlight
    } else if view.bytes < floor.max(1) {
        PassedOver::BelowFloor
    } else if view.exempt {
        PassedOver::Exempt
    } else {
        PassedOver::NotNeeded
    }
}

/// The arena that a look found at `index`, if it is there still: the list may have changed since.
pub(crate) fn find(arenas: &[Arc<ArenaCell>], index: usize, id: u64) -> Option<&Arc<ArenaCell>> {
    match arenas.get(index) {
        Some(arena) if arena.id == id => Some(arena),
        _ => arenas.iter().find(|arena| arena.id == id),
    }
}

/// `writer/arena`, cut at the end if it is too long to keep.
fn name(arena: &ArenaCell) -> String {
    let name = arena.full_name();
    if name.len() <= NAME_BYTES {
        return name;
    }
    let cut = '…';
    let end = (0..=NAME_BYTES - cut.len_utf8()).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    format!("{}{cut}", &name[..end])
}

impl Core {
    /// The record of a decision. Its number is given when it is kept.
    pub(crate) fn record(&self, look: &Look, views: &[ArenaView], plan: &Plan, asked: &Asked) -> Decision {
        let Passed { counts, largest } = Passed::of(views, &plan.victims, &asked.missed, look.floor_bytes);
        let passed: Vec<_> = self.registry.arenas.walk(|arenas| {
            let known = |&(index, why): &(usize, PassedOver)| {
                let ArenaView { id, bytes, .. } = views[index];
                find(arenas, index, id).map(|arena| (Arc::clone(arena), bytes, why))
            };
            largest.iter().filter_map(known).collect()
        });
        Decision {
            number: 0,
            at: self.decider.age(),
            walked: true,
            exact_bytes: look.exact_bytes,
            kept_free_bytes: look.kept_free_bytes,
            published_bytes: look.published_bytes,
            granted_bytes: self.ledger.granted_bytes(),
            budget_bytes: (look.budget_bytes != usize::MAX).then_some(look.budget_bytes),
            floor_bytes: look.floor_bytes,
            overage_bytes: look.overage_bytes,
            in_flight_bytes: plan.in_flight_bytes,
            source: look.source,
            requests: asked.count,
            requested_bytes: asked.bytes,
            victims: asked.victims.iter().map(|(arena, bytes)| (name(arena), *bytes)).collect(),
            passed_over: passed.iter().map(|(arena, bytes, why)| (name(arena), *bytes, *why)).collect(),
            passed_over_counts: counts,
            shortfall_bytes: plan.shortfall_bytes,
        }
    }

    /// The numbers of a shortfall that begins.
    pub(crate) fn describe(&self, look: &Look, views: &[ArenaView], missing: usize) -> Shortfall {
        let arena_bytes = views.iter().fold(0usize, |sum, view| sum.saturating_add(view.bytes));
        let persistent_bytes = look.exact_bytes.saturating_sub(arena_bytes);
        let floor = look.floor_bytes;
        Shortfall {
            source: look.source,
            missing_bytes: missing,
            persistent_bytes,
            floor_sum_bytes: floor.saturating_mul(views.len()),
            writers: views.len(),
            writers_that_fit: look.budget_bytes.saturating_sub(persistent_bytes) / floor.max(1),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn views(sizes: impl IntoIterator<Item = usize>) -> Vec<ArenaView> {
        sizes.into_iter().enumerate().map(|(index, bytes)| ArenaView::new(index as u64, bytes)).collect()
    }

    #[test]
    fn the_reason_is_the_one_that_would_last_longest() {
        let mut view = ArenaView::new(1, 10);
        assert_eq!((reason(&view, 10), reason(&view, 11)), (PassedOver::NotNeeded, PassedOver::BelowFloor));
        view.exempt = true;
        assert_eq!((reason(&view, 10), reason(&view, 11)), (PassedOver::Exempt, PassedOver::BelowFloor));
        view.in_flight = true;
        assert_eq!(reason(&view, 11), PassedOver::InFlight);
        assert_eq!(reason(&ArenaView::new(1, 0), 0), PassedOver::BelowFloor, "empty is below every floor");
    }

    #[test]
    fn everybody_is_counted_and_the_largest_are_kept_in_order_whatever_order_they_come_in() {
        for sizes in [(0..100).collect::<Vec<usize>>(), (0..100).rev().collect()] {
            let views = views(sizes.iter().copied());
            let victims: Vec<usize> = (0..100).filter(|&index| sizes[index] >= 90).collect();
            let passed = Passed::of(&views, &victims, &victims[..1], 20);
            let counts = PassedOverCounts { below_floor: 20, not_needed: 70, moved_on: 1, ..Default::default() };
            assert_eq!(passed.counts, counts);
            let missed = sizes[victims[0]];
            let expected: Vec<_> = std::iter::once((missed, PassedOver::MovedOn))
                .chain((75..90).rev().map(|bytes| (bytes, PassedOver::NotNeeded)))
                .collect();
            let largest: Vec<_> = passed.largest.iter().map(|&(index, why)| (sizes[index], why)).collect();
            assert_eq!(largest, expected);
        }
    }

    #[test]
    fn of_those_alike_the_older_ones_are_kept_and_an_empty_one_is_counted_only() {
        let passed = Passed::of(&views([0; 3].into_iter().chain([7; 40])), &[], &[], 8);
        assert_eq!(passed.counts.total(), 43);
        assert_eq!(passed.largest.iter().map(|entry| entry.0).collect::<Vec<_>>(), (3..19).collect::<Vec<_>>());
        let few = Passed::of(&views([0, 7]), &[], &[], 8);
        assert_eq!(few.largest, [(1, PassedOver::BelowFloor)]);
    }

    #[test]
    fn a_name_is_cut_at_a_whole_letter() {
        let limiter = crate::GlobalMemoryLimiter::builder().unlimited().build().unwrap();
        let named = |writer: &str| {
            let reporter = limiter.reporter(writer);
            name(&ArenaCell::new(1, "a", Arc::clone(&reporter.handle.0), 100))
        };
        assert_eq!(named(&"w".repeat(254)), format!("{}/a", "w".repeat(254)), "exactly as long as it may be");
        assert_eq!(named(&"w".repeat(255)), format!("{}…", "w".repeat(253)));
        let cut = named(&"ü".repeat(1_000));
        assert_eq!((cut.len(), cut.capacity() <= 2 * NAME_BYTES), (252 + 3, true));
    }
}
