//! Random sequences against a model: two workspaces, and the writer without one.
use super::*;
use proptest::prelude::*;

const CAP: usize = 6 * MIB;
const BUDGETS: [usize; 2] = [4 * MIB, 3 * MIB];
/// Two workspaces, and the writer without one.
const NONE: usize = 2;

#[derive(Debug, Clone)]
enum Step {
    Charge(usize, usize),
    TryCharge(usize, usize),
    Release(usize, usize),
    Reserve(usize, usize),
    TryReserve(usize, usize),
    Grow(usize, usize),
    TryGrow(usize, usize),
    Shrink(usize, usize),
    Resize(usize, usize),
    TryResize(usize, usize),
    Split(usize, usize),
    Drop(usize, bool),
    FreeWith(usize),
    Transfer(usize, usize),
    Merge(usize, usize),
    Replace(usize, usize, bool),
    TryReplace(usize, usize, bool),
    SetArena(usize),
    TryGrowArena(usize),
    Spill(usize),
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let (which, place) = (0..6_usize, 0..=NONE);
    let bytes = prop_oneof![0..5_000_usize, 0..2 * MIB];
    let placed = || (place.clone(), bytes.clone());
    let held = || (which.clone(), bytes.clone());
    let three = || (which.clone(), bytes.clone(), any::<bool>());
    prop_oneof![
        placed().prop_map(|(n, bytes)| Step::Charge(n, bytes)),
        placed().prop_map(|(n, bytes)| Step::TryCharge(n, bytes)),
        placed().prop_map(|(n, bytes)| Step::Release(n, bytes)),
        placed().prop_map(|(n, bytes)| Step::Reserve(n, bytes)),
        placed().prop_map(|(n, bytes)| Step::TryReserve(n, bytes)),
        held().prop_map(|(n, bytes)| Step::Grow(n, bytes)),
        held().prop_map(|(n, bytes)| Step::TryGrow(n, bytes)),
        held().prop_map(|(n, bytes)| Step::Shrink(n, bytes)),
        held().prop_map(|(n, bytes)| Step::Resize(n, bytes)),
        held().prop_map(|(n, bytes)| Step::TryResize(n, bytes)),
        held().prop_map(|(n, bytes)| Step::Split(n, bytes)),
        (which.clone(), any::<bool>()).prop_map(|(n, elsewhere)| Step::Drop(n, elsewhere)),
        which.clone().prop_map(Step::FreeWith),
        (which.clone(), place.clone()).prop_map(|(n, to)| Step::Transfer(n, to)),
        (which.clone(), which.clone()).prop_map(|(n, m)| Step::Merge(n, m)),
        three().prop_map(|(n, bytes, commit)| Step::Replace(n, bytes, commit)),
        three().prop_map(|(n, bytes, commit)| Step::TryReplace(n, bytes, commit)),
        bytes.clone().prop_map(Step::SetArena),
        bytes.clone().prop_map(Step::TryGrowArena),
        bytes.clone().prop_map(Step::Spill),
        Just(Step::Flush),
    ]
}

/// What was charged by hand, the reservations as (place, bytes), and the arena, which is in workspace 0.
#[derive(Default)]
struct Model {
    by_hand: [usize; 3],
    held: Vec<(usize, usize)>,
    arena: usize,
}

impl Model {
    fn used(&self, place: usize) -> usize {
        let reserved: usize = self.held.iter().filter(|(at, _)| *at == place).map(|(_, bytes)| bytes).sum();
        self.by_hand[place] + reserved + if place == 0 { self.arena } else { 0 }
    }

    fn total(&self) -> usize {
        (0..=NONE).map(|place| self.used(place)).sum()
    }

    /// What a `try_` call has to answer.
    fn admit(&self, place: usize, bytes: usize) -> Result<(), (Refusal, usize, usize, usize)> {
        if place != NONE && self.used(place) + bytes > BUDGETS[place] {
            return Err((Refusal::Workspace, bytes, self.used(place), BUDGETS[place]));
        }
        if self.total() + bytes > CAP {
            return Err((Refusal::WriterCap, bytes, self.total(), CAP));
        }
        Ok(())
    }
}

/// Runs `$body` with the account of a place.
macro_rules! at {
    ($place:expr, $reporter:ident, $workspaces:ident, |$account:ident| $body:expr) => {
        match $place {
            NONE => {
                let $account = &$reporter;
                $body
            }
            place => {
                let $account = &$reporter.within(&$workspaces[place]);
                $body
            }
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_is_that_of_a_plain_model(steps in prop::collection::vec(step(), 1..60)) {
        let (limiter, reporter) = writer(CAP);
        let workspaces: [Workspace; 2] =
            std::array::from_fn(|n| reporter.workspace(["one", "two"][n], BUDGETS[n]));
        let mut arena = reporter.within(&workspaces[0]).arena("blocks");
        let mut model = Model::default();
        let mut held: Vec<Reservation> = vec![];
        for step in steps {
            let len = held.len().max(1);
            match step {
                Step::Flush => reporter.flush(),
                Step::Charge(n, bytes) => {
                    at!(n, reporter, workspaces, |account| account.charge(bytes));
                    model.by_hand[n] += bytes;
                }
                Step::TryCharge(n, bytes) => {
                    let answer = at!(n, reporter, workspaces, |account| account.try_charge(bytes));
                    prop_assert_eq!(answer.map_err(parts), model.admit(n, bytes));
                    model.by_hand[n] += if answer.is_ok() { bytes } else { 0 };
                }
                Step::Release(n, bytes) => {
                    let bytes = bytes.min(model.by_hand[n]);
                    at!(n, reporter, workspaces, |account| account.release(bytes));
                    model.by_hand[n] -= bytes;
                }
                Step::Reserve(n, bytes) => {
                    held.push(at!(n, reporter, workspaces, |account| account.reserve(bytes)));
                    model.held.push((n, bytes));
                }
                Step::TryReserve(n, bytes) => {
                    match at!(n, reporter, workspaces, |account| account.try_reserve(bytes)) {
                        Ok(reservation) => {
                            prop_assert_eq!(model.admit(n, bytes), Ok(()));
                            held.push(reservation);
                            model.held.push((n, bytes));
                        }
                        Err(error) => prop_assert_eq!(model.admit(n, bytes), Err(parts(error))),
                    }
                }
                Step::SetArena(bytes) => {
                    arena.set_bytes(&reporter, bytes);
                    model.arena = bytes;
                }
                Step::TryGrowArena(bytes) => {
                    // Nothing more is never refused there.
                    let expected = if bytes == 0 { Ok(()) } else { model.admit(0, bytes) };
                    let answer = arena.try_grow_bytes(&reporter, bytes).map_err(parts);
                    prop_assert_eq!(answer, expected);
                    model.arena += if answer.is_ok() { bytes } else { 0 };
                }
                Step::Spill(left) => {
                    if let Some(spill) = arena.begin_own_spill(&reporter) {
                        spill.finish(left);
                        model.arena = left;
                    }
                }
                _ if held.is_empty() => {}
                Step::Grow(n, bytes) => {
                    let n = n % len;
                    at!(model.held[n].0, reporter, workspaces, |account| held[n].grow(account, bytes));
                    model.held[n].1 += bytes;
                }
                Step::TryGrow(n, bytes) => {
                    let (n, place) = (n % len, model.held[n % len].0);
                    let answer = at!(place, reporter, workspaces, |account| held[n].try_grow(account, bytes));
                    prop_assert_eq!(answer.map_err(parts), model.admit(place, bytes));
                    model.held[n].1 += if answer.is_ok() { bytes } else { 0 };
                }
                Step::Shrink(n, bytes) => {
                    let (n, place) = (n % len, model.held[n % len].0);
                    let bytes = bytes.min(held[n].bytes());
                    at!(place, reporter, workspaces, |account| held[n].shrink(account, bytes));
                    model.held[n].1 -= bytes;
                }
                Step::Resize(n, bytes) => {
                    let n = n % len;
                    at!(model.held[n].0, reporter, workspaces, |account| held[n].resize(account, bytes));
                    model.held[n].1 = bytes;
                }
                Step::TryResize(n, bytes) => {
                    let (n, place) = (n % len, model.held[n % len].0);
                    let expected = match bytes.checked_sub(model.held[n].1) {
                        None | Some(0) => Ok(()),
                        Some(more) => model.admit(place, more),
                    };
                    let answer = at!(place, reporter, workspaces, |account| held[n].try_resize(account, bytes));
                    prop_assert_eq!(answer.map_err(parts), expected);
                    model.held[n].1 = if answer.is_ok() { bytes } else { model.held[n].1 };
                }
                Step::Split(n, bytes) => {
                    let (n, place) = (n % len, model.held[n % len].0);
                    let part = held[n].split(bytes);
                    prop_assert_eq!(part.is_some(), bytes <= model.held[n].1);
                    if let Some(part) = part {
                        held.push(part);
                        model.held[n].1 -= bytes;
                        model.held.push((place, bytes));
                    }
                }
                Step::Drop(n, elsewhere) => {
                    let gone = held.swap_remove(n % len);
                    model.held.swap_remove(n % len);
                    if elsewhere {
                        std::thread::spawn(move || drop(gone)).join().expect("no panic there");
                    }
                }
                Step::FreeWith(n) => {
                    let (place, _) = model.held.swap_remove(n % len);
                    let gone = held.swap_remove(n % len);
                    at!(place, reporter, workspaces, |account| gone.free_with(account));
                }
                Step::Transfer(n, to) => {
                    at!(to, reporter, workspaces, |account| held[n % len].transfer(account));
                    model.held[n % len].0 = to;
                }
                Step::Merge(n, m) => {
                    let (other, (place, bytes)) = (held.swap_remove(n % len), model.held.swap_remove(n % len));
                    if held.is_empty() {
                        held.push(other);
                        model.held.push((place, bytes));
                        continue;
                    }
                    let m = m % held.len();
                    match held[m].merge(other) {
                        Ok(()) => {
                            prop_assert_eq!(model.held[m].0, place);
                            model.held[m].1 += bytes;
                        }
                        Err(other) => {
                            prop_assert_ne!(model.held[m].0, place);
                            held.push(other);
                            model.held.push((place, bytes));
                        }
                    }
                }
                Step::Replace(n, bytes, commit) => {
                    let (n, place) = (n % len, model.held[n % len].0);
                    at!(place, reporter, workspaces, |account| {
                        let copying = held[n].replace(account, bytes);
                        if commit {
                            copying.commit();
                        }
                    });
                    model.held[n].1 = if commit { bytes } else { model.held[n].1 };
                }
                Step::TryReplace(n, bytes, commit) => {
                    let (n, place) = (n % len, model.held[n % len].0);
                    let answer = at!(place, reporter, workspaces, |account| {
                        held[n].try_replace(account, bytes).map(|copying| if commit { copying.commit() })
                    });
                    prop_assert_eq!(answer.map_err(parts), model.admit(place, bytes));
                    model.held[n].1 = if commit && answer.is_ok() { bytes } else { model.held[n].1 };
                }
            }
            for (place, workspace) in workspaces.iter().enumerate() {
                prop_assert_eq!(workspace.used_bytes(), model.used(place));
                prop_assert_eq!(workspace.over_budget(), model.used(place) > BUDGETS[place]);
            }
            prop_assert_eq!((reporter.held_bytes(), limiter.held_bytes()), (model.total(), model.total()));
            prop_assert!(limiter.held_bytes().abs_diff(limiter.published_bytes()) <= limiter.lag_bound_bytes());
            prop_assert_eq!(held.iter().map(Reservation::bytes).sum::<usize>(),
                model.held.iter().map(|(_, bytes)| bytes).sum::<usize>());
        }
        for place in 0..=NONE {
            at!(place, reporter, workspaces, |account| account.release(model.by_hand[place]));
        }
        drop((workspaces, held, arena, reporter));
        assert_nothing_left(&limiter);
    }
}
