//! Moving the windows of many writers at once, from several threads, while writers come and go. A story: the list of writers
//! changes its order when one leaves, so two threads that settled by lists of different ages locked the same two cells in
//! opposite orders, and both waited for ever.
mod common;

use common::fixed;
use plimsoll::KIB;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[test]
fn threads_that_settle_while_writers_come_and_go_do_not_wait_for_each_other_for_ever() {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let limiter = fixed().unlimited().build().expect("a valid configuration");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut idle: Vec<_> = (0..40).map(|n| limiter.reporter(&format!("idle {n}"))).collect();
            idle.iter().for_each(|reporter| reporter.charge(KIB));
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        assert!(limiter.settle() || !limiter.effective().process_barrier);
                        assert!(limiter.held_bytes() <= 41 * KIB);
                    }
                });
            }
            let until = Instant::now() + Duration::from_millis(500);
            let mut n = 0;
            while Instant::now() < until {
                n = (n * 31 + 17) % 40;
                let gone = idle.swap_remove(n);
                gone.release(KIB);
                drop(gone);
                let new = limiter.reporter("new");
                new.charge(KIB);
                idle.push(new);
            }
            stop.store(true, Relaxed);
            idle.iter().for_each(|reporter| reporter.release(KIB));
        });
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
        done.send(()).expect("the test waits");
    });
    match wait.recv_timeout(Duration::from_secs(20)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("deadlock"),
        _ => thread.join().expect("no thread panicked"),
    }
}
