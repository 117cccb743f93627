//! What a user would take instead of plimsoll, over the same mix and with the same work between.
//!
//! `cargo run --release` in this folder: first the mix alone (as `benches/changes.rs`), then threads with 200 ns of work
//! between the terms (as `benches/contention.rs`, and with its options `--threads`, `--only`, `--rounds`). The code of both is
//! the root's, in `../common`.
//!
//! | peer | how it counts a term |
//! |---|---|
//! | `plimsoll` | a reporter and a reservation, not to be refused; `may be refused`: by `try_` calls |
//! | `DataFusion greedy`, `fair`, `tracking` | a consumer a thread with two reservations: `try_grow` and `shrink`; tracking is fair with tracking around |
//! | `arrow-buffer pool` | two reservations a thread: `resize`; it has no limit |
//! | `memory-budget` | a gauge a thread for the arena; a lease for each growth, the three dropped together |
//! | `fast-counter` | one sum in 128 shards: `add`; it has no limit |

#[path = "../../common/mod.rs"]
mod common;

use arrow_buffer::{MemoryPool as _, MemoryReservation as ArrowReservation, TrackingMemoryPool};
use common::alternate::{Length, Loop, compare};
use common::contend::{self, Entry};
use common::contenders::{CHANGES, Contender, InOneSum, Nothing, Plimsoll, PlimsollTry, Sum, limiter, terms};
use common::options::Options;
use datafusion_execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryPool, MemoryReservation, TrackConsumersPool,
};
use fast_counter::ConcurrentCounter;
use memory_budget::{AtomicReporter, BudgetConfig, LeaseGuard, MemoryBudget, MemoryGauge, NonCacheReporter};
use plimsoll::GIB;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Enough for everybody, always.
const LIMIT: usize = 64 * GIB;

// ---- DataFusion ----------------------------------------------------------------------------------------------------

struct DataFusion {
    arena: MemoryReservation,
    encoder: MemoryReservation,
}

impl DataFusion {
    fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let arena = MemoryConsumer::new("writer").with_can_spill(true).register(pool);
        DataFusion { encoder: arena.new_empty(), arena }
    }
}

impl Contender for DataFusion {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.arena.try_grow(bytes).expect("there is room");
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.arena.shrink(bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.encoder.try_grow(bytes).expect("there is room");
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.encoder.shrink(3 * bytes);
    }
}

// ---- arrow-buffer --------------------------------------------------------------------------------------------------

struct Arrow {
    arena: Box<dyn ArrowReservation>,
    encoder: Box<dyn ArrowReservation>,
}

impl Arrow {
    fn new(pool: &TrackingMemoryPool) -> Self {
        Arrow { arena: pool.reserve(0), encoder: pool.reserve(0) }
    }
}

impl Contender for Arrow {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.arena.resize(self.arena.size() + bytes);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.arena.resize(self.arena.size() - bytes);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        self.encoder.resize(self.encoder.size() + bytes);
    }
    #[inline(always)]
    fn release(&mut self, bytes: usize) {
        self.encoder.resize(self.encoder.size() - 3 * bytes);
    }
}

// ---- memory-budget -------------------------------------------------------------------------------------------------

struct Budget {
    budget: Arc<MemoryBudget>,
    gauge: MemoryGauge,
    /// What the budget asks; it keeps a weak reference.
    _reporter: Arc<dyn NonCacheReporter>,
    leases: [Option<LeaseGuard>; 3],
    leased: usize,
}

impl Budget {
    fn new(budget: &Arc<MemoryBudget>) -> Self {
        let reporter = AtomicReporter::new("writer");
        let gauge = reporter.gauge();
        let reporter: Arc<dyn NonCacheReporter> = Arc::new(reporter);
        budget.register_reporter(&reporter);
        Budget { budget: Arc::clone(budget), gauge, _reporter: reporter, leases: [None, None, None], leased: 0 }
    }
}

impl Contender for Budget {
    #[inline(always)]
    fn arena_up(&mut self, bytes: usize) {
        self.gauge.add(bytes as u64);
    }
    #[inline(always)]
    fn arena_down(&mut self, bytes: usize) {
        self.gauge.sub(bytes as u64);
    }
    #[inline(always)]
    fn grow(&mut self, bytes: usize) {
        let lease = self.budget.try_lease(bytes as u64).expect("there is room");
        self.leases[self.leased] = Some(lease);
        self.leased += 1;
    }
    #[inline(always)]
    fn release(&mut self, _: usize) {
        self.leases = [None, None, None];
        self.leased = 0;
    }
}

// ---- fast-counter --------------------------------------------------------------------------------------------------

struct Sharded(Arc<ConcurrentCounter>);

impl Sum for Sharded {
    #[inline(always)]
    fn change(&mut self, bytes: isize) {
        self.0.add(bytes);
    }
}

// ---- the run -------------------------------------------------------------------------------------------------------

fn main() -> ExitCode {
    let options = Options::from_command_line();
    options.announce("cargo run --release --manifest-path benches/peers/Cargo.toml --");
    let limiter = limiter();
    let greedy: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(LIMIT));
    let fair: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(LIMIT));
    let five = NonZeroUsize::new(5).expect("not zero");
    let tracking: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(FairSpillPool::new(LIMIT), five));
    let arrow = TrackingMemoryPool::default();
    let budget = Arc::new(MemoryBudget::new(BudgetConfig::new(LIMIT as u64)));
    let counter = Arc::new(ConcurrentCounter::new(128));

    println!("\nthe mix: one change of the arena, three growths, one release");
    let mut loops = vec![
        Loop { changes: 1.0, ..mix("empty loop, itself", Nothing::<0>) },
        mix("empty loop, compiled twice", Nothing::<1>),
        mix("plimsoll", Plimsoll::new(&limiter)),
        mix("plimsoll, may be refused", PlimsollTry(Plimsoll::new(&limiter))),
        mix("DataFusion greedy", DataFusion::new(&greedy)),
        mix("DataFusion fair", DataFusion::new(&fair)),
        mix("DataFusion tracking", DataFusion::new(&tracking)),
        mix("arrow-buffer pool", Arrow::new(&arrow)),
        mix("memory-budget", Budget::new(&budget)),
        mix("fast-counter", InOneSum(Sharded(Arc::clone(&counter)))),
    ];
    let length = match options.test() {
        true => Length { rounds: 1, slice: Duration::from_micros(20) },
        false => Length { rounds: 201, slice: Duration::from_millis(1) },
    };
    compare(&mut loops, length);
    drop(loops);

    println!();
    let entries = [
        Entry::new("nothing", |_| Nothing::<0>),
        Entry::new("nothing again", |_| Nothing::<1>),
        Entry::counted("plimsoll", &limiter, true, |_| Plimsoll::new(&limiter)),
        Entry::counted("plimsoll, may be refused", &limiter, true, |_| PlimsollTry(Plimsoll::new(&limiter))),
        Entry::new("DataFusion greedy", |_| DataFusion::new(&greedy)),
        Entry::new("DataFusion fair", |_| DataFusion::new(&fair)),
        Entry::new("DataFusion tracking", |_| DataFusion::new(&tracking)),
        Entry::new("arrow-buffer pool", |_| Arrow::new(&arrow)),
        Entry::new("memory-budget", |_| Budget::new(&budget)),
        Entry::new("fast-counter", |_| InOneSum(Sharded(Arc::clone(&counter)))),
    ];
    if contend::compare(&entries, &options) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The mix of a term, two terms each time round.
fn mix<'a>(name: &'static str, mut contender: impl Contender + 'a) -> Loop<'a> {
    let run = move |times| terms(&mut contender, times);
    Loop { name, changes: 2.0 * CHANGES as f64, target_ns: None, run: Box::new(run) }
}
