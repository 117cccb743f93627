//! An arena that shrinks, or whose growth is refused, after the decider has looked at it and before it is asked: the
//! request covers what is there, not what was there.
use plimsoll::{ArenaHandle, ArenaView, GlobalMemoryLimiter, Reporter, SpillSelector};
use std::sync::{Arc, Mutex};

/// Chooses the first arena, whose owner empties it meanwhile.
#[derive(Debug, Clone, Default)]
struct Shrinks(Arc<Mutex<Option<(Reporter, ArenaHandle)>>>);

impl SpillSelector for Shrinks {
    fn name(&self) -> &'static str {
        "shrinks"
    }

    fn select(&self, arenas: &[ArenaView], _floor_bytes: usize, _need_bytes: usize, victims: &mut Vec<usize>) {
        let first = (0..arenas.len()).min_by_key(|&index| arenas[index].id);
        victims.extend(first);
        let owner = self.0.lock().expect("no panic").take();
        if let Some((reporter, mut arena)) = owner {
            arena.set_bytes(&reporter, 0);
            *self.0.lock().expect("no panic") = Some((reporter, arena));
        }
    }
}

#[test]
fn an_arena_that_shrinks_before_it_is_asked_is_not_counted_on() {
    let selector = Shrinks::default();
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(100)
        .floor_bytes(1)
        .block_bytes(1)
        .quantum_bytes(0)
        .selector(selector.clone())
        .build()
        .expect("valid");
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    let mut first_arena = first.arena("postings");
    let mut second_arena = second.arena("postings");
    first_arena.set_bytes(&first, 60);
    *selector.0.lock().expect("no panic") = Some((first, first_arena));
    second_arena.set_bytes(&second, 90);
    assert_eq!((limiter.held_bytes(), limiter.snapshot().in_flight_bytes), (90, 0), "60 were given back meanwhile");
    second_arena.set_bytes(&second, 150);
    assert!(second_arena.spill_requested(), "150 of 100, and nothing in flight");
}
