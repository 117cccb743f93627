//! B08: what a build says it holds is at least 95 % of what its allocator has live, at every change of either.
//!
//! The accounting of this test is plimsoll's with a look at the allocator at every call: before each allocation, after
//! each release, at every block, before, during and after each spill, and through the merge. So the samples are taken on
//! the thread that allocates, at the moments that matter, and not by a clock. ZSTD's contexts, which C allocates, count as
//! everything else does.
#![expect(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{options, write};
use index_build::accounting::{Account, Batched, Charge, Leased, Meter, Mode, Spilling, Why};
use index_build::build::{Watch, build_with};
use index_build::options::BuildOptions;
use plimsoll::GlobalMemoryLimiter;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that have been asked for and not given back: Rust's by their layout, and C's (ZSTD's contexts) by the C library's
/// own word, where that is glibc.
static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The C allocator is called by Rust's, which counts.
    static IN_RUST: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call of Rust's own allocator.
fn in_rust<T>(call: impl FnOnce() -> T) -> T {
    IN_RUST.set(true);
    let done = call();
    IN_RUST.set(false);
    done
}

struct Counting;

// SAFETY: every call is the system allocator's own, with the same arguments; only sizes are counted besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        in_rust(|| unsafe { System.alloc(layout) })
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        in_rust(|| unsafe { System.alloc_zeroed(layout) })
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        in_rust(|| unsafe { System.dealloc(pointer, layout) });
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        in_rust(|| unsafe { System.realloc(pointer, layout, size) })
    }
}

/// The C library's allocator under its own names, so that what ZSTD takes is seen as well.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod c {
    use super::{IN_RUST, LIVE};
    use std::ffi::c_void;
    use std::sync::atomic::Ordering;

    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
        fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        fn __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
        fn __libc_free(pointer: *mut c_void);
        fn malloc_usable_size(pointer: *mut c_void) -> usize;
    }

    fn usable(pointer: *mut c_void) -> usize {
        // SAFETY: the pointer is null or one that the C library has just given, or is about to take back.
        if IN_RUST.get() { 0 } else { unsafe { malloc_usable_size(pointer) } }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { __libc_malloc(size) };
        LIVE.fetch_add(usable(pointer), Ordering::Relaxed);
        pointer
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { __libc_calloc(count, size) };
        LIVE.fetch_add(usable(pointer), Ordering::Relaxed);
        pointer
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
        let before = usable(pointer);
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { __libc_realloc(pointer, size) };
        LIVE.fetch_add(usable(pointer), Ordering::Relaxed);
        LIVE.fetch_sub(before, Ordering::Relaxed);
        pointer
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn free(pointer: *mut c_void) {
        LIVE.fetch_sub(usable(pointer), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { __libc_free(pointer) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Compares what is held with what is live.
#[derive(Debug)]
struct Look {
    limiter: GlobalMemoryLimiter,
    at_start: usize,
    threads: usize,
    samples: AtomicUsize,
    /// of the samples with at least 1 MiB: the smallest share, in thousandths
    least: AtomicUsize,
    most_live: AtomicUsize,
    spills: AtomicUsize,
}

impl Look {
    fn sample(&self) {
        // other threads free and say so between two looks: only what stays so counts, and the smaller figure of two
        for look in (0..20).rev() {
            let live = LIVE.load(Ordering::Relaxed).saturating_sub(self.at_start);
            let held = self.limiter.held_bytes();
            let live = live.min(LIVE.load(Ordering::Relaxed).saturating_sub(self.at_start));
            if live < 1 << 20 && held < 1 << 20 {
                return;
            }
            let share = held * 1000 / live.max(1);
            if share < 950 && look > 0 && self.threads > 1 {
                std::thread::yield_now();
                continue;
            }
            self.samples.fetch_add(1, Ordering::Relaxed);
            self.most_live.fetch_max(live, Ordering::Relaxed);
            if self.least.fetch_min(share, Ordering::Relaxed) > share && share < 950 {
                let trace = std::backtrace::Backtrace::force_capture();
                panic!("{held} bytes held, {live} live\n{}\n{trace}", self.limiter.snapshot());
            }
            return;
        }
    }
}

/// A spill under way.
struct Sampled<T> {
    inner: T,
    look: Arc<Look>,
    terms: u32,
}

impl<A: Account> Charge for Sampled<A> {
    fn charge(&mut self, bytes: usize) {
        self.look.sample();
        self.inner.charge(bytes);
        self.look.sample();
    }
    fn release(&mut self, bytes: usize) {
        self.look.sample();
        self.inner.release(bytes);
        self.look.sample();
    }
}

impl<A: Account> Account for Sampled<A> {
    fn term_begins(&mut self) {
        self.inner.term_begins();
        self.terms += 1;
        if self.terms.is_multiple_of(64) {
            self.look.sample();
        }
    }
    fn term_ends(&mut self) {
        self.inner.term_ends();
    }
}

impl<S: Spilling> Spilling for Sampled<S> {
    fn finish_inside(self) {
        self.inner.finish_inside();
    }
    fn finish(self) {
        self.look.sample();
        self.inner.finish();
        self.look.sample();
        self.look.spills.fetch_add(1, Ordering::Relaxed);
    }
}

/// An account, or a meter, which has one of its own to lend out for each call.
enum Inner<I: Mode> {
    Account(I::Account),
    Meter(I::Meter),
}

struct SampledMeter<I: Mode> {
    inner: Inner<I>,
    look: Arc<Look>,
}

/// A call of the account's, with a look before and after it.
macro_rules! looking {
    ($self:ident, $account:ident => $call:expr) => {{
        $self.look.sample();
        let said = match &mut $self.inner {
            Inner::Account($account) => $call,
            Inner::Meter(meter) => {
                let $account = meter.account();
                $call
            }
        };
        $self.look.sample();
        said
    }};
}

impl<I: Mode> SampledMeter<I> {
    fn meter(&mut self) -> &mut I::Meter {
        match &mut self.inner {
            Inner::Meter(meter) => meter,
            Inner::Account(_) => panic!("an account is no meter"),
        }
    }
}

impl<I: Mode> Charge for SampledMeter<I> {
    fn charge(&mut self, bytes: usize) {
        looking!(self, account => account.charge(bytes));
    }
    fn release(&mut self, bytes: usize) {
        looking!(self, account => account.release(bytes));
    }
}

impl<I: Mode> Account for SampledMeter<I> {
    const HARD: bool = I::HARD;

    fn term_begins(&mut self) {
        match &mut self.inner {
            Inner::Account(account) => account.term_begins(),
            Inner::Meter(meter) => meter.account().term_begins(),
        }
    }
    fn term_ends(&mut self) {
        match &mut self.inner {
            Inner::Account(account) => account.term_ends(),
            Inner::Meter(meter) => meter.account().term_ends(),
        }
    }
    fn room(&mut self, bytes: usize) -> bool {
        looking!(self, account => account.room(bytes))
    }
    fn keep(&mut self, bytes: usize) -> bool {
        looking!(self, account => account.keep(bytes))
    }
    fn trim(&mut self, bytes: usize) {
        looking!(self, account => account.trim(bytes));
    }
    fn bound(&mut self, bytes: usize) {
        looking!(self, account => account.bound(bytes));
    }
    fn charged_bytes(&self) -> usize {
        match &self.inner {
            Inner::Account(account) => account.charged_bytes(),
            Inner::Meter(_) => panic!("only an account is asked"),
        }
    }
}

impl<I: Mode> Meter for SampledMeter<I> {
    type Account = SampledMeter<I>;
    type Spilling<'a>
        = Sampled<<I::Meter as Meter>::Spilling<'a>>
    where
        Self: 'a;

    fn account(&mut self) -> &mut SampledMeter<I> {
        self
    }
    fn set_arena(&mut self, bytes: usize) {
        self.look.sample();
        self.meter().set_arena(bytes);
        self.look.sample();
    }
    fn new_term(&mut self) {}
    fn spill_requested(&self) -> bool {
        matches!(&self.inner, Inner::Meter(meter) if meter.spill_requested())
    }
    fn begin_spill(&mut self, why: Why) -> Option<Self::Spilling<'_>> {
        self.look.sample();
        let look = Arc::clone(&self.look);
        Some(Sampled { inner: self.meter().begin_spill(why)?, look, terms: 0 })
    }
    fn lease(&mut self, bytes: usize) -> bool {
        self.meter().lease(bytes)
    }
    fn trim_lease(&mut self, bytes: usize) {
        self.meter().trim_lease(bytes);
        self.look.sample();
    }
    fn leased_bytes(&self) -> usize {
        match &self.inner {
            Inner::Meter(meter) => meter.leased_bytes(),
            Inner::Account(_) => 0,
        }
    }
}

struct SampledMode<I> {
    inner: I,
    look: Arc<Look>,
}

impl<I: Mode> Mode for SampledMode<I> {
    const HARD: bool = I::HARD;
    type Account = SampledMeter<I>;
    type Meter = SampledMeter<I>;

    fn account(&self, name: &str) -> Self::Account {
        SampledMeter { inner: Inner::Account(self.inner.account(name)), look: Arc::clone(&self.look) }
    }
    fn meter(&self, name: &str, batch: &Self::Account) -> Self::Meter {
        let Inner::Account(batch) = &batch.inner else { panic!("a batch has an account") };
        SampledMeter { inner: Inner::Meter(self.inner.meter(name, batch)), look: Arc::clone(&self.look) }
    }
    fn held_bytes(&self) -> usize {
        self.inner.held_bytes()
    }
    fn free_bytes(&self) -> usize {
        self.inner.free_bytes()
    }
    fn holders(&self) -> String {
        self.inner.holders()
    }
}

/// Builds under the sampling account and says what was seen.
fn sampled(options: &BuildOptions) -> Arc<Look> {
    let mut builder = GlobalMemoryLimiter::builder().block_bytes(options.block_bytes);
    if let Some(budget) = options.budget_bytes {
        builder = builder.budget_bytes(budget).floor_bytes(options.floor_bytes.unwrap_or(budget / 16));
    }
    if let Some(limit) = options.hard_limit_bytes {
        builder = builder.hard_limit_bytes(limit);
    }
    let limiter = builder.build().unwrap();
    let look = Arc::new(Look {
        limiter: limiter.clone(),
        at_start: LIVE.load(Ordering::Relaxed),
        threads: options.threads,
        samples: AtomicUsize::new(0),
        least: AtomicUsize::new(usize::MAX),
        most_live: AtomicUsize::new(0),
        spills: AtomicUsize::new(0),
    });
    let sampled = Arc::clone(&look);
    let built = match options.hard_limit_bytes {
        None => {
            let mode = SampledMode { inner: Batched::new(limiter.clone()), look: sampled };
            build_with(options, &Watch::default(), mode)
        }
        Some(_) => {
            let mode = SampledMode { inner: Leased::new(limiter.clone()), look: sampled };
            build_with(options, &Watch::default(), mode)
        }
    };
    built.unwrap();
    assert_eq!(limiter.stats().overdraft_peak_bytes, 0);
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
    look
}

/// 200,000 documents of 30 terms each, most of them frequent, some new each time.
fn text(documents: u32) -> Vec<u8> {
    let mut text = String::new();
    for document in 0..documents {
        for word in 0..28u32 {
            text += &format!("w{} ", document.wrapping_mul(word * word + 7) % 5000);
        }
        text += &format!("{:08x} id{document}\n", document.wrapping_mul(0x9E37_79B9));
    }
    text.into_bytes()
}

/// Documents of ten fields: two that are the same everywhere, some with few terms, some with a new one each time, prose.
fn ten_fields(documents: u32) -> Vec<u8> {
    let mut json = String::new();
    for document in 0..documents {
        let mixed = document.wrapping_mul(0x9E37_79B9);
        json += &format!(
            "{{\"time\":\"t{document}\",\"host\":\"h{}\",\"user\":\"-\",\"id\":\"{mixed:08x}\",\"path\":\"/a/b{}/c{mixed}\",\
             \"code\":\"{}\",\"agent\":\"browser\",\"size\":\"{}\",\"note\":\"said \\\"w{}\\\" and w{}\",\
             \"text\":\"w{} w{} w{} of u{mixed:x}\",\"n\":{document}}}\n",
            mixed % 50,
            mixed % 300,
            mixed % 7,
            mixed % 9999,
            mixed % 800,
            mixed % 77,
            mixed % 5000,
            mixed % 333,
            mixed % 11,
        );
    }
    json.into_bytes()
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn what_is_held_is_at_least_95_percent_of_what_is_live_at_every_sample() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(folder.path(), "a.log", &text(200_000));
    let large = BuildOptions {
        threads: 1,
        block_bytes: 32 << 10,
        batch_bytes: 64 << 20,
        ..options(folder.path(), std::slice::from_ref(&input))
    };
    let look = sampled(&large);
    assert!(
        look.samples.load(Ordering::Relaxed) > 1000 && look.most_live.load(Ordering::Relaxed) > 30 << 20,
        "{look:?}"
    );
    // B08 as it was told, and a budget that makes many runs
    for budget in [32 << 20, 4 << 20] {
        let index = common::fresh(folder.path());
        let forced = BuildOptions { index, budget_bytes: Some(budget), floor_bytes: Some(1 << 20), ..large.clone() };
        let look = sampled(&forced);
        assert!(look.spills.load(Ordering::Relaxed) > 0, "{look:?}");
    }
    // small blocks, many runs, several passes; and writers that spill themselves, on several threads
    let mut few = large.clone();
    few.inputs = vec![write(folder.path(), "few.log", &text(30_000))];
    for (block, threads) in [(1 << 10, 1), (8 << 10, 4)] {
        let small = BuildOptions { block_bytes: block, threads, batch_bytes: 3 << 20, ..few.clone() };
        let index = common::fresh(folder.path());
        let forced = BuildOptions { index, budget_bytes: Some(2 << 20), floor_bytes: Some(64 << 10), ..small.clone() };
        assert!(sampled(&forced).spills.load(Ordering::Relaxed) > 2);
        let index = common::fresh(folder.path());
        let hard = BuildOptions { index, hard_limit_bytes: Some(3 << 20), ..small.clone() };
        assert!(sampled(&hard).spills.load(Ordering::Relaxed) > 2);
        let capped =
            BuildOptions { index: common::fresh(folder.path()), writer_cap_bytes: Some(512 << 10), ..small.clone() };
        assert!(sampled(&capped).spills.load(Ordering::Relaxed) > 2);
    }

    // a segment each document: what the batches came to is all there is
    let tiny = BuildOptions { batch_bytes: 1, inputs: vec![write(folder.path(), "tiny.log", &text(3000))], ..few };
    let look = sampled(&BuildOptions { index: common::fresh(folder.path()), ..tiny });
    assert!(look.samples.load(Ordering::Relaxed) > 1000, "{look:?}");

    // long lines and terms: buffers that grow for one of them
    let long =
        [vec![b'x'; 3 << 20], b"\n".to_vec(), "Y \u{23A}".repeat(1 << 20).into_bytes(), b"\nz\n".to_vec()].concat();
    let input = write(folder.path(), "b.log", &long);
    sampled(&BuildOptions { index: common::fresh(folder.path()), inputs: vec![input], ..large.clone() });

    // ten fields, with and without spills, with small and large blocks
    let input = write(folder.path(), "ten.jsonl", &ten_fields(20_000));
    for (block, threads) in [(1 << 10, 1), (32 << 10, 1), (4 << 10, 4)] {
        let ten = BuildOptions { inputs: vec![input.clone()], block_bytes: block, threads, ..large.clone() };
        let ten = BuildOptions { batch_bytes: 2 << 20, ..ten };
        let look = sampled(&BuildOptions { index: common::fresh(folder.path()), ..ten.clone() });
        assert!(look.samples.load(Ordering::Relaxed) > 1000, "{look:?}");
        let index = common::fresh(folder.path());
        let hard = BuildOptions { index, hard_limit_bytes: Some(4 << 20), ..ten.clone() };
        assert!(sampled(&hard).samples.load(Ordering::Relaxed) > 1000);
        let index = common::fresh(folder.path());
        let forced = BuildOptions { index, budget_bytes: Some(1536 << 10), floor_bytes: Some(32 << 10), ..ten };
        let look = sampled(&forced);
        assert!(look.spills.load(Ordering::Relaxed) > 2, "{look:?}");
    }

    // JSON lines with escapes, long ones and many fields
    let mut json = String::new();
    for line in 0..3000u32 {
        let fields: Vec<String> =
            (0..40).map(|field| format!("\"f{field}\":\"v{} \\n {}\"", line % 50, line * field)).collect();
        json += &format!("{{{}}}\n", fields.join(","));
    }
    json += &format!("{{\"long\":\"{}\"}}\n", "ab\\t".repeat(1 << 20));
    let input = write(folder.path(), "c.jsonl", json.as_bytes());
    let many = BuildOptions { index: common::fresh(folder.path()), inputs: vec![input], ..large };
    sampled(&many);
    sampled(&BuildOptions { index: common::fresh(folder.path()), hard_limit_bytes: Some(256 << 20), ..many });
}
