//! B02: one route of giving back bytes told the owner and not the pool. Here every route at once: after each step the total
//! is the sum of the live reservations, in the account and in the limiter, whatever the route and the account's form.
mod common;

use common::fixed;
use plimsoll::{Account, GlobalMemoryLimiter, MIB, Refusal, Reservation};
use proptest::prelude::*;

/// B02 as it was reported: a reservation of 8 MiB, 10,000 times grow by 3 MiB and give 3 MiB back by each route in turn.
fn cycles(limiter: &GlobalMemoryLimiter, account: &impl Account, spare: &Reservation) {
    assert_eq!(spare.bytes(), 8 * MIB);
    let mut base = Some(spare_like(limiter, account));
    for cycle in 0..10_000 {
        let mut held = base.take().expect("put back at the end of each cycle");
        held.grow(account, 3 * MIB);
        assert_eq!((held.bytes(), limiter.held_bytes()), (11 * MIB, 19 * MIB));
        match cycle % 8 {
            0 => held.shrink(account, 3 * MIB),
            1 => held.resize(account, 8 * MIB),
            2 => held.try_resize(account, 8 * MIB).expect("less is never refused"),
            3 => drop(held.split(3 * MIB).expect("it holds as much")),
            4 => held.split(3 * MIB).expect("it holds as much").free_with(account),
            5 => {
                let mut part = held.split(3 * MIB).expect("it holds as much");
                assert_eq!((part.free(), part.free()), (3 * MIB, 0));
            }
            6 => {
                let mut all = held.take();
                assert_eq!((held.bytes(), all.bytes(), limiter.held_bytes()), (0, 11 * MIB, 19 * MIB));
                held.merge(all.split(8 * MIB).expect("it holds as much")).expect("of one account");
                drop(all);
            }
            _ => held.replace(account, 8 * MIB).commit(),
        }
        assert_eq!((held.bytes(), limiter.held_bytes()), (8 * MIB, 16 * MIB), "route {}", cycle % 8);
        assert!(limiter.held_bytes().abs_diff(limiter.published_bytes()) <= limiter.lag_bound_bytes());
        base = Some(held);
    }
}

fn spare_like(limiter: &GlobalMemoryLimiter, account: &impl Account) -> Reservation {
    let mut held = limiter.shared_reporter("passing").reserve(8 * MIB);
    held.transfer(account);
    held
}

#[test]
fn every_route_of_giving_back_tells_the_pool_ten_thousand_times() {
    let limiter = fixed().budget_bytes(1_024 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("owner");
    let spare = reporter.reserve(8 * MIB);
    cycles(&limiter, &reporter, &spare);
    drop((spare, reporter));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
    let shared = limiter.shared_reporter("shared");
    let spare = shared.reserve(8 * MIB);
    cycles(&limiter, &shared, &spare);
    drop((spare, shared));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
}

#[derive(Debug, Clone)]
enum Route {
    Reserve(usize),
    TryReserve(usize),
    Grow(usize, usize),
    TryGrow(usize, usize),
    Shrink(usize, usize),
    Resize(usize, usize),
    TryResize(usize, usize),
    SplitAndDrop(usize, usize),
    SplitAndKeep(usize, usize),
    TakeAndDrop(usize),
    Free(usize),
    FreeWith(usize),
    Merge(usize, usize),
    TransferAway(usize),
    Replace(usize, usize, bool),
    TryReplace(usize, usize, bool),
    DropElsewhere(usize),
    Flush,
}

fn route() -> impl Strategy<Value = Route> {
    let (which, bytes) = (0..4_usize, prop_oneof![0..5_000_usize, 0..3 * MIB]);
    let pair = || (which.clone(), bytes.clone());
    let three = || (which.clone(), bytes.clone(), any::<bool>());
    prop_oneof![
        bytes.clone().prop_map(Route::Reserve),
        bytes.clone().prop_map(Route::TryReserve),
        pair().prop_map(|(n, bytes)| Route::Grow(n, bytes)),
        pair().prop_map(|(n, bytes)| Route::TryGrow(n, bytes)),
        pair().prop_map(|(n, bytes)| Route::Shrink(n, bytes)),
        pair().prop_map(|(n, bytes)| Route::Resize(n, bytes)),
        pair().prop_map(|(n, bytes)| Route::TryResize(n, bytes)),
        pair().prop_map(|(n, bytes)| Route::SplitAndDrop(n, bytes)),
        pair().prop_map(|(n, bytes)| Route::SplitAndKeep(n, bytes)),
        which.clone().prop_map(Route::TakeAndDrop),
        which.clone().prop_map(Route::Free),
        which.clone().prop_map(Route::FreeWith),
        (which.clone(), which.clone()).prop_map(|(n, m)| Route::Merge(n, m)),
        which.clone().prop_map(Route::TransferAway),
        three().prop_map(|(n, bytes, commit)| Route::Replace(n, bytes, commit)),
        three().prop_map(|(n, bytes, commit)| Route::TryReplace(n, bytes, commit)),
        which.clone().prop_map(Route::DropElsewhere),
        Just(Route::Flush),
    ]
}

const CAP: usize = 6 * MIB;

/// One step on the reservations of `account`; `other` takes what is transferred away and gives it back at once.
fn step(route: &Route, held: &mut Vec<Reservation>, account: &impl Account, other: &impl Account, flush: &dyn Fn()) {
    let total: usize = held.iter().map(Reservation::bytes).sum();
    let refused = |error: plimsoll::ReserveError, asked: usize| {
        assert_eq!((error.asked_bytes, error.held_bytes, error.limit_bytes), (asked, total, CAP));
        assert_eq!(error.kind, Refusal::WriterCap);
        assert!(total + asked > CAP);
    };
    let len = held.len();
    let at = |n: usize| n % len.max(1);
    match *route {
        Route::Flush => flush(),
        Route::Reserve(_) | Route::TryReserve(_) => unreachable!("done by the caller, by the account's own method"),
        _ if held.is_empty() => {}
        Route::Grow(n, bytes) => held[at(n)].grow(account, bytes),
        Route::TryGrow(n, bytes) => match held[at(n)].try_grow(account, bytes) {
            Ok(()) => assert!(total + bytes <= CAP),
            Err(error) => refused(error, bytes),
        },
        Route::Shrink(n, bytes) => {
            let bytes = bytes.min(held[at(n)].bytes());
            held[at(n)].shrink(account, bytes);
        }
        Route::Resize(n, bytes) => held[at(n)].resize(account, bytes),
        Route::TryResize(n, bytes) => {
            let before = held[at(n)].bytes();
            if let Err(error) = held[at(n)].try_resize(account, bytes) {
                refused(error, bytes - before);
                assert_eq!(held[at(n)].bytes(), before);
            }
        }
        Route::SplitAndDrop(n, bytes) => {
            let before = held[at(n)].bytes();
            let part = held[at(n)].split(bytes);
            assert_eq!(part.is_some(), bytes <= before);
            assert_eq!(part.as_ref().map_or(0, Reservation::bytes) + held[at(n)].bytes(), before);
        }
        Route::SplitAndKeep(n, bytes) => {
            let part = held[at(n)].split(bytes);
            held.extend(part);
        }
        Route::TakeAndDrop(n) => drop(held[at(n)].take()),
        Route::Free(n) => {
            let before = held[at(n)].bytes();
            assert_eq!((held[at(n)].free(), held[at(n)].free()), (before, 0));
        }
        Route::FreeWith(n) => held.swap_remove(at(n)).free_with(account),
        Route::Merge(n, m) => {
            let other = held.swap_remove(at(n));
            match held.len() {
                0 => held.push(other),
                len => held[m % len].merge(other).expect("of one account"),
            }
        }
        Route::TransferAway(n) => {
            let mut gone = held.swap_remove(at(n));
            gone.transfer(other);
            gone.free_with(other);
        }
        Route::Replace(n, bytes, commit) => {
            let copying = held[at(n)].replace(account, bytes);
            if commit {
                copying.commit();
            }
        }
        Route::TryReplace(n, bytes, commit) => match held[at(n)].try_replace(account, bytes) {
            Ok(copying) if commit => copying.commit(),
            Ok(_) => {}
            Err(error) => refused(error, bytes),
        },
        Route::DropElsewhere(n) => {
            let gone = held.swap_remove(at(n));
            std::thread::scope(|scope| {
                scope.spawn(move || drop(gone));
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// B02.
    #[test]
    fn the_total_is_the_sum_of_the_live_reservations_after_every_step(routes in prop::collection::vec(route(), 1..60)) {
        let limiter = fixed().budget_bytes(64 * MIB).writer_cap_bytes(CAP).build().expect("a valid configuration");
        let (owner, shared) = (limiter.reporter("owner"), limiter.shared_reporter("shared"));
        let (mut of_owner, mut of_shared) = (vec![], vec![]);
        for route in &routes {
            match *route {
                Route::Reserve(bytes) => {
                    of_owner.push(owner.reserve(bytes));
                    of_shared.push(shared.reserve(bytes));
                }
                Route::TryReserve(bytes) => {
                    of_owner.extend(owner.try_reserve(bytes));
                    of_shared.extend(shared.try_reserve(bytes));
                }
                _ => {
                    step(route, &mut of_owner, &owner, &shared, &|| owner.flush());
                    step(route, &mut of_shared, &shared, &owner, &|| shared.flush());
                }
            }
            let sum = |held: &[Reservation]| held.iter().map(Reservation::bytes).sum::<usize>();
            prop_assert_eq!(owner.held_bytes(), sum(&of_owner));
            prop_assert_eq!(shared.held_bytes(), sum(&of_shared));
            prop_assert_eq!(limiter.held_bytes(), sum(&of_owner) + sum(&of_shared));
            prop_assert!(limiter.held_bytes().abs_diff(limiter.published_bytes()) <= limiter.lag_bound_bytes());
            prop_assert_eq!((owner.over_cap(), shared.over_cap()), (sum(&of_owner) > CAP, sum(&of_shared) > CAP));
        }
        drop((owner, of_shared, shared, of_owner));
        prop_assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
        prop_assert_eq!(limiter.stats().accounting_errors, 0);
    }
}

/// R1: a replacement covers the old buffer and the new one while one is copied into the other.
#[test]
fn a_replacement_covers_both_buffers_and_a_refused_one_changes_nothing() {
    let limiter = fixed().unlimited().writer_cap_bytes(10 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("owner");
    let mut table = reporter.reserve(4 * MIB);
    let copying = table.try_replace(&reporter, 6 * MIB).expect("exactly the cap");
    assert_eq!(limiter.held_bytes(), 10 * MIB);
    drop(copying); // the allocation failed
    assert_eq!((limiter.held_bytes(), table.bytes()), (4 * MIB, 4 * MIB));
    let refused = table.try_replace(&reporter, 6 * MIB + 1).expect_err("both together pass the cap");
    assert_eq!((refused.asked_bytes, refused.held_bytes, refused.limit_bytes), (6 * MIB + 1, 4 * MIB, 10 * MIB));
    assert_eq!((limiter.held_bytes(), table.bytes()), (4 * MIB, 4 * MIB));
    table.replace(&reporter, 8 * MIB).commit();
    assert_eq!((limiter.held_bytes(), table.bytes(), reporter.over_cap()), (8 * MIB, 8 * MIB, false));
}

/// R1: the hard-limit policy refuses and changes nothing; the spill-threshold policy stays exact above the threshold.
#[test]
fn try_refuses_above_the_cap_and_the_others_stay_exact_above_it() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let reporter = limiter.reporter_with_cap("writer", 100);
    let mut scratch = reporter.try_reserve(60).expect("below");
    scratch.try_grow(&reporter, 40).expect("exactly the cap");
    let error = scratch.try_grow(&reporter, 1).expect_err("above");
    assert_eq!((error.asked_bytes, error.held_bytes, error.limit_bytes, error.kind), (1, 100, 100, Refusal::WriterCap));
    assert_eq!((scratch.bytes(), reporter.held_bytes(), reporter.over_cap()), (100, 100, false));
    scratch.grow(&reporter, 23);
    assert_eq!((scratch.bytes(), reporter.held_bytes(), reporter.over_cap()), (123, 123, true));
    let mut arena = reporter.arena("postings");
    assert_eq!(arena.try_grow_bytes(&reporter, 1).expect_err("above").held_bytes, 123);
    assert_eq!((arena.bytes(), limiter.stats().notifications), (0, 0));
    arena.set_bytes(&reporter, 7);
    assert_eq!((reporter.held_bytes(), reporter.cap_bytes()), (130, Some(100)));
    scratch.try_resize(&reporter, 93).expect("less is never refused");
    assert!(!reporter.over_cap());

    let shared = limiter.shared_reporter_with_cap("cache", 100);
    shared.try_charge(100).expect("exactly the cap");
    assert_eq!(shared.try_charge(1).expect_err("above").limit_bytes, 100);
    shared.charge(1);
    assert!(shared.over_cap());
    shared.release(101);
}

#[test]
fn an_amount_beyond_any_counter_is_refused_as_an_overflow() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let (reporter, shared) = (limiter.reporter("writer"), limiter.shared_reporter("cache"));
    reporter.charge(5);
    shared.charge(5);
    for bytes in [usize::MAX, usize::MAX - 4, isize::MAX as usize + 1, isize::MAX as usize - 4] {
        let error = reporter.try_charge(bytes).expect_err("too much");
        assert_eq!((error.asked_bytes, error.held_bytes, error.kind), (bytes, 5, Refusal::Overflow));
        assert_eq!(shared.try_charge(bytes).expect_err("too much").kind, Refusal::Overflow);
        assert_eq!(reporter.try_reserve(bytes).expect_err("too much").limit_bytes, isize::MAX as usize);
    }
    assert_eq!((reporter.held_bytes(), shared.held_bytes(), limiter.held_bytes()), (5, 5, 10));
    reporter.release(5);
    shared.release(5);
}
