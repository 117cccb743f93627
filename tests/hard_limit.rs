//! The hard limit: what asks is never granted past it, what exists is recorded, and both change while it runs.
//! B28, B34 (with a reserve), B65, B66 (without stalled threads).
mod common;

use common::{fixed, spill_if_asked};
use plimsoll::{ConfigError, GlobalMemoryLimiter, KIB, MIB, Origin, Refusal, Reservation};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;

/// B28: sixty-four threads ask for 10 MiB each of 100 at the same moment, and a sampler reads what is granted.
#[test]
fn of_sixty_four_who_ask_at_once_exactly_as_many_get_it_as_fit() {
    const ROUNDS: usize = 1_000;
    let limiter = GlobalMemoryLimiter::builder().unlimited().hard_limit_bytes(100 * MIB).build().expect("valid");
    let (start, end, granted) = (Barrier::new(64), Barrier::new(64), AtomicUsize::new(0));
    let (done, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            while !done.load(Relaxed) {
                most.fetch_max(limiter.reserved_bytes(), Relaxed);
                most.fetch_max(limiter.published_bytes(), Relaxed);
                thread::yield_now();
            }
        });
        let askers: Vec<_> = (0..64)
            .map(|number| {
                let (limiter, start, end, granted) = (&limiter, &start, &end, &granted);
                scope.spawn(move || {
                    let reporter = limiter.reporter(&format!("asker {number}"));
                    for round in 0..ROUNDS {
                        start.wait();
                        let mine: Option<Reservation> = match reporter.try_reserve(10 * MIB) {
                            Ok(reservation) => {
                                granted.fetch_add(1, SeqCst);
                                Some(reservation)
                            }
                            Err(error) => {
                                assert_eq!((error.kind, error.limit_bytes), (Refusal::HardLimit, 100 * MIB));
                                assert_eq!(reporter.held_bytes(), 0, "a loser leaves nothing behind");
                                None
                            }
                        };
                        if end.wait().is_leader() {
                            assert_eq!(granted.swap(0, SeqCst), 10, "round {round}");
                            assert_eq!(limiter.held_bytes(), 100 * MIB);
                        }
                        end.wait();
                        if let Some(mine) = mine {
                            mine.free_with(&reporter);
                        }
                        if end.wait().is_leader() {
                            assert_eq!(limiter.held_bytes(), 0);
                        }
                    }
                })
            })
            .collect();
        askers.into_iter().for_each(|asker| asker.join().expect("no panic"));
        done.store(true, Relaxed);
        sampler.join().expect("no panic");
    });
    assert!(most.load(Relaxed) <= 104_857_600, "{} seen of 100 MiB", most.load(Relaxed));
    assert_eq!((limiter.reserved_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    assert_eq!(limiter.stats().overdraft_peak_bytes, 0);
}

/// B65: an 8 MiB block exists already and is recorded beyond the limit; whoever asks is refused and nothing changes.
#[test]
fn what_exists_is_recorded_past_the_limit_and_what_asks_is_refused() {
    let limiter = fixed().budget_bytes(10 * MIB).hard_limit_bytes(10 * MIB).build().expect("valid");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, 7 * MIB);
    assert!(!arena.spill_requested());
    reporter.charge(8 * MIB);
    assert_eq!((limiter.held_bytes(), limiter.available_bytes(), limiter.overdraft_bytes()), (15 * MIB, 0, 5 * MIB));
    assert!(arena.spill_requested(), "a forced spill is considered");
    let overage = limiter.snapshot().last_decision.expect("one was taken").overage_bytes;
    assert_eq!(overage, 5 * MIB);
    let error = reporter.try_reserve(MIB).expect_err("nothing is left");
    assert_eq!(
        (error.asked_bytes, error.held_bytes, error.limit_bytes, error.kind),
        (MIB, 15 * MIB, 10 * MIB, Refusal::HardLimit)
    );
    assert_eq!(error.to_string(), "1 MiB more refused by hard_limit_bytes: 15 MiB held of 10 MiB in all");
    assert_eq!((reporter.held_bytes(), limiter.held_bytes()), (15 * MIB, 15 * MIB), "nothing changed");
    assert_eq!((limiter.stats().overdrafts, limiter.stats().overdraft_peak_bytes), (1, 5 * MIB));
    reporter.release(8 * MIB);
    assert_eq!((limiter.held_bytes(), limiter.overdraft_bytes()), (7 * MIB, 0));
    drop(reporter.try_reserve(MIB).expect("there is room again"));
    assert_eq!(limiter.stats().overdraft_peak_bytes, 5 * MIB, "the peak stays");
}

/// Sets a flag when it goes, whatever happens.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// B66, without stalled threads: limit and budget fall below what is held while thirty-two threads grow and shrink, and
/// rise again.
#[test]
fn a_limit_that_is_lowered_below_what_is_held_is_in_effect_at_once() {
    let limiter = GlobalMemoryLimiter::builder()
        .budget_percent_of_hard_limit(100)
        .hard_limit_bytes(100 * MIB)
        .block_bytes(KIB)
        .floor_bytes(MIB)
        .build()
        .expect("valid");
    let big = limiter.reporter("big");
    let mut arenas: Vec<_> = (0..9).map(|_| big.arena("postings")).collect();
    arenas.iter_mut().for_each(|arena| arena.set_bytes(&big, 10 * MIB));
    let (stop, lowered, late) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..32 {
            let (limiter, stop, lowered, late) = (&limiter, &stop, &lowered, &late);
            scope.spawn(move || {
                let reporter = limiter.reporter(&format!("small {number}"));
                while !stop.load(Relaxed) {
                    let was_lowered = lowered.load(SeqCst);
                    if let Ok(reservation) = reporter.try_reserve(64 * KIB) {
                        late.fetch_add(usize::from(was_lowered && lowered.load(SeqCst)), Relaxed);
                        reservation.free_with(&reporter);
                    }
                }
            });
        }
        // Also if something below fails: the others would go on for ever.
        let _stop = SetAtEnd(&stop);
        thread::sleep(std::time::Duration::from_millis(50));
        limiter.set_hard_limit_bytes(Some(60 * MIB)).expect("the budget follows");
        lowered.store(true, SeqCst);
        thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(limiter.budget_bytes(), Some(60 * MIB), "a share of the hard limit follows it");
        assert_eq!(limiter.available_bytes(), 0);
        assert!(limiter.held_bytes() - 60 * MIB >= 30 * MIB, "overage");
        assert_eq!(late.load(Relaxed), 0, "granted though the limit was lowered before it was asked");
        let spilled = arenas.iter_mut().filter_map(|arena| spill_if_asked(arena, &big)).sum::<usize>();
        assert!(spilled >= 30 * MIB && limiter.held_bytes() <= 62 * MIB, "{spilled} spilled");
        lowered.store(false, SeqCst);
        limiter.set_hard_limit_bytes(Some(200 * MIB)).expect("the budget follows");
        let room = big.try_reserve(100 * MIB).expect("there is room at once");
        drop(room);
    });
    drop((arenas, big));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.reserved_bytes()), (0, 0, 0));
}

/// B34, with a reserve: arenas are asked to spill before they fill what is kept for those that cannot, and such a one
/// gets its room without waiting.
#[test]
fn a_reader_that_cannot_spill_finds_its_reserve_free() {
    let limiter =
        fixed().budget_bytes(100 * MIB).hard_limit_bytes(100 * MIB).reserve_bytes(20 * MIB).build().expect("valid");
    let writers: Vec<_> = (0..10).map(|_| limiter.reporter("writer")).collect();
    let mut arenas: Vec<_> = writers.iter().map(|writer| writer.arena("postings")).collect();
    for (arena, writer) in arenas.iter_mut().zip(&writers) {
        arena.try_grow_bytes(writer, 8 * MIB).expect("80 MiB are for them");
    }
    assert!(arenas.iter().all(|arena| !arena.spill_requested()), "exactly at the budget less the reserve");
    let error = arenas[0].try_grow_bytes(&writers[0], 1).expect_err("the reserve is not for spillable writers");
    assert_eq!((error.kind, error.limit_bytes, error.held_bytes), (Refusal::Reserve, 80 * MIB, 80 * MIB));
    assert_eq!(
        error.to_string(),
        "1 B more refused by reserve_bytes: 80 MiB held in all, 80 MiB is what writers that can spill may use"
    );
    writers[0].charge(1);
    assert_eq!(arenas.iter().filter(|arena| arena.spill_requested()).count(), 1, "a byte above it asks one");
    writers[0].release(1);

    let reader = limiter.reporter("merge reader");
    let room = reader.try_reserve(20 * MIB).expect("it never waits");
    assert_eq!(limiter.held_bytes(), 100 * MIB);
    assert_eq!(arenas.iter().filter(|arena| arena.spill_requested()).count(), 1, "using the reserve asks nobody");
    assert_eq!(reader.try_charge(1).expect_err("the limit itself").kind, Refusal::HardLimit);
    room.free_with(&reader);
    assert!(arenas[1].try_grow_bytes(&writers[1], 1).is_err(), "free again, and not for spillable writers");
    limiter.set_reserve_bytes(0).expect("valid");
    arenas[1].try_grow_bytes(&writers[1], 1).expect("all of the limit is for everybody");
}

#[test]
fn idle_credit_is_called_back_before_anybody_is_refused() {
    let limiter = GlobalMemoryLimiter::builder()
        .unlimited()
        .hard_limit_bytes(64 * MIB)
        .quantum_bytes(MIB)
        .build()
        .expect("valid");
    let idle: Vec<_> = (0..32).map(|_| limiter.reporter("idle")).collect();
    idle.iter().for_each(|idle| idle.charge(KIB));
    assert!(limiter.reserved_bytes() > 31 * MIB, "a window each");
    let asker = limiter.reporter("asker");
    let rest = 64 * MIB - 32 * KIB;
    asker.try_charge(rest).expect("what others hold and do not use is no reason to refuse");
    assert_eq!((limiter.held_bytes(), limiter.reserved_bytes()), (64 * MIB, 64 * MIB));
    let walks = limiter.stats().publishes;
    for _ in 0..1_000 {
        assert_eq!(asker.try_charge(1).expect_err("full").kind, Refusal::HardLimit);
        assert!(idle[3].try_charge(1).is_err());
    }
    assert_eq!(limiter.stats().publishes, walks, "a refusal without idle credit moves nobody's window");
    // A release while credit is short is there for others at once.
    idle[7].release(KIB);
    asker.try_charge(KIB).expect("it was given back");
    asker.release(rest + KIB);
    idle.iter().enumerate().for_each(|(index, idle)| idle.release(if index == 7 { 0 } else { KIB }));
    assert!(idle[0].try_charge(1).is_ok() && limiter.reserved_bytes() >= MIB, "windows are open again");
    idle[0].release(1);
    drop((asker, idle));
    assert_eq!((limiter.held_bytes(), limiter.reserved_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
}

#[test]
fn a_transfer_at_the_limit_needs_no_room_of_its_own() {
    let limiter = fixed().unlimited().hard_limit_bytes(10 * MIB).build().expect("valid");
    let (from, to) = (limiter.reporter("from"), limiter.reporter("to"));
    let shared = limiter.shared_reporter("shared");
    let mut all = from.try_reserve(10 * MIB).expect("it fits");
    all.transfer(&to);
    assert_eq!((from.held_bytes(), to.held_bytes(), limiter.reserved_bytes()), (0, 10 * MIB, 10 * MIB));
    all.transfer(&shared);
    assert_eq!((to.held_bytes(), shared.held_bytes(), limiter.reserved_bytes()), (0, 10 * MIB, 10 * MIB));
    all.transfer(&from);
    assert_eq!((from.held_bytes(), limiter.reserved_bytes()), (10 * MIB, 10 * MIB));
    assert!(to.try_charge(1).is_err() && shared.try_charge(1).is_err());
    assert_eq!(limiter.stats().overdraft_peak_bytes, 0, "never counted twice");
    drop(all);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
    to.try_reserve(10 * MIB).expect("all of it is free").free_with(&to);
}

#[test]
fn a_reservation_that_is_dropped_elsewhere_is_room_at_once() {
    let limiter = fixed().unlimited().hard_limit_bytes(10 * MIB).build().expect("valid");
    let (reporter, other) = (limiter.reporter("writer"), limiter.reporter("other"));
    let most = reporter.try_reserve(9 * MIB).expect("it fits");
    let rest = reporter.try_reserve(MIB).expect("it fits");
    assert!(other.try_charge(1).is_err());
    thread::scope(|scope| scope.spawn(move || drop(rest)).join()).expect("no panic");
    other.try_charge(MIB).expect("dropped without its reporter, and free");
    assert!(other.try_charge(1).is_err());
    other.release(MIB);
    drop(most);
    other.try_charge(10 * MIB).expect("all of it");
    other.release(10 * MIB);
}

#[test]
fn a_replacement_that_does_not_fit_beside_the_old_one_is_refused() {
    let limiter = fixed().unlimited().hard_limit_bytes(10 * MIB).build().expect("valid");
    let reporter = limiter.reporter("writer");
    let mut table = reporter.try_reserve(4 * MIB).expect("it fits");
    assert_eq!(table.try_replace(&reporter, 7 * MIB).expect_err("4 and 7 of 10").kind, Refusal::HardLimit);
    assert_eq!((table.bytes(), reporter.held_bytes()), (4 * MIB, 4 * MIB));
    table.try_replace(&reporter, 6 * MIB).expect("both fit").commit();
    assert!(table.try_grow(&reporter, 4 * MIB + 1).is_err());
    table.try_resize(&reporter, 10 * MIB).expect("exactly the limit");
    drop(table);
}

#[test]
fn limits_that_contradict_one_another_are_refused_and_a_share_follows() {
    let build = |edit: fn(plimsoll::LimiterBuilder) -> plimsoll::LimiterBuilder| {
        edit(GlobalMemoryLimiter::builder().block_bytes(KIB)).build()
    };
    let error = build(|builder| builder.budget_bytes(2 * MIB).hard_limit_bytes(MIB)).expect_err("above");
    assert_eq!(error, ConfigError::BudgetAboveHardLimit { budget_bytes: 2 * MIB, hard_limit_bytes: MIB });
    assert_eq!(build(|builder| builder.hard_limit_bytes(0)).expect_err("0"), ConfigError::ZeroHardLimit);
    let error = build(|builder| builder.budget_bytes(MIB).reserve_bytes(MIB)).expect_err("nothing left");
    assert_eq!(error, ConfigError::ReserveAboveBudget { reserve_bytes: MIB, budget_bytes: MIB });

    let limiter = build(|builder| builder.hard_limit_bytes(80 * MIB)).expect("valid");
    assert_eq!(limiter.budget_bytes(), Some(70 * MIB), "seven eighths, unless it is given");
    assert_eq!(limiter.effective().budget_bytes.1, Origin::Derived);
    limiter.set_hard_limit_bytes(Some(8 * MIB)).expect("valid");
    assert_eq!((limiter.budget_bytes(), limiter.hard_limit_bytes()), (Some(7 * MIB), Some(8 * MIB)));
    limiter.set_hard_limit_bytes(None).expect("valid");
    assert_eq!((limiter.budget_bytes(), limiter.hard_limit_bytes()), (None, None));
    limiter.set_budget_bytes(4 * MIB).expect("valid");
    let error = limiter.set_hard_limit_bytes(Some(3 * MIB)).expect_err("below a budget in bytes");
    assert_eq!(error, ConfigError::BudgetAboveHardLimit { budget_bytes: 4 * MIB, hard_limit_bytes: 3 * MIB });
    assert_eq!(limiter.hard_limit_bytes(), None, "nothing has changed");
    let share = build(|builder| builder.budget_percent(50, Some(100 * MIB)).hard_limit_bytes(20 * MIB));
    assert_eq!(share.expect("valid").budget_bytes(), Some(20 * MIB), "a share is never above the hard limit");
}

/// Without the process-wide barrier nobody's window can be moved: nothing is taken ahead, and the limit holds.
#[test]
fn without_the_barrier_nothing_is_taken_ahead_at_a_hard_limit() {
    let limiter = GlobalMemoryLimiter::builder()
        .unlimited()
        .hard_limit_bytes(MIB)
        .quantum_bytes(64 * KIB)
        .without_process_barrier()
        .build()
        .expect("valid");
    let (one, two) = (limiter.reporter("one"), limiter.reporter("two"));
    one.charge(KIB);
    assert_eq!((limiter.reserved_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (KIB, KIB, 0));
    two.try_charge(MIB - KIB).expect("all that is left");
    assert!(one.try_charge(1).is_err());
    one.release(KIB);
    two.try_charge(KIB).expect("what was given back");
    two.release(MIB);
    limiter.set_hard_limit_bytes(None).expect("valid");
    one.charge(KIB);
    one.charge(1);
    assert!(limiter.lag_bound_bytes() > 0, "windows again");
    one.release(KIB + 1);
}
