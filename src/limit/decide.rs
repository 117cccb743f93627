//! The decision: is there pressure, who must spill, and is that enough.
//!
//! Who notifies decides. At most one thread decides at a time; the others leave a count and go on, and the decider goes
//! round again for them, so that no notification is lost:
//!
//! 1. notifier: `pending.fetch_add(1, AcqRel)`; who saw 0 is the decider, everybody else returns;
//! 2. decider: decide; then compare-exchange `pending` from what it saw to 0; if that fails, take the new count and decide
//!    again.
//!
//! Without pressure nobody writes `pending`: a notifier looks at the lagged sum and the alarm line first. So each side
//! stores, fences, then loads: a notifier stores the arena (or publishes), fences, loads `line` and `alert`; the decider
//! stores `line` and `alert`, fences, and goes round once more whenever it has tightened one of them. One of the two sees
//! the other.
//!
//! The **lagged sum says when** to decide (no walk without pressure); the **exact walk says how much**. In flight is read
//! from the arenas' words, first; then the arenas; then the cells: see `arena_cell` for why that order flags nobody who is
//! not needed.

use super::arena_cell::{ArenaCell, State, Word};
use super::between::Between;
use super::cell::Cell;
use super::core::Core;
use super::decision::{Decision, PressureSource, Shortfall};
use super::record::{self, Asked, History};
use super::selector::{self, ArenaView, LargestFirst, Plan};
use super::signal::Pressure;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, fence, mutant};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// What a notifier adds to `pending`.
pub(crate) const NOTICE: u64 = 1;
/// What somebody adds who wants a walk in any case.
pub(crate) const POLL: u64 = 1 << 32;

/// The decider's own state.
#[derive(Debug)]
pub(crate) struct Decider {
    /// Notifications since the running decision began; 0 when nobody decides.
    pending: CachePadded<AtomicU64>,
    /// A lagged sum above this is a reason to decide: budget plus what is in flight; none during a shortfall that lasts.
    line: CachePadded<AtomicUsize>,
    /// A shortfall lasts: an arena that can be asked is a reason to decide, and so is its end.
    alert: AtomicBool,
    /// Pressure of the process or the machine up to this is covered by what is in flight.
    calm: AtomicUsize,
    /// Between two walks decisions may do without one. Relaxed: a hint.
    rests: AtomicBool,
    /// What the source said last. Relaxed: numbers only, stored before `pending` is raised.
    pub(crate) system_short: AtomicUsize,
    pub(crate) process_over: AtomicUsize,
    started: Instant,
    memory: Mutex<Memory>,
}

/// What the decider keeps between decisions. It takes the scratch out while it works, so no lock is held then, and the rest
/// can be read.
#[derive(Debug, Default)]
struct Memory {
    scratch: Scratch,
    between: Between,
    shortfall: Option<Shortfall>,
    history: History,
}

#[derive(Debug, Default)]
struct Scratch {
    words: Vec<Word>,
    views: Vec<ArenaView>,
    plan: Plan,
}

/// What a decision leaves in force.
pub(crate) struct Verdict {
    /// It looked at every writer.
    pub(crate) walked: bool,
    /// What is in flight, those included that were asked just now.
    pub(crate) covered_bytes: usize,
    /// All that can be asked is asked, and it is not enough.
    pub(crate) short: bool,
    /// It has to be repeated: those that the last walk has left are asked, and it is not enough; or one that was asked is
    /// smaller than it was.
    pub(crate) unmet: bool,
    pub(crate) shortfall: Option<Shortfall>,
    pub(crate) record: Option<Decision>,
    pub(crate) wakers: Vec<Arc<Waker>>,
}

/// What one look found, and the settings that it was held against.
pub(crate) struct Look {
    pub(crate) budget_bytes: usize,
    pub(crate) floor_bytes: usize,
    pub(crate) exact_bytes: usize,
    pub(crate) kept_free_bytes: usize,
    pub(crate) published_bytes: usize,
    pub(crate) overage_bytes: usize,
    pub(crate) source: PressureSource,
}

impl Decider {
    pub(crate) fn new(budget_bytes: usize) -> Self {
        Decider {
            pending: CachePadded::new(AtomicU64::new(0)),
            line: CachePadded::new(AtomicUsize::new(budget_bytes)),
            alert: AtomicBool::new(false),
            calm: AtomicUsize::new(0),
            rests: AtomicBool::new(false),
            system_short: AtomicUsize::new(0),
            process_over: AtomicUsize::new(0),
            started: Instant::now(),
            memory: Mutex::new(Memory::default()),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX)
    }

    /// Time since the limiter was built.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Above this the lagged sum is a reason to decide; what the reserve keeps free comes off.
    pub(crate) fn line_bytes(&self) -> usize {
        self.line.load(Ordering::Relaxed)
    }

    /// A shortfall lasts, and everybody who can be asked is asked.
    pub(crate) fn lacks_victims(&self) -> bool {
        self.alert.load(Ordering::Relaxed) && self.calm.load(Ordering::Relaxed) == usize::MAX
    }

    pub(crate) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    pub(crate) fn set_rests(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
    }

    pub(crate) fn pressure(&self) -> Pressure {
        Pressure::new(self.system_short.load(Ordering::Relaxed), self.process_over.load(Ordering::Relaxed))
    }

    /// What people are told: the shortfall while it lasts, and the records, oldest first.
    pub(crate) fn told(&self) -> (Option<Shortfall>, Vec<Arc<Decision>>) {
        let memory = self.memory.lock();
        (memory.shortfall, memory.history.all())
    }
}

/// Lets go of `pending` if the decider leaves by a panic (of a subscriber), so that the next one can decide. Forgotten
/// when it leaves as it should: by then somebody else may be deciding, also if this thread is unwinding for a reason of
/// its own.
struct Release<'a>(&'a AtomicU64);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Core {
    /// An arena's block size changed, and its cell says so already.
    pub(crate) fn notify(&self, arena: &ArenaCell) {
        self.telemetry.notified(&arena.notifications);
        self.fence_notifier();
        self.sample();
        // During a shortfall this arena is news if it can be asked now, or if the shortfall is over.
        let news = self.crossed()
            || match self.decider.alert.load(Ordering::Relaxed) {
                true => self.relieved() || (self.eligible(arena) && !self.asks_itself(arena)),
                false => self.pressed(),
            };
        if news {
            self.combine(NOTICE);
        }
    }

    /// A cell has published; `moved` is how the sum moved. Under no lock: recorders are told here.
    pub(crate) fn after_publish(&self, moved: isize) {
        self.telemetry.show_publishes(&self.ledger);
        if moved == 0 {
            return;
        }
        self.fence_notifier();
        if moved > 0 {
            self.sample();
        }
        let news = match self.decider.alert.load(Ordering::Relaxed) {
            // The end of a shortfall.
            true => self.crossed() || self.relieved(),
            false => moved > 0 && (self.crossed() || self.pressed()),
        };
        if news {
            self.combine(NOTICE);
        }
    }

    /// Against the fence after `line` and `alert` are stored: one of the two sides sees the other.
    fn fence_notifier(&self) {
        // A mutant of something else goes without it too, where it would hide what that lacks.
        if !["notify_without_fence", "crosser_unordered", "finish_relaxed"].into_iter().any(mutant) {
            fence(Ordering::SeqCst);
        }
    }

    /// The lagged sum is over the line.
    fn crossed(&self) -> bool {
        self.counted_bytes() > self.decider.line_bytes()
    }

    /// There is more pressure from outside than what is in flight covers.
    fn pressed(&self) -> bool {
        self.decider.pressure().deepest_bytes() > self.decider.calm.load(Ordering::Relaxed)
    }

    /// What the line is compared with: the lagged sum, and what of the reserve is not used.
    pub(crate) fn counted_bytes(&self) -> usize {
        self.ledger.published_bytes().saturating_add(self.unused_reserve_bytes())
    }

    /// Nothing is over, by the lagged sum.
    pub(crate) fn relieved(&self) -> bool {
        self.counted_bytes() <= self.settings.budget_bytes() && self.decider.pressure().deepest_bytes() == 0
    }

    fn eligible(&self, arena: &ArenaCell) -> bool {
        // The clock last: it costs more than the rest.
        arena.bytes() >= self.settings.floor_bytes().max(1)
            && arena.word().state() == State::Idle
            && !(arena.was_exempt() && arena.exempt(self.decider.now_ms()))
    }

    /// Decides by what the source says now.
    pub(crate) fn decide(&self, why: u64) {
        self.sample();
        self.combine(why);
    }

    /// Decides, or leaves it to the one who is deciding now. With [`NOTICE`] only if there is pressure or something was in
    /// flight; with [`POLL`] in any case.
    fn combine(&self, why: u64) {
        let pending = &self.decider.pending;
        // AcqRel: the decider sees what every notifier stored before it came.
        if pending.fetch_add(why, Ordering::AcqRel) != 0 {
            return;
        }
        let release = Release(pending);
        let (mut seen, mut asked) = (why, why);
        loop {
            // The line is back at the budget whenever nothing is in flight, so this misses no spill that has ended.
            let budget = self.settings.budget_bytes();
            let quiet = self.decider.line.load(Ordering::Relaxed) == budget
                && !self.decider.alert.load(Ordering::Relaxed)
                && self.relieved();
            if asked >= POLL || !quiet {
                while self.decide_once(asked) {}
            }
            if mutant("pending_stored") {
                pending.store(0, Ordering::Release);
                break;
            }
            // AcqRel on success: the next decider starts from what this one did. Acquire on failure: this one sees what
            // the notifier stored.
            match pending.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => (asked, seen) = (now.wrapping_sub(seen), now),
            }
        }
        std::mem::forget(release);
    }

    /// Wakes an owner. A panic of the waker is its owner's affair and not that of the writer whose change brought it about,
    /// which may be in the middle of recording that change.
    pub(crate) fn wake(&self, waker: &Waker) {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake_by_ref())).is_err() {
            self.telemetry.user_code_panicked("waker");
        }
    }

    /// One decision and what follows from it. True if it has to be repeated: something was tightened, and a notifier may
    /// have seen the looser value.
    fn decide_once(&self, why: u64) -> bool {
        self.telemetry.decided();
        let (mut scratch, mut between, shortfall) = {
            let mut memory = self.decider.memory.lock();
            (std::mem::take(&mut memory.scratch), std::mem::take(&mut memory.between), memory.shortfall)
        };
        let (budget, floor) = (self.settings.budget_bytes(), self.settings.floor_bytes());
        let rests = why < POLL && self.rests(&mut between, usize::try_from(why).unwrap_or(usize::MAX));
        let rested = if rests { self.decide_resting(&mut between, shortfall, budget, floor) } else { None };
        let verdict =
            rested.unwrap_or_else(|| self.decide_walking(&mut scratch, &mut between, shortfall, budget, floor));

        let lasts = verdict.shortfall.is_some();
        // All of it is there before anybody is woken: a waker may ask for the snapshot.
        let oldest = {
            let mut memory = self.decider.memory.lock();
            (memory.scratch, memory.between, memory.shortfall) = (scratch, between, verdict.shortfall);
            verdict.record.and_then(|record| memory.history.add(record))
        };
        drop(oldest);
        verdict.wakers.iter().for_each(|waker| self.wake(waker));

        // With a shortfall there is no line to cross: all that can be asked is asked.
        let (line, calm) = match verdict.short {
            true => (usize::MAX, usize::MAX),
            false => (budget.saturating_add(verdict.covered_bytes), verdict.covered_bytes),
        };
        let tightened = {
            let was = self.decider.line.swap(line, Ordering::AcqRel);
            let was_calm = self.decider.calm.swap(calm, Ordering::AcqRel);
            let alerted = self.decider.alert.swap(lasts, Ordering::AcqRel);
            line < was || calm < was_calm || (lasts && !alerted)
        };
        fence(Ordering::SeqCst);
        if verdict.walked && !verdict.short && self.counted_bytes() > line {
            // The lagged sum is above what the walk found: releases are held back. Call them in, or every publish would
            // walk; without the barrier it does.
            self.settle_stale();
        }
        verdict.unmet || (tightened && !mutant("line_without_second_look"))
    }

    /// A decision by a look at every writer.
    fn decide_walking(
        &self,
        scratch: &mut Scratch,
        between: &mut Between,
        mut shortfall: Option<Shortfall>,
        budget: usize,
        floor: usize,
    ) -> Verdict {
        self.telemetry.walked();
        let look = self.look(scratch, budget, floor);
        let Scratch { words, views, plan } = scratch;
        self.plan(views, floor, look.overage_bytes, plan);
        let asked = self.request(words, views, plan);
        self.remember(between, views, &plan.victims, floor);
        let short = plan.shortfall_bytes > 0;

        // An episode lasts until nothing is over any more: while spills in flight cover for it, it is not news.
        let begins = shortfall.is_none() && short;
        let record = (asked.count > 0 || begins).then(|| self.record(&look, views, plan, &asked));
        if let Some(record) = &record {
            self.telemetry.requested(record);
        }
        if begins {
            let begun = self.describe(&look, views, plan.shortfall_bytes);
            self.telemetry.shortfall_began(&begun);
            shortfall = Some(begun);
        } else if shortfall.is_some() && look.overage_bytes == 0 {
            self.telemetry.shortfall_ended();
            shortfall = None;
        }
        let covered_bytes = plan.in_flight_bytes.saturating_add(asked.covered_bytes);
        Verdict { walked: true, covered_bytes, short, unmet: asked.shrunk, shortfall, record, wakers: asked.wakers }
    }

    /// Words first, then arenas, then cells.
    fn look(&self, scratch: &mut Scratch, budget: usize, floor: usize) -> Look {
        let Scratch { words, views, .. } = scratch;
        let now = self.decider.now_ms();
        self.registry.arenas.walk(|arenas| {
            words.clear();
            views.clear();
            if mutant("arenas_before_words") {
                let bytes: Vec<usize> = arenas.iter().map(|arena| arena.bytes()).collect();
                for (arena, bytes) in arenas.iter().zip(bytes) {
                    words.push(arena.word());
                    views.push(view(arena, arena.word(), bytes, now));
                }
                return;
            }
            words.extend(arenas.iter().map(|arena| arena.word()));
            views.extend(arenas.iter().zip(words.iter()).map(|(arena, &word)| view(arena, word, arena.bytes(), now)));
        });
        let exact_bytes = if self.settings.writer_share() {
            self.registry.exact_bytes(Cell::has_arena)
        } else {
            self.registry.exact_bytes(|_| true)
        };
        let kept_free_bytes = self.kept_free_bytes();
        let (overage_bytes, source) = self.overage(exact_bytes.saturating_add(kept_free_bytes), budget);
        let published_bytes = self.ledger.published_bytes();
        Look {
            budget_bytes: budget,
            floor_bytes: floor,
            exact_bytes,
            kept_free_bytes,
            published_bytes,
            overage_bytes,
            source,
        }
    }

    /// What of the reserve those for whom it is do not use, exact.
    fn kept_free_bytes(&self) -> usize {
        match self.settings.reserve_bytes() {
            0 => 0,
            reserve => reserve.saturating_sub(self.registry.exact_bytes(|cell| !cell.has_arena())),
        }
    }

    /// The selector's plan; a selector that panics is told and replaced for this time.
    fn plan(&self, views: &[ArenaView], floor: usize, overage: usize, plan: &mut Plan) {
        let custom = self.selector();
        let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            selector::plan(custom, views, floor, overage, plan);
        }));
        if attempt.is_err() {
            self.telemetry.selector_panicked(custom.name());
            selector::plan(&LargestFirst, views, floor, overage, plan);
        }
    }

    /// Asks the victims. One that moved on meanwhile counts as covered: its owner is at it and will notify.
    fn request(&self, words: &[Word], views: &[ArenaView], plan: &Plan) -> Asked {
        let mut asked = Asked::default();
        if plan.victims.is_empty() {
            return asked;
        }
        self.registry.arenas.walk(|arenas| {
            for &index in &plan.victims {
                let view = &views[index];
                asked.covered_bytes = asked.covered_bytes.saturating_add(view.bytes);
                match record::find(arenas, index, view.id) {
                    Some(arena) if arena.request(words[index], view.bytes) => asked.hit(arena, view.bytes),
                    _ => asked.missed(index),
                }
            }
        });
        asked
    }

    /// Publishes on behalf of those who hold releases back.
    fn settle_stale(&self) {
        if !self.barrier {
            return;
        }
        let stale: Vec<_> = self
            .registry
            .cells
            .walk(|cells| cells.iter().filter(|cell| cell.total_bytes() < cell.published_bytes()).cloned().collect());
        self.settle_others(&stale);
    }
}

pub(crate) fn view(arena: &ArenaCell, word: Word, bytes: usize, now_ms: u64) -> ArenaView {
    let mut view = ArenaView::new(arena.id, bytes);
    view.in_flight = word.state() != State::Idle;
    view.in_flight_bytes = word.covers_bytes(bytes);
    view.exempt = arena.exempt(now_ms);
    view.runs = arena.runs();
    view
}
