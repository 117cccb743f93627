//! The flush that saves the process is never the one that is refused.

use crate::records::{Count, folder, plainly, records, refusal};
use plimsoll::spill::merge::{MergeLimits, Unwatched, merge, reduce};
use plimsoll::spill::spool::flush_bytes;
use plimsoll::spill::{Charge, DiskQuota, Earmark, SpillError, Spool};
use plimsoll::{GlobalMemoryLimiter, KIB, MIB, ReserveError};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An account that somebody else looks at.
#[derive(Debug)]
struct Seen<'a>(&'a Cell<usize>, &'a Cell<usize>);

impl Charge for Seen<'_> {
    fn charge(&mut self, bytes: usize) {
        self.0.set(self.0.get() + bytes);
    }
    fn release(&mut self, bytes: usize) {
        self.0.set(self.0.get().checked_sub(bytes).expect("no more is released than was charged"));
    }
    fn try_charge(&mut self, bytes: usize) -> Result<(), ReserveError> {
        if self.0.get() + bytes > self.1.get() {
            return Err(refusal());
        }
        self.charge(bytes);
        Ok(())
    }
}

#[test]
fn an_earmark_is_spent_first_and_the_account_behind_it_after() {
    let (held, limit) = (Cell::new(0), Cell::new(100));
    assert!(Earmark::take(Seen(&held, &limit), 101).is_err() && held.get() == 0, "refused, and nothing is taken");
    let mut earmark = Earmark::take(Seen(&held, &limit), 100).unwrap();
    assert_eq!(held.get(), 100);
    // the limit is full
    earmark.try_charge(60).unwrap();
    earmark.charge(40);
    assert_eq!((earmark.taken_bytes(), earmark.charged_bytes(), held.get()), (100, 100, 100));
    assert!(earmark.try_charge(1).is_err() && earmark.charged_bytes() == 100, "nothing has changed");
    assert!(earmark.refill().is_err() && earmark.taken_bytes() == 100);
    limit.set(130);
    earmark.try_charge(10).unwrap();
    assert_eq!(held.get(), 110);
    earmark.release(20);
    assert_eq!((earmark.charged_bytes(), held.get()), (90, 100), "what went beyond goes back first");
    earmark.release(70);
    earmark.refill().unwrap();
    assert_eq!((held.get(), earmark.taken_bytes()), (120, 120), "100 beside what is charged");
    earmark.release(20);
    earmark.refill().unwrap();
    assert_eq!((held.get(), earmark.taken_bytes()), (100, 100));
    earmark.charge(130);
    assert_eq!(held.get(), 130, "who must not be refused is not");
    drop(earmark);
    assert_eq!(held.get(), 0, "all of it goes back");
}

/// What is said to be enough for a flush and the smallest merge is, to the byte.
#[test]
fn a_flush_and_the_smallest_merge_take_no_more_than_is_earmarked() {
    let (parent, quota) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited());
    let folder = folder(parent.path(), &quota);
    for (block_bytes, key_bytes) in [(256, 9), (4096, 300), (64 << 10, 5000)] {
        let limits = MergeLimits { block_bytes, fan_in: 2 };
        let bytes = flush_bytes(&folder, 4, limits, key_bytes);
        let mut account = Count { limit: bytes, ..Count::default() };
        let mut spool = Spool::new(&folder, "name");
        for number in 0..3u8 {
            let mut run = spool.begin(block_bytes, 0, &mut account).unwrap();
            run.begin_record(&vec![number; key_bytes], &mut account).unwrap();
            run.piece(&vec![number; 2 * block_bytes], true).unwrap();
            run.end_record().unwrap();
            run.finish(&mut account).unwrap();
        }
        reduce(&mut spool, 1, limits, &mut account, &mut Unwatched).unwrap();
        assert_eq!(spool.len(), 1);
        assert!(account.peak > bytes / 2, "it is not far more either: {} of {bytes}", account.peak);
        spool.clear(&mut account).unwrap();
        assert_eq!(account.held, 0);
    }
}

/// Four threads take whatever there is and give it back, so that the limit is full nearly always. A writer without an
/// earmark is refused then; with one it spills and merges every time, and the limit is kept.
#[test]
fn nobody_can_take_what_the_flush_needs() {
    let (parent, quota) = (tempfile::tempdir().unwrap(), DiskQuota::unlimited());
    let folder = folder(parent.path(), &quota);
    let limiter = GlobalMemoryLimiter::builder().hard_limit_bytes(MIB).build().unwrap();
    let limits = MergeLimits { block_bytes: 4096, fan_in: 2 };
    let writer = limiter.shared_reporter("writer");
    let mut earmark = Earmark::take(&writer, flush_bytes(&folder, 1, limits, 400)).unwrap();
    let done = AtomicBool::new(false);
    let refusals = AtomicU64::new(0);
    let mut refused = 0;
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (limiter, done, refusals) = (&limiter, &done, &refusals);
            scope.spawn(move || {
                let greedy = limiter.reporter(&format!("greedy {number}"));
                let mut held = 0;
                while !done.load(Ordering::Relaxed) {
                    for step in [64 * KIB, 4 * KIB, 64] {
                        while greedy.try_charge(step).is_ok() {
                            held += step;
                        }
                    }
                    // more often full than not
                    if refusals.fetch_add(1, Ordering::Relaxed).is_multiple_of(50) {
                        greedy.release(std::mem::take(&mut held));
                    }
                    std::thread::yield_now();
                }
                greedy.release(held);
            });
        }
        while refusals.load(Ordering::Relaxed) < 20 {
            std::thread::yield_now();
        }
        for round in 0..60u32 {
            let mut spool = Spool::new(&folder, "s");
            for number in 0..6 {
                // without an earmark
                let mut plain = Spool::new(&folder, "p");
                match plain.begin(limits.block_bytes, 400, &mut &writer) {
                    Ok(run) => run.abandon(&mut &writer),
                    Err(error) => {
                        assert!(matches!(error, SpillError::Memory(_)), "{error}");
                        refused += 1;
                    }
                }
                plain.clear(&mut &writer).unwrap();
                let mut run = spool.begin(limits.block_bytes, 400, &mut earmark).unwrap();
                for (key, spans) in records(round + number) {
                    run.begin_record(&key, &mut earmark).unwrap();
                    spans.iter().for_each(|span| run.piece(span, true).unwrap());
                    run.end_record().unwrap();
                }
                run.finish(&mut earmark).unwrap();
            }
            reduce(&mut spool, 0, limits, &mut earmark, &mut Unwatched).unwrap();
            let mut readers = spool.open(&mut earmark).unwrap();
            let mut all = crate::records::Collect::default();
            merge(&mut readers, &mut all, &mut earmark, &mut Unwatched).unwrap();
            readers.into_iter().for_each(|reader| reader.release(&mut earmark));
            assert_eq!(all.plain, plainly((round..round + 6).map(records)));
            spool.clear(&mut earmark).unwrap();
            assert_eq!(earmark.charged_bytes(), 0);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(refused > 0, "the limit was full at times");
    let stats = limiter.stats();
    assert!(stats.peak_held_bytes <= MIB && stats.overdraft_peak_bytes == 0, "{stats:?}");
    drop(earmark);
    assert_eq!((limiter.held_bytes(), quota.used_bytes()), (0, 0));
}
