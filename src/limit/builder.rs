//! How a limiter is made.

use super::core::Core;
use super::credit::Credit;
use super::deal::Deal;
use super::decide::{Decider, POLL};
use super::ledger::Ledger;
use super::limiter::GlobalMemoryLimiter;
use super::registry::Registry;
use super::selector::SpillSelector;
use super::settings::{Budget, Resolved, Settings, Wanted, resolve};
use super::signal::SignalSource;
use crate::error::ConfigError;
use crate::sync::{Mutex, mutant, prepare_process_barrier};
use crate::telemetry::Telemetry;
use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::time::Duration;

/// Options of a limiter, by value, validated once in [`build`](Self::build). Without a budget it is unlimited.
#[derive(Debug)]
#[must_use = "a builder does nothing before build()"]
pub struct LimiterBuilder {
    name: String,
    pub(crate) wanted: Wanted,
    barrier: bool,
    pub(crate) selector: Option<Box<dyn SpillSelector>>,
    pub(crate) signals: Option<Box<dyn SignalSource>>,
}

impl LimiterBuilder {
    pub(crate) fn new() -> Self {
        LimiterBuilder { name: "default".into(), wanted: Wanted::new(), barrier: true, selector: None, signals: None }
    }

    /// The limiter's name in metrics, events and snapshots. Default: `default`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// What all writers together may hold before arenas are asked to spill, in bytes. It is the total, not a share a
    /// thread: one writer may use it all. 0 is an error.
    pub fn budget_bytes(mut self, bytes: usize) -> Self {
        self.wanted.budget = Budget::Bytes(bytes);
        self
    }

    /// The budget as a share of a process limit: `percent` is clamped to 100; 0, or a limit that is not known, means no
    /// budget. Never below four writer caps (if there is a cap), and never above the process limit: where four caps are
    /// more than that, the cap becomes a quarter of the limit, with one warning.
    pub fn budget_percent(mut self, percent: u32, process_limit_bytes: Option<usize>) -> Self {
        self.wanted.budget = Budget::Share { percent, process_limit_bytes };
        self
    }

    /// No budget: everything is counted, nobody is asked to spill (but by signals). The default.
    pub fn unlimited(mut self) -> Self {
        self.wanted.budget = Budget::Unlimited;
        self
    }

    /// No arena below this is asked to spill, in bytes. Default: 64 MiB or 1/16 of the budget, whichever is less, and
    /// never below one block. A writer's own spills ignore it.
    pub fn floor_bytes(mut self, bytes: usize) -> Self {
        self.wanted.floor_bytes = Some(bytes);
        self
    }

    /// The size of an arena's block, in bytes: the least that an arena can hold. Default: 32 KiB.
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.wanted.block_bytes = Some(bytes);
        self
    }

    /// What one writer may hold, over everything it has, in bytes; a reporter can be given its own
    /// ([`reporter_with_cap`](GlobalMemoryLimiter::reporter_with_cap)). Default: no cap. `try_` calls are refused beyond
    /// it, the others make [`Reporter::over_cap`](crate::Reporter::over_cap) true.
    pub fn writer_cap_bytes(mut self, bytes: usize) -> Self {
        self.wanted.writer_cap_bytes = Some(bytes);
        self
    }

    /// What all live reporters together may hold back, in bytes: the lag budget. Default: 1/16 of the budget. Each of them
    /// gets an equal part of it as its quantum, at most 1 MiB; below 4 KiB it is 0, and every change is published. Parts
    /// are dealt for a power of two of reporters, and dealt again when there are more than that.
    pub fn lag_bytes(mut self, bytes: usize) -> Self {
        self.wanted.lag_bytes = Some(bytes);
        self
    }

    /// What all writers together may hold before `try_` calls are refused, in bytes: never granted past it, under any
    /// interleaving. Charges that record what exists go beyond it, and count as an overdraft. The budget must not be above it;
    /// unless one is given, or [`unlimited`](Self::unlimited) is said, it is 7/8 of the hard limit.
    pub fn hard_limit_bytes(mut self, bytes: usize) -> Self {
        self.wanted.hard_limit_bytes = Some(bytes);
        self
    }

    /// The budget as a share of the hard limit: it follows when that is changed. `percent` is clamped to 1..=100. Without a
    /// hard limit there is no budget.
    pub fn budget_percent_of_hard_limit(mut self, percent: u32) -> Self {
        self.wanted.budget = Budget::OfHardLimit { percent };
        self
    }

    /// Room in the budget that writers with an arena cannot use, in bytes, for those that cannot spill: merge readers, the
    /// spill itself. Arenas are asked to spill at the budget less what of this is not used, and `try_` calls of writers with
    /// an arena are refused at the hard limit less the same. Default: 0.
    pub fn reserve_bytes(mut self, bytes: usize) -> Self {
        self.wanted.reserve_bytes = bytes;
        self
    }

    /// Fixes the size at which a reporter publishes, in bytes, instead of dealing the lag budget; 0 publishes every change.
    ///
    /// A fixed quantum makes the lagged sum late by up to `reporters x (quantum - 1)`: a budget below that cannot be
    /// enforced by it. [`lag_bound_bytes`](GlobalMemoryLimiter::lag_bound_bytes) says how much it is.
    pub fn quantum_bytes(mut self, bytes: usize) -> Self {
        self.wanted.quantum_bytes = Some(bytes);
        self
    }

    /// Does without the system's process-wide barrier, as on systems that have none: windows are then moved by their owners
    /// alone, and a reporter that comes late gets what the others have left of the lag budget.
    pub fn without_process_barrier(mut self) -> Self {
        self.barrier = false;
        self
    }

    /// How many writers there will be at least: `build` then fails if the budget does not hold a block for each.
    pub fn writers_hint(mut self, writers: usize) -> Self {
        self.wanted.writers = writers;
        self
    }

    /// Only writers with an arena count against the budget: the reference's rule, where merges and other work show in the
    /// sums and are not measured. Default: everything held counts.
    pub fn writer_share(mut self, only_writers: bool) -> Self {
        self.wanted.writer_share = only_writers;
        self
    }

    /// How long an arena whose spill failed is not asked again. Default: 1 s.
    pub fn spill_backoff(mut self, backoff: Duration) -> Self {
        self.wanted.backoff = backoff;
        self
    }

    /// Who chooses victims. Default: [`LargestFirst`](crate::LargestFirst).
    pub fn selector(mut self, selector: impl SpillSelector + 'static) -> Self {
        self.selector = Some(Box::new(selector));
        self
    }

    /// Where pressure of the process and the machine comes from. Default: none.
    pub fn signals(mut self, source: impl SignalSource + 'static) -> Self {
        self.signals = Some(Box::new(source));
        self
    }

    /// Validates and makes the limiter.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: a budget, hard limit, block or cap of 0, a floor above the budget, a budget above the hard limit, a
    /// reserve that leaves nothing of the budget, a budget below [`writers_hint`](Self::writers_hint) blocks.
    pub fn build(self) -> Result<GlobalMemoryLimiter, ConfigError> {
        let resolved = resolve(&self.wanted)?;
        Ok(self.into_limiter(&resolved))
    }

    pub(crate) fn into_limiter(self, resolved: &Resolved) -> GlobalMemoryLimiter {
        let settings = Settings::new(&self.wanted, resolved);
        let budget = settings.budget_bytes();
        let core = Core {
            ledger: Ledger::new(),
            registry: Registry::new(),
            deal: Deal::new(),
            credit: Credit::new(),
            moving: Mutex::new(()),
            decider: Decider::new(budget),
            telemetry: Telemetry::new(&self.name),
            barrier: self.barrier && prepare_process_barrier(),
            selector: self.selector.map_or_else(OnceCell::new, OnceCell::with_value),
            signals: self.signals.map_or_else(OnceCell::new, OnceCell::with_value),
            settings,
        };
        core.announce(resolved);
        GlobalMemoryLimiter::new(Arc::new(core))
    }
}

impl Core {
    /// Puts the options of a builder in force in a limiter that exists; its name stays.
    pub(crate) fn install(&self, builder: LimiterBuilder) -> Result<(), ConfigError> {
        if let Some(selector) = builder.selector {
            // Set once: an installation happens once, and nobody else sets it.
            let _set = self.selector.set(selector);
        }
        if let Some(signals) = builder.signals {
            let _set = self.signals.set(signals);
        }
        self.change(|wanted| *wanted = builder.wanted)
    }

    /// Puts changed settings in force and decides by them.
    pub(crate) fn change(&self, edit: impl FnOnce(&mut Wanted)) -> Result<(), ConfigError> {
        let resolved = self.settings.change(edit)?;
        self.announce(&resolved);
        // Takes every cell's lock: whoever still reserves by an old limit is done when windows are moved.
        self.caps_changed();
        // Windows that have become too large are in the way at once; those that may grow do so by themselves.
        if !mutant("lowered_without_moving") {
            self.settle_everybody();
            if !mutant("lowered_without_second_look") {
                self.call_back_if_over();
            }
        }
        self.loosen();
        self.decide(POLL);
        Ok(())
    }

    /// Tells the outside what is in force.
    fn announce(&self, resolved: &Resolved) {
        let budget = self.settings.budget_bytes();
        self.telemetry.budget((budget != usize::MAX).then_some(budget));
        if let Some(wanted) = resolved.cap_shrunk_from {
            self.telemetry.cap_shrunk(wanted, self.settings.writer_cap_bytes(), super::effective::Origin::Derived);
        }
    }
}
