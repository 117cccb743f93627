//! Whether anything grows faster than what it works on: writers, threads and input are doubled in turn.
//!
//! `cargo bench --bench growth`, some two minutes; `-- --only writers`, `threads` or `input` for one of the tables. Each cell
//! is the cost of one unit: the median of the rounds, which go through the sizes up and down in turn. What is linear has
//! the same figure in every row, apart from caches: some 4,000 writers fill a second-level cache of 2 MiB. Beneath stand
//!
//! * **exponent**: by what power of the size the whole grows over the last three doublings, from the least of the rounds.
//!   1.00 is linear; from 1.25 on it is marked `<-`, unless `caches` grows as fast;
//! * **spread**: how far the rounds lie apart, from least to most over the median, in the median of the sizes.
//!
//! # Tables
//!
//! | writers | one unit is |
//! |---|---|
//! | `caches` | nothing of plimsoll: a list of as many allocations of a writer's size is walked, two lines of each |
//! | `register` | a writer with an arena: registered, and gone again |
//! | `change` | one change of the mix, everybody in turn |
//! | `publish` | one publish, everybody in turn |
//! | `block` | one block of an arena with headroom, everybody in turn |
//! | `walk`, `snapshot` | a writer in `held_bytes()`, in `snapshot()` |
//! | `decision`, `asking` | a writer in a decision without and with pressure (half a block missing for each) |
//! | `settle` | a writer in `settle()` |
//! | `recall` | a writer in a `try_` call that needs all the credit which the others hold and do not use |
//!
//! | threads | one unit is, in processor time |
//! |---|---|
//! | `change` | one change of the mix, a writer for each thread |
//! | `shared` | the same on one shared account: this one has to grow, up to the number of processors |
//! | `publish` | one publish, a writer for each thread |
//! | `block` | one block, a writer and an arena for each thread |
//!
//! | input | one unit is |
//! |---|---|
//! | `change` | one change, with so many of them |
//! | `blocks` | the same with an arena that grows in blocks and spills at 2 MiB |

mod common;

use common::alternate::calibrate;
use common::contenders::{CHANGES, Contender, Plimsoll, PlimsollBlocks, Shared, limiter, terms};
use common::figures::{Figures, nanos};
use common::options::Options;
use cpu_time::ThreadTime;
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Pressure, Reporter, ScriptedSignals};
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const BLOCK: usize = 32 * KIB;
/// As long as the names of the reference's writers.
const NAME: &str = "logs/message";
/// From here on something is said to grow faster than linear: caches account for less.
const ABOVE_LINEAR: f64 = 1.25;

/// The column that shows what caches alone do.
const CACHES: &str = "caches";

/// One round of one size: nanoseconds a unit.
type Measure = Box<dyn FnMut() -> f64>;

/// A column: its name, and how it is measured for a size.
type Column = (&'static str, fn(usize) -> Measure);

fn main() {
    let options = Options::from_command_line();
    options.announce("cargo bench --bench growth --");
    let doubled = |first: usize, last: usize| -> Vec<usize> {
        let last = if options.test() { 4 * first } else { last };
        std::iter::successors(Some(first), |size| Some(2 * size)).take_while(|size| *size <= last).collect()
    };
    let rounds = if options.test() { 1 } else { 9 };
    if options.wants("--only", "writers") {
        table(
            "writers",
            &doubled(16, 65_536),
            rounds,
            &[
                (CACHES, caches),
                ("register", register),
                ("change", changes_in_turn),
                ("publish", publishes_in_turn),
                ("block", blocks_in_turn),
                ("walk", |writers| every_writer(writers, |limiter| black_box(limiter.held_bytes()))),
                ("snapshot", |writers| every_writer(writers, |limiter| limiter.snapshot().held_bytes)),
                ("decision", |writers| {
                    every_writer(writers, |limiter| {
                        limiter.poll();
                        0
                    })
                }),
                ("asking", asking),
                ("settle", |writers| every_writer(writers, |limiter| usize::from(limiter.settle()))),
                ("recall", recall),
            ],
        );
    }
    if options.wants("--only", "threads") {
        table(
            "threads",
            &doubled(1, 128),
            rounds,
            &[
                ("change", |threads| {
                    let limiter = limiter();
                    on_threads(
                        threads,
                        2 * CHANGES,
                        move |_| Plimsoll::new(&limiter),
                        |writer, times| {
                            terms(writer, times);
                        },
                    )
                }),
                ("shared", |threads| {
                    let account = limiter().shared_reporter("account");
                    on_threads(
                        threads,
                        2 * CHANGES,
                        move |_| Shared::new(account.clone()),
                        |writer, times| {
                            terms(writer, times);
                        },
                    )
                }),
                ("publish", |threads| {
                    let limiter = limiter();
                    on_threads(
                        threads,
                        2,
                        move |_| limiter.reporter(NAME),
                        |reporter, times| {
                            for _ in 0..times {
                                publish_twice(reporter);
                            }
                        },
                    )
                }),
                ("block", |threads| {
                    let limiter = limiter();
                    on_threads(
                        threads,
                        2,
                        move |_| Writer::new(&limiter),
                        |writer, times| {
                            for _ in 0..times {
                                writer.arena.set_bytes(&writer.reporter, 3 * BLOCK);
                                writer.arena.set_bytes(&writer.reporter, 2 * BLOCK);
                            }
                        },
                    )
                }),
            ],
        );
    }
    if options.wants("--only", "input") {
        table(
            "changes",
            &doubled(1 << 14, 1 << 24),
            rounds,
            &[
                ("change", |changes| on_input(changes, Plimsoll::new(&limiter()))),
                ("blocks", |changes| on_input(changes, PlimsollBlocks::new(&limiter()))),
            ],
        );
    }
}

/// Measures every column for every size, and prints a row a size.
fn table(what: &str, sizes: &[usize], rounds: usize, columns: &[Column]) {
    let mut all: Vec<Vec<Figures>> = Vec::new();
    for (_, build) in columns {
        let mut measures: Vec<Measure> = sizes.iter().map(|size| build(*size)).collect();
        let mut figures: Vec<Figures> = sizes.iter().map(|_| Figures::default()).collect();
        // Once for nothing: pages, caches.
        measures.iter_mut().for_each(|measure| {
            measure();
        });
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..sizes.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            order.into_iter().for_each(|index| figures[index].push(measures[index]()));
        }
        all.push(figures);
    }
    let line = |first: &str, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..columns.len()).map(|column| format!("{:>11}", cell(column))).collect();
        println!("{first:>9} {}", cells.join(" "));
    };
    println!();
    line(what, &|column| columns[column].0.to_owned());
    for (row, size) in sizes.iter().enumerate() {
        line(&size.to_string(), &|column| nanos(all[column][row].median()));
    }
    let exponents: Vec<f64> = all.iter().map(|figures| exponent(figures)).collect();
    let by_caches = if columns[0].0 == CACHES { exponents[0] } else { 1.0 };
    line("exponent", &|column| {
        let above = exponents[column] >= ABOVE_LINEAR.max(by_caches + 0.1);
        format!("{:.2}{}", exponents[column], if above { " <-" } else { "   " })
    });
    line("spread", &|column| {
        let mut spreads = Figures::default();
        all[column].iter().for_each(|figures| spreads.push((figures.most() - figures.least()) / figures.median()));
        format!("{:.0} %", 100.0 * spreads.median())
    });
}

/// By what power of the size the whole grows over the last three doublings.
fn exponent(figures: &[Figures]) -> f64 {
    let last = figures.len() - 1;
    let steps = last.min(3);
    1.0 + (figures[last].least() / figures[last - steps].least()).log2() / steps as f64
}

// ---- writers -------------------------------------------------------------------------------------------------------

struct Writer {
    arena: ArenaHandle,
    reporter: Reporter,
}

impl Writer {
    /// With an arena of two blocks, so that a decision has something to look at.
    fn new(limiter: &GlobalMemoryLimiter) -> Self {
        let reporter = limiter.reporter(NAME);
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 2 * BLOCK);
        Writer { arena, reporter }
    }
}

/// A budget that grows with the writers, 4 MiB each: with one that stays, quanta shrink, below a block in the end, and every
/// block is a publish too.
fn roomy(writers: usize) -> GlobalMemoryLimiter {
    let budget = writers.max(256) * 4 * MIB;
    GlobalMemoryLimiter::builder()
        .budget_bytes(budget)
        .hard_limit_bytes(2 * budget)
        .writer_cap_bytes(512 * MIB)
        .build()
        .expect("the configuration is valid")
}

fn writers(limiter: &GlobalMemoryLimiter, count: usize) -> Vec<Writer> {
    (0..count).map(|_| Writer::new(limiter)).collect()
}

/// Processor time of `run`, as often as takes at least a millisecond; nanoseconds for one of `units`.
fn timed(units: usize, mut run: impl FnMut()) -> f64 {
    let (start, mut times) = (ThreadTime::now(), 0);
    loop {
        // The clock costs some 200 ns: looked at after twice as many rounds each time.
        (0..=times).for_each(|_| run());
        times = 2 * times + 1;
        let passed = start.elapsed();
        if passed >= Duration::from_millis(1) {
            return passed.as_nanos() as f64 / (times * units) as f64;
        }
    }
}

/// As many allocations as there are writers, of a writer's size and an arena's.
fn caches(count: usize) -> Measure {
    let list: Vec<_> = (0..count).map(|number| (Box::new([number; 28]), Box::new([number; 20]))).collect();
    Box::new(move || {
        timed(count, || {
            black_box(black_box(&list).iter().fold(0, |sum: usize, (one, _)| sum.wrapping_add(one[4] ^ one[20])));
        })
    })
}

fn register(count: usize) -> Measure {
    let limiter = roomy(count);
    let mut list = Vec::with_capacity(count);
    Box::new(move || {
        timed(count, || {
            list.extend((0..count).map(|_| {
                let reporter = limiter.reporter(NAME);
                (reporter.arena("postings"), reporter)
            }));
            list.clear();
        })
    })
}

fn changes_in_turn(count: usize) -> Measure {
    let limiter = roomy(count);
    let mut list: Vec<Plimsoll> = (0..count).map(|_| Plimsoll::new(&limiter)).collect();
    Box::new(move || {
        timed(2 * CHANGES * count, || {
            for writer in &mut list {
                let bytes = black_box(37);
                writer.term(true, bytes);
                writer.term(false, bytes);
            }
        })
    })
}

/// One publish up and one down: a byte, and told at once.
fn publish_twice(reporter: &Reporter) {
    reporter.charge(1);
    reporter.flush();
    reporter.release(1);
    reporter.flush();
}

fn publishes_in_turn(count: usize) -> Measure {
    let limiter = roomy(count);
    let list = writers(&limiter, count);
    Box::new(move || timed(2 * count, || list.iter().for_each(|writer| publish_twice(&writer.reporter))))
}

fn blocks_in_turn(count: usize) -> Measure {
    let limiter = roomy(count);
    let mut list = writers(&limiter, count);
    Box::new(move || {
        timed(2 * count, || {
            for blocks in [3, 2] {
                for Writer { arena, reporter } in &mut list {
                    arena.set_bytes(reporter, blocks * BLOCK);
                }
            }
        })
    })
}

/// Something that looks at every writer.
fn every_writer(count: usize, look: fn(&GlobalMemoryLimiter) -> usize) -> Measure {
    let limiter = roomy(count);
    let list = writers(&limiter, count);
    Box::new(move || {
        black_box(&list);
        timed(count, || {
            black_box(look(&limiter));
        })
    })
}

/// A decision that asks arenas to spill, until half a block for each writer is covered.
fn asking(count: usize) -> Measure {
    let signals = Arc::new(ScriptedSignals::new());
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(1 << 50)
        .floor_bytes(BLOCK)
        .signals(Arc::clone(&signals))
        .build()
        .expect("the configuration is valid");
    let mut list = writers(&limiter, count);
    Box::new(move || {
        signals.set(Pressure::new(count * BLOCK / 2, 0));
        let start = ThreadTime::now();
        limiter.poll();
        let passed = start.elapsed().as_nanos() as f64;
        // As before: every arena has its old size, and none is asked.
        signals.set(Pressure::default());
        for Writer { arena, reporter } in &mut list {
            if let Some(spill) = arena.begin_spill(reporter) {
                let bytes = spill.bytes();
                spill.finish(bytes);
            }
        }
        limiter.poll();
        passed / count as f64
    })
}

/// All of a hard limit is asked for, less what is held: what the others have taken ahead has to come back.
fn recall(count: usize) -> Measure {
    let hard = (count + 1) * MIB;
    let limiter =
        GlobalMemoryLimiter::builder().unlimited().hard_limit_bytes(hard).build().expect("the configuration is valid");
    let asker = limiter.reporter("asker");
    let list = writers(&limiter, count);
    Box::new(move || {
        list.iter().for_each(|writer| writer.reporter.flush());
        let rest = hard - limiter.held_bytes();
        assert!(limiter.reserved_bytes() > limiter.held_bytes(), "there is idle credit to call back");
        let start = ThreadTime::now();
        let granted = asker.try_charge(rest);
        let passed = start.elapsed().as_nanos() as f64;
        granted.expect("everything comes back");
        asker.release(rest);
        passed / count as f64
    })
}

// ---- threads and input ---------------------------------------------------------------------------------------------

/// `run` on each of so many threads, `units` of something each time round; processor time a unit. All together some 60 ms, so
/// that threads meet, and not less than 2 ms each.
fn on_threads<C: Send + 'static>(
    threads: usize,
    units: usize,
    make: impl Fn(usize) -> C + 'static,
    run: fn(&mut C, u64),
) -> Measure {
    let mut list: Vec<C> = (0..threads).map(make).collect();
    let slice = (Duration::from_millis(60) / threads as u32).max(Duration::from_millis(2));
    let times = calibrate(&mut |times| run(&mut list[0], times), slice);
    Box::new(move || {
        let barrier = Barrier::new(threads);
        let spent: Vec<Duration> = std::thread::scope(|scope| {
            let handles: Vec<_> = list
                .iter_mut()
                .map(|contender| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        let start = ThreadTime::now();
                        run(contender, times);
                        start.elapsed()
                    })
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().expect("no thread panics")).collect()
        });
        let all: Duration = spent.into_iter().sum();
        all.as_nanos() as f64 / (times as usize * units * threads) as f64
    })
}

fn on_input(changes: usize, mut contender: impl Contender + 'static) -> Measure {
    let times = changes.div_ceil(2 * CHANGES);
    Box::new(move || {
        let start = ThreadTime::now();
        terms(&mut contender, times as u64);
        start.elapsed().as_nanos() as f64 / (times * 2 * CHANGES) as f64
    })
}
