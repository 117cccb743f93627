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

#[test]
fn after_a_subscriber_has_panicked_in_a_decision_the_next_notification_decides() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Panics)).unwrap();
    let limiter =
        GlobalMemoryLimiter::builder().budget_bytes(MIB).floor_bytes(32 * KIB).quantum_bytes(0).build().unwrap();
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
