//! Loops compared in alternating rounds of one run.
//!
//! Every loop runs once a round, and the order is turned round from one round to the next, so that a machine which gets
//! slower or faster meanwhile does so for all of them. What a loop costs is its processor time less that of the first
//! loop, which is empty, in the same round. The second loop is the empty one compiled again: what it seems to cost is noise.

use super::figures::{Figures, nanos};
use cpu_time::ThreadTime;
use std::time::Duration;

/// One loop. `run` goes round as often as it is told.
pub(crate) struct Loop<'a> {
    pub(crate) name: &'static str,
    /// Changes each time round.
    pub(crate) changes: f64,
    /// The most that a change shall cost, in nanoseconds; none if it is only shown.
    pub(crate) target_ns: Option<f64>,
    pub(crate) run: Box<dyn FnMut(u64) + 'a>,
}

/// How long to compare.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) rounds: usize,
    pub(crate) slice: Duration,
}

/// Compares, and prints nanoseconds a change.
pub(crate) fn compare(loops: &mut [Loop<'_>], length: Length) {
    let times: Vec<u64> = loops.iter_mut().map(|one| calibrate(&mut one.run, length.slice)).collect();
    let mut figures: Vec<Figures> = loops.iter().map(|_| Figures::default()).collect();
    let mut round = vec![0.0; loops.len()];
    for number in 0..length.rounds {
        let mut order: Vec<usize> = (0..loops.len()).collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let start = ThreadTime::now();
            (loops[index].run)(times[index]);
            round[index] = start.elapsed().as_nanos() as f64 / times[index] as f64;
        }
        for (index, figures) in figures.iter_mut().enumerate() {
            let over = if index == 0 { round[0] } else { round[index] - round[0] };
            figures.push(over / loops[index].changes);
        }
    }
    println!("{:34} {:>10} {:>22} {:>8}", "ns a change, over the empty loop", "median", "least to most", "target");
    for (one, figures) in loops.iter().zip(&figures) {
        let target = one.target_ns.map_or("-".into(), nanos);
        let missed = one.target_ns.is_some_and(|target| figures.median() > target);
        let range = format!("{} to {}", nanos(figures.least()), nanos(figures.most()));
        println!(
            "{:34} {:>10} {range:>22} {target:>8}{}",
            one.name,
            nanos(figures.median()),
            if missed { "  above" } else { "" }
        );
    }
    println!("{} rounds of {:?} each; the first line is the empty loop itself", length.rounds, length.slice);
}

/// How often it goes round in a slice of time.
pub(crate) fn calibrate(run: &mut dyn FnMut(u64), slice: Duration) -> u64 {
    let mut times = 100;
    loop {
        let start = ThreadTime::now();
        run(times);
        let passed = start.elapsed();
        if passed * 4 > slice {
            let fits = times as f64 * slice.as_secs_f64() / passed.as_secs_f64();
            return fits.max(1.0) as u64;
        }
        times *= 2;
    }
}
