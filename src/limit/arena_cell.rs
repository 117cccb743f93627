//! What the limiter keeps of an arena: its block-backed bytes, and one word that says whether a spill is asked for.
//!
//! ```text
//!  63        62       61 ............ 40  39 .............. 0
//! | requested | running |   generation   |  bytes in flight  |
//! ```
//!
//! Both bits clear is idle, both set is gone. The decider changes idle to requested, by compare-exchange; everything else
//! is the owner's. The generation goes up whenever the word becomes idle again, so that a request made from an old look at
//! the arena misses. Bytes in flight are what the request, or the running spill, is expected to free: there is no sum of
//! them beside the words, so none can drift.
//!
//! Owner's finish: held down, arena down (Release), **then** the word (Release), then notify. Decider: words first
//! (Acquire), then arenas (Acquire), then cells. So whoever still sees the word in flight may see the arena already down
//! and counts it as covering less; whoever sees it idle sees the arena and what is held down as well.

use super::cell::Cell;
use super::registry::Member;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, mutant};
use crate::telemetry::OwnCount;
use std::sync::Arc;
use std::task::Waker;

/// The owner is asked to spill.
const REQUESTED: u64 = 1 << 63;
/// The owner is spilling.
const RUNNING: u64 = 1 << 62;
/// The arena has left.
const GONE: u64 = REQUESTED | RUNNING;
const BYTES_BITS: u32 = 40;
/// The most that a word can say is in flight; a larger arena counts as this much.
const BYTES: u64 = (1 << BYTES_BITS) - 1;
const ONE_GENERATION: u64 = 1 << BYTES_BITS;
const GENERATION: u64 = !(GONE | BYTES);

/// A word, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

/// What a word says of its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Requested,
    Running,
    Gone,
}

impl Word {
    pub(crate) fn state(self) -> State {
        match self.0 & GONE {
            0 => State::Idle,
            REQUESTED => State::Requested,
            RUNNING => State::Running,
            _ => State::Gone,
        }
    }

    /// Bytes asked for or being spilled; 0 if neither.
    pub(crate) fn in_flight_bytes(self) -> usize {
        match self.state() {
            State::Requested | State::Running => usize::try_from(self.0 & BYTES).unwrap_or(usize::MAX),
            State::Idle | State::Gone => 0,
        }
    }

    /// What of an arena of `bytes` this says is on its way out. A request is for all that the owner has when it begins; a
    /// spill that runs is for what it began with. No more than there still is: what the owner has freed already is down in
    /// the cells too.
    pub(crate) fn covers_bytes(self, bytes: usize) -> usize {
        match self.state() {
            State::Requested => bytes,
            State::Running | State::Idle | State::Gone => self.in_flight_bytes().min(bytes),
        }
    }

    fn asked(self, bytes: usize) -> u64 {
        REQUESTED | (self.0 & GENERATION) | in_flight(bytes)
    }
}

fn in_flight(bytes: usize) -> u64 {
    (bytes as u64).min(BYTES)
}

/// See the module.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ArenaCell {
    word: AtomicU64,
    bytes: AtomicUsize,
    /// The owner's copy of the word's generation, in place: the owner never has to read the word for it.
    generation: AtomicU64,
    /// Not asked to spill before so many milliseconds of the limiter's life, after a spill failed.
    exempt_until_ms: AtomicU64,
    /// Spills that finished: the runs that the arena has so far.
    runs: AtomicU64,
    /// Changes of its block size that the limiter was told of.
    pub(crate) notifications: OwnCount,
    slot: AtomicUsize,
    pub(crate) id: u64,
    pub(crate) max_bytes: usize,
    pub(crate) name: Box<str>,
    /// The writer whose total the bytes are part of; changes only when a caller mixes up reporters.
    pub(crate) owner: Mutex<Arc<Cell>>,
    /// Shared, so that a copy can be taken under the lock without running the waker's own code.
    pub(crate) waker: Mutex<Option<Arc<Waker>>>,
}

impl ArenaCell {
    pub(crate) fn new(id: u64, name: &str, owner: Arc<Cell>, max_bytes: usize) -> Self {
        ArenaCell {
            word: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
            exempt_until_ms: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            notifications: OwnCount::default(),
            slot: AtomicUsize::new(0),
            id,
            max_bytes,
            name: name.into(),
            owner: Mutex::new(owner),
            waker: Mutex::new(None),
        }
    }

    /// `writer/arena`, for people.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner.lock().name, self.name)
    }

    /// Relaxed: advisory. The owner that acts on it swaps the word, which orders it.
    #[inline(always)]
    pub(crate) fn spill_requested(&self) -> bool {
        (self.word.load(Ordering::Relaxed) as i64) < 0
    }

    pub(crate) fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Owner: the block-backed size.
    pub(crate) fn set_bytes(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Release);
    }

    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// A spill has failed once.
    pub(crate) fn was_exempt(&self) -> bool {
        self.exempt_until_ms.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn exempt(&self, now_ms: u64) -> bool {
        self.exempt_until_ms.load(Ordering::Relaxed) > now_ms
    }

    /// Decider (or the owner itself, at the end of its address space): asks for a spill, unless the word has moved on.
    pub(crate) fn request(&self, seen: Word, bytes: usize) -> bool {
        // AcqRel: the owner that sees the request sees why; a failure means that the owner acted first and will notify.
        self.word.compare_exchange(seen.0, seen.asked(bytes), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Owner: starts a spill of all it has. Answers whether it was asked for.
    pub(crate) fn begin(&self) -> bool {
        let generation = self.generation.load(Ordering::Relaxed);
        let running = RUNNING | generation | in_flight(self.bytes.load(Ordering::Relaxed));
        // AcqRel: sees why it was asked; a decider that sees it running sees the arena it runs on.
        Word(self.word.swap(running, Ordering::AcqRel)).state() == State::Requested
    }

    /// Owner: a spill is over and the arena's bytes say so already. Idle again.
    pub(crate) fn finish(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.idle();
    }

    /// Owner: a spill failed. Idle again, and not asked for `pause_ms` from now on.
    pub(crate) fn abort(&self, now_ms: u64, pause_ms: u64) {
        if pause_ms > 0 {
            self.exempt_until_ms.store(now_ms.saturating_add(pause_ms), Ordering::Relaxed);
        }
        self.idle();
    }

    /// Idle, one generation on (they wrap after four million spills between two looks of one decider).
    fn idle(&self) {
        let mut generation = self.generation.load(Ordering::Relaxed);
        if !mutant("no_generation") {
            generation = generation.wrapping_add(ONE_GENERATION) & GENERATION;
        }
        self.generation.store(generation, Ordering::Relaxed);
        // Release: who sees it idle sees what the spill freed, here and in the account.
        let order = if mutant("finish_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.word.store(generation, order);
    }

    /// Owner: leaves.
    pub(crate) fn leave(&self) {
        self.set_bytes(0);
        self.word.swap(GONE, Ordering::AcqRel);
    }
}

impl Member for ArenaCell {
    fn slot(&self) -> &AtomicUsize {
        &self.slot
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_state_generation_and_bytes_apart() {
        let idle = Word(7 * ONE_GENERATION);
        let requested = Word(idle.asked(5));
        assert_eq!((requested.state(), requested.in_flight_bytes()), (State::Requested, 5));
        assert_eq!(requested.0 & GENERATION, idle.0, "a request keeps the generation");
        let running = Word(RUNNING | idle.0 | in_flight(usize::MAX));
        assert_eq!((running.state(), running.in_flight_bytes()), (State::Running, BYTES as usize));
        assert_eq!((Word(GONE | 3).state(), Word(GONE | 3).in_flight_bytes()), (State::Gone, 0));
    }

    #[test]
    fn a_spill_that_ends_is_idle_in_the_next_generation_and_generations_wrap() {
        let core = crate::GlobalMemoryLimiter::builder().unlimited().build().unwrap();
        let reporter = core.reporter("writer");
        let arena = ArenaCell::new(1, "arena", Arc::clone(&reporter.handle.0), 100);
        arena.set_bytes(9);
        let seen = arena.word();
        assert!(arena.request(seen, 9) && arena.spill_requested());
        assert!(arena.begin() && !arena.spill_requested());
        assert_eq!(arena.word().in_flight_bytes(), 9);
        arena.finish();
        assert_eq!(arena.word(), Word(ONE_GENERATION));
        assert!(!arena.request(seen, 9), "a request from an old look misses");
        arena.generation.store(GENERATION, Ordering::Relaxed);
        assert!(!arena.begin());
        arena.abort(3, 4);
        assert_eq!(arena.word(), Word(0), "generations wrap without touching the flags");
        assert_eq!((arena.exempt(6), arena.exempt(7), arena.runs()), (true, false, 1));
    }
}
