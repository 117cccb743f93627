//! What a thread does between the changes of two terms: some 200 ns of hashing, counting and appending, in its own memory.

use cpu_time::ThreadTime;
use std::hint::black_box;

const COUNTS: usize = 8 * 1024;
const BYTES: usize = 16 * 1024;

/// One thread's table of counts and its posting bytes.
pub(crate) struct Work {
    counts: Vec<u32>,
    postings: Vec<u8>,
    hash: u64,
    end: usize,
    /// Steps of one term's work.
    steps: u32,
}

impl Work {
    pub(crate) fn new(steps: u32) -> Self {
        Work { counts: vec![0; COUNTS], postings: vec![0; BYTES], hash: 0x9e37_79b9_7f4a_7c15, end: 0, steps }
    }

    /// One term's work. Answers what it comes to, so that it is done.
    #[inline(always)]
    pub(crate) fn term(&mut self) -> u64 {
        for _ in 0..self.steps {
            // Not to be computed in one go: each step depends on the one before, as bytes of a hash do.
            self.hash = (self.hash ^ (self.hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let count = &mut self.counts[self.hash as usize % COUNTS];
            *count = count.wrapping_add(1);
            self.postings[self.end % BYTES] = *count as u8;
            self.end = self.end.wrapping_add(1);
        }
        self.hash
    }
}

/// Steps that take `ns` nanoseconds a term on this machine now: the fastest of several tries, as others only slow it down.
pub(crate) fn calibrate(ns: f64) -> u32 {
    const STEPS: u32 = 64;
    const TERMS: u32 = 5_000;
    let mut work = Work::new(black_box(STEPS));
    let mut term = f64::INFINITY;
    for _ in 0..50 {
        let start = ThreadTime::now();
        for _ in 0..TERMS {
            black_box(work.term());
        }
        term = term.min(start.elapsed().as_nanos() as f64 / f64::from(TERMS));
    }
    ((f64::from(STEPS) * ns / term).round() as u32).max(1)
}
