//! A subscriber that panics in the middle of a decision: the panic reaches whoever notified, and the next one decides.

use plimsoll::{GlobalMemoryLimiter, KIB, MIB};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

static PANIC_ONCE: AtomicBool = AtomicBool::new(false);

struct Panics;

impl<S: tracing::Subscriber> Layer<S> for Panics {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "plimsoll" && PANIC_ONCE.swap(false, Ordering::SeqCst) {
            panic!("the subscriber's own");
        }
    }
}

/// One test: the subscriber is the process's.
#[test]
fn a_subscriber_that_panics_harms_nobody_else() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Panics)).expect("nobody else sets one");
    after_it_the_next_notification_decides();
    every_call_that_a_panic_passes_through_leaves_nothing_behind();
}

fn after_it_the_next_notification_decides() {
    let limiter =
        GlobalMemoryLimiter::builder().budget_bytes(MIB).floor_bytes(32 * KIB).quantum_bytes(0).build().expect("valid");
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    let (mut first_arena, mut second_arena) = (first.arena("postings"), second.arena("postings"));
    first_arena.set_bytes(&first, 900 * KIB);
    PANIC_ONCE.store(true, Ordering::SeqCst);
    let grown = catch_unwind(AssertUnwindSafe(|| second_arena.set_bytes(&second, 500 * KIB)));
    assert!(grown.is_err(), "the panic is not swallowed");
    assert!(first_arena.spill_requested());
    first_arena.begin_spill(&first).expect("it was asked").finish(0);
    let decisions = limiter.stats().decisions;
    second_arena.set_bytes(&second, 2 * MIB);
    assert!(limiter.stats().decisions > decisions && second_arena.spill_requested(), "nobody decides any more");
    drop((first_arena, second_arena, first, second));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
}

/// A story: a reservation was charged, the decision that this brought about told a subscriber, which panicked, and the bytes
/// stayed charged without a reservation.
fn every_call_that_a_panic_passes_through_leaves_nothing_behind() {
    let limiter =
        GlobalMemoryLimiter::builder().budget_bytes(MIB).floor_bytes(32 * KIB).quantum_bytes(0).build().expect("valid");
    let (reporter, shared) = (limiter.reporter("writer"), limiter.shared_reporter("shared"));
    let other = limiter.reporter("other");
    let mut arena = other.arena("postings");
    let mut panics = 0;
    // Over the budget by `call`, with an arena that can be asked: the decision's record is told, and its subscriber panics.
    let mut passes = |what: &str, held: usize, call: &mut dyn FnMut()| {
        arena.set_bytes(&other, 0);
        arena.set_bytes(&other, MIB - held);
        assert!(!arena.spill_requested(), "{what}: not over yet");
        PANIC_ONCE.store(true, Ordering::SeqCst);
        let result = catch_unwind(AssertUnwindSafe(&mut *call));
        assert!(result.is_err() && !PANIC_ONCE.swap(false, Ordering::SeqCst), "{what}: no panic");
        assert_eq!(limiter.held_bytes(), MIB, "{what}: bytes without an owner");
        assert_eq!(limiter.published_bytes(), MIB, "{what}");
        arena.begin_spill(&other).expect("it was asked").finish(0);
        panics += 1;
    };
    passes("charge", 0, &mut || reporter.charge(KIB));
    passes("try_charge", 0, &mut || reporter.try_charge(KIB).expect("it panics before"));
    passes("reserve", 0, &mut || drop(reporter.reserve(KIB)));
    passes("try_reserve", 0, &mut || drop(reporter.try_reserve(KIB)));
    passes("shared charge", 0, &mut || shared.charge(KIB));
    passes("shared reserve", 0, &mut || drop(shared.reserve(KIB)));
    passes("shared try_reserve", 0, &mut || drop(shared.try_reserve(KIB)));
    let mut scratch = reporter.reserve(KIB);
    passes("grow", KIB, &mut || scratch.grow(&reporter, KIB));
    passes("try_grow", KIB, &mut || scratch.try_grow(&reporter, KIB).expect("it panics before"));
    passes("resize", KIB, &mut || scratch.resize(&reporter, 2 * KIB));
    passes("replace", KIB, &mut || drop(scratch.replace(&reporter, 2 * KIB)));
    passes("try_replace", KIB, &mut || drop(scratch.try_replace(&reporter, 2 * KIB)));
    assert_eq!(scratch.bytes(), KIB);
    let mut small = reporter.arena("small");
    passes("set_bytes, within the charge", KIB, &mut || small.set_bytes(&reporter, KIB));
    assert_eq!(small.bytes(), 0);
    passes("try_grow_bytes", KIB, &mut || small.try_grow_bytes(&reporter, KIB).expect("it panics before"));
    assert_eq!((small.bytes(), panics), (0, 14));
    drop((small, scratch, arena, reporter, other, shared));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.reserved_bytes()), (0, 0, 0));
    assert_eq!(limiter.stats().accounting_errors, 0);
    assert!(limiter.reconcile().is_none());
}
