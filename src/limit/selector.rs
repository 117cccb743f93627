//! Who must spill: a pure function from a look at the arenas and an overage to victims.
//!
//! Rules, for every selector: nothing below the floor, nothing empty, nothing that is in flight already (that counts as
//! covered instead), nothing exempt after a failed spill, nothing twice. When all that is eligible does not cover the
//! overage, all of it is asked all the same: a shortfall is no reason to do nothing.

use std::fmt;

/// One arena as the decision saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaView {
    /// Unique within a limiter, ascending with registration: the order in which ties are broken.
    pub id: u64,
    /// Block-backed bytes.
    pub bytes: usize,
    /// Bytes of it whose spill has been asked for or is running.
    pub in_flight_bytes: usize,
    /// Whether a spill is asked for or running, of whatever size.
    pub in_flight: bool,
    /// A spill has failed a short time ago.
    pub exempt: bool,
    /// Runs that it has written so far.
    pub runs: u64,
}

impl ArenaView {
    /// An idle arena that has written no run yet.
    pub fn new(id: u64, bytes: usize) -> Self {
        ArenaView { id, bytes, in_flight_bytes: 0, in_flight: false, exempt: false, runs: 0 }
    }

    /// Whether a selector may name it.
    pub fn is_eligible(&self, floor_bytes: usize) -> bool {
        !self.in_flight && !self.exempt && self.bytes >= floor_bytes.max(1)
    }
}

/// Chooses victims among eligible arenas.
///
/// Called by one thread at a time, under no lock of the limiter. What it names wrongly (an index out of range, twice, an
/// arena that is not eligible) is left out; if what it names does not cover the need, the decision goes on with
/// [`LargestFirst`], and so it does if it panics.
pub trait SpillSelector: Send + Sync + fmt::Debug {
    /// For the snapshot and the log.
    fn name(&self) -> &'static str;
    /// Pushes indices into `arenas` until their bytes come to `need_bytes`. `victims` is empty at first.
    fn select(&self, arenas: &[ArenaView], floor_bytes: usize, need_bytes: usize, victims: &mut Vec<usize>);
}

/// How many are put in order at first.
const FIRST_PART: usize = 32;

/// The default: the largest arena first, the older one of two alike, until the need is covered.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargestFirst;

impl SpillSelector for LargestFirst {
    fn name(&self) -> &'static str {
        "largest-first"
    }

    fn select(&self, arenas: &[ArenaView], floor_bytes: usize, need_bytes: usize, victims: &mut Vec<usize>) {
        victims.extend((0..arenas.len()).filter(|&index| arenas[index].is_eligible(floor_bytes)));
        let order = |&index: &usize| (std::cmp::Reverse(arenas[index].bytes), arenas[index].id);
        // A part is put in order at a time: of thousands a few are enough.
        let (mut ordered, mut part, mut covered) = (0, FIRST_PART, 0usize);
        while ordered < victims.len() {
            let end = (ordered + part).min(victims.len());
            if end < victims.len() {
                victims[ordered..].select_nth_unstable_by_key(end - ordered, order);
            }
            victims[ordered..end].sort_unstable_by_key(order);
            for place in ordered..end {
                if covered >= need_bytes {
                    return victims.truncate(place);
                }
                covered = covered.saturating_add(arenas[victims[place]].bytes);
            }
            if covered >= need_bytes {
                return victims.truncate(end);
            }
            (ordered, part) = (end, part * 4);
        }
    }
}

/// What is to be done about an overage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Indices into the arenas, in the order chosen.
    pub(crate) victims: Vec<usize>,
    /// What was in flight already, in bytes.
    pub(crate) in_flight_bytes: usize,
    /// What is missing even if every victim spills all it has.
    pub(crate) shortfall_bytes: usize,
}

/// Fills `plan` for an overage of `overage_bytes`; see the module for the rules.
pub(crate) fn plan(
    selector: &dyn SpillSelector,
    arenas: &[ArenaView],
    floor_bytes: usize,
    overage_bytes: usize,
    plan: &mut Plan,
) {
    plan.victims.clear();
    plan.in_flight_bytes = arenas.iter().fold(0, |sum, arena| sum.saturating_add(arena.in_flight_bytes));
    let need = overage_bytes.saturating_sub(plan.in_flight_bytes);
    plan.shortfall_bytes = need;
    if need == 0 {
        return;
    }
    selector.select(arenas, floor_bytes, need, &mut plan.victims);
    let mut named = std::collections::HashSet::with_capacity(plan.victims.len());
    plan.victims
        .retain(|&index| arenas.get(index).is_some_and(|arena| arena.is_eligible(floor_bytes)) && named.insert(index));
    let covered = plan.victims.iter().fold(0usize, |sum, &index| sum.saturating_add(arenas[index].bytes));
    plan.shortfall_bytes = need.saturating_sub(covered);
    if plan.shortfall_bytes > 0 {
        // Not enough: everything else that is eligible too, largest first, until it is.
        let mut rest: Vec<usize> = (0..arenas.len())
            .filter(|index| arenas[*index].is_eligible(floor_bytes) && !named.contains(index))
            .collect();
        rest.sort_unstable_by_key(|&index| (std::cmp::Reverse(arenas[index].bytes), arenas[index].id));
        for index in rest {
            if plan.shortfall_bytes == 0 {
                break;
            }
            plan.victims.push(index);
            plan.shortfall_bytes = plan.shortfall_bytes.saturating_sub(arenas[index].bytes);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn arenas(sizes: &[usize]) -> Vec<ArenaView> {
        sizes.iter().enumerate().map(|(index, &bytes)| ArenaView::new(index as u64, bytes)).collect()
    }

    fn planned(selector: &dyn SpillSelector, arenas: &[ArenaView], floor: usize, overage: usize) -> Plan {
        let mut out = Plan { victims: vec![99], in_flight_bytes: 99, shortfall_bytes: 99 };
        plan(selector, arenas, floor, overage, &mut out);
        out
    }

    fn victims(sizes: &[usize], floor: usize, overage: usize) -> Vec<usize> {
        planned(&LargestFirst, &arenas(sizes), floor, overage).victims
    }

    #[test]
    fn the_largest_go_first_until_covered_and_not_one_more() {
        assert_eq!(victims(&[3, 9, 5], 1, 9), [1]);
        assert_eq!(victims(&[3, 9, 5], 1, 10), [1, 2]);
        assert_eq!(victims(&[3, 9, 5], 1, 14), [1, 2]);
        assert_eq!(victims(&[3, 9, 5], 1, 15), [1, 2, 0]);
    }

    #[test]
    fn nothing_is_asked_at_exactly_the_budget() {
        assert_eq!(planned(&LargestFirst, &arenas(&[3, 9]), 1, 0), Plan::default());
    }

    #[test]
    fn ties_go_to_the_older_arena() {
        let mut views = arenas(&[4, 4, 4]);
        views[0].id = 9;
        assert_eq!(planned(&LargestFirst, &views, 1, 5).victims, [1, 2]);
    }

    #[test]
    fn nothing_below_the_floor_and_nothing_empty() {
        assert_eq!(victims(&[7, 8, 9], 8, 100), [2, 1]);
        assert_eq!(victims(&[0, 1], 0, 100), [1], "a floor of 0 does not make an empty arena eligible");
    }

    #[test]
    fn what_is_in_flight_covers_and_is_not_asked_again() {
        let mut views = arenas(&[80, 15, 14]);
        views[0].in_flight = true;
        views[0].in_flight_bytes = 80;
        let first = planned(&LargestFirst, &views, 1, 10);
        assert_eq!((first.victims.len(), first.in_flight_bytes, first.shortfall_bytes), (0, 80, 0));
        let more = planned(&LargestFirst, &views, 1, 90);
        assert_eq!((more.victims, more.shortfall_bytes), (vec![1], 0));
    }

    #[test]
    fn an_arena_in_flight_with_nothing_left_is_still_not_asked() {
        let mut views = arenas(&[80]);
        views[0].in_flight = true;
        assert_eq!(planned(&LargestFirst, &views, 1, 10), Plan { shortfall_bytes: 10, ..Plan::default() });
    }

    #[test]
    fn an_exempt_arena_is_passed_over() {
        let mut views = arenas(&[80, 15]);
        views[0].exempt = true;
        assert_eq!(planned(&LargestFirst, &views, 1, 10).victims, [1]);
    }

    #[test]
    fn a_shortfall_asks_everybody_and_says_what_is_missing() {
        let out = planned(&LargestFirst, &arenas(&[4, 2, 8]), 4, 20);
        assert_eq!((out.victims, out.shortfall_bytes), (vec![2, 0], 8));
    }

    #[test]
    fn largest_first_itself_names_as_many_as_cover_the_need() {
        let views = arenas(&[3, 9, 5, 2]);
        let named = |floor, need| {
            let mut victims = Vec::new();
            LargestFirst.select(&views, floor, need, &mut victims);
            victims
        };
        assert_eq!(
            (named(1, 9), named(1, 10), named(1, 14), named(1, 15)),
            (vec![1], vec![1, 2], vec![1, 2], vec![1, 2, 0])
        );
        assert_eq!((named(4, 100), named(1, 0)), (vec![1, 2], vec![]));
    }

    #[test]
    fn of_hundreds_the_same_are_chosen_in_the_same_order_as_of_a_few() {
        let sizes: Vec<usize> = (0..700).map(|index| index * 7_919 % 701).collect();
        let views = arenas(&sizes);
        let mut all: Vec<usize> = (0..700).filter(|&index| sizes[index] >= 3).collect();
        all.sort_by_key(|&index| (std::cmp::Reverse(sizes[index]), index));
        let mut need = 0;
        for count in 0..=all.len() {
            let mut victims = Vec::new();
            LargestFirst.select(&views, 3, need, &mut victims);
            assert_eq!(victims, all[..count], "{need}");
            need += all.get(count).map_or(1, |&index| sizes[index]);
        }
        assert_eq!(
            planned(&LargestFirst, &views, 3, need + 10).victims.len(),
            all.len(),
            "all of them, and not enough"
        );
    }

    #[derive(Debug)]
    struct Scripted(Vec<usize>);
    impl SpillSelector for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }
        fn select(&self, _: &[ArenaView], _: usize, _: usize, victims: &mut Vec<usize>) {
            victims.extend(&self.0);
        }
    }

    #[test]
    fn what_a_selector_names_wrongly_is_left_out_and_made_up_for() {
        let views = arenas(&[10, 20, 30, 1]);
        let out = planned(&Scripted(vec![7, 0, 0, 3]), &views, 5, 25);
        assert_eq!((out.victims, out.shortfall_bytes), (vec![0, 2], 0), "0 once, then the largest of the rest");
        let out = planned(&Scripted(vec![0, 1]), &views, 5, 30);
        assert_eq!((out.victims, out.shortfall_bytes), (vec![0, 1], 0), "what it names is enough");
    }

    #[test]
    fn sums_do_not_wrap() {
        let mut views = arenas(&[usize::MAX, usize::MAX, 3]);
        assert_eq!(planned(&LargestFirst, &views, 1, usize::MAX).victims, [0]);
        views[0].in_flight_bytes = usize::MAX;
        views[1].in_flight_bytes = usize::MAX;
        assert_eq!(planned(&LargestFirst, &views, 1, usize::MAX).in_flight_bytes, usize::MAX);
    }
}
