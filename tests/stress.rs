//! Everything at once, on several threads: owners that charge, spill and come and go, reservations dropped elsewhere,
//! shared accounts, transfers, walks, settling, polls, changed budgets. Two seconds; `PLIMSOLL_STRESS_SECONDS` makes it
//! longer. While it runs no sum is ever absurd; at the end every sum is exactly 0, without an accounting error.
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Pressure, Reporter, Reservation, ScriptedSignals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Wake, Waker};
use std::time::Duration;

/// No thread holds more than this at any moment, by construction.
const MOST: usize = 40 * MIB;

struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }
    fn below(&mut self, end: usize) -> usize {
        self.next() % end
    }
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct Shared<'a> {
    limiter: &'a GlobalMemoryLimiter,
    stop: &'a AtomicBool,
    woken: Arc<Woken>,
}

impl Shared<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }

    /// A writer's life, again and again.
    fn owner(&self, seed: u64, to_others: &SyncSender<Reservation>) {
        let mut random = Random(seed);
        while self.goes_on() {
            let reporter = self.limiter.reporter(&format!("writer {seed}"));
            let mut arena = reporter.arena("postings");
            arena.set_waker(Some(Waker::from(Arc::clone(&self.woken))));
            let mut scratch = vec![];
            let mut charged = 0;
            for _ in 0..random.below(3_000) {
                match random.below(12) {
                    0 => {
                        charged += 700;
                        reporter.charge(700);
                    }
                    1 => reporter.release(std::mem::take(&mut charged)),
                    2..=5 => self.grow(&reporter, &mut arena, &mut random),
                    6 | 7 if scratch.len() < 8 => scratch.push(reporter.reserve(random.below(MIB))),
                    8 => {
                        if let Some(one) = scratch.last_mut() {
                            one.resize(&reporter, random.below(2 * MIB));
                        }
                    }
                    9 => {
                        if let Some(one) = scratch.pop() {
                            let sent = to_others.try_send(one);
                            drop(sent);
                        }
                    }
                    10 => drop(scratch.pop().map(|one| one.free_with(&reporter))),
                    _ => {
                        if let Some(one) = scratch.last_mut() {
                            drop(one.split(one.bytes() / 2));
                        }
                    }
                }
            }
            reporter.release(charged);
            if random.below(2) == 0 {
                drop(reporter);
            }
        }
    }

    fn grow(&self, reporter: &Reporter, arena: &mut ArenaHandle, random: &mut Random) {
        let bytes = (arena.bytes() + random.below(256 * KIB)).min(16 * MIB);
        arena.set_bytes(reporter, bytes);
        let answer = match random.below(20) {
            0 => arena.begin_own_spill(reporter),
            _ => arena.begin_spill(reporter),
        };
        if let Some(spill) = answer {
            let buffer = reporter.reserve(64 * KIB);
            match random.below(10) {
                0 => drop(spill),
                1 => spill.finish(256 * KIB),
                _ => spill.finish(0),
            }
            buffer.free_with(reporter);
        }
    }

    /// Drops, shrinks and takes over what owners send.
    fn other(&self, from_owners: &Receiver<Reservation>) {
        let reporter = self.limiter.reporter("other");
        let mut own = vec![];
        let mut random = Random(77);
        while self.goes_on() {
            let Ok(mut one) = from_owners.recv_timeout(Duration::from_millis(10)) else { continue };
            match random.below(3) {
                0 => drop(one),
                1 => drop((one.split(one.bytes() / 3), one.take())),
                _ => {
                    one.transfer(&reporter);
                    own.push(one);
                }
            }
            if own.len() > 8 {
                own.drain(..).for_each(|one| one.free_with(&reporter));
            }
        }
    }

    fn account(&self, seed: u64, account: &plimsoll::SharedReporter) {
        let mut random = Random(seed);
        let mut held = vec![];
        while self.goes_on() {
            for _ in 0..100 {
                let bytes = random.below(300 * KIB);
                account.charge(bytes);
                if random.below(3) == 0
                    && let Ok(one) = account.try_reserve(bytes)
                {
                    held.push(one);
                }
                account.release(bytes);
            }
            held.truncate(4);
            account.flush();
        }
    }

    fn watch(&self, seed: u64, signals: &ScriptedSignals) {
        let mut random = Random(seed);
        while self.goes_on() {
            match random.below(8) {
                0 => drop(self.limiter.settle()),
                1 => {
                    let snapshot = self.limiter.snapshot();
                    assert!(snapshot.writers.iter().all(|writer| writer.held_bytes < MOST), "{snapshot}");
                }
                2 => self.limiter.poll(),
                3 => self.limiter.set_budget_bytes((20 + random.below(40)) * MIB).expect("valid"),
                4 => self.limiter.set_quantum_bytes([Some(64 * KIB), Some(0), None][random.below(3)]),
                5 => signals.set(Pressure::new(random.below(2) * random.below(MIB), 0)),
                6 => assert!(!self.limiter.effective().to_string().is_empty()),
                _ => {}
            }
            let (held, published) = (self.limiter.held_bytes(), self.limiter.published_bytes());
            assert!(held < 8 * MOST && published < 8 * MOST, "{held} held, {published} published");
            assert!(self.limiter.lag_bound_bytes() < 64 * MIB);
        }
    }
}

#[test]
fn everything_at_once_ends_at_exactly_zero() {
    let seconds = std::env::var("PLIMSOLL_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let (done, wait) = sync_channel(1);
    let thread = std::thread::spawn(move || {
        run(Duration::from_secs(seconds));
        done.send(()).expect("the test waits");
    });
    match wait.recv_timeout(Duration::from_secs(seconds + 60)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("deadlock: it should have ended a minute ago"),
        _ => thread.join().expect("no thread panicked"),
    }
}

fn run(time: Duration) {
    let signals = Arc::new(ScriptedSignals::new());
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(32 * MIB)
        .floor_bytes(512 * KIB)
        .spill_backoff(Duration::from_millis(2))
        .signals(Arc::clone(&signals))
        .build()
        .expect("a valid configuration");
    let stop = AtomicBool::new(false);
    let shared = Shared { limiter: &limiter, stop: &stop, woken: Arc::default() };
    std::thread::scope(|scope| {
        let (to_others, from_owners) = sync_channel(16);
        let account = limiter.shared_reporter_with_cap("dictionary cache", 8 * MIB);
        for seed in 1..=3 {
            let (shared, to_others) = (&shared, to_others.clone());
            scope.spawn(move || shared.owner(seed, &to_others));
        }
        for seed in 11..=12 {
            let (shared, account) = (&shared, account.clone());
            scope.spawn(move || shared.account(seed, &account));
        }
        for seed in 21..=22 {
            let (shared, signals) = (&shared, &signals);
            scope.spawn(move || shared.watch(seed, signals));
        }
        let shared = &shared;
        scope.spawn(move || shared.other(&from_owners));
        drop((to_others, account));
        std::thread::sleep(time);
        stop.store(true, Relaxed);
    });
    assert_eq!((limiter.live_reporters(), limiter.live_arenas()), (0, 0));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    let stats = limiter.stats();
    assert_eq!(stats.accounting_errors, 0);
    assert!(stats.forced_spills > 0 && stats.requests > 0 && stats.failed_spills > 0, "{stats:?}");
    assert!(shared.woken.0.load(Relaxed) as u64 <= stats.requests + stats.notifications);
}
