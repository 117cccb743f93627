//! What an exact read promises: each writer's total as it was at some instant of the read. A story: a reader that looked at
//! what was given back without the owner, and then at what the owner holds, counted bytes twice which were dropped and
//! charged anew in between.
mod common;

use common::fixed;
use plimsoll::KIB;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[test]
fn a_total_is_never_seen_higher_than_it_ever_was() {
    const BYTES: usize = 600 * KIB; // so that every second change folds what was given back
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let stop = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut most = 0;
            while !stop.load(SeqCst) {
                for _ in 0..100 {
                    most = limiter.held_bytes().max(most);
                }
            }
            most
        });
        let reporter = limiter.reporter("owner");
        for _ in 0..2_000_000 {
            drop(reporter.reserve(BYTES)); // as on another thread: not through its reporter
        }
        stop.store(true, SeqCst);
        reader.join().expect("no panic there")
    });
    assert!(most <= BYTES, "{most} were never held");
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
}
