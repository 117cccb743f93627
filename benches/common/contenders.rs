//! Who can count a term's five changes: plimsoll in its forms, nothing, and what else there is to compare with.
//!
//! A term is one change of the arena's bytes, three growths and one release of an encoder's reservation. The arena goes up
//! in one term and down in the next, so that a run may be as long as it likes.

use plimsoll::{ArenaHandle, GIB, GlobalMemoryLimiter, KIB, MIB, Reporter, Reservation, SharedReporter};
use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{
    AtomicI64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};
use std::sync::{Arc, Mutex};

/// Changes of one term.
pub(crate) const CHANGES: usize = 5;

/// One thread's way to count.
pub(crate) trait Contender: Send {
    fn arena_up(&mut self, bytes: usize);
    fn arena_down(&mut self, bytes: usize);
    /// One growth of the encoder's reservation.
    fn grow(&mut self, bytes: usize);
    /// The release of the three growths of `bytes` each.
    fn release(&mut self, bytes: usize);
    /// Is called once before a loop, so that two loops which do the same are not compiled into one.
    fn begin(&mut self) {}

    #[inline(always)]
    fn term(&mut self, up: bool, bytes: usize) {
        if up {
            self.arena_up(bytes)
        } else {
            self.arena_down(bytes)
        }
        for _ in 0..3 {
            // Every change by itself, as it would be with other code between: sums must not stay in a register.
            compiler_fence(SeqCst);
            self.grow(bytes);
        }
        compiler_fence(SeqCst);
        self.release(bytes);
        compiler_fence(SeqCst);
    }
}

/// Terms and nothing else: an even number of them.
#[inline(never)]
pub(crate) fn terms<C: Contender>(contender: &mut C, times: u64) {
    contender.begin();
    for time in 0..times {
        let bytes = black_box((time.wrapping_mul(37) & 63) as usize);
        contender.term(true, bytes);
        contender.term(false, bytes);
    }
}

// ---- nothing -------------------------------------------------------------------------------------------------------

/// No accounting. `COPY` makes several of the same, to show the noise.
pub(crate) struct Nothing<const COPY: u8>;

impl<const COPY: u8> Contender for Nothing<COPY> {
    #[inline(always)]
    fn arena_up(&mut self, _: usize) {}
    #[inline(always)]
    fn arena_down(&mut self, _: usize) {}
    #[inline(always)]
    fn grow(&mut self, _: usize) {}
    #[inline(always)]
    fn release(&mut self, _: usize) {}
    fn begin(&mut self) {
        black_box(COPY);
    }
}

// ---- plimsoll ------------------------------------------------------------------------------------------------------

/// A limiter with a budget, a hard limit and a cap, none of which is near.
pub(crate) fn limiter() -> GlobalMemoryLimiter {
    GlobalMemoryLimiter::builder()
        .budget_bytes(4 * GIB)
        .hard_limit_bytes(6 * GIB)
        .writer_cap_bytes(512 * MIB)
        .build()
        .expect("the configuration is valid")
}

/// A reporter and a reservation; the arena's bytes by charge and release.
pub(crate) struct Plimsoll {
    encoder: Reservation,
    reporter: Reporter,
}

impl Plimsoll {
    pub(crate) fn new(limiter: &GlobalMemoryLimiter) -> Self {
        let reporter = limiter.reporter("writer");
        let encoder = reporter.reserve(64 * KIB);
        reporter.flush();
        Plimsoll { encoder, reporter }
    }
}

impl Contender for Plimsoll {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.reporter.charge(bytes);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.reporter.release(bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.encoder.grow(&self.reporter, bytes);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.encoder.shrink(&self.reporter, 3 * bytes);
    }
}

/// The same with calls that may be refused.
pub(crate) struct PlimsollTry(pub(crate) Plimsoll);

impl Contender for PlimsollTry {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.0.reporter.try_charge(bytes).expect("there is room");
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.0.reporter.release(bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.0.encoder.try_grow(&self.0.reporter, bytes).expect("there is room");
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.0.encoder.shrink(&self.0.reporter, 3 * bytes);
    }
}

/// The arena as an arena, which only grows: the limiter hears of each block of 32 KiB, and at 2 MiB the writer spills.
pub(crate) struct PlimsollBlocks {
    writer: Plimsoll,
    arena: ArenaHandle,
    used: usize,
}

const BLOCK: usize = 32 * KIB;

impl PlimsollBlocks {
    pub(crate) fn new(limiter: &GlobalMemoryLimiter) -> Self {
        let writer = Plimsoll::new(limiter);
        PlimsollBlocks { arena: writer.reporter.arena("postings"), writer, used: 0 }
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        self.used = 0;
        self.arena.begin_own_spill(&self.writer.reporter).expect("it holds something").finish(0);
    }
}

impl Contender for PlimsollBlocks {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.used += bytes;
        self.arena.set_bytes(&self.writer.reporter, self.used.next_multiple_of(BLOCK));
        if self.used > 2 * MIB {
            self.spill();
        }
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.arena_up(bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.writer.grow(bytes);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.writer.release(bytes);
    }
}

/// The form for several threads.
pub(crate) struct Shared {
    encoder: Reservation,
    account: SharedReporter,
}

impl Shared {
    pub(crate) fn new(account: SharedReporter) -> Self {
        let encoder = account.reserve(64 * KIB);
        account.flush();
        Shared { encoder, account }
    }
}

impl Contender for Shared {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.account.charge(bytes);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.account.release(bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.encoder.grow(&self.account, bytes);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.encoder.shrink(&self.account, 3 * bytes);
    }
}

// ---- the reference -------------------------------------------------------------------------------------------------

/// The reference before its change: a lock and a look-up for the arena, two shared atomics for each change of a
/// reservation.
#[derive(Default)]
pub(crate) struct Totals {
    writers: Mutex<HashMap<usize, usize>>,
    build: AtomicUsize,
    process: AtomicUsize,
}

pub(crate) struct Before {
    totals: Arc<Totals>,
    writer: usize,
    arena: usize,
}

impl Before {
    pub(crate) fn new(totals: &Arc<Totals>, writer: usize) -> Self {
        Before { totals: Arc::clone(totals), writer, arena: MIB }
    }

    #[inline(always)]
    fn tell(&mut self, arena: usize) {
        self.arena = arena;
        *self.totals.writers.lock().expect("nobody panics with it").entry(self.writer).or_default() = arena;
    }
}

impl Contender for Before {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.tell(self.arena + bytes);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.tell(self.arena - bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.totals.build.fetch_add(bytes, Relaxed);
        self.totals.process.fetch_add(bytes, Relaxed);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.totals.build.fetch_sub(3 * bytes, Relaxed);
        self.totals.process.fetch_sub(3 * bytes, Relaxed);
    }
}

/// The reference after it: a total a writer by compare-exchange, and a difference that is published at 1 MiB.
#[repr(align(128))]
pub(crate) struct After {
    total: AtomicI64,
    behind: AtomicI64,
    published: Arc<AtomicI64>,
}

impl After {
    pub(crate) fn new(published: &Arc<AtomicI64>) -> Box<Self> {
        Box::new(After { total: AtomicI64::new(0), behind: AtomicI64::new(0), published: Arc::clone(published) })
    }

    #[inline(always)]
    fn change(&self, bytes: i64) {
        let mut total = self.total.load(Relaxed);
        while let Err(seen) = self.total.compare_exchange_weak(total, total + bytes, Relaxed, Relaxed) {
            total = seen;
        }
        let behind = self.behind.fetch_add(bytes, Relaxed) + bytes;
        if behind.unsigned_abs() as usize >= MIB {
            self.published.fetch_add(self.behind.swap(0, Relaxed), Relaxed);
        }
    }
}

impl Contender for Box<After> {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.change(bytes as i64);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.change(-(bytes as i64));
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.change(bytes as i64);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.change(-3 * bytes as i64);
    }
}

// ---- the usual ways ------------------------------------------------------------------------------------------------

/// Somebody who has one way to change a sum, up and down.
pub(crate) trait Sum: Send {
    fn change(&mut self, bytes: isize);
}

/// Counts all five changes in one sum.
pub(crate) struct InOneSum<S>(pub(crate) S);

impl<S: Sum> Contender for InOneSum<S> {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.0.change(bytes as isize);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.0.change(-(bytes as isize));
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.0.change(bytes as isize);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.0.change(-3 * bytes as isize);
    }
}

/// One atomic that all threads add to.
impl Sum for Arc<AtomicI64> {
    #[inline(always)]
    fn change(&mut self, bytes: isize) {
        self.fetch_add(bytes as i64, Relaxed);
    }
}

/// One sum under a mutex.
impl Sum for Arc<Mutex<i64>> {
    #[inline(always)]
    fn change(&mut self, bytes: isize) {
        *self.lock().expect("nobody panics with it") += bytes as i64;
    }
}

/// A buffer of 4 MiB in thread-local memory before one atomic, as some databases have it.
pub(crate) struct ThreadLocal(pub(crate) Arc<AtomicI64>);

thread_local! {
    static BUFFER: Cell<i64> = const { Cell::new(0) };
}

impl Sum for ThreadLocal {
    #[inline(always)]
    fn change(&mut self, bytes: isize) {
        BUFFER.with(|buffer| {
            let held = buffer.get() + bytes as i64;
            if held.unsigned_abs() as usize >= 4 * MIB {
                self.0.fetch_add(held, Relaxed);
                buffer.set(0);
            } else {
                buffer.set(held);
            }
        });
    }
}

/// An atomic that only this thread adds to: a locked instruction, and no line that others write.
#[repr(align(128))]
pub(crate) struct OwnAtomic(AtomicI64);

impl OwnAtomic {
    pub(crate) fn new() -> Box<Self> {
        Box::new(OwnAtomic(AtomicI64::new(0)))
    }
}

impl Sum for Box<OwnAtomic> {
    #[inline(always)]
    fn change(&mut self, bytes: isize) {
        self.0.fetch_add(bytes as i64, Relaxed);
    }
}
