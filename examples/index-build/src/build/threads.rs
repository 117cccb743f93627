//! The run of a build: flush threads that take batches in order, one thread that digests the input, one that samples.
//!
//! Every thread is joined before this returns, whatever happens; a panic is a failure like any other. When it returns, all
//! accounts are gone, so the limiter is at 0.
use crate::accounting::{Charge, Mode};
use crate::build::admission::Admission;
use crate::build::done::Done;
use crate::build::outcome::Outcome;
use crate::build::plan::Plan;
use crate::build::shared::{Counts, Shared, room};
use crate::build::turns::Turns;
use crate::build::watch::Watch;
use crate::build::{batch, panicked};
use crate::error::{Error, Result};
use crate::input::{self, Cutter, Kind};
use plimsoll::GlobalMemoryLimiter;
use plimsoll::spill::SpillFolder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two samples of what is held.
const SAMPLE: Duration = Duration::from_millis(10);
/// The block in which the input is digested.
const DIGEST_BLOCK_BYTES: usize = 64 << 10;

/// What the sampler saw.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Samples {
    pub(super) mean_held_bytes: usize,
    /// The largest.
    pub(super) lag_bound_bytes: usize,
}

/// A run that went well.
#[derive(Debug)]
pub(super) struct Ran {
    /// In input order.
    pub(super) done: Vec<Done>,
    /// In byte order.
    pub(super) fields: Vec<String>,
    /// Length and SHA-256 of all input.
    pub(super) digest: (u64, String),
    pub(super) counts: Counts,
    pub(super) samples: Samples,
}

/// Builds all batches. The account is that of what is returned, and of the input's list.
pub(super) fn run<M: Mode>(
    plan: &Plan,
    mode: &M,
    watch: &Watch,
    index: &Path,
    spill: &SpillFolder,
    charge_spills: bool,
    limiter: Option<&GlobalMemoryLimiter>,
) -> Result<(Ran, M::Account)> {
    let mut kept = mode.account("lists");
    room(&mut kept, "the list of inputs", plan.inputs.allocated_bytes())?;
    kept.charge(plan.inputs.allocated_bytes());
    let digest_block_bytes = DIGEST_BLOCK_BYTES.min(plan.input_block_bytes);
    let mut digest_account = mode.account("digest");
    room(&mut digest_account, "the digest of the input", digest_block_bytes)?;
    let shared = Shared {
        plan,
        mode,
        watch,
        index,
        spill,
        spill_charge: charge_spills.then(|| Mutex::new(mode.account("runs in memory"))),
        kept: Mutex::new(kept),
        cutter: Mutex::new(Cutter::new(&plan.inputs, plan.batch_bytes)),
        // under a hard limit turns are taken instead
        admission: Admission::new(if M::HARD { None } else { plan.budget_bytes }),
        turns: Turns::new(if M::HARD { plan.hard } else { None }),
        outcome: Outcome::new(),
        counts: Counts::default(),
    };
    let ended = AtomicBool::new(false);
    let digest = || {
        let mut account = digest_account;
        input::digest(&plan.inputs, digest_block_bytes, &mut account, &mut || shared.go_on(u32::MAX))
    };
    let (digest, samples) = thread::scope(|scope| {
        let named = |name: String| thread::Builder::new().name(name);
        let sampler = limiter.map(|limiter| {
            let ended = &ended;
            named("sampler".to_owned()).spawn_scoped(scope, move || sample(limiter, watch, ended))
        });
        let digest = named("digest".to_owned()).spawn_scoped(scope, || guarded(&shared, "digest", digest));
        let flushes: Vec<_> = (0..plan.threads)
            .map(|number| {
                let work = || guarded(&shared, "flush", || flush(&shared));
                named(format!("flush-{number}")).spawn_scoped(scope, work)
            })
            .collect();
        let digest = spawned(&shared, digest).flatten();
        for flush in flushes {
            spawned(&shared, flush);
        }
        ended.store(true, Ordering::Relaxed);
        let samples = sampler.and_then(|sampler| {
            let sampler = sampler.ok()?;
            sampler.thread().unpark();
            sampler.join().ok()
        });
        (digest, samples.unwrap_or_default())
    });
    let Shared { outcome, counts, kept, .. } = shared;
    let (done, fields) = outcome.end()?;
    let digest = digest.ok_or_else(|| Error::Failed("the input was not digested".to_owned()))?;
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((Ran { done, fields, digest, counts, samples }, kept))
}

/// Waits for a thread; if it could not be started, that is the failure.
fn spawned<T, M: Mode>(shared: &Shared<'_, M>, thread: std::io::Result<thread::ScopedJoinHandle<'_, T>>) -> Option<T> {
    match thread {
        // its panics were caught inside
        Ok(thread) => thread.join().ok(),
        Err(error) => {
            shared.outcome.fail((0, 0, 0), Error::Failed(format!("a thread could not be started: {error}")));
            None
        }
    }
}

/// Runs a thread's work; a failure or a panic stops the build.
fn guarded<T, M: Mode>(shared: &Shared<'_, M>, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
    let error = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => return Some(done),
        Ok(Err(error)) => error,
        Err(payload) => panicked(name, payload.as_ref()),
    };
    shared.outcome.fail((0, 0, 0), error);
    None
}

/// Takes batches until there are none.
fn flush<M: Mode>(shared: &Shared<'_, M>) -> Result<()> {
    let plan = shared.plan;
    loop {
        shared.go_on(0)?;
        let fields = match plan.inputs.kind {
            Kind::Text => 1,
            Kind::Jsonl => shared.counts.fields.load(Ordering::Relaxed).max(1),
        };
        let need = plan.block_bytes * fields + plan.limits.block_bytes + plan.input_block_bytes;
        let turn = shared.turns.enter(|| fields_of_a_batch(shared), || shared.go_on(0))?;
        let ticket = shared.admission.admit(need, || shared.mode.held_bytes(), || shared.go_on(0))?;
        let cut = shared.cutter.lock().unwrap_or_else(PoisonError::into_inner).cut()?;
        let Some(next) = cut else { return Ok(()) };
        if shared.outcome.go_on(next.number).is_err() {
            return Ok(());
        }
        batch::run(shared, next, ticket, turn);
    }
}

/// The fields that the next batch will have, as far as it is known: 0 if it is not.
fn fields_of_a_batch<M: Mode>(shared: &Shared<'_, M>) -> usize {
    let seen = shared.counts.fields.load(Ordering::Relaxed);
    match shared.plan.inputs.kind {
        Kind::Text => 1,
        Kind::Jsonl => shared.plan.fields.as_ref().map_or(seen, Vec::len),
    }
}

/// Looks every 10 ms at what is held.
fn sample(limiter: &GlobalMemoryLimiter, watch: &Watch, ended: &AtomicBool) -> Samples {
    let (mut sum, mut count, mut lag) = (0u128, 0u128, 0);
    while !ended.load(Ordering::Relaxed) {
        let held = limiter.held_bytes();
        sum += held as u128;
        count += 1;
        lag = lag.max(limiter.lag_bound_bytes());
        watch.held_bytes.store(held as u64, Ordering::Relaxed);
        thread::park_timeout(SAMPLE);
    }
    watch.held_bytes.store(0, Ordering::Relaxed);
    Samples { mean_held_bytes: usize::try_from(sum / count.max(1)).unwrap_or(usize::MAX), lag_bound_bytes: lag }
}
