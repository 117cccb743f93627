//! Every model records the outcomes that it saw, and the set is asserted: a model that explores one order alone shows one
//! outcome and fails. Every protocol has a **mutant** that has to fail: a place in the code (`crate::sync::mutant`) where an
//! ordering is weakened or a step left out. A model that cannot fail proves nothing.
//!
//! | file | acts |
//! |---|---|
//! | `cells` | publish against publish on a shared account; drop, fold and transfer against the exact read |
//! | `windows` | a window moved while its owner changes |
//! | `limits` | the hard limit: credit taken, called back, refused; the limit lowered; the shared form |
//! | `deciding` | who crosses the line walks; a notification during a decision |
//! | `spills` | a request against begin, finish, abort and leaving |
//! | `workspaces` | a drop elsewhere against an attempt here |
//! | `descriptors` (feature `spill`) | who waits for a descriptor against who lets go of one |

mod cells;
mod deciding;
#[cfg(feature = "spill")]
mod descriptors;
mod limits;
mod spills;
mod windows;
mod workspaces;

use crate::GlobalMemoryLimiter;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

thread_local! {
    /// Loom runs all threads of a model on the thread that asked for it.
    static MUTANT: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether the code under test is to misbehave in this way.
pub(crate) fn mutant(name: &str) -> bool {
    MUTANT.get() == Some(name)
}

/// Explores every order (within the bound of preemptions) and answers the outcomes.
fn outcomes<O: Ord + Send + 'static>(model: impl Fn() -> O + Sync + Send + 'static) -> BTreeSet<O> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let record = Arc::clone(&seen);
    // Bounds of preemptions and the like come from the environment, as for `loom::model`.
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.check(move || {
        let outcome = model();
        record.lock().expect("not poisoned").insert(outcome);
    });
    let seen = std::mem::take(&mut *seen.lock().expect("not poisoned"));
    seen
}

/// The same as on the machine, where the owner's cheap fence orders nothing by itself: a full fence in its place, as the
/// process-wide barrier needs it in a model, would hide what other protocols lack.
fn outcomes_unfenced<O: Ord + Send + 'static>(model: impl Fn() -> O + Sync + Send + 'static) -> BTreeSet<O> {
    MUTANT.set(Some("no_light_fence"));
    let result = catch_unwind(AssertUnwindSafe(|| outcomes(model)));
    MUTANT.set(None);
    result.unwrap_or_else(|failure| std::panic::resume_unwind(failure))
}

/// The same with a mutant in place: some order has to fail.
fn fails<O: Ord + Send + 'static>(name: &'static str, model: impl Fn() -> O + Sync + Send + 'static) {
    MUTANT.set(Some(name));
    let result = catch_unwind(AssertUnwindSafe(|| outcomes(model)));
    MUTANT.set(None);
    assert!(result.is_err(), "the model does not notice the mutant {name}");
}

/// A limiter with small numbers: bytes are units here.
fn limiter(budget: usize, quantum: usize) -> GlobalMemoryLimiter {
    GlobalMemoryLimiter::builder()
        .budget_bytes(budget)
        .block_bytes(1)
        .floor_bytes(1)
        .quantum_bytes(quantum)
        .spill_backoff(Duration::ZERO)
        .build()
        .expect("the numbers are valid")
}

/// Nothing is being changed: the lagged sum is within its bound.
fn assert_lag_bound(limiter: &GlobalMemoryLimiter) {
    let (held, published, bound) = (limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes());
    assert!(held.abs_diff(published) <= bound, "{held} held, {published} published, bound {bound}");
}

/// Everything is dropped: every sum is exactly 0.
fn assert_nothing_left(limiter: &GlobalMemoryLimiter) {
    assert_eq!(limiter.held_bytes(), 0, "held");
    assert_eq!(limiter.published_bytes(), 0, "published");
    assert_eq!(limiter.lag_bound_bytes(), 0, "granted");
    assert_eq!(limiter.stats().accounting_errors, 0, "mistakes");
}
