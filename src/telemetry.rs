//! Everything that is told to the outside: counts, metrics and events. The only file that names a metric, and the only one
//! besides `sync` that uses std's atomics: counts carry nothing, and must not multiply what a model explores.
//!
//! | metric | kind | labels | when it moves |
//! |---|---|---|---|
//! | `plimsoll_limit_published_bytes` | gauge | `limiter` | a publish |
//! | `plimsoll_limit_lag_bound_bytes` | gauge | `limiter` | a publish |
//! | `plimsoll_limit_budget_bytes` | gauge | `limiter` | the budget is set; infinite is unlimited |
//! | `plimsoll_limit_publishes_total` | counter | `limiter` | a publish |
//! | `plimsoll_limit_notifications_total` | counter | `limiter` | an arena's block size changed |
//! | `plimsoll_limit_decisions_total` | counter | `limiter` | a decision |
//! | `plimsoll_limit_requests_total` | counter | `limiter` | an arena is asked to spill |
//! | `plimsoll_limit_spills_total` | counter | `limiter`, `kind` = `forced`, `own`, `failed` | a spill ended |
//! | `plimsoll_limit_shortfall_episodes_total` | counter | `limiter` | a shortfall began |
//! | `plimsoll_limit_accounting_errors_total` | counter | `limiter` | a caller's mistake was mended |
//! | `plimsoll_limit_overdrafts_total` | counter | `limiter` | what exists was recorded beyond the hard limit |
//! | `plimsoll_writer_held_bytes` | gauge | `limiter`, `writer` | [`record_writers`](crate::GlobalMemoryLimiter::record_writers) is called |
//!
//! The label `limiter` is [`LimiterBuilder::name`](crate::LimiterBuilder::name). Handles bind when the limiter is built: a
//! recorder that is installed later sees only what is built later. Nothing here runs for a change inside a window.
//!
//! Events (`tracing`, target `plimsoll`): a shortfall's begin (warn, once an episode) and end (info), each decision that
//! leaves a record (debug: who was asked first, who was passed over and why), an overdraft (debug), accounting
//! mistakes (warn), sums that had drifted (warn), a limiter that goes while bytes are held (warn). With the feature `spill`:
//! folders of dead processes that were removed (info) or could not be (warn), the first spill into memory (warn, once a
//! folder).

use crate::limit::{Decision, Drift, Ledger, Origin, Shortfall, Snapshot};
use crate::units::Bytes;
use crossbeam_utils::CachePadded;
use metrics::{Counter, Gauge};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Counts since a limiter was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Times that a reporter published.
    pub publishes: u64,
    /// Changes of an arena's block size.
    pub notifications: u64,
    /// Decisions taken.
    pub decisions: u64,
    /// Those that looked at every writer.
    pub walks: u64,
    /// Arenas asked to spill.
    pub requests: u64,
    /// Spills that finished and had been asked for.
    pub forced_spills: u64,
    /// Spills that finished and were the writer's own idea.
    pub own_spills: u64,
    /// Spills that did not finish.
    pub failed_spills: u64,
    /// Shortfalls that began.
    pub shortfall_episodes: u64,
    /// Callers' mistakes that were mended.
    pub accounting_errors: u64,
    /// The bytes of those mistakes.
    pub accounting_error_bytes: u64,
    /// The largest that was ever reserved: what is published, and what writers may take without asking. What was held was
    /// never more.
    pub peak_held_bytes: usize,
    /// Charges that recorded what exists beyond the hard limit.
    pub overdrafts: u64,
    /// The largest overdraft, after all idle credit had been called back.
    pub overdraft_peak_bytes: usize,
}

/// A count that one thread at a time adds to, on a line of its owner's.
#[derive(Debug, Default)]
pub(crate) struct OwnCount(AtomicU64);

impl OwnCount {
    pub(crate) fn add_one(&self) {
        self.0.store(self.get() + 1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[derive(Debug, Default)]
struct Counts {
    publishes: AtomicU64,
    /// Of arenas that have left.
    notifications: AtomicU64,
    decisions: AtomicU64,
    walks: AtomicU64,
    requests: AtomicU64,
    forced_spills: AtomicU64,
    own_spills: AtomicU64,
    failed_spills: AtomicU64,
    shortfall_episodes: AtomicU64,
    accounting_errors: AtomicU64,
    accounting_error_bytes: AtomicU64,
    overdrafts: AtomicU64,
}

/// How a spill ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpillEnd {
    Forced,
    Own,
    Failed,
}

/// The counters, gauges and events of one limiter.
#[derive(Debug)]
pub(crate) struct Telemetry {
    name: String,
    counts: CachePadded<Counts>,
    /// Publishes that the recorder was told of.
    shown_publishes: AtomicU64,
    published_bytes: Gauge,
    lag_bound_bytes: Gauge,
    budget_bytes: Gauge,
    publishes: Counter,
    notifications: Counter,
    decisions: Counter,
    requests: Counter,
    forced_spills: Counter,
    own_spills: Counter,
    failed_spills: Counter,
    shortfall_episodes: Counter,
    accounting_errors: Counter,
    overdrafts: Counter,
}

impl Telemetry {
    pub(crate) fn new(name: &str) -> Self {
        let label = || name.to_owned();
        let spills =
            |kind: &'static str| metrics::counter!("plimsoll_limit_spills_total", "limiter" => label(), "kind" => kind);
        Telemetry {
            name: name.to_owned(),
            counts: CachePadded::default(),
            shown_publishes: AtomicU64::new(0),
            published_bytes: metrics::gauge!("plimsoll_limit_published_bytes", "limiter" => label()),
            lag_bound_bytes: metrics::gauge!("plimsoll_limit_lag_bound_bytes", "limiter" => label()),
            budget_bytes: metrics::gauge!("plimsoll_limit_budget_bytes", "limiter" => label()),
            publishes: metrics::counter!("plimsoll_limit_publishes_total", "limiter" => label()),
            notifications: metrics::counter!("plimsoll_limit_notifications_total", "limiter" => label()),
            decisions: metrics::counter!("plimsoll_limit_decisions_total", "limiter" => label()),
            requests: metrics::counter!("plimsoll_limit_requests_total", "limiter" => label()),
            forced_spills: spills("forced"),
            own_spills: spills("own"),
            failed_spills: spills("failed"),
            shortfall_episodes: metrics::counter!("plimsoll_limit_shortfall_episodes_total", "limiter" => label()),
            accounting_errors: metrics::counter!("plimsoll_limit_accounting_errors_total", "limiter" => label()),
            overdrafts: metrics::counter!("plimsoll_limit_overdrafts_total", "limiter" => label()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `notifications` are those of live arenas.
    pub(crate) fn stats(&self, ledger: &Ledger, notifications: u64) -> Stats {
        Stats {
            publishes: self.counts.publishes.load(Relaxed),
            notifications: notifications + self.counts.notifications.load(Relaxed),
            decisions: self.counts.decisions.load(Relaxed),
            walks: self.counts.walks.load(Relaxed),
            requests: self.counts.requests.load(Relaxed),
            forced_spills: self.counts.forced_spills.load(Relaxed),
            own_spills: self.counts.own_spills.load(Relaxed),
            failed_spills: self.counts.failed_spills.load(Relaxed),
            shortfall_episodes: self.counts.shortfall_episodes.load(Relaxed),
            accounting_errors: self.counts.accounting_errors.load(Relaxed),
            accounting_error_bytes: self.counts.accounting_error_bytes.load(Relaxed),
            peak_held_bytes: ledger.peak_bytes(),
            overdrafts: self.counts.overdrafts.load(Relaxed),
            overdraft_peak_bytes: ledger.overdraft_peak_bytes(),
        }
    }

    pub(crate) fn budget(&self, bytes: Option<usize>) {
        self.budget_bytes.set(bytes.map_or(f64::INFINITY, |bytes| bytes as f64));
    }

    /// Under a cell's lock, so the recorder is not told here.
    pub(crate) fn published(&self) {
        // Release, to the load below: whoever shows this publish shows sums that have it.
        self.counts.publishes.fetch_add(1, Release);
    }

    /// Under no lock: tells the recorder what was published since it was told last.
    pub(crate) fn show_publishes(&self, ledger: &Ledger) {
        let publishes = self.counts.publishes.load(Acquire);
        if publishes == self.shown_publishes.load(Relaxed) {
            return;
        }
        let shown = self.shown_publishes.fetch_max(publishes, Relaxed);
        if publishes > shown {
            self.publishes.increment(publishes - shown);
            self.published_bytes.set(ledger.published_bytes() as f64);
            self.lag_bound_bytes.set(ledger.granted_bytes() as f64);
        }
    }

    /// What exists was recorded, and the hard limit is passed by `bytes`.
    pub(crate) fn overdrawn(&self, writer: &str, bytes: usize) {
        self.counts.overdrafts.fetch_add(1, Relaxed);
        self.overdrafts.increment(1);
        tracing::debug!(
            target: "plimsoll",
            limiter = %self.name,
            writer,
            overdraft_bytes = bytes,
            "{writer} recorded what exists: {} over the hard limit",
            Bytes(bytes)
        );
    }

    /// An arena's block size changed; its own count goes up, and nothing that is shared unless a recorder is installed.
    pub(crate) fn notified(&self, count: &OwnCount) {
        count.add_one();
        self.notifications.increment(1);
    }

    /// An arena leaves.
    pub(crate) fn keep_notifications(&self, count: &OwnCount) {
        self.counts.notifications.fetch_add(count.get(), Relaxed);
    }

    pub(crate) fn decided(&self) {
        self.counts.decisions.fetch_add(1, Relaxed);
        self.decisions.increment(1);
    }

    pub(crate) fn walked(&self) {
        self.counts.walks.fetch_add(1, Relaxed);
    }

    /// One arena was asked by its own owner.
    pub(crate) fn asked_itself(&self) {
        self.counts.requests.fetch_add(1, Relaxed);
        self.requests.increment(1);
    }

    pub(crate) fn requested(&self, decision: &Decision) {
        let victims = decision.requests as u64;
        self.counts.requests.fetch_add(victims, Relaxed);
        self.requests.increment(victims);
        let counts = &decision.passed_over_counts;
        let first_victim = decision.victims.first();
        let largest = decision.passed_over.first();
        tracing::debug!(
            target: "plimsoll",
            limiter = %self.name,
            walked = decision.walked,
            exact_bytes = decision.exact_bytes,
            kept_free_bytes = decision.kept_free_bytes,
            published_bytes = decision.published_bytes,
            granted_bytes = decision.granted_bytes,
            budget_bytes = decision.budget_bytes,
            floor_bytes = decision.floor_bytes,
            overage_bytes = decision.overage_bytes,
            in_flight_bytes = decision.in_flight_bytes,
            shortfall_bytes = decision.shortfall_bytes,
            source = %decision.source,
            victims,
            requested_bytes = decision.requested_bytes,
            first_victim = first_victim.map(|victim| victim.0.as_str()),
            first_victim_bytes = first_victim.map(|victim| victim.1),
            passed_over = counts.total(),
            passed_over_in_flight = counts.in_flight,
            passed_over_below_floor = counts.below_floor,
            passed_over_exempt = counts.exempt,
            passed_over_not_needed = counts.not_needed,
            passed_over_moved_on = counts.moved_on,
            largest_passed_over = largest.map(|passed| passed.0.as_str()),
            largest_passed_over_bytes = largest.map(|passed| passed.1),
            largest_passed_over_why = largest.map(|passed| tracing::field::display(passed.2)),
            "{}",
            if victims > 0 { "asked arenas to spill" } else { "nobody can be asked to spill" }
        );
    }

    pub(crate) fn spilled(&self, end: SpillEnd) {
        let (count, counter) = match end {
            SpillEnd::Forced => (&self.counts.forced_spills, &self.forced_spills),
            SpillEnd::Own => (&self.counts.own_spills, &self.own_spills),
            SpillEnd::Failed => (&self.counts.failed_spills, &self.failed_spills),
        };
        count.fetch_add(1, Relaxed);
        counter.increment(1);
    }

    pub(crate) fn shortfall_began(&self, shortfall: &Shortfall) {
        self.counts.shortfall_episodes.fetch_add(1, Relaxed);
        self.shortfall_episodes.increment(1);
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            source = %shortfall.source,
            missing_bytes = shortfall.missing_bytes,
            persistent_bytes = shortfall.persistent_bytes,
            floor_sum_bytes = shortfall.floor_sum_bytes,
            writers = shortfall.writers,
            writers_that_fit = shortfall.writers_that_fit,
            "shortfall: every arena at or above the floor is asked to spill, and {} are missing still",
            Bytes(shortfall.missing_bytes)
        );
    }

    pub(crate) fn shortfall_ended(&self) {
        tracing::info!(target: "plimsoll", limiter = %self.name, "shortfall over");
    }

    pub(crate) fn selector_panicked(&self, selector: &'static str) {
        tracing::error!(target: "plimsoll", limiter = %self.name, selector, "selector panicked, the largest arenas go first");
    }

    pub(crate) fn user_code_panicked(&self, what: &'static str) {
        tracing::error!(target: "plimsoll", limiter = %self.name, "a {what} panicked");
    }

    pub(crate) fn released_too_much(&self, writer: &str, surplus: usize) {
        self.mistake(surplus);
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            writer,
            surplus_bytes = surplus,
            "{writer} released {} more than it held: clamped at 0",
            Bytes(surplus)
        );
    }

    pub(crate) fn charged_beyond_counter(&self, writer: &str, bytes: usize) {
        self.mistake(bytes);
        tracing::warn!(target: "plimsoll", limiter = %self.name, writer, bytes, "{writer} charged more than a counter can hold: not recorded");
    }

    pub(crate) fn unbalanced(&self, writer: &str, left: usize) {
        self.mistake(left);
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            writer,
            left_bytes = left,
            "{writer} was dropped with {} not released: drained",
            Bytes(left)
        );
    }

    pub(crate) fn wrong_reporter(&self, holder: &str, owner: &str, given: &str, bytes: usize) {
        self.mistake(bytes);
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            holder,
            owner,
            given,
            bytes,
            "{holder} of {owner} was changed through {given}: its bytes go with it"
        );
    }

    pub(crate) fn drifted(&self, drift: &Drift) {
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            published_bytes = drift.published_bytes,
            reserved_bytes = drift.reserved_bytes,
            "the sums were not what the writers say, and are repaired: {drift}"
        );
    }

    pub(crate) fn closed_while_held(&self, snapshot: &Snapshot) {
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            owners = snapshot.writers.len(),
            held_bytes = snapshot.held_bytes,
            "limiter closed while {} owners hold {}",
            snapshot.writers.len(),
            Bytes(snapshot.held_bytes)
        );
    }

    pub(crate) fn cap_shrunk(&self, wanted: usize, in_force: usize, origin: Origin) {
        tracing::warn!(
            target: "plimsoll",
            limiter = %self.name,
            wanted_bytes = wanted,
            writer_cap_bytes = in_force,
            %origin,
            "four writer caps of {} are more than the process limit: the cap is {} instead",
            Bytes(wanted),
            Bytes(in_force)
        );
    }

    /// One gauge a writer: on request only, since their names are the caller's.
    pub(crate) fn writers(&self, snapshot: &Snapshot) {
        for writer in &snapshot.writers {
            metrics::gauge!("plimsoll_writer_held_bytes", "limiter" => self.name.clone(), "writer" => writer.name.clone())
                .set(writer.held_bytes as f64);
        }
    }

    fn mistake(&self, bytes: usize) {
        self.counts.accounting_errors.fetch_add(1, Relaxed);
        self.counts.accounting_error_bytes.fetch_add(bytes as u64, Relaxed);
        self.accounting_errors.increment(1);
    }
}

/// Folders of dead processes in `parent` were removed, or could not be.
#[cfg(feature = "spill")]
pub(crate) fn swept(parent: &std::path::Path, folders: u64, bytes: u64, failed: u64) {
    let parent = parent.display();
    let size = Bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    if folders > 0 {
        tracing::info!(target: "plimsoll", %parent, folders, bytes, "removed {folders} folders of dead processes, {size}");
    }
    if failed > 0 {
        tracing::warn!(target: "plimsoll", %parent, failed, "what dead processes left cannot be removed: the next start tries again");
    }
}

/// What is written into `folder` stays in memory.
#[cfg(feature = "spill")]
pub(crate) fn spills_to_memory(folder: &std::path::Path) {
    let folder = folder.display();
    tracing::warn!(target: "plimsoll", %folder, "spills go to a file system in memory and free nothing: name another folder");
}
