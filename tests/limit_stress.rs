//! Thirty threads at the hard limit: owners of several writers that charge, reserve and grow arenas by `try_` calls and
//! spill when they are refused or asked, shared accounts, reservations that are dropped on other threads, transfers, joins
//! and leaves, the limit lowered and raised. Two seconds; `PLIMSOLL_STRESS_SECONDS` makes it longer.
//!
//! Everybody asks, so nothing is ever reserved past the limit, and nothing is an overdraft. After the limit fell, what is
//! reserved may be above it until enough is given back, and never rises.
mod common;

use common::Random;
use plimsoll::{
    ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Refusal, Reporter, Reservation, ReserveError, SharedReporter,
};
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

const LIMIT: usize = 64 * MIB;
const RESERVE: usize = 10 * MIB;
/// Of each owner, so that there are more cells than are moved under one barrier.
const WRITERS: usize = 4;

impl Random {
    /// Mostly small, sometimes large.
    fn bytes(&mut self) -> usize {
        let most = [200, 4 * KIB, 64 * KIB, 2 * MIB][self.below(4)];
        self.below(most) + 1
    }
}

#[derive(Default)]
struct Counts {
    granted: AtomicU64,
    by_limit: AtomicU64,
    by_reserve: AtomicU64,
    spills: AtomicU64,
    samples: AtomicU64,
    lowered: AtomicU64,
    most: AtomicUsize,
}

struct Shared<'a> {
    limiter: &'a GlobalMemoryLimiter,
    stop: &'a AtomicBool,
    counts: &'a Counts,
    /// Nothing that is reserved may be above this, and how often it was moved.
    ceiling: AtomicUsize,
    moves: AtomicU64,
}

impl Shared<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }

    /// Counts an answer. True if it was granted.
    fn granted<T>(&self, answer: &Result<T, ReserveError>) -> bool {
        let count = match answer {
            Ok(_) => &self.counts.granted,
            Err(error) if error.kind == Refusal::HardLimit => &self.counts.by_limit,
            Err(error) if error.kind == Refusal::Reserve => &self.counts.by_reserve,
            Err(error) => panic!("{error}"),
        };
        count.fetch_add(1, Relaxed);
        answer.is_ok()
    }

    /// The lives of a few writers, one after another.
    fn owner(&self, seed: u64, account: &SharedReporter, to_others: &SyncSender<Reservation>) {
        let mut random = Random(seed);
        while self.goes_on() {
            let reporters: Vec<_> =
                (0..WRITERS).map(|number| self.limiter.reporter(&format!("writer {seed}.{number}"))).collect();
            let mut writers: Vec<Writer<'_>> = reporters.iter().map(Writer::new).collect();
            for _ in 0..random.below(4_000) {
                let index = random.below(WRITERS);
                let to = &reporters[random.below(WRITERS)];
                self.act(&mut writers[index], to, account, to_others, &mut random);
            }
            // Some arenas and reservations outlive their reporters' last change.
            writers.into_iter().for_each(|writer| writer.reporter.release(writer.charged));
        }
    }

    fn act(
        &self,
        writer: &mut Writer<'_>,
        to: &Reporter,
        account: &SharedReporter,
        to_others: &SyncSender<Reservation>,
        random: &mut Random,
    ) {
        let (reporter, bytes) = (writer.reporter, random.bytes());
        let refused = match random.below(14) {
            0..=2 => {
                let granted = self.granted(&reporter.try_charge(bytes));
                writer.charged += if granted { bytes } else { 0 };
                !granted
            }
            3 => {
                let back = writer.charged.min(bytes);
                reporter.release(back);
                writer.charged -= back;
                false
            }
            4 | 5 if writer.held.len() < 12 => {
                let answer = reporter.try_reserve(bytes);
                let granted = self.granted(&answer);
                writer.held.extend(answer);
                !granted
            }
            6 => writer.held.last_mut().is_some_and(|one| !self.granted(&one.try_grow(reporter, bytes))),
            7 => writer.held.last_mut().is_some_and(|one| !self.granted(&one.try_resize(reporter, bytes))),
            8 => writer
                .held
                .last_mut()
                .is_some_and(|one| !self.granted(&one.try_replace(reporter, bytes).map(|both| both.commit()))),
            9 => {
                if let Some(mut one) = writer.held.pop() {
                    match random.below(5) {
                        0 => one.transfer(to),
                        1 => one.transfer(account),
                        2 => drop(one.split(one.bytes() / 2)),
                        _ => {}
                    }
                    let sent = to_others.try_send(one);
                    drop(sent);
                }
                false
            }
            10 => {
                if let Some(one) = writer.held.pop() {
                    one.free_with(reporter);
                }
                false
            }
            11 if random.below(8) == 0 => {
                writer.arena = writer.arena.is_none().then(|| reporter.arena("postings"));
                false
            }
            _ => match &mut writer.arena {
                Some(arena) => !self.granted(&arena.try_grow_bytes(reporter, bytes)),
                None => false,
            },
        };
        if let Some(arena) = &mut writer.arena {
            let spill = if refused { arena.begin_own_spill(reporter) } else { arena.begin_spill(reporter) };
            if let Some(spill) = spill {
                self.counts.spills.fetch_add(1, Relaxed);
                let remaining = if random.below(8) == 0 { spill.bytes() / 2 } else { 0 };
                match random.below(16) {
                    0 => drop(spill),
                    _ => spill.finish(remaining),
                }
            }
        }
        if refused && random.below(2) == 0 {
            // Nobody waits for ever: who is refused gives something of its own back.
            reporter.release(std::mem::take(&mut writer.charged));
            writer.held.truncate(writer.held.len() / 2);
        }
    }

    /// A thread of a shared account.
    fn account(&self, seed: u64, account: &SharedReporter) {
        let mut random = Random(seed);
        // Little, so that not all of the reserve is used.
        while self.goes_on() {
            let mut held = vec![];
            for _ in 0..random.below(400) {
                let bytes = random.bytes() / 8;
                match random.below(3) {
                    0 if held.len() < 8 => {
                        let answer = account.try_reserve(bytes);
                        self.granted(&answer);
                        held.extend(answer);
                    }
                    1 => drop(held.pop()),
                    _ => {
                        if self.granted(&account.try_charge(bytes)) {
                            account.release(bytes);
                        }
                    }
                }
            }
        }
    }

    /// Drops, shrinks and takes over what owners send.
    fn other(&self, seed: u64, from_owners: &std::sync::Mutex<Receiver<Reservation>>) {
        let reporter = self.limiter.reporter("other");
        let (mut own, mut random) = (vec![], Random(seed));
        while self.goes_on() {
            let received = from_owners.lock().expect("no panic").recv_timeout(Duration::from_millis(5));
            let Ok(mut one) = received else { continue };
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

    /// Settles, polls and compares.
    fn walk(&self, seed: u64) {
        let mut random = Random(seed);
        while self.goes_on() {
            match random.below(4) {
                0 => drop(self.limiter.settle()),
                1 => self.limiter.poll(),
                2 => assert!(self.limiter.reconcile().is_none(), "a drift while everybody changes"),
                _ => assert!(self.limiter.snapshot().writers.len() <= self.limiter.live_reporters() + 64),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lowers the limit, waits until so much was given back, and raises it.
    fn change(&self, seed: u64) {
        let mut random = Random(seed);
        while self.goes_on() {
            std::thread::sleep(Duration::from_millis(5 + random.below(20) as u64));
            let low = LIMIT / 4 + random.below(LIMIT / 2);
            self.limiter.set_hard_limit_bytes(Some(low)).expect("the budget follows");
            self.counts.lowered.fetch_add(1, Relaxed);
            let mut before = self.limiter.reserved_bytes();
            while before > low && self.goes_on() {
                std::thread::yield_now();
                let now = self.limiter.reserved_bytes();
                assert!(now <= before.max(low), "{now} reserved after {before}, of {low}: granted past the limit");
                before = now;
            }
            if before > low {
                return;
            }
            self.set_ceiling(low);
            std::thread::sleep(Duration::from_millis(5));
            self.set_ceiling(LIMIT);
            self.limiter.set_hard_limit_bytes(Some(LIMIT)).expect("the budget follows");
        }
    }

    fn set_ceiling(&self, bytes: usize) {
        self.ceiling.store(bytes, SeqCst);
        self.moves.fetch_add(1, SeqCst);
    }

    fn sample(&self) {
        for round in 0.. {
            if round % 64 == 0 {
                std::thread::yield_now();
                if !self.goes_on() {
                    return;
                }
            }
            let (moves, before) = (self.moves.load(SeqCst), self.ceiling.load(SeqCst));
            let reserved = self.limiter.reserved_bytes();
            let after = self.ceiling.load(SeqCst);
            if self.moves.load(SeqCst).wrapping_sub(moves) > 1 {
                continue;
            }
            let ceiling = before.max(after);
            assert!(reserved <= ceiling, "{reserved} reserved of {ceiling}");
            self.counts.samples.fetch_add(1, Relaxed);
            self.counts.most.fetch_max(reserved, Relaxed);
        }
    }
}

struct Writer<'a> {
    reporter: &'a Reporter,
    arena: Option<ArenaHandle>,
    held: Vec<Reservation>,
    charged: usize,
}

impl<'a> Writer<'a> {
    fn new(reporter: &'a Reporter) -> Self {
        Writer { reporter, arena: Some(reporter.arena("postings")), held: vec![], charged: 0 }
    }
}

#[test]
fn thirty_threads_at_the_hard_limit_never_pass_it_and_end_at_exactly_zero() {
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
    let limiter = GlobalMemoryLimiter::builder()
        .budget_percent_of_hard_limit(90)
        .hard_limit_bytes(LIMIT)
        .reserve_bytes(RESERVE)
        .floor_bytes(64 * KIB)
        .block_bytes(4 * KIB)
        .spill_backoff(Duration::from_millis(2))
        .build()
        .expect("valid");
    let (stop, counts) = (AtomicBool::new(false), Counts::default());
    let shared = Shared {
        limiter: &limiter,
        stop: &stop,
        counts: &counts,
        ceiling: AtomicUsize::new(LIMIT),
        moves: AtomicU64::new(0),
    };
    let shared = &shared;
    let (to_others, from_owners) = sync_channel(32);
    let from_owners = std::sync::Mutex::new(from_owners);
    std::thread::scope(|scope| {
        let from_owners = &from_owners;
        let accounts: Vec<_> = (0..2).map(|_| limiter.shared_reporter("cache")).collect();
        for seed in 1..=20 {
            let (account, to_others) = (accounts[seed as usize % 2].clone(), to_others.clone());
            scope.spawn(move || shared.owner(seed, &account, &to_others));
        }
        for seed in 31..=34 {
            let account = accounts[seed as usize % 2].clone();
            scope.spawn(move || shared.account(seed, &account));
        }
        for seed in 41..=43 {
            scope.spawn(move || shared.other(seed, from_owners));
        }
        scope.spawn(move || shared.walk(51));
        scope.spawn(move || shared.change(52));
        scope.spawn(move || shared.sample());
        drop(accounts);
        std::thread::sleep(time);
        stop.store(true, Relaxed);
    });
    drop((to_others, from_owners));
    let stats = limiter.stats();
    println!(
        "{} granted, {} refused by the hard limit, {} by the reserve, {} spills; limit lowered {} times; at most {} of {LIMIT} \
         reserved in {} samples; {} publishes, {} decisions",
        counts.granted.load(Relaxed),
        counts.by_limit.load(Relaxed),
        counts.by_reserve.load(Relaxed),
        counts.spills.load(Relaxed),
        counts.lowered.load(Relaxed),
        counts.most.load(Relaxed),
        counts.samples.load(Relaxed),
        stats.publishes,
        stats.decisions,
    );
    assert!(counts.granted.load(Relaxed) > 0 && counts.by_limit.load(Relaxed) > 0);
    assert!(stats.peak_held_bytes <= LIMIT, "{} reserved once", stats.peak_held_bytes);
    assert_eq!((stats.overdraft_peak_bytes, stats.overdrafts, stats.accounting_errors), (0, 0, 0));
    assert_eq!((limiter.live_reporters(), limiter.live_arenas()), (0, 0));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.reserved_bytes()), (0, 0, 0));
    assert_eq!((limiter.lag_bound_bytes(), limiter.snapshot().in_flight_bytes), (0, 0));
    assert!(limiter.reconcile().is_none());
}
