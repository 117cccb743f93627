//! What a build came to, and the table of two sides.
use crate::Outcome;
use std::fmt::Write;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Tantivy,
    Plimsoll,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Tantivy, Side::Plimsoll];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Tantivy => "tantivy",
            Side::Plimsoll => "index-build",
        }
    }
}

/// One build.
pub(crate) struct Build {
    pub(crate) mb_per_s: f64,
    /// Processor seconds of the whole process.
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) resident: f64,
    pub(crate) index_bytes: f64,
    pub(crate) documents: u64,
}

/// User and system seconds of all children so far.
#[cfg(unix)]
pub(crate) fn children() -> (f64, f64) {
    use nix::sys::resource::{UsageWho, getrusage};
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or((0.0, 0.0), |usage| (seconds(usage.user_time()), seconds(usage.system_time())))
}

/// Not told.
#[cfg(not(unix))]
pub(crate) fn children() -> (f64, f64) {
    (0.0, 0.0)
}

/// Least, median, most.
fn spread(builds: &[Build], figure: impl Fn(&Build) -> f64) -> [f64; 3] {
    let mut figures: Vec<f64> = builds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    [0, figures.len() / 2, figures.len() - 1].map(|at| figures[at])
}

/// The rows of one text and number of threads.
pub(crate) fn table(file: &Path, threads: usize, builds: &[Vec<Build>; 2]) -> Outcome<String> {
    let mut text = String::new();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    for (side, builds) in Side::BOTH.into_iter().zip(builds) {
        if builds.iter().any(|build| build.documents != builds[0].documents) {
            return Err(format!("{} does not index the same documents each time", side.name()));
        }
        let [least, median, most] = spread(builds, |build| build.mb_per_s);
        let middle = |figure: fn(&Build) -> f64| spread(builds, figure)[1];
        // writing to a String cannot fail
        let _ = writeln!(
            text,
            "| {name}, {threads} | {} | {median:.1} ({least:.1}..{most:.1}) | {:.2} + {:.2} | {:.0} MB | {:.1} MB |",
            side.name(),
            middle(|build| build.user),
            middle(|build| build.system),
            middle(|build| build.resident / 1e6),
            middle(|build| build.index_bytes / 1e6),
        );
    }
    if builds[0][0].documents != builds[1][0].documents {
        return Err(format!("{} and {} documents: not comparable", builds[0][0].documents, builds[1][0].documents));
    }
    let [tantivy, ours] = builds.each_ref().map(|builds| spread(builds, |build| build.mb_per_s)[1]);
    let [cpu, our_cpu] = builds.each_ref().map(|builds| spread(builds, |build| build.user + build.system)[1]);
    let _ = write!(text, "| {name}, {threads} | ratio | {:.2} | {:.2} | | |", ours / tantivy, our_cpu / cpu);
    Ok(text)
}
