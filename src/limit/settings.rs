//! What a limiter was asked for, and where each value came from. All of it can be changed while it runs.

use super::effective::{Effective, Origin};
use crate::error::ConfigError;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::units::{KIB, MIB};
use std::time::Duration;

/// The size at which a reporter publishes, unless the budget makes it smaller: the reference's, measured there.
pub(crate) const QUANTUM_BYTES: usize = MIB;
/// Below this a quantum is not worth its name: every change is published.
pub(crate) const LEAST_QUANTUM_BYTES: usize = 4 * KIB;
/// So that the windows of a million reporters together do not pass what a counter can hold.
const LARGEST_QUANTUM_BYTES: usize = usize::MAX >> 21;
/// What all reporters together may hold back, unless it is given: this share of the budget.
const LAG_SHARE: usize = 16;
/// The default floor: at most this, at most the share of the budget below.
const FLOOR_BYTES: usize = 64 * MIB;
const FLOOR_SHARE: usize = 16;
/// The default block of an arena, as the reference has it.
const BLOCK_BYTES: usize = 32 * KIB;
/// The budget, if a hard limit is all that is given, is below it by this share.
const SOFT_SHARE: usize = 8;
/// A share of the process limit is never below this many writer caps.
const CAPS_IN_SHARE: usize = 4;

/// How long an arena whose spill failed is not asked again.
const BACKOFF: Duration = Duration::from_secs(1);

/// `usize::MAX` in an atomic setting: not limited, or not fixed.
pub(crate) const NONE: usize = usize::MAX;

/// How the budget is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// Nothing was said: a share of the hard limit if there is one.
    Unsaid,
    Unlimited,
    OfHardLimit {
        percent: u32,
    },
    Bytes(usize),
    Share {
        percent: u32,
        process_limit_bytes: Option<usize>,
    },
}

/// What the builder collects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) budget: Budget,
    pub(crate) hard_limit_bytes: Option<usize>,
    pub(crate) reserve_bytes: usize,
    pub(crate) floor_bytes: Option<usize>,
    pub(crate) block_bytes: Option<usize>,
    pub(crate) writer_cap_bytes: Option<usize>,
    pub(crate) quantum_bytes: Option<usize>,
    pub(crate) lag_bytes: Option<usize>,
    pub(crate) writers: usize,
    pub(crate) writer_share: bool,
    pub(crate) backoff: Duration,
}

impl Wanted {
    pub(crate) fn new() -> Self {
        Wanted {
            budget: Budget::Unsaid,
            hard_limit_bytes: None,
            reserve_bytes: 0,
            floor_bytes: None,
            block_bytes: None,
            writer_cap_bytes: None,
            quantum_bytes: None,
            lag_bytes: None,
            writers: 0,
            writer_share: false,
            backoff: BACKOFF,
        }
    }
}

/// The settings in force. Relaxed everywhere: each is a number of its own, nothing is published through it.
#[derive(Debug)]
pub(crate) struct Settings {
    budget: AtomicUsize,
    hard_limit: AtomicUsize,
    reserve: AtomicUsize,
    floor: AtomicUsize,
    writer_cap: AtomicUsize,
    quantum: AtomicUsize,
    lag: AtomicUsize,
    block: AtomicUsize,
    backoff_ms: AtomicU64,
    writer_share: AtomicBool,
    origins: AtomicUsize,
    /// What was asked for last. Locked for the length of a change, so that of two at a time none is lost.
    wanted: Mutex<Wanted>,
}

/// One setting's place in `origins`, two bits each.
#[derive(Clone, Copy)]
enum Which {
    Budget = 0,
    Floor = 2,
    WriterCap = 4,
    Block = 6,
}

/// What [`Wanted`] comes to. `cap_shrunk_from` is set if the writer cap had to give way to the process limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolved {
    budget: usize,
    budget_origin: Origin,
    floor: usize,
    floor_origin: Origin,
    writer_cap: usize,
    writer_cap_origin: Origin,
    block: usize,
    block_origin: Origin,
    pub(crate) cap_shrunk_from: Option<usize>,
}

/// `percent` of `bytes`, at most all of it.
fn percent_of(bytes: usize, percent: u32) -> usize {
    (bytes as u128 * u128::from(percent.min(100)) / 100) as usize
}

/// Validates and fills in what was not given.
pub(crate) fn resolve(wanted: &Wanted) -> Result<Resolved, ConfigError> {
    let block = wanted.block_bytes.unwrap_or(BLOCK_BYTES);
    if block == 0 {
        return Err(ConfigError::ZeroBlock);
    }
    if wanted.writer_cap_bytes == Some(0) {
        return Err(ConfigError::ZeroWriterCap);
    }
    let mut cap = wanted.writer_cap_bytes;
    let mut cap_shrunk_from = None;
    if wanted.hard_limit_bytes == Some(0) {
        return Err(ConfigError::ZeroHardLimit);
    }
    let (budget, budget_origin) = match (wanted.budget, wanted.hard_limit_bytes) {
        (Budget::Unlimited, _) => (NONE, Origin::Option),
        (Budget::Unsaid, None) => (NONE, Origin::Default),
        (Budget::Unsaid, Some(hard)) => ((hard - hard / SOFT_SHARE).max(1), Origin::Derived),
        (Budget::OfHardLimit { .. }, None) => (NONE, Origin::Derived),
        (Budget::OfHardLimit { percent }, Some(hard)) => (percent_of(hard, percent.max(1)).max(1), Origin::Derived),
        (Budget::Bytes(0), _) => return Err(ConfigError::ZeroBudget),
        (Budget::Bytes(bytes), _) => (bytes, Origin::Option),
        (Budget::Share { percent, process_limit_bytes }, hard) => match process_limit_bytes {
            None => (NONE, Origin::Derived),
            Some(_) if percent == 0 => (NONE, Origin::Derived),
            Some(0) => return Err(ConfigError::ZeroBudget),
            Some(limit) => {
                let share = percent_of(limit, percent);
                let least = cap.map_or(0, |cap| cap.saturating_mul(CAPS_IN_SHARE)).min(limit);
                if let Some(wanted_cap) = cap
                    && wanted_cap > limit / CAPS_IN_SHARE
                {
                    cap_shrunk_from = cap;
                    cap = Some((limit / CAPS_IN_SHARE).max(1));
                }
                (share.max(least).max(1).min(hard.unwrap_or(NONE)), Origin::Derived)
            }
        },
    };
    let (floor, floor_origin) = match wanted.floor_bytes {
        Some(floor) => (floor.max(1), Origin::Option),
        None if budget == NONE => (FLOOR_BYTES.max(block), Origin::Default),
        None => (FLOOR_BYTES.min(budget / FLOOR_SHARE).max(block), Origin::Derived),
    };
    let minimum = block.saturating_mul(wanted.writers);
    if minimum > budget {
        return Err(ConfigError::BudgetBelowMinimum {
            budget_bytes: budget,
            minimum_bytes: minimum,
            writers: wanted.writers,
        });
    }
    if let Some(hard) = wanted.hard_limit_bytes
        && budget != NONE
        && budget > hard
    {
        return Err(ConfigError::BudgetAboveHardLimit { budget_bytes: budget, hard_limit_bytes: hard });
    }
    let least_limit = budget.min(wanted.hard_limit_bytes.unwrap_or(NONE));
    if wanted.reserve_bytes > 0 && wanted.reserve_bytes >= least_limit {
        return Err(ConfigError::ReserveAboveBudget { reserve_bytes: wanted.reserve_bytes, budget_bytes: least_limit });
    }
    if floor > budget {
        return Err(ConfigError::FloorAboveBudget { floor_bytes: floor, budget_bytes: budget });
    }
    let writer_cap_origin = match (cap_shrunk_from, cap) {
        (Some(_), _) => Origin::Derived,
        (None, Some(_)) => Origin::Option,
        (None, None) => Origin::Default,
    };
    Ok(Resolved {
        budget,
        budget_origin,
        floor,
        floor_origin,
        writer_cap: cap.unwrap_or(NONE),
        writer_cap_origin,
        block,
        block_origin: if wanted.block_bytes.is_some() { Origin::Option } else { Origin::Default },
        cap_shrunk_from,
    })
}

impl Settings {
    pub(crate) fn new(wanted: &Wanted, resolved: &Resolved) -> Self {
        let settings = Settings {
            budget: AtomicUsize::new(0),
            hard_limit: AtomicUsize::new(0),
            reserve: AtomicUsize::new(0),
            floor: AtomicUsize::new(0),
            writer_cap: AtomicUsize::new(0),
            quantum: AtomicUsize::new(0),
            lag: AtomicUsize::new(0),
            block: AtomicUsize::new(0),
            backoff_ms: AtomicU64::new(0),
            writer_share: AtomicBool::new(false),
            origins: AtomicUsize::new(0),
            wanted: Mutex::new(*wanted),
        };
        settings.store(wanted, resolved);
        settings
    }

    /// Edits what was asked for and puts it in force; if it cannot work, everything stays as it was. The writers that were
    /// announced are a matter of the building alone.
    pub(crate) fn change(&self, edit: impl FnOnce(&mut Wanted)) -> Result<Resolved, ConfigError> {
        let mut last = self.wanted.lock();
        let mut wanted = Wanted { writers: 0, ..*last };
        edit(&mut wanted);
        let mut resolved = resolve(&wanted)?;
        if resolved.writer_cap == self.writer_cap_bytes() {
            // Shrunk before, and told then.
            resolved.cap_shrunk_from = None;
        }
        self.store(&wanted, &resolved);
        *last = wanted;
        Ok(resolved)
    }

    fn store(&self, wanted: &Wanted, resolved: &Resolved) {
        self.budget.store(resolved.budget, Ordering::Relaxed);
        self.hard_limit.store(wanted.hard_limit_bytes.unwrap_or(NONE), Ordering::Relaxed);
        self.reserve.store(wanted.reserve_bytes, Ordering::Relaxed);
        self.floor.store(resolved.floor, Ordering::Relaxed);
        self.writer_cap.store(resolved.writer_cap, Ordering::Relaxed);
        self.block.store(resolved.block, Ordering::Relaxed);
        self.quantum
            .store(wanted.quantum_bytes.map_or(NONE, |quantum| quantum.min(LARGEST_QUANTUM_BYTES)), Ordering::Relaxed);
        self.lag.store(wanted.lag_bytes.unwrap_or(NONE), Ordering::Relaxed);
        self.backoff_ms.store(u64::try_from(wanted.backoff.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.writer_share.store(wanted.writer_share, Ordering::Relaxed);
        let bits = |origin: Origin, which: Which| (origin as usize) << (which as usize);
        self.origins.store(
            bits(resolved.budget_origin, Which::Budget)
                | bits(resolved.floor_origin, Which::Floor)
                | bits(resolved.writer_cap_origin, Which::WriterCap)
                | bits(resolved.block_origin, Which::Block),
            Ordering::Relaxed,
        );
    }

    fn origin(&self, which: Which) -> Origin {
        match self.origins.load(Ordering::Relaxed) >> (which as usize) & 3 {
            0 => Origin::Default,
            1 => Origin::Option,
            _ => Origin::Derived,
        }
    }

    pub(crate) fn budget_bytes(&self) -> usize {
        self.budget.load(Ordering::Relaxed)
    }

    /// [`NONE`] without one.
    pub(crate) fn hard_limit_bytes(&self) -> usize {
        self.hard_limit.load(Ordering::Relaxed)
    }

    /// What writers with an arena cannot use.
    pub(crate) fn reserve_bytes(&self) -> usize {
        self.reserve.load(Ordering::Relaxed)
    }

    /// Whether the quantum is given, so that it follows nothing.
    pub(crate) fn fixes_quantum(&self) -> bool {
        self.fixed_quantum_bytes().is_some()
    }

    pub(crate) fn floor_bytes(&self) -> usize {
        self.floor.load(Ordering::Relaxed)
    }

    pub(crate) fn writer_cap_bytes(&self) -> usize {
        self.writer_cap.load(Ordering::Relaxed)
    }

    /// Whether only writers with an arena count.
    pub(crate) fn writer_share(&self) -> bool {
        self.writer_share.load(Ordering::Relaxed)
    }

    /// How long an arena whose spill failed is not asked again.
    pub(crate) fn backoff_ms(&self) -> u64 {
        self.backoff_ms.load(Ordering::Relaxed)
    }

    fn fixed_quantum_bytes(&self) -> Option<usize> {
        let fixed = self.quantum.load(Ordering::Relaxed);
        (fixed != NONE).then_some(fixed)
    }

    /// The lag budget, and where it came from. None: nothing bounds it.
    fn lag_bytes(&self) -> (Option<usize>, Origin) {
        let (lag, budget) = (self.lag.load(Ordering::Relaxed), self.budget_bytes());
        if lag != NONE {
            (Some(lag), Origin::Option)
        } else if budget != NONE {
            (Some(budget / LAG_SHARE), Origin::Derived)
        } else {
            (None, Origin::Default)
        }
    }

    /// What all rooms together may come to: with a fixed quantum whatever that comes to.
    pub(crate) fn lag_limit_bytes(&self) -> usize {
        match (self.fixed_quantum_bytes(), self.lag_bytes()) {
            (None, (Some(lag), _)) => lag,
            _ => usize::MAX,
        }
    }

    /// The size at which a reporter publishes, with the lag budget dealt for so many.
    pub(crate) fn quantum_bytes(&self, seats: usize) -> usize {
        match (self.fixed_quantum_bytes(), self.lag_bytes()) {
            (Some(fixed), _) => fixed,
            (None, (None, _)) => QUANTUM_BYTES,
            (None, (Some(lag), _)) => {
                let part = lag / seats.max(1);
                if part < LEAST_QUANTUM_BYTES { 0 } else { part.min(QUANTUM_BYTES) }
            }
        }
    }

    /// Every setting in force.
    pub(crate) fn effective(
        &self,
        seats: usize,
        lag_bound_bytes: usize,
        barrier: bool,
        selector: &'static str,
    ) -> Effective {
        let given = |value: usize| (value != NONE).then_some(value);
        Effective {
            budget_bytes: (given(self.budget_bytes()), self.origin(Which::Budget)),
            hard_limit_bytes: given(self.hard_limit_bytes()),
            reserve_bytes: self.reserve_bytes(),
            floor_bytes: (self.floor_bytes(), self.origin(Which::Floor)),
            writer_cap_bytes: (given(self.writer_cap_bytes()), self.origin(Which::WriterCap)),
            block_bytes: (self.block.load(Ordering::Relaxed), self.origin(Which::Block)),
            quantum_bytes: (
                self.quantum_bytes(seats),
                match (self.fixed_quantum_bytes(), self.lag_bytes()) {
                    (Some(_), _) => Origin::Option,
                    (None, (None, _)) => Origin::Default,
                    (None, (Some(_), _)) => Origin::Derived,
                },
            ),
            lag_bytes: self.lag_bytes(),
            lag_bound_bytes,
            writer_share: self.writer_share(),
            process_barrier: barrier,
            selector,
        }
    }
}
