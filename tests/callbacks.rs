//! Code that the limiter calls: wakers, selectors, signal sources. None of it runs under a lock of the limiter, so each may
//! call back into it; a selector that panics stops nothing.
mod common;

use common::{count, events_of, fixed, spill_if_asked};
use plimsoll::{
    ArenaView, GIB, GlobalMemoryLimiter, LargestFirst, MIB, Pressure, Reporter, SharedReporter, SignalSource,
    SpillSelector,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tracing::Level;

/// Fails the test instead of hanging it.
fn within_ten_seconds(run: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        run();
        done.send(()).expect("the test waits");
    });
    match wait.recv_timeout(Duration::from_secs(10)) {
        Ok(()) => thread.join().expect("it is done"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it did not send"))
        }
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("deadlock"),
    }
}

/// What user code may do from inside: read everything, register a reporter, charge it and drop it.
#[derive(Debug, Clone, Default)]
struct CallsBack {
    limiter: Arc<OnceLock<GlobalMemoryLimiter>>,
    other: Arc<OnceLock<SharedReporter>>,
    calls: Arc<AtomicUsize>,
}

impl CallsBack {
    fn new_in(&self, limiter: &GlobalMemoryLimiter) {
        self.other.set(limiter.shared_reporter("other")).expect("once");
        self.limiter.set(limiter.clone()).expect("once");
    }

    fn call(&self) {
        let Some(limiter) = self.limiter.get() else { return };
        let stats = limiter.stats();
        let snapshot = limiter.snapshot();
        assert!(!snapshot.to_string().is_empty() && stats.decisions < 1_000_000);
        assert!(limiter.held_bytes().max(limiter.published_bytes()) < GIB);
        assert!(limiter.effective().to_string().contains("budget"));
        let passing = limiter.reporter("passing");
        passing.charge(1_000);
        let mut arena = passing.arena("postings");
        assert!(!arena.spill_requested() && arena.begin_own_spill(&passing).is_none());
        passing.release(1_000);
        drop((passing, arena));
        let other = self.other.get().expect("set before the limiter");
        drop(other.reserve(1_000));
        self.calls.fetch_add(1, SeqCst);
    }
}

impl Wake for CallsBack {
    fn wake(self: Arc<Self>) {
        self.call();
        // A waker may also publish: it runs once a request.
        let other = self.other.get().expect("set before");
        other.charge(3 * MIB);
        other.release(3 * MIB);
        assert!(self.limiter.get().expect("set before").settle() || cfg!(not(target_os = "linux")));
    }
}

impl SpillSelector for CallsBack {
    fn name(&self) -> &'static str {
        "calls back"
    }
    fn select(&self, arenas: &[ArenaView], floor: usize, need: usize, victims: &mut Vec<usize>) {
        self.call();
        LargestFirst.select(arenas, floor, need, victims);
    }
}

impl SignalSource for CallsBack {
    fn pressure(&self) -> Pressure {
        self.call();
        Pressure::default()
    }
}

fn drive(limiter: &GlobalMemoryLimiter, waker: Option<Arc<CallsBack>>) {
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    reporter.charge(1);
    if let Some(waker) = waker {
        arena.set_waker(Some(Waker::from(waker)));
    }
    for _ in 0..20 {
        arena.set_bytes(&reporter, 5 * MIB);
        arena.set_bytes(&reporter, 12 * MIB);
        assert_eq!(spill_if_asked(&mut arena, &reporter), Some(12 * MIB));
    }
    reporter.release(1);
}

fn ended(limiter: &GlobalMemoryLimiter, calls_back: &CallsBack) {
    assert!(calls_back.calls.load(SeqCst) >= 20, "{calls_back:?}");
    assert_eq!((limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0));
    assert_eq!((limiter.live_reporters(), limiter.live_arenas(), limiter.stats().forced_spills), (1, 0, 20));
}

#[test]
fn a_waker_may_call_back_into_the_limiter() {
    within_ten_seconds(|| {
        let limiter = fixed().budget_bytes(10 * MIB).build().expect("a valid configuration");
        let calls_back = CallsBack::default();
        calls_back.new_in(&limiter);
        drive(&limiter, Some(Arc::new(calls_back.clone())));
        ended(&limiter, &calls_back);
    });
}

#[test]
fn a_selector_may_call_back_into_the_limiter() {
    within_ten_seconds(|| {
        let calls_back = CallsBack::default();
        let limiter = fixed().budget_bytes(10 * MIB).selector(calls_back.clone()).build().expect("valid");
        calls_back.new_in(&limiter);
        drive(&limiter, None);
        ended(&limiter, &calls_back);
    });
}

#[test]
fn a_signal_source_may_call_back_into_the_limiter() {
    within_ten_seconds(|| {
        let calls_back = CallsBack::default();
        let limiter = fixed().budget_bytes(10 * MIB).signals(calls_back.clone()).build().expect("valid");
        calls_back.new_in(&limiter);
        drive(&limiter, None);
        ended(&limiter, &calls_back);
    });
}

/// An owner that has nothing to do parks; the request wakes it and it spills on its own thread.
#[test]
fn an_owner_that_is_parked_is_woken_and_spills() {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let limiter = fixed().budget_bytes(100 * MIB).build().expect("a valid configuration");
    let parked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reporter = limiter.reporter("parked");
            let mut arena = reporter.arena("postings");
            arena.set_bytes(&reporter, 90 * MIB);
            arena.set_waker(Some(Waker::from(Arc::new(Unpark(std::thread::current())))));
            parked.store(true, SeqCst);
            let until = Instant::now() + Duration::from_secs(10);
            while !arena.spill_requested() {
                assert!(Instant::now() < until, "nobody woke it");
                std::thread::park_timeout(Duration::from_secs(10));
            }
            assert_eq!(spill_if_asked(&mut arena, &reporter), Some(90 * MIB));
        });
        while !parked.load(SeqCst) {
            std::thread::yield_now();
        }
        let reporter = limiter.reporter("trickles");
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 11 * MIB);
    });
    assert_eq!((limiter.held_bytes(), limiter.stats().forced_spills), (0, 1));
}

#[derive(Debug, Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_waker_set_while_a_request_is_pending_is_woken_at_once_and_one_taken_away_never() {
    let limiter = fixed().budget_bytes(10 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    let counts = Arc::new(Counts::default());
    let waker = || Some(Waker::from(Arc::clone(&counts)));
    arena.set_waker(waker());
    assert_eq!(counts.0.load(SeqCst), 0);
    arena.set_bytes(&reporter, 11 * MIB);
    assert_eq!(counts.0.load(SeqCst), 1, "once a request");
    limiter.poll();
    assert_eq!(counts.0.load(SeqCst), 1);
    arena.set_waker(waker());
    assert_eq!(counts.0.load(SeqCst), 2);
    assert_eq!(spill_if_asked(&mut arena, &reporter), Some(11 * MIB));
    arena.set_waker(None);
    arena.set_bytes(&reporter, 11 * MIB);
    assert!(arena.spill_requested());
    assert_eq!(counts.0.load(SeqCst), 2);
    drop(arena);
    assert_eq!(Arc::strong_count(&counts), 1, "nobody keeps it");
}

/// Panics as often as it is told to.
#[derive(Debug)]
struct Panics(Arc<AtomicUsize>);

impl SpillSelector for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }
    fn select(&self, arenas: &[ArenaView], floor: usize, need: usize, victims: &mut Vec<usize>) {
        victims.push(0);
        if self.0.load(SeqCst) > 0 {
            self.0.fetch_sub(1, SeqCst);
            panic!("the selector's own");
        }
        LargestFirst.select(arenas, floor, need, victims);
    }
}

#[test]
fn a_selector_that_panics_is_told_of_and_replaced_for_that_decision() {
    let left = Arc::new(AtomicUsize::new(2));
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(10 * MIB).selector(Panics(Arc::clone(&left))).build().expect("valid");
        assert_eq!(limiter.effective().selector, "panics");
        let small = limiter.reporter("small");
        let mut of_small = small.arena("postings");
        of_small.set_bytes(&small, MIB);
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        for _ in 0..5 {
            arena.set_bytes(&reporter, 9 * MIB + 1);
            assert!(!of_small.spill_requested() || left.load(SeqCst) == 0);
            assert!(arena.spill_requested() || of_small.spill_requested());
            if spill_if_asked(&mut arena, &reporter).is_none() {
                arena.set_bytes(&reporter, 0);
            }
        }
        drop((arena, of_small, reporter, small));
        assert_eq!((limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0));
    });
    assert_eq!(count(&events, Level::ERROR, "selector panicked, the largest arenas go first"), 2, "{events:?}");
    assert_eq!(left.load(SeqCst), 0);
}

/// What a selector names wrongly is left out, and made up for.
#[test]
fn a_selector_that_names_nonsense_still_ends_in_the_right_victims() {
    #[derive(Debug)]
    struct Nonsense(Mutex<Vec<usize>>);
    impl SpillSelector for Nonsense {
        fn name(&self) -> &'static str {
            "nonsense"
        }
        fn select(&self, arenas: &[ArenaView], _: usize, need: usize, victims: &mut Vec<usize>) {
            assert!(victims.is_empty() && need > 0 && arenas.len() == 3);
            victims.extend(self.0.lock().expect("nobody panics").drain(..));
        }
    }
    let limiter = fixed()
        .budget_bytes(10 * MIB)
        .selector(Nonsense(Mutex::new(vec![usize::MAX, 3, 1, 1, 1])))
        .build()
        .expect("a valid configuration");
    let reporters: Vec<Reporter> = (0..3).map(|n| limiter.reporter(&format!("writer {n}"))).collect();
    let mut arenas: Vec<_> = reporters.iter().map(|reporter| reporter.arena("postings")).collect();
    for (arena, (reporter, mib)) in arenas.iter_mut().zip(reporters.iter().zip([6, 1, 5])) {
        arena.set_bytes(reporter, mib * MIB);
    }
    let asked: Vec<_> = arenas.iter().map(plimsoll::ArenaHandle::spill_requested).collect();
    assert_eq!(asked, [true, true, false], "1 as named, then the largest for the MiB that is still missing");
}

/// The writer whose change brings a request about is not the one whose waker panics, and must not pay for it: its bytes are
/// recorded once, in the account and in the reservation.
#[test]
fn a_waker_that_panics_harms_nobody_elses_accounting() {
    struct PanicsWhenWoken;
    impl Wake for PanicsWhenWoken {
        fn wake(self: Arc<Self>) {
            panic!("the waker's own");
        }
    }
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(10 * MIB).build().expect("a valid configuration");
        let (victim, other) = (limiter.reporter("victim"), limiter.reporter("other"));
        let mut arena = victim.arena("postings");
        arena.set_waker(Some(Waker::from(Arc::new(PanicsWhenWoken))));
        arena.set_bytes(&victim, 8 * MIB);
        let scratch = other.reserve(3 * MIB);
        assert!(arena.spill_requested());
        assert_eq!((scratch.bytes(), limiter.held_bytes()), (3 * MIB, 11 * MIB));
        assert_eq!(spill_if_asked(&mut arena, &victim), Some(8 * MIB));
        drop(scratch);
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
        arena.set_bytes(&victim, 11 * MIB);
        assert!(arena.spill_requested(), "the next decision works");
    });
    assert_eq!(count(&events, Level::ERROR, "a waker panicked"), 2, "{events:?}");
}

#[test]
fn a_signal_source_that_panics_is_told_of_and_what_it_said_last_stands() {
    #[derive(Debug)]
    struct PanicsOnce(AtomicUsize);
    impl SignalSource for PanicsOnce {
        fn pressure(&self) -> Pressure {
            assert_ne!(self.0.fetch_add(1, SeqCst), 1, "the source's own");
            Pressure::new(MIB, 0)
        }
    }
    let events = events_of(|| {
        let limiter = fixed().budget_bytes(100 * MIB).signals(PanicsOnce(AtomicUsize::new(0))).build().expect("valid");
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        limiter.poll();
        arena.set_bytes(&reporter, 5 * MIB);
        assert_eq!((arena.spill_requested(), limiter.held_bytes()), (true, 5 * MIB));
        drop((arena, reporter));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
    });
    assert_eq!(count(&events, Level::ERROR, "a signal source panicked"), 1, "{events:?}");
}

/// A story: a reporter that joined had the others' windows moved under a lock of the dealing; what they had held back took
/// the sum over the budget, and the waker that was called from there registered a reporter of its own and waited for ever.
#[test]
fn a_decision_that_a_join_brings_about_may_register_reporters() {
    struct Registers(GlobalMemoryLimiter);
    impl Wake for Registers {
        fn wake(self: Arc<Self>) {
            let several: Vec<_> = (0..20).map(|_| self.0.reporter("registered by a waker")).collect();
            drop(several);
        }
    }
    within_ten_seconds(|| {
        let limiter = GlobalMemoryLimiter::builder().budget_bytes(MIB).block_bytes(1_024).build().expect("valid");
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, MIB);
        arena.set_waker(Some(Waker::from(Arc::new(Registers(limiter.clone())))));
        reporter.charge(3 * 1_024);
        assert!(!arena.spill_requested(), "held back");
        let second = limiter.reporter("second");
        assert!(arena.spill_requested() || !limiter.effective().process_barrier);
        reporter.release(3 * 1_024);
        drop((arena, reporter, second));
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.live_reporters()), (0, 0, 0));
    });
}
