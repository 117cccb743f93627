//! The limiter's handle.

use super::builder::LimiterBuilder;
use super::cell::Form;
use super::core::Core;
use super::decide::POLL;
use super::effective::Effective;
use super::explain::Explanation;
use super::reconcile::Drift;
use super::reporter::Reporter;
use super::settings::{Budget, NONE, Wanted};
use super::shared::SharedReporter;
use super::snapshot::Snapshot;
use crate::error::{ConfigError, ReserveError};
use crate::telemetry::Stats;
use std::sync::Arc;

/// Tells a process what every index writer holds, and says who must spill when that is more than its budget.
///
/// A cheap handle: clones are the same limiter. Reporters may outlive it. An ordinary value for tests and for embedding;
/// the process's own is [`global`](Self::global).
///
/// It is told of an arena only when the arena's block size changes, and of everything else once a quantum. Then it
/// compares the lagged sum with the budget; above it, it walks all writers for the exact sum and asks the largest arenas
/// to spill until what is over is covered. The flag is advisory: the owner spills on its own thread.
///
/// # What a budget does not bound
///
/// The budget is a soft line. Growth is recorded, not refused; what is held passes the budget by what writers add until they
/// honour a request (with a fixed quantum, by the lag too: [`lag_bound_bytes`](Self::lag_bound_bytes)). Memory that nobody
/// reports (allocator slack, stacks, the page cache) is not counted: leave headroom for it.
///
/// # The hard limit
///
/// With [`hard_limit_bytes`](LimiterBuilder::hard_limit_bytes), no `try_` call is granted that takes what is held past it, and
/// none is refused while others have credit that they do not use: it is called back before. Calls without `try_` record
/// what exists, and never fail; beyond the limit that is an overdraft ([`overdraft_bytes`](Self::overdraft_bytes)). After a
/// refusal changes are published one by one, which costs some 100 ns each, until there is room again.
///
/// # Blocking
///
/// Nothing here waits for other writers to give something back. Walks ([`held_bytes`](Self::held_bytes),
/// [`snapshot`](Self::snapshot)) hold the registry's read lock: registering a writer meanwhile waits for the walk, some 20 ns
/// a writer. Calling credit back locks 64 writers at a time, for some microseconds.
///
/// # Memory ordering
///
/// See [`Reporter`]. The lagged sum is read with Acquire and moved with Acquire and Release after the writer's own total:
/// whoever sees a published amount sees, in a walk, every byte of it.
#[derive(Debug, Clone)]
pub struct GlobalMemoryLimiter {
    keeper: Arc<Keeper>,
}

/// Goes with the last handle, and tells if bytes are still held then.
#[derive(Debug)]
struct Keeper(Arc<Core>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.tell_if_held();
    }
}

impl Core {
    fn tell_if_held(&self) {
        let mut snapshot = self.snapshot();
        snapshot.writers.retain(|writer| writer.held_bytes > 0);
        if snapshot.held_bytes > 0 {
            self.telemetry.closed_while_held(&snapshot);
        }
    }
}

impl GlobalMemoryLimiter {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        GlobalMemoryLimiter { keeper: Arc::new(Keeper(core)) }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.keeper.0
    }

    /// Options, unlimited at first.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::new()
    }

    /// Registers a writer. Names are for people and need not be unique.
    pub fn reporter(&self, name: &str) -> Reporter {
        Reporter::new(self.core().join(name, Form::Owned, None))
    }

    /// Registers a writer with a cap of its own, in bytes, instead of the limiter's.
    pub fn reporter_with_cap(&self, name: &str, cap_bytes: usize) -> Reporter {
        Reporter::new(self.core().join(name, Form::Owned, Some(cap_bytes)))
    }

    /// Registers an account that several threads change.
    pub fn shared_reporter(&self, name: &str) -> SharedReporter {
        SharedReporter::new(self.core().join(name, Form::Shared, None))
    }

    /// The same with a cap of its own, in bytes.
    pub fn shared_reporter_with_cap(&self, name: &str, cap_bytes: usize) -> SharedReporter {
        SharedReporter::new(self.core().join(name, Form::Shared, Some(cap_bytes)))
    }

    /// The exact sum, by a walk over all writers: each is exact at some instant of the walk, and not older than the last
    /// change that happens before it. Not a snapshot: changes go on meanwhile.
    pub fn held_bytes(&self) -> usize {
        self.core().registry.exact_bytes(|_| true)
    }

    /// The lagged sum: one load. It differs from the exact sum by at most [`lag_bound_bytes`](Self::lag_bound_bytes), and
    /// by the one change that each owner is making at the moment.
    pub fn published_bytes(&self) -> usize {
        self.core().ledger.published_bytes()
    }

    /// What all live reporters together may hold back.
    pub fn lag_bound_bytes(&self) -> usize {
        self.core().ledger.granted_bytes()
    }

    /// The budget in force; none is unlimited.
    pub fn budget_bytes(&self) -> Option<usize> {
        let budget = self.core().settings.budget_bytes();
        (budget != usize::MAX).then_some(budget)
    }

    /// What the budget leaves (or the hard limit, without a budget), by the lagged sum: 0 above it, never less. Without
    /// either it is `usize::MAX`.
    pub fn available_bytes(&self) -> usize {
        let limit = self.budget_bytes().or(self.hard_limit_bytes());
        limit.map_or(usize::MAX, |limit| limit.saturating_sub(self.published_bytes()))
    }

    /// What is published and what writers may take without asking: no true total is above it, but for the one change that
    /// each owner is making. One load.
    pub fn reserved_bytes(&self) -> usize {
        self.core().ledger.reserved_bytes()
    }

    /// The hard limit in force, if there is one.
    pub fn hard_limit_bytes(&self) -> Option<usize> {
        let hard = self.core().settings.hard_limit_bytes();
        (hard != NONE).then_some(hard)
    }

    /// How far what is reserved is above the hard limit: charges that recorded what exists. 0 without a hard limit.
    pub fn overdraft_bytes(&self) -> usize {
        self.hard_limit_bytes().map_or(0, |hard| self.reserved_bytes().saturating_sub(hard))
    }

    /// Live writers, shared accounts included.
    pub fn live_reporters(&self) -> usize {
        self.core().registry.live()
    }

    /// Live arenas.
    pub fn live_arenas(&self) -> usize {
        self.core().registry.arenas.len()
    }

    /// Counts since the limiter was built. Walks the live arenas.
    pub fn stats(&self) -> Stats {
        self.core().stats()
    }

    /// Every writer, the largest first.
    pub fn snapshot(&self) -> Snapshot {
        self.core().snapshot()
    }

    /// Says what a refusal of this limiter comes from: the setting to change, who holds most, and what could be spilled. A
    /// walk over all writers and arenas, as of now and not as of the refusal, which itself walks nothing: ask when somebody
    /// wants to know, not on every refusal.
    ///
    /// Waits for nobody but a writer that registers at this moment.
    ///
    /// ```
    /// use plimsoll::{GlobalMemoryLimiter, KIB};
    /// let limiter = GlobalMemoryLimiter::builder().unlimited().writer_cap_bytes(100 * KIB).build()?;
    /// let reporter = limiter.reporter("logs/message");
    /// let scratch = reporter.reserve(64 * KIB);
    /// let refused = reporter.try_reserve(50 * KIB).unwrap_err();
    /// let why = limiter.explain(&refused);
    /// assert_eq!((why.setting, why.holders), (Some("writer_cap_bytes"), vec![("logs/message".to_owned(), 64 * KIB)]));
    /// # drop((scratch, reporter));
    /// # Ok::<(), plimsoll::ConfigError>(())
    /// ```
    pub fn explain(&self, error: &ReserveError) -> Explanation {
        self.core().explain(error)
    }

    /// Every setting in force and where it came from.
    pub fn effective(&self) -> Effective {
        let core = self.core();
        core.settings.effective(core.deal.seats(), core.ledger.granted_bytes(), core.barrier, core.selector().name())
    }

    /// Sets one `metrics` gauge a writer (`plimsoll_writer_held_bytes`), with the recorder that is installed now. On
    /// request only: the number of label values is the number of names that writers were given.
    pub fn record_writers(&self) {
        self.core().telemetry.writers(&self.snapshot());
    }

    /// Decides now, by a walk, whatever the lagged sum says: for samplers that have seen pressure, or when a back-off is
    /// over and nobody grows.
    pub fn poll(&self) {
        self.core().decide(POLL);
    }

    /// Publishes what every writer holds back, without its owner's help, by the process-wide barrier. Afterwards the lagged
    /// sum is the exact one but for changes made since. Answers false, and does nothing, where the system has no such
    /// barrier.
    pub fn settle(&self) -> bool {
        self.core().settle_everybody()
    }

    /// Recomputes the process-wide sums from the writers' own figures, to the byte, and repairs a difference, which is told
    /// once (warn). There is none unless memory was damaged or this crate has a fault.
    ///
    /// Locks every cell for a moment: owners on their slow path wait meanwhile, some 20 ns a writer.
    pub fn reconcile(&self) -> Drift {
        self.core().reconcile()
    }

    /// Changes the budget, in effect at once: below what is held, arenas are asked to spill.
    ///
    /// A floor that was not given follows the budget.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it is 0 or below the floor that was given; nothing has changed then.
    pub fn set_budget_bytes(&self, bytes: usize) -> Result<(), ConfigError> {
        self.change(|wanted| wanted.budget = Budget::Bytes(bytes))
    }

    /// Changes the hard limit, or takes it away; in effect at once. Below what is held, nobody is granted anything until
    /// there is room. A budget that is a share of it follows; so does one that was never given.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it is 0 or below a budget that was given in bytes; nothing has changed then.
    pub fn set_hard_limit_bytes(&self, bytes: Option<usize>) -> Result<(), ConfigError> {
        self.change(|wanted| wanted.hard_limit_bytes = bytes)
    }

    /// Changes the room that writers with an arena cannot use; in effect at once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it leaves them nothing of the budget; nothing has changed then.
    pub fn set_reserve_bytes(&self, bytes: usize) -> Result<(), ConfigError> {
        self.change(|wanted| wanted.reserve_bytes = bytes)
    }

    /// Takes the budget away. A hard limit stays.
    pub fn set_unlimited(&self) {
        // Without a budget nothing can be wrong with the rest.
        let changed = self.change(|wanted| wanted.budget = Budget::Unlimited);
        debug_assert_eq!(changed, Ok(()), "no budget contradicts nothing");
    }

    /// Changes the floor, for the next decision.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] above the budget; nothing has changed then.
    pub fn set_floor_bytes(&self, bytes: usize) -> Result<(), ConfigError> {
        self.change(|wanted| wanted.floor_bytes = Some(bytes))
    }

    /// Changes the cap of writers that were not given their own, in effect with their next `try_` call; none takes it away.
    /// A writer that holds more keeps it, is refused more, and is [`over_cap`](Reporter::over_cap).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it is 0; nothing has changed then.
    pub fn set_writer_cap_bytes(&self, bytes: Option<usize>) -> Result<(), ConfigError> {
        self.change(|wanted| wanted.writer_cap_bytes = bytes)
    }

    /// Fixes the quantum, or lets it follow the budget again. With the process-wide barrier it is in effect at once, for
    /// idle writers too; without it each writer takes it up on its next slow path.
    pub fn set_quantum_bytes(&self, bytes: Option<usize>) {
        let changed = self.change(|wanted| wanted.quantum_bytes = bytes);
        debug_assert_eq!(changed, Ok(()), "a quantum contradicts nothing");
    }

    /// Changes the lag budget; none makes it a share of the budget again. In effect as a changed quantum is.
    pub fn set_lag_bytes(&self, bytes: Option<usize>) {
        let changed = self.change(|wanted| wanted.lag_bytes = bytes);
        debug_assert_eq!(changed, Ok(()), "a lag budget contradicts nothing");
    }

    fn change(&self, edit: impl FnOnce(&mut Wanted)) -> Result<(), ConfigError> {
        self.core().change(edit)
    }

    /// Ends this handle and keeps a view of what is still charged. If bytes are held when the last handle goes, that is
    /// told once, with the number of owners and the bytes; their later drops are harmless.
    pub fn close(self) -> ClosedLimiter {
        ClosedLimiter { core: Arc::clone(self.core()) }
    }
}

/// What is left to see of a limiter after [`close`](GlobalMemoryLimiter::close).
#[derive(Debug)]
pub struct ClosedLimiter {
    core: Arc<Core>,
}

impl ClosedLimiter {
    /// Who is still charged, the largest first: also a reporter that was leaked.
    pub fn still_charged(&self) -> Snapshot {
        let mut snapshot = self.core.snapshot();
        snapshot.writers.retain(|writer| writer.held_bytes > 0);
        snapshot
    }
}
