//! Why somebody was asked to spill, and why something was refused.
//!
//! B69: "a thread failed" tells nobody anything, and limits that share one message do not say which knob to turn. Each kind
//! of refusal (writer cap, arena address space, hard limit, reserve, workspace, overflow) says what was asked, held and
//! allowed, names its setting, and can be explained by the three writers that hold most; it happens on another thread. The soft
//! budget refuses nothing: it asks, and each decision leaves a record.
mod common;

use common::{count, events_of, fixed, spill_if_asked};
use plimsoll::{
    ArenaHandle, ArenaView, GIB, GlobalMemoryLimiter, KIB, MIB, PassedOver, PressureSource, Refusal, Reporter,
    ReserveError, Snapshot, SpillSelector,
};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tracing::Level;

fn writer(limiter: &GlobalMemoryLimiter, name: &str, bytes: usize) -> (Reporter, ArenaHandle) {
    let reporter = limiter.reporter(name);
    let mut arena = reporter.arena("postings");
    arena.set_bytes(&reporter, bytes);
    (reporter, arena)
}

#[test]
fn a_decision_says_who_was_passed_over_and_why() {
    let mut text = String::new();
    let events = events_of(|| {
        let limiter = fixed().unlimited().floor_bytes(4 * MIB).spill_backoff(Duration::from_secs(60));
        let limiter = limiter.build().expect("a valid configuration");
        let small = writer(&limiter, "small", 3 * MIB);
        let empty = writer(&limiter, "empty", 0);
        let enough = writer(&limiter, "enough", 10 * MIB);
        let (failing, mut fails) = writer(&limiter, "failing", 30 * MIB);
        drop(fails.begin_own_spill(&failing).expect("not empty"));
        let (spilling, mut spills) = writer(&limiter, "spilling", 20 * MIB);
        let running = spills.begin_own_spill(&spilling).expect("not empty");
        let largest = writer(&limiter, "largest", 60 * MIB);

        limiter.set_budget_bytes(100 * MIB).expect("valid"); // 123 held, 20 of it in flight
        let snapshot = limiter.snapshot();
        let [decision] = snapshot.decisions.as_slice() else { panic!("one asked: {:?}", snapshot.decisions) };
        assert_eq!(snapshot.last_decision.as_ref(), Some(decision));
        assert_eq!((decision.number, decision.source), (1, PressureSource::Budget));
        assert_eq!((decision.requests, decision.requested_bytes), (1, 60 * MIB));
        assert_eq!(decision.victims, [("largest/postings".to_owned(), 60 * MIB)]);
        let passed = |name: &str, mib: usize, why| (format!("{name}/postings"), mib * MIB, why);
        assert_eq!(
            decision.passed_over,
            [
                passed("failing", 30, PassedOver::Exempt),
                passed("spilling", 20, PassedOver::InFlight),
                passed("enough", 10, PassedOver::NotNeeded),
                passed("small", 3, PassedOver::BelowFloor),
            ],
            "the largest first, and nobody who has nothing"
        );
        let counts = decision.passed_over_counts;
        assert_eq!((counts.in_flight, counts.exempt, counts.not_needed), (1, 1, 1));
        assert_eq!((counts.below_floor, counts.moved_on, counts.total()), (2, 0, 5));
        text = decision.to_string();
        running.finish(0);
        drop((small, empty, enough, largest));
    });
    assert_eq!(
        text,
        "23 MiB over by budget: 123 MiB held of 100 MiB, 123 MiB published, lag at most 5.9 MiB, 20 MiB in flight \
         already; asked 1 for 60 MiB: largest/postings 60 MiB; passed over 5: 1 in flight already, 2 below the floor of \
         4 MiB, 1 exempt after a failed spill, 1 not needed; largest failing/postings 30 MiB (exempt after a failed \
         spill), spilling/postings 20 MiB (in flight already), enough/postings 10 MiB (not needed)"
    );
    let told = "asked arenas to spill limiter=default walked=true exact_bytes=128974848 kept_free_bytes=0 published_bytes=128974848 \
                granted_bytes=6291450 budget_bytes=104857600 floor_bytes=4194304 overage_bytes=24117248 \
                in_flight_bytes=20971520 shortfall_bytes=0 source=budget victims=1 requested_bytes=62914560 \
                first_victim=largest/postings first_victim_bytes=62914560 passed_over=5 passed_over_in_flight=1 \
                passed_over_below_floor=2 passed_over_exempt=1 passed_over_not_needed=1 passed_over_moved_on=0 \
                largest_passed_over=failing/postings largest_passed_over_bytes=31457280 \
                largest_passed_over_why=exempt after a failed spill";
    assert_eq!(count(&events, Level::DEBUG, told), 1, "{events:#?}");
}

/// Changes two of its victims before they are asked, as their owners might on their own threads.
#[derive(Debug, Clone, Default)]
struct OwnersAreFaster(Arc<Mutex<Vec<(ArenaHandle, Reporter)>>>);

impl SpillSelector for OwnersAreFaster {
    fn name(&self) -> &'static str {
        "owners are faster"
    }
    fn select(&self, arenas: &[ArenaView], _: usize, _: usize, victims: &mut Vec<usize>) {
        victims.extend(0..arenas.len());
        let mut owners = self.0.lock().expect("nobody panics with it");
        if let Some((mut arena, reporter)) = owners.pop() {
            arena.begin_own_spill(&reporter).expect("not empty").finish(0);
            owners.clear(); // the other one leaves
            owners.push((arena, reporter));
        }
    }
}

#[test]
fn a_victim_whose_owner_was_faster_is_passed_over_as_well() {
    let selector = OwnersAreFaster::default();
    let limiter = fixed().unlimited().selector(selector.clone()).build().expect("a valid configuration");
    let stays = writer(&limiter, "stays", 5 * MIB);
    for name in ["leaves", "spills"] {
        let (reporter, arena) = writer(&limiter, name, 6 * MIB);
        selector.0.lock().unwrap().push((arena, reporter));
    }
    limiter.set_budget_bytes(2 * MIB).expect("valid");
    let decision = Arc::clone(&limiter.snapshot().decisions[0]);
    assert_eq!(decision.victims, [("stays/postings".to_owned(), 5 * MIB)]);
    assert_eq!((decision.requests, decision.requested_bytes), (1, 5 * MIB));
    assert_eq!(decision.passed_over, [("spills/postings".to_owned(), 6 * MIB, PassedOver::MovedOn)]);
    assert_eq!((decision.passed_over_counts.moved_on, decision.passed_over_counts.total()), (2, 2));
    assert!(stays.1.spill_requested());
    selector.0.lock().unwrap().clear();
}

#[test]
fn the_history_is_bounded() {
    let limiter = fixed().budget_bytes(100 * MIB).build().expect("a valid configuration");
    let (reporter, mut arena) = writer(&limiter, "writer", 0);
    for round in 1..=150 {
        arena.set_bytes(&reporter, 101 * MIB);
        assert_eq!(spill_if_asked(&mut arena, &reporter), Some(101 * MIB));
        let decisions = limiter.snapshot().decisions;
        assert_eq!(decisions.len(), round.min(64));
        assert_eq!(decisions.last().expect("one a round").number, round as u64);
        assert!(decisions.windows(2).all(|pair| pair[0].number + 1 == pair[1].number && pair[0].at <= pair[1].at));
    }
    assert_eq!(limiter.snapshot().decisions[0].number, 150 - 63, "the oldest are forgotten");
}

/// Otherwise the numbers would not add up.
#[test]
fn a_decision_says_what_is_kept_free_for_others() {
    let limiter = fixed().budget_bytes(100 * MIB).hard_limit_bytes(100 * MIB).reserve_bytes(20 * MIB);
    let limiter = limiter.build().expect("a valid configuration");
    let merge = limiter.reporter("merge");
    merge.charge(5 * MIB);
    let large = writer(&limiter, "large", 82 * MIB);
    let decision = Arc::clone(&limiter.snapshot().decisions[0]);
    assert_eq!((decision.overage_bytes, decision.exact_bytes, decision.kept_free_bytes), (2 * MIB, 87 * MIB, 15 * MIB));
    assert!(decision.to_string().starts_with("2 MiB over by budget: 87 MiB held of 100 MiB with 15 MiB kept free, "));
    merge.release(5 * MIB);
    drop(large);
}

/// What a record holds does not grow with the number of writers, nor with their names.
#[test]
fn a_record_is_bounded_whatever_the_writers_are() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let long = "n".repeat(100_000);
    let writers: Vec<_> = (0..100).map(|n| writer(&limiter, &format!("{n}{long}"), MIB)).collect();
    limiter.set_budget_bytes(50 * MIB).expect("valid");
    let decision = Arc::clone(&limiter.snapshot().decisions[0]);
    assert_eq!((decision.requests, decision.requested_bytes), (50, 50 * MIB));
    assert_eq!((decision.victims.len(), decision.passed_over.len()), (32, 16));
    assert_eq!(decision.passed_over_counts.total(), 50);
    let names = decision.victims.iter().map(|victim| &victim.0).chain(decision.passed_over.iter().map(|one| &one.0));
    assert!(names.clone().all(|name| name.len() <= 256 && name.ends_with('…')));
    assert!(names.map(String::capacity).sum::<usize>() <= 48 * 512);
    let text = decision.to_string();
    assert!(text.contains(" and 47 more; passed over 50: 50 not needed; largest 50nn") && text.len() < 2_500, "{text}");
    drop(writers);
}

#[test]
fn a_shortfall_with_nobody_to_ask_leaves_a_record_too_and_only_when_it_begins() {
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(10 * MIB).floor_bytes(MIB).build().expect("a valid configuration");
        let merge = limiter.reporter("merge");
        let tiny = writer(&limiter, "a\nb", 700 * KIB);
        merge.charge(30 * MIB);
        (0..10).for_each(|_| limiter.poll());
        let snapshot = limiter.snapshot();
        assert_eq!(snapshot.decisions.len(), 1);
        assert_eq!(
            snapshot.decisions[0].to_string(),
            "20.6 MiB over by budget: 30.6 MiB held of 10 MiB, 30 MiB published, lag at most 1.9 MiB, 0 B in flight \
             already; nobody can be asked; passed over 1: 1 below the floor of 1 MiB; largest a\\nb/postings 700 KiB \
             (below the floor); 20.6 MiB missing all the same"
        );
        assert_eq!(snapshot.shortfall.expect("it lasts").missing_bytes, snapshot.decisions[0].shortfall_bytes);
        merge.release(30 * MIB);
        merge.charge(30 * MIB);
        assert_eq!(limiter.snapshot().decisions.len(), 2, "a relapse is another one");
        assert_eq!(limiter.stats().requests, 0);
        merge.release(30 * MIB);
        drop(tiny);
    });
    assert_eq!(count(&events, Level::DEBUG, "nobody can be asked to spill"), 2, "{events:?}");
    assert_eq!(count(&events, Level::DEBUG, "asked arenas to spill"), 0);
}

/// Looks at the snapshot in the middle of each decision.
#[derive(Debug, Clone, Default)]
struct Looks(Arc<OnceLock<GlobalMemoryLimiter>>, Arc<Mutex<Vec<Snapshot>>>);

impl SpillSelector for Looks {
    fn name(&self) -> &'static str {
        "looks"
    }
    fn select(&self, _: &[ArenaView], _: usize, _: usize, _: &mut Vec<usize>) {
        self.1.lock().expect("nobody panics with it").extend(self.0.get().map(GlobalMemoryLimiter::snapshot));
    }
}

#[test]
fn history_and_shortfall_can_be_read_while_somebody_decides() {
    let looks = Looks::default();
    let limiter = fixed().budget_bytes(10 * MIB).selector(looks.clone()).build().expect("a valid configuration");
    looks.0.set(limiter.clone()).expect("once");
    let first = writer(&limiter, "first", 11 * MIB);
    let merge = limiter.reporter("merge");
    merge.charge(20 * MIB);
    let second = writer(&limiter, "second", MIB);
    let seen = looks.1.lock().unwrap();
    let last = seen.last().expect("it was asked");
    assert_eq!(last.decisions.len(), 2, "of the first request, and of the shortfall");
    assert!(last.shortfall.is_some());
    merge.release(20 * MIB);
    drop((first, second));
}

/// With this many the passes over all arenas are what counts. The best of some, because other work goes on beside it.
#[test]
fn a_decision_among_ten_thousand_writers_is_short() {
    const WRITERS: usize = 10_000;
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    // Each larger than those before it: the worst order for finding the largest.
    let writers: Vec<_> = (0..WRITERS).map(|n| writer(&limiter, "writer", KIB + 16 * n)).collect();
    let held = limiter.held_bytes();
    let took = |step: usize| {
        let start = Instant::now();
        limiter.set_budget_bytes(held - step * 200 * KIB).expect("valid");
        start.elapsed()
    };
    let best = (1..=10).map(took).min().expect("some");
    let decisions = limiter.snapshot().decisions;
    assert!(decisions.len() >= 10 && decisions.iter().all(|one| one.passed_over_counts.total() > 9_900));
    let most = if cfg!(debug_assertions) { 200 } else { 5 };
    assert!(best < Duration::from_millis(most), "{best:?} for two looks");
    limiter.set_unlimited(); // or each arena that leaves would be a reason to look again
    drop(writers);
}

/// With many writers some decisions take the next in the order of the last walk: they know nothing of the others, and say so.
#[test]
fn a_decision_between_two_walks_says_that_it_looked_at_nobody_else() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let mut writers: Vec<_> = (0..400).map(|n| writer(&limiter, &format!("w{n}"), MIB)).collect();
    limiter.set_budget_bytes(399 * MIB).expect("valid"); // a walk asks the first
    for _ in 0..3 {
        let (reporter, arena) = &mut writers[399];
        arena.set_bytes(reporter, arena.bytes() + MIB);
    }
    let decisions = limiter.snapshot().decisions;
    let rested = decisions.iter().find(|decision| !decision.walked).expect("one did without a walk");
    assert_eq!((rested.passed_over.len(), rested.passed_over_counts.total()), (0, 0));
    let text = rested.to_string();
    assert!(text.contains("asked 1 for 1 MiB: w1/postings 1 MiB; next in the order of the last walk"), "{text}");
    let walked = decisions.iter().filter(|decision| decision.walked);
    assert!(walked.clone().count() > 0 && walked.clone().all(|decision| decision.passed_over_counts.total() > 390));
    limiter.set_unlimited();
    drop(writers);
}

#[test]
fn an_explanation_names_the_top_three_holders_and_the_setting() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let capped = limiter.reporter_with_cap("cap\tped", 8 * MIB);
    let large = writer(&limiter, "large", 9 * MIB);
    let (spilling, mut spills) = writer(&limiter, "spilling", 7 * MIB);
    let older = limiter.reporter("older");
    let younger = limiter.shared_reporter("younger");
    capped.charge(6 * MIB);
    older.charge(7 * MIB);
    younger.charge(7 * MIB);
    let running = spills.begin_own_spill(&spilling).expect("not empty");
    let error = capped.try_charge(3 * MIB).expect_err("above the cap");
    let why = limiter.explain(&error);
    assert_eq!((why.error, why.setting), (error, Some("writer_cap_bytes")));
    assert_eq!(why.holders, [("large", 9), ("spilling", 7), ("older", 7)].map(|(name, n)| (name.to_owned(), n * MIB)));
    assert_eq!((why.held_bytes, why.writers), (36 * MIB, 5));
    assert_eq!((why.spillable_bytes, why.in_flight_bytes), (9 * MIB, 7 * MIB));
    assert_eq!(
        why.to_string(),
        "3 MiB more refused by writer_cap_bytes: 6 MiB held of 8 MiB; raise writer_cap_bytes, or spill; in all 36 MiB \
         held by 5 writers, 9 MiB can be spilled, 7 MiB in flight; most: large 9 MiB, spilling 7 MiB, older 7 MiB"
    );
    running.finish(0);
    drop(large);
    older.release(7 * MIB);
    younger.release(7 * MIB);
    assert_eq!(
        limiter.explain(&error).to_string(),
        "3 MiB more refused by writer_cap_bytes: 6 MiB held of 8 MiB; raise writer_cap_bytes, or spill; in all 6 MiB \
         held by 4 writers, 0 B can be spilled, 0 B in flight; most: cap\\tped 6 MiB",
        "as of now"
    );
    capped.release(6 * MIB);
}

/// B69. The error that a background thread ran into is the one that its caller gets and can have explained, and so are the
/// next ones.
#[test]
fn each_refusal_on_a_background_thread_says_which_limit_and_who_holds_most() {
    type Refuse = fn(&Reporter, &mut ArenaHandle) -> Result<(), ReserveError>;
    // what is asked for; the least and the most that may be shown as held; the limit; what the text names
    let kinds: [(Refusal, Refuse, [usize; 4], &str); 6] = [
        (
            Refusal::WriterCap,
            |reporter, _| reporter.try_reserve(63 * MIB).map(drop),
            [63 * MIB, 2 * MIB, 2 * MIB, 64 * MIB],
            "writer_cap_bytes",
        ),
        (
            Refusal::ArenaAddressSpace,
            |reporter, arena| arena.try_grow_bytes(reporter, GIB),
            [GIB, MIB, MIB, 64 * MIB],
            "arena_with_address_space",
        ),
        (
            Refusal::HardLimit,
            |reporter, _| reporter.try_reserve(50 * MIB).map(drop),
            [50 * MIB, 64 * MIB, 100 * MIB, 100 * MIB],
            "hard_limit_bytes",
        ),
        (
            Refusal::Reserve,
            |reporter, arena| arena.try_grow_bytes(reporter, 18 * MIB),
            [18 * MIB, 64 * MIB, 80 * MIB, 80 * MIB],
            "reserve_bytes",
        ),
        (
            Refusal::Workspace,
            |reporter, _| {
                let workspace = reporter.workspace("dictionary", 8 * MIB);
                let _used = reporter.within(&workspace).reserve(7 * MIB);
                reporter.within(&workspace).try_charge(2 * MIB)
            },
            [2 * MIB, 7 * MIB, 7 * MIB, 8 * MIB],
            "the workspace",
        ),
        (
            Refusal::Overflow,
            |reporter, _| reporter.try_charge(usize::MAX),
            [usize::MAX, 2 * MIB, 2 * MIB, usize::MAX / 2],
            "beyond what a counter can hold",
        ),
    ];
    let limiter = fixed().budget_bytes(100 * MIB).hard_limit_bytes(100 * MIB).reserve_bytes(20 * MIB);
    let limiter = limiter.build().expect("a valid configuration");
    let others = [5, 30, 7, 20].map(|mib| writer(&limiter, &format!("holds {mib}"), mib * MIB));
    for (kind, refuse, [asked, least, most, limit], text) in kinds {
        let work = limiter.clone();
        let failed = std::thread::spawn(move || {
            let reporter = work.reporter_with_cap("background", 64 * MIB);
            let mut arena = reporter.arena_with_address_space("postings", 64 * MIB);
            arena.set_bytes(&reporter, MIB);
            let scratch = reporter.reserve(MIB);
            let errors = [(); 3].map(|()| refuse(&reporter, &mut arena).expect_err("refused"));
            assert_eq!((reporter.held_bytes(), arena.bytes(), scratch.bytes()), (2 * MIB, MIB, MIB), "unchanged");
            errors
        });
        let errors = failed.join().expect("it is an error and no panic");
        for error in errors {
            assert_eq!((error.kind, error.asked_bytes, error.limit_bytes), (kind, asked, limit));
            assert!((least..=most).contains(&error.held_bytes), "{error}");
            let why = limiter.explain(&error);
            let top = [30, 20, 7].map(|mib| (format!("holds {mib}"), mib * MIB));
            assert_eq!((why.error, why.holders.as_slice()), (error, top.as_slice()));
            assert!(error.to_string().contains(text), "{error}");
            assert!(why.setting.is_none_or(|setting| setting.contains(text)));
        }
    }
    drop(others);
    assert_eq!(limiter.held_bytes(), 0);
}
