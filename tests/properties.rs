//! Random sequences of public calls by several writers, against a plain sequential model. `PLIMSOLL_CASES` multiplies the
//! number of cases. After every step:
//!
//! 1. `held_bytes()` is exactly the sum of what the writers hold, and each writer's total is its own;
//! 2. `published_bytes()` differs from it by at most `lag_bound_bytes()`;
//! 3. a `try_` call is refused exactly when it would pass the cap or the arena's end, and then nothing has changed;
//! 4. a decision asks for no more than it needs and for no less, unless it says what is missing;
//! 5. where every change is published (quantum 0), what is over the budget is in flight, or nobody is left who could be asked;
//! 6. at the end every sum is exactly 0, without an accounting error.
use plimsoll::{ArenaHandle, Decision, GlobalMemoryLimiter, Refusal, Reporter, Reservation, SharedReporter};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
enum Op {
    Register,
    RegisterShared,
    Charge,
    Release,
    TryCharge,
    Reserve,
    TryReserve,
    Grow,
    TryGrow,
    Shrink,
    Resize,
    TryResize,
    Split,
    Take,
    Merge,
    Free,
    FreeWith,
    DropReservation,
    DropElsewhere,
    Transfer,
    ReplaceCommit,
    ReplaceDrop,
    TryReplace,
    Arena,
    SetBytes,
    TryGrowBytes,
    Spill,
    SpillFails,
    OwnSpill,
    OwnSpillFails,
    DropArena,
    Flush,
    Settle,
    Poll,
    SetBudget,
    SetQuantum,
    DropReporter,
    DropWriter,
}
use Op::*;

const OPS: [Op; 68] = [
    SetBytes,
    SetBytes,
    SetBytes,
    SetBytes,
    SetBytes,
    SetBytes,
    Arena,
    Arena,
    Register,
    Register,
    RegisterShared,
    Charge,
    Charge,
    Charge,
    Release,
    Release,
    TryCharge,
    Reserve,
    Reserve,
    Reserve,
    TryReserve,
    Grow,
    Grow,
    TryGrow,
    Shrink,
    Shrink,
    Resize,
    Resize,
    TryResize,
    Split,
    Split,
    Take,
    Merge,
    Merge,
    Free,
    FreeWith,
    FreeWith,
    DropReservation,
    DropReservation,
    DropElsewhere,
    Transfer,
    Transfer,
    ReplaceCommit,
    ReplaceDrop,
    TryReplace,
    Arena,
    Arena,
    SetBytes,
    SetBytes,
    SetBytes,
    SetBytes,
    SetBytes,
    TryGrowBytes,
    TryGrowBytes,
    Spill,
    Spill,
    Spill,
    SpillFails,
    OwnSpill,
    OwnSpillFails,
    DropArena,
    Flush,
    Settle,
    Poll,
    SetBudget,
    SetQuantum,
    DropReporter,
    DropWriter,
];

/// What to do, to whom, with how much; the numbers are taken modulo what there is.
type Step = (Op, usize, usize, usize);

#[derive(Debug, Clone)]
struct Settings {
    budget: Option<usize>,
    floor: usize,
    quantum: Option<usize>,
    cap: Option<usize>,
    backoff: bool,
}

fn settings() -> impl Strategy<Value = Settings> {
    let quantum = prop_oneof![Just(Some(0)), Just(Some(0)), Just(Some(100)), Just(Some(5_000)), Just(None)];
    (
        prop::option::weighted(0.8, 5_000..80_000_usize),
        prop_oneof![1..200_usize, 1..5_000_usize],
        quantum,
        prop::option::of(5_000..60_000_usize),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(budget, floor, quantum, cap, backoff)| Settings { budget, floor, quantum, cap, backoff })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![0..200_usize, 0..3_000_usize, 0..40_000_usize];
    prop::collection::vec((prop::sample::select(&OPS[..]), 0..60_usize, 0..60_usize, bytes), 1..80)
}

/// One account as the model has it. Its reporter may be gone before what it has charged.
struct Writer {
    name: String,
    reporter: Option<Reporter>,
    shared: Option<SharedReporter>,
    charged: usize,
    held: Vec<Reservation>,
    /// What each reservation should say.
    bytes: Vec<usize>,
    arenas: Vec<(ArenaHandle, usize)>,
}

const ARENA_END: usize = 100_000;

impl Writer {
    fn total(&self) -> usize {
        let arenas: usize = self.arenas.iter().map(|arena| arena.1).sum();
        self.charged + self.bytes.iter().sum::<usize>() + arenas
    }
    fn push(&mut self, reservation: Reservation, bytes: usize) {
        self.held.push(reservation);
        self.bytes.push(bytes);
    }
    fn pop(&mut self, which: usize) -> (Reservation, usize) {
        (self.held.swap_remove(which), self.bytes.swap_remove(which))
    }
    fn is_gone(&self) -> bool {
        self.reporter.is_none() && self.shared.is_none() && self.held.is_empty() && self.arenas.is_empty()
    }
}

/// The reporter in either form; `$body` is compiled for both.
macro_rules! with_account {
    ($writer:expr, |$account:ident| $body:expr) => {
        match (&$writer.reporter, &$writer.shared) {
            (Some($account), _) => Some($body),
            (None, Some($account)) => Some($body),
            (None, None) => None,
        }
    };
}

struct World {
    limiter: GlobalMemoryLimiter,
    settings: Settings,
    writers: Vec<Writer>,
    registered: usize,
    requests: u64,
    errors: Vec<String>,
}

impl World {
    fn new(settings: Settings) -> Self {
        let mut builder = GlobalMemoryLimiter::builder().block_bytes(1).floor_bytes(settings.floor);
        if let Some(budget) = settings.budget {
            builder = builder.budget_bytes(budget);
        }
        if let Some(quantum) = settings.quantum {
            builder = builder.quantum_bytes(quantum);
        }
        if let Some(cap) = settings.cap {
            builder = builder.writer_cap_bytes(cap);
        }
        let backoff = if settings.backoff { Duration::from_secs(3_600) } else { Duration::ZERO };
        let limiter = builder.spill_backoff(backoff).build().expect("a floor below the budget");
        World { limiter, settings, writers: vec![], registered: 0, requests: 0, errors: vec![] }
    }

    fn check(&mut self, what: &str, right: bool) {
        if !right {
            self.errors.push(what.to_owned());
        }
    }

    fn cap(&self) -> usize {
        self.settings.cap.unwrap_or(usize::MAX)
    }

    fn register(&mut self, shared: bool) {
        if self.writers.len() >= 6 {
            return;
        }
        let name = format!("writer {}", self.registered);
        self.registered += 1;
        self.writers.push(Writer {
            reporter: (!shared).then(|| self.limiter.reporter(&name)),
            shared: shared.then(|| self.limiter.shared_reporter(&name)),
            name,
            charged: 0,
            held: vec![],
            bytes: vec![],
            arenas: vec![],
        });
    }

    /// Whether a `try_` call for `asked` more was answered as it should.
    fn answered(&mut self, total: usize, asked: usize, result: Result<(), plimsoll::ReserveError>) -> bool {
        let cap = self.cap();
        match result {
            Ok(()) => self.check("granted above the cap", total + asked <= cap),
            Err(error) => {
                self.check("refused below the cap", total + asked > cap);
                let told = (error.asked_bytes, error.held_bytes, error.limit_bytes, error.kind);
                self.check("a refusal with wrong numbers", told == (asked, total, cap, Refusal::WriterCap));
            }
        }
        result.is_ok()
    }

    fn step(&mut self, (op, who, which, bytes): Step) {
        match op {
            Register => return self.register(false),
            RegisterShared => return self.register(true),
            Settle => {
                if self.limiter.settle() {
                    let right = self.limiter.published_bytes() == self.limiter.held_bytes();
                    self.check("settled and not exact", right);
                }
                return;
            }
            Poll => return self.limiter.poll(),
            SetBudget => {
                if self.settings.budget.is_some() {
                    let budget = self.settings.floor + bytes * 4;
                    self.limiter.set_budget_bytes(budget).expect("above the floor");
                    self.settings.budget = Some(budget);
                }
                return;
            }
            SetQuantum => {
                let quantum = [Some(0), Some(700), None][which % 3];
                self.limiter.set_quantum_bytes(quantum);
                self.settings.quantum = quantum;
                return;
            }
            _ => {}
        }
        if self.writers.is_empty() {
            return self.register(false);
        }
        let who = who % self.writers.len();
        if op as usize >= Arena as usize {
            self.step_of_arena(op, who, which, bytes);
        } else if (Charge as usize..=TryReserve as usize).contains(&(op as usize)) {
            self.step_of_account(op, who, bytes);
        } else {
            self.step_of_reservation(op, who, which, bytes);
        }
    }

    fn step_of_account(&mut self, op: Op, who: usize, bytes: usize) {
        let total = self.writers[who].total();
        let writer = &mut self.writers[who];
        match op {
            Charge => {
                if with_account!(writer, |account| account.charge(bytes)).is_some() {
                    writer.charged += bytes;
                }
            }
            Release => {
                let bytes = bytes.min(writer.charged);
                if with_account!(writer, |account| account.release(bytes)).is_some() {
                    writer.charged -= bytes;
                }
            }
            TryCharge => {
                if let Some(result) = with_account!(writer, |account| account.try_charge(bytes))
                    && self.answered(total, bytes, result)
                {
                    self.writers[who].charged += bytes;
                }
            }
            Reserve => {
                if let Some(reservation) = with_account!(writer, |account| account.reserve(bytes)) {
                    writer.push(reservation, bytes);
                }
            }
            _ => {
                if let Some(result) = with_account!(writer, |account| account.try_reserve(bytes)) {
                    let (reservation, result) = match result {
                        Ok(reservation) => (Some(reservation), Ok(())),
                        Err(error) => (None, Err(error)),
                    };
                    if self.answered(total, bytes, result) {
                        self.writers[who].push(reservation.expect("granted"), bytes);
                    }
                }
            }
        }
    }

    fn step_of_reservation(&mut self, op: Op, who: usize, which: usize, bytes: usize) {
        if self.writers[who].held.is_empty() {
            return;
        }
        let total = self.writers[who].total();
        let n = which % self.writers[who].held.len();
        let m = bytes % self.writers[who].held.len();
        let to = which % self.writers.len();
        let writer = &mut self.writers[who];
        let before = writer.bytes[n];
        let one = &mut writer.held[n];
        let mut now = None;
        match op {
            Grow => now = with_account!(writer, |account| one.grow(account, bytes)).map(|()| before + bytes),
            Shrink => {
                let bytes = bytes.min(before);
                now = with_account!(writer, |account| one.shrink(account, bytes)).map(|()| before - bytes);
            }
            Resize => now = with_account!(writer, |account| one.resize(account, bytes)).map(|()| bytes),
            TryGrow => {
                if let Some(result) = with_account!(writer, |account| one.try_grow(account, bytes))
                    && self.answered(total, bytes, result)
                {
                    now = Some(before + bytes);
                }
            }
            TryResize => {
                if let Some(result) = with_account!(writer, |account| one.try_resize(account, bytes)) {
                    let granted = match bytes > before {
                        true => self.answered(total, bytes - before, result),
                        false => result.is_ok(),
                    };
                    now = Some(if granted { bytes } else { before });
                }
            }
            Split => match one.split(bytes) {
                Some(part) => {
                    now = Some(before - bytes);
                    writer.push(part, bytes);
                }
                None => self.check("split refused what was there", bytes > before),
            },
            Take => {
                let all = one.take();
                now = Some(0);
                writer.push(all, before);
            }
            Merge => {
                let (other, more) = writer.pop(n);
                if writer.held.is_empty() {
                    return writer.push(other, more);
                }
                let m = m % writer.held.len();
                writer.bytes[m] += more;
                writer.held[m].merge(other).expect("of one account");
            }
            Free => {
                let answers = (one.free(), one.free());
                now = Some(0);
                self.check("free gave back something else", answers == (before, 0));
            }
            FreeWith => {
                let (gone, more) = writer.pop(n);
                if with_account!(writer, |account| gone.free_with(account)).is_none() {
                    // Its reporter is gone: it was dropped just now, which is right as well.
                    self.check("nothing to give back", more < usize::MAX);
                }
            }
            DropReservation => drop(writer.pop(n)),
            DropElsewhere => {
                let gone = writer.pop(n);
                std::thread::spawn(move || drop(gone)).join().expect("no panic there");
            }
            Transfer => {
                let (mut gone, more) = writer.pop(n);
                let receiver = &mut self.writers[to];
                if with_account!(receiver, |account| gone.transfer(account)).is_some() {
                    receiver.push(gone, more);
                } else {
                    self.writers[who].push(gone, more);
                }
            }
            ReplaceCommit => {
                now = with_account!(writer, |account| one.replace(account, bytes).commit()).map(|()| bytes)
            }
            ReplaceDrop => now = with_account!(writer, |account| drop(one.replace(account, bytes))).map(|()| before),
            _ => {
                let result =
                    with_account!(writer, |account| one.try_replace(account, bytes).map(|copying| copying.commit()));
                if let Some(result) = result
                    && self.answered(total, bytes, result)
                {
                    now = Some(bytes);
                }
            }
        }
        if let Some(now) = now {
            self.writers[who].bytes[n] = now;
        }
    }

    fn step_of_arena(&mut self, op: Op, who: usize, which: usize, bytes: usize) {
        let (total, cap, floor) = (self.writers[who].total(), self.cap(), self.settings.floor);
        let writer = &mut self.writers[who];
        match op {
            Flush => drop(with_account!(writer, |account| account.flush())),
            DropWriter => {
                let mut gone = self.writers.swap_remove(who);
                with_account!(gone, |account| account.release(gone.charged));
                match which % 3 {
                    0 => drop((gone.reporter.take(), gone.shared.take())),
                    1 => gone.arenas.clear(),
                    _ => gone.held.clear(),
                }
                drop(gone);
            }
            DropReporter => {
                with_account!(writer, |account| account.release(writer.charged));
                writer.charged = 0;
                drop((writer.reporter.take(), writer.shared.take()));
            }
            Arena => {
                if let Some(reporter) = &writer.reporter
                    && writer.arenas.len() < 3
                {
                    writer.arenas.push((reporter.arena_with_address_space("postings", ARENA_END), 0));
                }
            }
            _ if writer.arenas.is_empty() => {}
            DropArena => {
                let n = which % writer.arenas.len();
                writer.arenas.swap_remove(n);
            }
            _ => {
                let Some(reporter) = &writer.reporter else { return };
                let n = which % writer.arenas.len();
                let (arena, now) = &mut writer.arenas[n];
                let mut wrong = None;
                match op {
                    SetBytes => {
                        arena.set_bytes(reporter, bytes);
                        *now = bytes;
                    }
                    TryGrowBytes => {
                        let fits = *now + bytes <= ARENA_END;
                        match arena.try_grow_bytes(reporter, bytes) {
                            Ok(()) => {
                                *now += bytes;
                                let right = fits && (bytes == 0 || total + bytes <= cap);
                                wrong = (!right).then_some("an arena grew beyond a limit");
                            }
                            Err(error) => {
                                let kind = if fits { Refusal::WriterCap } else { Refusal::ArenaAddressSpace };
                                let right = error.kind == kind && (!fits || total + bytes > cap);
                                wrong = (!right).then_some("an arena was refused within its limits");
                            }
                        }
                    }
                    Spill | SpillFails => {
                        let asked = arena.spill_requested();
                        let enough = *now > 0 && (*now >= floor || *now > ARENA_END - ARENA_END / 32);
                        match arena.begin_spill(reporter) {
                            Some(spill) => {
                                let right = asked && enough && spill.is_forced() && spill.bytes() == *now;
                                wrong = (!right).then_some("a spill began that nobody needs");
                                let _run_buffer = reporter.reserve(500);
                                if matches!(op, Spill) {
                                    *now = bytes % (*now + *now / 4 + 1);
                                    spill.finish(*now);
                                }
                            }
                            None => wrong = (asked && enough).then_some("a request was not honoured"),
                        }
                    }
                    _ => match arena.begin_own_spill(reporter) {
                        Some(spill) => {
                            wrong = (*now == 0).then_some("an empty arena was spilled");
                            if matches!(op, OwnSpill) {
                                *now = bytes % (*now + 1);
                                spill.finish(*now);
                            }
                        }
                        None => wrong = (*now > 0).then_some("an own spill was refused"),
                    },
                }
                self.errors.extend(wrong.map(str::to_owned));
            }
        }
    }

    fn look(&mut self) {
        self.writers.retain(|writer| !writer.is_gone());
        let (held, published) = (self.limiter.held_bytes(), self.limiter.published_bytes());
        let sum: usize = self.writers.iter().map(Writer::total).sum();
        self.check(&format!("held {held} and not {sum}"), held == sum);
        let bound = self.limiter.lag_bound_bytes();
        self.check(&format!("published {published} of {held} within {bound}"), held.abs_diff(published) <= bound);
        let snapshot = self.limiter.snapshot();
        self.check("snapshot's sum", snapshot.held_bytes == sum && snapshot.writers.len() == self.writers.len());
        let cap = self.cap();
        let mut wrong = vec![];
        for writer in &self.writers {
            let total = writer.total();
            let shown = snapshot.writers.iter().find(|shown| shown.name == writer.name).map(|shown| shown.held_bytes);
            let own = with_account!(writer, |account| (account.held_bytes(), account.over_cap()));
            let reservations: Vec<usize> = writer.held.iter().map(Reservation::bytes).collect();
            if shown != Some(total)
                || own.is_some_and(|own| own != (total, total > cap))
                || reservations != writer.bytes
                || writer.arenas.iter().any(|(arena, bytes)| arena.bytes() != *bytes)
            {
                wrong.push(format!("{} holds {total}, shown {shown:?}, says {own:?}", writer.name));
            }
        }
        self.errors.extend(wrong);
        self.look_at_decisions(&snapshot);
        let errors = self.limiter.stats().accounting_errors;
        self.check("an accounting error", errors == 0);
    }

    fn look_at_decisions(&mut self, snapshot: &plimsoll::Snapshot) {
        let requests = self.limiter.stats().requests;
        if requests != self.requests {
            self.requests = requests;
            let last = snapshot.last_decision.as_deref();
            self.check(&format!("a wrong decision {last:?}"), last.is_some_and(is_right));
        }
        let Some(budget) = self.settings.budget else { return };
        if self.settings.quantum == Some(0) && !self.settings.backoff && self.limiter.lag_bound_bytes() == 0 {
            let over = snapshot.held_bytes.saturating_sub(budget);
            let floor = self.settings.floor;
            let arenas = || self.writers.iter().flat_map(|writer| &writer.arenas);
            let left = arenas().filter(|(arena, bytes)| !arena.spill_requested() && *bytes >= floor).count();
            let right = over <= snapshot.in_flight_bytes || left == 0;
            self.check(&format!("{over} over, {} in flight, {left} arenas left", snapshot.in_flight_bytes), right);
        }
    }
}

/// No more than needed and no less, unless it says what is missing.
fn is_right(decision: &Decision) -> bool {
    let need = decision.overage_bytes.saturating_sub(decision.in_flight_bytes);
    let covered: usize = decision.victims.iter().map(|victim| victim.1).sum();
    let smallest = decision.victims.iter().map(|victim| victim.1).min().unwrap_or(0);
    decision.requests == decision.victims.len()
        && covered - smallest < need
        && (covered >= need || decision.shortfall_bytes == need - covered)
}

fn cases() -> u32 {
    let times = std::env::var("PLIMSOLL_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    3_000_u32.saturating_mul(times)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_calls_agrees_with_the_model(settings in settings(), steps in steps()) {
        let mut world = World::new(settings);
        for step in steps {
            world.step(step);
            world.look();
            prop_assert!(world.errors.is_empty(), "{:?}: {:?}", step, world.errors);
        }
        let limiter = world.limiter.clone();
        for writer in &mut world.writers {
            with_account!(writer, |account| account.release(writer.charged));
        }
        drop(world);
        prop_assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
        prop_assert_eq!((limiter.live_reporters(), limiter.live_arenas()), (0, 0));
        prop_assert_eq!((limiter.stats().accounting_errors, limiter.snapshot().in_flight_bytes), (0, 0));
    }
}
