//! Random sequences of public calls by several writers, against a plain sequential model. `PLIMSOLL_CASES` multiplies the
//! number of cases (3000, of some 40 calls). After every call:
//!
//! 1. `held_bytes()` is exactly the sum of what the writers hold, and each writer's total is its own;
//! 2. `published_bytes()` differs from it by at most `lag_bound_bytes()`, which is within the lag budget;
//! 3. what is held is reserved, and nothing is reserved past the hard limit but what is held;
//! 4. a `try_` call is refused exactly when the model says so, with its numbers, and then nothing has changed: nobody is
//!    refused while there is room, and nobody is granted anything past the hard limit, the reserve, a cap or an arena's end;
//! 5. a charge that cannot be refused is an overdraft of exactly what it records past the hard limit;
//! 6. a decision asks for no more than it needs and for no less, unless it says what is missing;
//! 7. what is over the budget, by the lagged sum as well, is in flight, or nobody is left who could be asked;
//! 8. `reconcile()` finds no drift, and settings that contradict one another are refused by name;
//! 9. at the end every sum is exactly 0, without an accounting error.
//!
//! `ops` lists the calls, `settings` and `model` are the model, `world` and the `on_*` files make the calls, `look` compares.
mod look;
mod model;
mod on_accounts;
mod on_arenas;
mod on_limiter;
mod on_reservations;
mod ops;
mod settings;
mod writer;

use crate::model::World;
use crate::ops::Step;
use crate::settings::Settings;
use crate::writer::with_account;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use std::cell::Cell;

fn cases() -> u32 {
    let times = std::env::var("PLIMSOLL_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    3_000_u32.saturating_mul(times)
}

fn agree(settings: Settings, steps: &[Step], done: &Cell<u64>) -> Result<(), TestCaseError> {
    let mut world = World::new(settings);
    for step in steps {
        world.step(*step);
        world.look();
        done.set(done.get() + 1);
        prop_assert!(world.errors.is_empty(), "{:?}: {:?}", step, world.errors);
    }
    let limiter = world.limiter.clone();
    for writer in &mut world.writers {
        with_account!(writer, |account| account.release(writer.charged));
    }
    drop(world);
    prop_assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
    prop_assert_eq!((limiter.reserved_bytes(), limiter.live_reporters(), limiter.live_arenas()), (0, 0, 0));
    prop_assert_eq!((limiter.stats().accounting_errors, limiter.snapshot().in_flight_bytes), (0, 0));
    prop_assert!(limiter.reconcile().is_none());
    Ok(())
}

#[test]
fn any_sequence_of_calls_agrees_with_the_model() {
    let config =
        ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..Default::default() };
    let done = Cell::new(0);
    let sequences = (settings::settings(), ops::steps());
    let result = TestRunner::new(config).run(&sequences, |(settings, steps)| agree(settings, &steps, &done));
    println!("{} operations", done.get());
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, (settings, steps))) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
            panic!("{why}\n{settings:?}\n{}", steps.join("\n"))
        }
        Err(other) => panic!("{other}"),
    }
}
