//! What deciding, living at the budget and registering cost with many writers, and what a writer takes in memory.
//!
//! `cargo bench --bench decisions`, or with the name of a part: `-- decision`, `-- blocks`, `-- registering`, `-- memory`.
//! Figures are medians over rounds, with the least and the most. Only memory is exact, and only memory fails the run;
//! times depend on the machine and on what else it does.
//!
//! *blocks*: arenas grow in turn by a block of 32 KiB each; those that are asked spill to nothing, either at once or when
//! it is their turn. Beside it runs the same loop without a budget and without signals, which spills as often of its own
//! accord. Nothing is subtracted. In each of the situations pressure never ends:
//!
//! | situation | what keeps it up |
//! |---|---|
//! | `budget` | every block is more than the budget holds |
//! | `signal` | the source says that 64 MiB are missing, whatever is spilled; there is budget enough |
//! | `shortfall` | persistent bytes are twice the budget |

#![expect(unsafe_code, reason = "an allocator that counts cannot be had without")]

mod common;

use common::figures::{Figures, nanos};
use plimsoll::{ArenaHandle, GIB, GlobalMemoryLimiter, KIB, MIB, Pressure, Reporter, ScriptedSignals};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

const BLOCK: usize = 32 * KIB;
const FLOOR: usize = MIB;
/// Blocks of an arena in the mean, where arenas are above the floor.
const MEAN_BLOCKS: usize = 64;
const SIGNAL: usize = 64 * MIB;
/// As long as the names of the reference's writers.
const NAME: &str = "logs/message";

/// How much of everything: less for a run that only shows that it runs.
struct Scale {
    writers: [usize; 2],
    live: [usize; 3],
    rounds: usize,
    round: Duration,
}

const FULL: Scale =
    Scale { writers: [1_000, 10_000], live: [1, 1_000, 10_000], rounds: 7, round: Duration::from_millis(200) };
const SHORT: Scale = Scale { writers: [10, 20], live: [1, 5, 10], rounds: 1, round: Duration::from_millis(1) };

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale = if arguments.iter().any(|argument| argument == "--test") { SHORT } else { FULL };
    let parts: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("cargo bench --bench decisions -- {}  ({cores} cores)", parts.join(" "));
    if wanted("decision") {
        decision(&scale);
    }
    if wanted("blocks") {
        blocks(&scale);
    }
    if wanted("registering") {
        registering(&scale);
    }
    if wanted("memory") && !memory() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

// ---- writers -------------------------------------------------------------------------------------------------------

struct Writer {
    arena: ArenaHandle,
    reporter: Reporter,
}

/// When an arena that is asked spills.
#[derive(Clone, Copy, PartialEq)]
enum Honour {
    AtOnce,
    AtItsTurn,
}

/// Arenas that were asked and have not spilled.
#[derive(Default)]
struct Queue {
    any: AtomicBool,
    asked: Mutex<Vec<usize>>,
}

struct Ask {
    index: usize,
    queue: Arc<Queue>,
}

impl Wake for Ask {
    fn wake(self: Arc<Self>) {
        self.queue.asked.lock().expect("nobody panics with it").push(self.index);
        self.queue.any.store(true, Relaxed);
    }
}

struct Build {
    limiter: GlobalMemoryLimiter,
    signals: Arc<ScriptedSignals>,
    writers: Vec<Writer>,
    queue: Arc<Queue>,
    next: usize,
    blocks: usize,
    spills: usize,
}

impl Build {
    /// Writers with arenas of some size each, in no order, and no pressure.
    fn new(writers: usize, arena_blocks: impl Fn(usize) -> usize, persistent_bytes: usize) -> Self {
        let signals = Arc::new(ScriptedSignals::new());
        let limiter = GlobalMemoryLimiter::builder()
            .budget_bytes(1 << 50)
            .floor_bytes(FLOOR)
            .block_bytes(BLOCK)
            .signals(Arc::clone(&signals))
            .build()
            .expect("a valid configuration");
        let writers = (0..writers)
            .map(|n| {
                let reporter = limiter.reporter(NAME);
                reporter.charge(persistent_bytes);
                let mut arena = reporter.arena("postings");
                arena.set_bytes(&reporter, arena_blocks(n.wrapping_mul(7_919)) * BLOCK);
                Writer { arena, reporter }
            })
            .collect();
        Build { limiter, signals, writers, queue: Arc::default(), next: 0, blocks: 0, spills: 0 }
    }

    /// Has arenas wake whoever drains the queue.
    fn wake(&self) {
        for (index, writer) in self.writers.iter().enumerate() {
            writer.arena.set_waker(Some(Waker::from(Arc::new(Ask { index, queue: Arc::clone(&self.queue) }))));
        }
    }

    fn set_budget(&self, bytes: usize) {
        self.limiter.set_budget_bytes(bytes).expect("above the floor");
    }

    /// The next writer takes a block, and whoever is to spill spills.
    #[inline(always)]
    fn block(&mut self, honour: impl Fn(&mut Self, usize)) {
        let (turn, Writer { arena, reporter }) = (self.next, &mut self.writers[self.next]);
        arena.set_bytes(reporter, arena.bytes() + BLOCK);
        self.blocks += 1;
        honour(self, turn);
        self.next = if turn + 1 == self.writers.len() { 0 } else { turn + 1 };
    }

    fn spill_if_asked(&mut self, index: usize) {
        let Writer { arena, reporter } = &mut self.writers[index];
        if let Some(spill) = arena.begin_spill(reporter) {
            spill.finish(0);
            self.spills += 1;
        }
    }

    fn honour(&mut self, honour: Honour, turn: usize) {
        match honour {
            Honour::AtItsTurn if self.writers[turn].arena.spill_requested() => self.spill_if_asked(turn),
            Honour::AtItsTurn => {}
            Honour::AtOnce => {
                // A spill's end is a reason to decide, and may ask others.
                while self.queue.any.load(Relaxed) {
                    self.queue.any.store(false, Relaxed);
                    let asked = std::mem::take(&mut *self.queue.asked.lock().expect("nobody panics with it"));
                    asked.into_iter().for_each(|index| self.spill_if_asked(index));
                }
            }
        }
    }

    /// Without a limit: every so many blocks the writer whose turn it is spills.
    fn spill_by_count(&mut self, every: usize, turn: usize) {
        if self.blocks.is_multiple_of(every) {
            let Writer { arena, reporter } = &mut self.writers[turn];
            if let Some(spill) = arena.begin_own_spill(reporter) {
                spill.finish(0);
                self.spills += 1;
            }
        }
    }

    /// Goes on for `time`: nanoseconds a block.
    fn run(&mut self, time: Duration, honour: impl Fn(&mut Self, usize)) -> f64 {
        let (start, before) = (Instant::now(), self.blocks);
        loop {
            for _ in 0..256 {
                self.block(&honour);
            }
            let passed = start.elapsed();
            if passed >= time {
                return passed.as_nanos() as f64 / (self.blocks - before) as f64;
            }
        }
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        // Nothing has to be decided while they leave.
        self.signals.set(Pressure::default());
        self.limiter.set_unlimited();
        for Writer { arena, reporter } in &mut self.writers {
            arena.set_bytes(reporter, 0);
            reporter.release(reporter.held_bytes());
        }
    }
}

// ---- one decision --------------------------------------------------------------------------------------------------

fn decision(scale: &Scale) {
    println!("\none decision, every writer with an arena at or above the floor; target 5 ms");
    for writers in scale.writers {
        let mut build = Build::new(writers, |n| FLOOR / BLOCK + n % (2 * MEAN_BLOCKS), 0);
        let (mut quiet, mut asking, mut call) = (Figures::default(), Figures::default(), Figures::default());
        let mut victims = 0;
        for _ in 0..scale.rounds {
            let poll = |limiter: &GlobalMemoryLimiter| {
                let before = limiter.stats();
                let start = Instant::now();
                limiter.poll();
                let passed = start.elapsed().as_nanos() as f64;
                let after = limiter.stats();
                (passed, passed / (after.decisions - before.decisions) as f64, after.requests - before.requests)
            };
            quiet.push(poll(&build.limiter).1);
            build.signals.set(Pressure::new(writers * BLOCK / 2, 0));
            let (passed, one, asked) = poll(&build.limiter);
            asking.push(one);
            call.push(passed);
            victims = asked;
            // As before: every arena has its old size and none is asked.
            build.signals.set(Pressure::default());
            for Writer { arena, reporter } in &mut build.writers {
                if let Some(spill) = arena.begin_spill(reporter) {
                    let bytes = spill.bytes();
                    spill.finish(bytes);
                }
            }
            build.limiter.poll();
        }
        println!("{writers:>7} writers, no pressure:                 {}", quiet.text(nanos));
        println!("{writers:>7} writers, {victims:>4} asked, one look:          {}", asking.text(nanos));
        println!("{writers:>7} writers, {victims:>4} asked, until it is settled: {}", call.text(nanos));
    }
}

// ---- living under pressure -----------------------------------------------------------------------------------------

#[derive(Clone, Copy)]
enum Situation {
    Budget,
    Signal,
    Shortfall,
}

impl Situation {
    fn name(self) -> &'static str {
        match self {
            Situation::Budget => "budget",
            Situation::Signal => "signal",
            Situation::Shortfall => "shortfall",
        }
    }

    fn begin(self, writers: usize, honour: Honour) -> Build {
        let build = match self {
            Situation::Budget | Situation::Signal => Build::new(writers, |n| n % (2 * MEAN_BLOCKS), 0),
            Situation::Shortfall => Build::new(writers, |n| n % (FLOOR / BLOCK), MIB),
        };
        if honour == Honour::AtOnce {
            build.wake();
        }
        match self {
            Situation::Budget => build.set_budget(build.limiter.held_bytes()),
            Situation::Signal => build.signals.set(Pressure::new(SIGNAL, 0)),
            Situation::Shortfall => build.set_budget(writers * MIB / 2),
        }
        build
    }
}

fn blocks(scale: &Scale) {
    println!("\na block of 32 KiB under lasting pressure, floor 1 MiB; target 200 ns more than without a limit");
    println!(
        "{:>7}  {:10} {:12} {:32} {:28} {:>8} {:>8}",
        "writers", "situation", "spills", "a block", "without a limit", "spills", "walks"
    );
    for writers in scale.writers {
        for situation in [Situation::Budget, Situation::Signal, Situation::Shortfall] {
            for honour in [Honour::AtOnce, Honour::AtItsTurn] {
                lasting(scale, writers, situation, honour);
            }
        }
    }
    println!("the last two columns: for 1,000 blocks, in the loop with a limit; a walk looks at every writer");
}

fn lasting(scale: &Scale, writers: usize, situation: Situation, honour: Honour) {
    let mut limited = situation.begin(writers, honour);
    let honours = |build: &mut Build, turn: usize| build.honour(honour, turn);
    // Until everybody has had a turn, so that it is as it will stay; but not for ever.
    for _ in 0..10 {
        limited.run(scale.round, honours);
        if limited.blocks > 2 * writers {
            break;
        }
    }
    let (mut with, mut without) = (Figures::default(), Figures::default());
    let mut free = Build::new(writers, |n| n % (2 * MEAN_BLOCKS), 0);
    free.limiter.set_unlimited();
    (limited.blocks, limited.spills) = (0, 0);
    let walks = limited.limiter.stats().walks;
    for _ in 0..scale.rounds {
        with.push(limited.run(scale.round, honours));
        let every = limited.blocks.checked_div(limited.spills).unwrap_or(usize::MAX).max(1);
        without.push(free.run(scale.round, |build, turn| build.spill_by_count(every, turn)));
    }
    let walks = (limited.limiter.stats().walks - walks) as usize;
    let honour = if honour == Honour::AtOnce { "at once" } else { "at its turn" };
    let in_thousand = |count: usize| format!("{:.2}", 1e3 * count as f64 / limited.blocks as f64);
    println!(
        "{writers:>7}  {:10} {honour:12} {:32} {:28} {:>8} {:>8}",
        situation.name(),
        with.text(nanos),
        without.text(nanos),
        in_thousand(limited.spills),
        in_thousand(walks),
    );
}

// ---- coming and going ----------------------------------------------------------------------------------------------

fn registering(scale: &Scale) {
    println!("\nregistering and dropping a writer; target 1 us");
    let limiter = || {
        GlobalMemoryLimiter::builder().budget_bytes(2 * GIB).floor_bytes(FLOOR).build().expect("a valid configuration")
    };
    let with_arena = |limiter: &GlobalMemoryLimiter| {
        let reporter = limiter.reporter(NAME);
        (reporter.arena("postings"), reporter)
    };
    for live in scale.live {
        let limiter = limiter();
        let others: Vec<_> = (0..live).map(|_| with_arena(&limiter)).collect();
        let mut alone = Figures::default();
        let mut both = Figures::default();
        for _ in 0..scale.rounds {
            alone.push(times(10_000, || drop(black_box(limiter.reporter(NAME)))));
            both.push(times(10_000, || drop(black_box(with_arena(&limiter)))));
        }
        println!("{live:>7} live, one more and gone, reporter alone: {}", alone.text(nanos));
        println!("{live:>7} live, one more and gone, with an arena:  {}", both.text(nanos));
        drop(others);
    }
    for live in scale.live {
        let limiter = limiter();
        let mut alone = Figures::default();
        let mut both = Figures::default();
        let (mut reporters, mut pairs) = (Vec::with_capacity(live), Vec::with_capacity(live));
        for _ in 0..scale.rounds {
            let start = Instant::now();
            reporters.extend((0..live).map(|_| limiter.reporter(NAME)));
            reporters.clear();
            alone.push(start.elapsed().as_nanos() as f64 / live as f64);
            let start = Instant::now();
            pairs.extend((0..live).map(|_| with_arena(&limiter)));
            pairs.clear();
            both.push(start.elapsed().as_nanos() as f64 / live as f64);
        }
        println!("{live:>7} come and go, a writer, reporter alone:   {}", alone.text(nanos));
        println!("{live:>7} come and go, a writer, with an arena:    {}", both.text(nanos));
    }
}

fn times(count: usize, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| run());
    start.elapsed().as_nanos() as f64 / count as f64
}

// ---- memory --------------------------------------------------------------------------------------------------------

const TARGET_BYTES: usize = 256;

/// Bytes that a reporter and an arena take from the allocator, their share of the lists included. True if both are within
/// the target.
fn memory() -> bool {
    const MANY: usize = 1_024;
    println!("\nmemory that a writer takes, names of {} bytes; target {TARGET_BYTES} B each", NAME.len());
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(2 * GIB).build().expect("a valid configuration");
    let mut reporters = Vec::with_capacity(2 * MANY + 1);
    let mut arenas = Vec::with_capacity(2 * MANY + 1);
    // Lists and rooms as they are with many; the lists double once in what is counted.
    reporters.extend((0..MANY / 2 + 1).map(|_| limiter.reporter(NAME)));
    arenas.extend(reporters.iter().map(|reporter| reporter.arena(NAME)));
    let reporter_parts = allocations(|| reporters.push(limiter.reporter(NAME)));
    let arena_parts = allocations(|| arenas.push(reporters[0].arena(NAME)));
    let reporter_bytes = counted(|| reporters.extend((0..MANY).map(|_| limiter.reporter(NAME)))) / MANY;
    let arena_bytes = counted(|| arenas.extend(reporters[..MANY].iter().map(|reporter| reporter.arena(NAME)))) / MANY;
    let in_hand = |bytes: usize| format!("{bytes} B in hand");
    let mut within = true;
    for (what, bytes, parts, hand) in [
        ("reporter", reporter_bytes, reporter_parts, in_hand(size_of::<Reporter>())),
        ("arena", arena_bytes, arena_parts, in_hand(size_of::<ArenaHandle>())),
    ] {
        println!("{what:>9}: {bytes} B, and {hand}{}", if bytes > TARGET_BYTES { "  ABOVE" } else { "" });
        println!("           {parts}");
        within &= bytes <= TARGET_BYTES;
    }
    within
}

/// Counts what is live, while it is told to; asked-for sizes, without the allocator's own.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Sizes and alignments of the first allocations.
static SEEN: AtomicUsize = AtomicUsize::new(0);
static LAYOUTS: [(AtomicUsize, AtomicUsize); 16] = [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 16];

// SAFETY: everything is the system allocator's; counting touches none of it and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.load(Relaxed) {
            LIVE.fetch_add(layout.size(), Relaxed);
            if let Some((size, align)) = LAYOUTS.get(SEEN.fetch_add(1, Relaxed)) {
                size.store(layout.size(), Relaxed);
                align.store(layout.align(), Relaxed);
            }
        }
        // SAFETY: the caller's promise about the layout is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if COUNTS.load(Relaxed) {
            LIVE.fetch_sub(layout.size(), Relaxed);
        }
        // SAFETY: the caller's promise that it came from here, which is the system allocator, is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// By how many bytes `run` raises what is live.
fn counted(run: impl FnOnce()) -> usize {
    LIVE.store(0, Relaxed);
    COUNTS.store(true, Relaxed);
    run();
    COUNTS.store(false, Relaxed);
    LIVE.load(Relaxed)
}

/// The allocations of `run`, for people.
fn allocations(run: impl FnOnce()) -> String {
    SEEN.store(0, Relaxed);
    counted(run);
    let layouts = LAYOUTS[..SEEN.load(Relaxed).min(LAYOUTS.len())].iter();
    let texts: Vec<String> =
        layouts.map(|(size, align)| format!("{} B (aligned to {})", size.load(Relaxed), align.load(Relaxed))).collect();
    format!("{}; and a place in a list, 8 B", texts.join(" + "))
}
