//! What accounting costs: the same build in each mode, side by side.
//!
//! Each build is a process of its own, so that resident memory, the allocator's state and the counts of the system
//! belong to it alone. The modes take turns within a round and the order turns round between rounds, so that a drift of
//! the machine meets all of them; `off` is built twice in a round, and the gap between `off` and `off-again` is the
//! noise that any other gap has to be held against. One build before the first round brings the input into the page
//! cache and is not counted. There is no budget, so nothing spills but at the writer's cap, which is the same in all
//! modes; nothing is synced, so that the disk has no say. All builds have to make the same index.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | options, rounds, rows |
//! | `child` | one build in a process of its own |
//! | [`Spread`] (`spread`) | median, least and greatest of some figures |
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use serde::Serialize;

mod child;
mod spread;

use child::Measured;
pub use spread::Spread;

use crate::error::{Error, Result};
use crate::options::{Accounting, Format};

/// What to compare.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// The command itself.
    pub program: PathBuf,
    pub inputs: Vec<PathBuf>,
    pub format: Format,
    pub fields: Option<Vec<String>>,
    pub threads: Vec<usize>,
    pub rounds: u32,
    /// In the order of the first round.
    pub modes: Vec<Accounting>,
    pub writer_cap_bytes: Option<usize>,
    pub batch_bytes: u64,
    /// Where the temporary indexes go.
    pub dir: PathBuf,
}

/// Figures of one mode with one number of threads.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub threads: usize,
    /// The mode; `off-again` for the second `off` of a round.
    pub accounting: &'static str,
    pub mb_per_s: Spread,
    pub user_seconds: Spread,
    pub sys_seconds: Spread,
    /// Context switches of the whole process; null where the system does not count them.
    pub voluntary_switches: Option<Spread>,
    pub involuntary_switches: Option<Spread>,
    /// The median, as the notifications.
    pub publishes: u64,
    pub notifications: u64,
}

/// All of them: for each number of threads the modes in the order of the first round.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Comparison {
    pub rows: Vec<Row>,
}

/// One column of the comparison: a mode under the name of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Contender {
    name: &'static str,
    mode: Accounting,
}

/// The modes once each, and `off` once more at the end if it is among them.
fn contenders(modes: &[Accounting]) -> Vec<Contender> {
    let mut all: Vec<Contender> = Vec::new();
    for &mode in modes {
        if all.iter().all(|known| known.mode != mode) {
            all.push(Contender { name: mode.name(), mode });
        }
    }
    if modes.contains(&Accounting::Off) {
        all.push(Contender { name: "off-again", mode: Accounting::Off });
    }
    all
}

/// How many builds [`compare`] makes.
pub fn builds(options: &CompareOptions) -> u64 {
    1 + (options.threads.len() * contenders(&options.modes).len()) as u64 * u64::from(options.rounds)
}

/// Compares; `done` counts the finished builds, and `signal` is polled while one runs.
///
/// # Errors
/// What the first build that fails says; a failure if two builds make different indexes.
pub fn compare(options: &CompareOptions, done: &AtomicU64, signal: &AtomicI32) -> Result<Comparison> {
    let scratch = child::Scratch::create(&options.dir)?;
    let contenders = contenders(&options.modes);
    let mut first: Option<String> = None;
    let mut measure = |threads: usize, contender: Contender| -> Result<Measured> {
        let measured = child::run(options, &scratch, threads, contender.mode, signal)?;
        let digest = first.get_or_insert_with(|| measured.index_sha256.clone());
        if *digest != measured.index_sha256 {
            let name = contender.name;
            return Err(Error::Failed(format!(
                "the index of accounting {name} with {threads} threads differs from the first"
            )));
        }
        done.fetch_add(1, Relaxed); // a figure for a progress bar
        Ok(measured)
    };
    let mut comparison = Comparison::default();
    for (number, &threads) in options.threads.iter().enumerate() {
        if number == 0 {
            measure(threads, contenders[0])?;
        }
        let mut figures = vec![Vec::new(); contenders.len()];
        for round in 0..options.rounds {
            for turn in 0..contenders.len() {
                let at = if round % 2 == 0 { turn } else { contenders.len() - 1 - turn };
                figures[at].push(measure(threads, contenders[at])?);
            }
        }
        comparison
            .rows
            .extend(contenders.iter().zip(&figures).map(|(contender, runs)| row(threads, contender.name, runs)));
    }
    Ok(comparison)
}

fn row(threads: usize, accounting: &'static str, runs: &[Measured]) -> Row {
    let over = |figure: fn(&Measured) -> f64| Spread::of(runs.iter().map(figure));
    let switches = |which: fn(&child::Switches) -> u64| {
        let counts: Option<Vec<u64>> = runs.iter().map(|run| run.switches.as_ref().map(which)).collect();
        counts.map(|counts| Spread::of(counts.into_iter().map(|count| count as f64)))
    };
    Row {
        threads,
        accounting,
        mb_per_s: over(|run| run.mb_per_s),
        user_seconds: over(|run| run.user_seconds),
        sys_seconds: over(|run| run.sys_seconds),
        voluntary_switches: switches(|counts| counts.voluntary),
        involuntary_switches: switches(|counts| counts.involuntary),
        publishes: over(|run| run.publishes as f64).median.round() as u64,
        notifications: over(|run| run.notifications as f64).median.round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_is_built_twice_and_every_mode_once() {
        use Accounting::*;
        let names = |modes: &[Accounting]| contenders(modes).iter().map(|c| c.name).collect::<Vec<_>>();
        assert_eq!(names(&[Off, PerTerm, Batched]), ["off", "per-term", "batched", "off-again"]);
        assert_eq!(names(&[Batched, Off, Batched, Off]), ["batched", "off", "off-again"]);
        assert_eq!(names(&[Batched]), ["batched"]);
    }

    #[test]
    fn figures_that_one_run_lacks_are_null_in_the_row() {
        let run = |switches| Measured { mb_per_s: 2.0, publishes: 3, switches, ..Measured::default() };
        let counts = |voluntary| Some(child::Switches { voluntary, involuntary: 1 });
        let all = row(1, "off", &[run(counts(5)), run(counts(9))]);
        assert_eq!(all.voluntary_switches, Some(Spread { median: 7.0, min: 5.0, max: 9.0 }));
        assert_eq!(all.publishes, 3);
        assert_eq!(row(1, "off", &[run(counts(5)), run(None)]).voluntary_switches, None);
    }
}
