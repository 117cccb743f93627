//! What accounting costs many flush threads: for each term 0.2 to 0.3 us of work, and five changes (one of the arena's
//! bytes, three growths and one release of an encoder's reservation), with 1, 2, 8 and 30 threads.
//!
//! `cargo bench --bench contention`; `-- term/2` for two threads only. The time is that of one term on one thread, so
//! with more threads than processors it grows by itself: compare within a number of threads, and with `nothing`, which
//! is compiled twice to show the noise. Contention shows only while both processors really run.
//!
//! | contender | what it does for a change |
//! |---|---|
//! | `nothing`, `nothing again` | no accounting |
//! | `plimsoll` | a reporter and a reservation; the arena through `charge`, told to the limiter once a block |
//! | `shared account` | plimsoll's form for many threads, one for each here |
//! | `one atomic` | one counter that all threads add to |
//! | `mutex and map` | the reference before its change: a lock and a look-up a term, two shared atomics a growth |
//! | `held back` | the reference after it: an atomic total a writer, differences published at 1 MiB |

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use plimsoll::{GlobalMemoryLimiter, KIB, MIB, Reporter, Reservation, SharedReporter};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

const THREADS: [usize; 4] = [1, 2, 8, 30];
/// Rounds of a multiplication: 0.2 to 0.3 us.
const WORK: u64 = 350;

/// One thread's accounting of one term.
trait Account: Send {
    fn term(&mut self, bytes: usize);
}

struct Nothing;

impl Account for Nothing {
    fn term(&mut self, bytes: usize) {
        black_box(bytes);
    }
}

struct Plimsoll {
    encoder: Reservation,
    reporter: Reporter,
}

impl Account for Plimsoll {
    fn term(&mut self, bytes: usize) {
        self.reporter.charge(bytes);
        for step in [64, 128, 256] {
            self.encoder.grow(&self.reporter, step);
        }
        self.encoder.shrink(&self.reporter, 448);
        self.reporter.release(bytes);
    }
}

struct Shared(SharedReporter);

impl Account for Shared {
    fn term(&mut self, bytes: usize) {
        for step in [bytes, 64, 128, 256] {
            self.0.charge(step);
        }
        self.0.release(448 + bytes);
    }
}

struct OneAtomic(Arc<AtomicUsize>);

impl Account for OneAtomic {
    fn term(&mut self, bytes: usize) {
        for step in [bytes, 64, 128, 256] {
            self.0.fetch_add(step, Relaxed);
        }
        self.0.fetch_sub(448 + bytes, Relaxed);
    }
}

#[derive(Default)]
struct Before {
    writers: Mutex<HashMap<usize, usize>>,
    build: AtomicUsize,
    process: AtomicUsize,
}

struct MutexAndMap(Arc<Before>, usize);

impl Account for MutexAndMap {
    fn term(&mut self, bytes: usize) {
        *self.0.writers.lock().expect("not poisoned").entry(self.1).or_default() = bytes;
        for step in [64, 128, 256] {
            self.0.build.fetch_add(step, Relaxed);
            self.0.process.fetch_add(step, Relaxed);
        }
        self.0.build.fetch_sub(448, Relaxed);
        self.0.process.fetch_sub(448, Relaxed);
    }
}

#[repr(align(128))]
struct HeldBack {
    total: AtomicI64,
    behind: AtomicI64,
    published: Arc<AtomicI64>,
}

impl HeldBack {
    fn change(&self, bytes: i64) {
        self.total.fetch_add(bytes, Relaxed);
        let behind = self.behind.fetch_add(bytes, Relaxed) + bytes;
        if behind.unsigned_abs() as usize >= MIB {
            self.published.fetch_add(self.behind.swap(0, Relaxed), Relaxed);
        }
    }
}

impl Account for HeldBack {
    fn term(&mut self, bytes: usize) {
        for step in [bytes as i64, 64, 128, 256] {
            self.change(step);
        }
        self.change(-448 - bytes as i64);
    }
}

/// Time of one thread for `terms` terms, with all threads at it together.
fn run<A: Account>(threads: usize, terms: u64, make: impl Fn(usize) -> A) -> Duration {
    let barrier = Barrier::new(threads + 1);
    let mut start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, mut account) = (&barrier, make(thread));
            scope.spawn(move || {
                barrier.wait();
                for term in 0..terms {
                    let mut hash = term;
                    for _ in 0..WORK {
                        hash = black_box(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    }
                    account.term((hash >> 52) as usize);
                }
            });
        }
        barrier.wait();
        start = Instant::now();
    });
    start.elapsed()
}

fn contender<A: Account>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    threads: usize,
    name: &str,
    make: impl Fn(usize) -> A,
) {
    group.bench_function(BenchmarkId::new(threads.to_string(), name), |bencher| {
        bencher.iter_custom(|terms| run(threads, terms, &make));
    });
}

fn contention(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("term");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2)).sample_size(10);
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(1024 * MIB)
        .writer_cap_bytes(64 * MIB)
        .build()
        .expect("the configuration is valid");
    let (before, one) = (Arc::new(Before::default()), Arc::new(AtomicUsize::new(0)));
    let published = Arc::new(AtomicI64::new(0));
    for threads in THREADS {
        contender(&mut group, threads, "nothing", |_| Nothing);
        contender(&mut group, threads, "plimsoll", |thread| {
            let reporter = limiter.reporter(&format!("writer {thread}"));
            Plimsoll { encoder: reporter.reserve(4 * KIB), reporter }
        });
        contender(&mut group, threads, "shared account", |_| Shared(limiter.shared_reporter("account")));
        contender(&mut group, threads, "one atomic", |_| OneAtomic(Arc::clone(&one)));
        contender(&mut group, threads, "mutex and map", |thread| MutexAndMap(Arc::clone(&before), thread));
        contender(&mut group, threads, "held back", |_| HeldBack {
            total: AtomicI64::new(0),
            behind: AtomicI64::new(0),
            published: Arc::clone(&published),
        });
        contender(&mut group, threads, "nothing again", |_| Nothing);
    }
    group.finish();
}

criterion_group!(benches, contention);
criterion_main!(benches);
