//! Threads that really meet: each does some 200 ns of work, counts a term's five changes, and goes on.
//!
//! Contenders alternate in one run and the order is turned round from round to round. What counts is **processor time** of
//! the threads (their own clocks, from the common start to each one's end) over the mean of two copies of no accounting in
//! the same round; the clock is shown beside it. Threads start together, after they have touched their memory.

use super::contenders::{CHANGES, Contender};
use super::figures::{Figures, percent};
use super::options::Options;
use super::work::{Work, calibrate};
use cpu_time::ThreadTime;
use std::ops::Sub;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Counts that a limiter has of itself; none where there is no limiter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) publishes: u64,
    pub(crate) notifications: u64,
    pub(crate) decisions: u64,
    pub(crate) walks: u64,
}

impl Counts {
    pub(crate) fn of(limiter: &plimsoll::GlobalMemoryLimiter) -> Self {
        let stats = limiter.stats();
        Counts {
            publishes: stats.publishes,
            notifications: stats.notifications,
            decisions: stats.decisions,
            walks: stats.walks,
        }
    }

    fn add(&mut self, more: Counts) {
        self.publishes += more.publishes;
        self.notifications += more.notifications;
        self.decisions += more.decisions;
        self.walks += more.walks;
    }
}

impl Sub for Counts {
    type Output = Counts;
    fn sub(self, before: Counts) -> Counts {
        Counts {
            publishes: self.publishes - before.publishes,
            notifications: self.notifications - before.notifications,
            decisions: self.decisions - before.decisions,
            walks: self.walks - before.walks,
        }
    }
}

/// How much to do.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    threads: usize,
    /// Pairs of terms of each thread.
    pairs: u64,
    /// Steps of work of a term.
    steps: u32,
}

/// What came of one contender's run.
pub(crate) struct Outcome {
    cpu: Duration,
    clock: Duration,
    /// Times that a thread gave the processor away to wait; none where the system does not say.
    waits: Option<u64>,
    counts: Option<Counts>,
}

/// One way to count, and how to run it.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'static str,
    /// It must not publish, notify, decide or walk, not once: there is headroom, and the sums stay where they are.
    pub(crate) silent: bool,
    run: Box<dyn Fn(Load) -> Outcome + 'a>,
}

impl<'a> Entry<'a> {
    pub(crate) fn new<C: Contender>(name: &'static str, make: impl Fn(usize) -> C + 'a) -> Self {
        Entry { name, silent: false, run: Box::new(move |load| run(load, &make, || None)) }
    }

    /// With the counts of a limiter; `silent` is demanded of them or not.
    pub(crate) fn counted<C: Contender>(
        name: &'static str,
        limiter: &'a plimsoll::GlobalMemoryLimiter,
        silent: bool,
        make: impl Fn(usize) -> C + 'a,
    ) -> Self {
        Entry { name, silent, run: Box::new(move |load| run(load, &make, || Some(Counts::of(limiter)))) }
    }
}

/// The loop of one thread.
#[inline(never)]
fn work_and_count<C: Contender>(contender: &mut C, work: &mut Work, pairs: u64) {
    contender.begin();
    for _ in 0..pairs {
        let bytes = (work.term() >> 58) as usize;
        contender.term(true, bytes);
        work.term();
        contender.term(false, bytes);
    }
    std::hint::black_box(work.term());
}

struct Ended<C> {
    contender: C,
    cpu: Duration,
    end: Instant,
    waits: Option<u64>,
}

fn run<C: Contender>(load: Load, make: &impl Fn(usize) -> C, counts: impl Fn() -> Option<Counts>) -> Outcome {
    let barrier = Barrier::new(load.threads + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..load.threads)
            .map(|number| {
                let (barrier, mut contender) = (&barrier, make(number));
                scope.spawn(move || {
                    let mut work = Work::new(load.steps);
                    (0..100).for_each(|_| {
                        work.term();
                    });
                    barrier.wait();
                    let (waits, cpu) = (waits(), ThreadTime::now());
                    work_and_count(&mut contender, &mut work, load.pairs);
                    let (cpu, end) = (cpu.elapsed(), Instant::now());
                    let waits = waits_since(waits);
                    Ended { contender, cpu, end, waits }
                })
            })
            .collect();
        let before = counts();
        barrier.wait();
        let start = Instant::now();
        // The contenders are kept until the counts are read: a writer that goes publishes.
        let ended: Vec<Ended<C>> = threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect();
        let counts = before.zip(counts()).map(|(before, after)| after - before);
        let outcome = Outcome {
            cpu: ended.iter().map(|ended| ended.cpu).sum(),
            clock: ended.iter().map(|ended| ended.end.saturating_duration_since(start)).max().unwrap_or_default(),
            waits: ended.iter().map(|ended| ended.waits).sum(),
            counts,
        };
        drop(ended.into_iter().map(|ended| ended.contender).collect::<Vec<C>>());
        outcome
    })
}

/// Times that this thread gave the processor away by itself: on a lock, a futex, any wait.
fn waits() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
    line.rsplit(['\t', ' ']).next()?.parse().ok()
}

fn waits_since(before: Option<u64>) -> Option<u64> {
    Some(waits()? - before?)
}

// ---- the comparison ------------------------------------------------------------------------------------------------

/// How long one contender works in a round, and how many rounds there are, for a number of threads: all threads have to
/// get their turns.
fn length(threads: usize, test: bool) -> (Duration, usize) {
    match threads {
        _ if test => (Duration::from_micros(100), 1),
        0..=2 => (Duration::from_millis(20), 41),
        3..=9 => (Duration::from_millis(100), 15),
        10..=39 => (Duration::from_millis(200), 11),
        _ => (Duration::from_millis(400), 7),
    }
}

/// Nanoseconds of work between two terms.
const WORK_NS: f64 = 200.0;

/// Compares the entries, of which the first two are the same nothing, at each number of threads that is asked for. True if
/// all that had to be silent were.
pub(crate) fn compare(entries: &[Entry<'_>], options: &Options) -> bool {
    let steps = calibrate(WORK_NS);
    println!(
        "{CHANGES} changes a term, {WORK_NS:.0} ns of work between ({steps} steps); processor time over no accounting"
    );
    let threads = match options.numbers("--threads") {
        Some(threads) => threads,
        None if options.test() => vec![1, 2],
        None => vec![1, 2, 8, 30, 100],
    };
    let entries: Vec<&Entry<'_>> = entries
        .iter()
        .enumerate()
        .filter(|(number, entry)| *number < 2 || options.wants("--only", entry.name))
        .map(|(_, entry)| entry)
        .collect();
    let mut columns = Vec::new();
    let mut silent = true;
    for &threads in &threads {
        let (column, quiet) = compare_at(&entries, threads, steps, options);
        columns.push(column);
        silent &= quiet;
    }
    let heads: Vec<String> = threads.iter().map(ToString::to_string).collect();
    println!("\n| processor time over no accounting, threads | {} |", heads.join(" | "));
    println!("|---|{}", "--:|".repeat(threads.len()));
    for (row, entry) in entries.iter().enumerate().skip(1) {
        let name = if row == 1 { "nothing, compiled twice (least to most)" } else { entry.name };
        let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    silent
}

/// One number of threads: the cells of the table at the end, and whether all were silent that had to be.
fn compare_at(entries: &[&Entry<'_>], threads: usize, steps: u32, options: &Options) -> (Vec<String>, bool) {
    let (slice, mut rounds) = length(threads, options.test());
    if let Some(asked) = options.numbers("--rounds") {
        rounds = asked[0];
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pairs = slice.as_secs_f64() * cores.min(threads) as f64 / (2e-9 * WORK_NS * threads as f64);
    let load = Load { threads, pairs: pairs as u64, steps };
    let terms = 2 * load.pairs * threads as u64;

    let mut figures: Vec<[Figures; 3]> = entries.iter().map(|_| <[Figures; 3]>::default()).collect();
    let mut waits = vec![Some(0); entries.len()];
    let mut counts = vec![None::<Counts>; entries.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        let mut outcomes: Vec<Option<Outcome>> = entries.iter().map(|_| None).collect();
        for index in order {
            outcomes[index] = Some((entries[index].run)(load));
        }
        let outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        let mean = |of: fn(&Outcome) -> Duration| (of(&outcomes[0]) + of(&outcomes[1])).as_secs_f64() / 2.0;
        let (cpu, clock) = (mean(|outcome| outcome.cpu), mean(|outcome| outcome.clock));
        for (index, outcome) in outcomes.iter().enumerate() {
            // The second nothing is compared with the first one.
            let [cpu, clock] = match index {
                1 => [outcomes[0].cpu.as_secs_f64(), outcomes[0].clock.as_secs_f64()],
                _ => [cpu, clock],
            };
            figures[index][0].push(outcome.cpu.as_nanos() as f64 / terms as f64);
            figures[index][1].push(outcome.cpu.as_secs_f64() / cpu);
            figures[index][2].push(outcome.clock.as_secs_f64() / clock);
            waits[index] = waits[index].zip(outcome.waits).map(|(all, more)| all + more);
            if let Some(more) = outcome.counts {
                counts[index].get_or_insert_default().add(more);
            }
        }
    }

    println!("\n{threads} threads, {rounds} rounds of {terms} terms");
    println!(
        "{:34} {:>9} {:>9} {:>20} {:>9} {:>9}  publishes notifications decisions walks",
        "", "ns a term", "over", "least to most", "clock", "waits"
    );
    let million = (rounds as u64 * terms) as f64 / 1e6;
    let mut silent = true;
    let mut cells = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let [ns, cpu, clock] = &figures[index];
        let range = format!("{} to {}", percent(cpu.least()), percent(cpu.most()));
        let waits = waits[index].map_or("?".into(), |waits| format!("{:.1}", waits as f64 / million));
        let mut line = format!(
            "{:34} {:>9.1} {:>9} {range:>20} {:>9} {waits:>9}",
            entry.name,
            ns.median(),
            percent(cpu.median()),
            percent(clock.median())
        );
        if let Some(counts) = counts[index] {
            let all = [counts.publishes, counts.notifications, counts.decisions, counts.walks];
            let a_million = all.map(|count| format!("{:.1}", count as f64 / million));
            line += &format!("  {:>9} {:>13} {:>9} {:>5}", a_million[0], a_million[1], a_million[2], a_million[3]);
            if entry.silent && all != [0; 4] {
                line += "  NOT SILENT";
                silent = false;
            }
        }
        println!("{}", line.trim_end());
        cells.push(if index == 1 { format!("{} ({range})", percent(cpu.median())) } else { percent(cpu.median()) });
    }
    println!("waits (voluntary context switches) and the limiter's counts: for a million terms");
    (cells, silent)
}
