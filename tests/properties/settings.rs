//! What a limiter is asked for, and the model of what that comes to.

use plimsoll::{ConfigError, GlobalMemoryLimiter, LimiterBuilder, MIB};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    Unsaid,
    Unlimited,
    PercentOfHardLimit(u32),
    Bytes(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) budget: Budget,
    pub(crate) hard_limit: Option<usize>,
    pub(crate) reserve: usize,
    pub(crate) floor: usize,
    pub(crate) quantum: Option<usize>,
    pub(crate) lag: Option<usize>,
    pub(crate) cap: Option<usize>,
    /// A spill that failed exempts its arena, for longer than any case takes.
    pub(crate) backoff: bool,
    pub(crate) barrier: bool,
}

impl Settings {
    pub(crate) fn budget_bytes(&self) -> Option<usize> {
        match (self.budget, self.hard_limit) {
            (Budget::Unlimited, _) | (Budget::Unsaid | Budget::PercentOfHardLimit(_), None) => None,
            (Budget::Unsaid, Some(hard)) => Some((hard - hard / 8).max(1)),
            (Budget::PercentOfHardLimit(percent), Some(hard)) => Some((hard * percent as usize / 100).max(1)),
            (Budget::Bytes(bytes), _) => Some(bytes),
        }
    }

    /// What all windows together may hold back; none if nothing bounds it.
    pub(crate) fn lag_limit(&self) -> Option<usize> {
        match self.quantum {
            Some(_) => None,
            None => self.lag.or(self.budget_bytes().map(|budget| budget / 16)),
        }
    }

    /// Whether they can work together.
    pub(crate) fn verdict(&self) -> Result<(), ConfigError> {
        let budget = self.budget_bytes();
        if self.cap == Some(0) {
            return Err(ConfigError::ZeroWriterCap);
        }
        if self.hard_limit == Some(0) {
            return Err(ConfigError::ZeroHardLimit);
        }
        if budget == Some(0) {
            return Err(ConfigError::ZeroBudget);
        }
        if let (Some(budget_bytes), Some(hard_limit_bytes)) = (budget, self.hard_limit)
            && budget_bytes > hard_limit_bytes
        {
            return Err(ConfigError::BudgetAboveHardLimit { budget_bytes, hard_limit_bytes });
        }
        if let Some(budget_bytes) = budget.or(self.hard_limit)
            && self.reserve > 0
            && self.reserve >= budget_bytes
        {
            return Err(ConfigError::ReserveAboveBudget { reserve_bytes: self.reserve, budget_bytes });
        }
        match budget {
            Some(budget_bytes) if self.floor > budget_bytes => {
                Err(ConfigError::FloorAboveBudget { floor_bytes: self.floor, budget_bytes })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn builder(&self) -> LimiterBuilder {
        let backoff = if self.backoff { Duration::from_secs(3_600) } else { Duration::ZERO };
        let mut builder = GlobalMemoryLimiter::builder().block_bytes(1).spill_backoff(backoff);
        builder = builder.floor_bytes(self.floor).reserve_bytes(self.reserve);
        builder = match self.budget {
            Budget::Unsaid => builder,
            Budget::Unlimited => builder.unlimited(),
            Budget::PercentOfHardLimit(percent) => builder.budget_percent_of_hard_limit(percent),
            Budget::Bytes(bytes) => builder.budget_bytes(bytes),
        };
        if let Some(hard) = self.hard_limit {
            builder = builder.hard_limit_bytes(hard);
        }
        if let Some(quantum) = self.quantum {
            builder = builder.quantum_bytes(quantum);
        }
        if let Some(lag) = self.lag {
            builder = builder.lag_bytes(lag);
        }
        if let Some(cap) = self.cap {
            builder = builder.writer_cap_bytes(cap);
        }
        if self.barrier { builder } else { builder.without_process_barrier() }
    }
}

pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let budget = prop_oneof![
        1 => Just(Budget::Unsaid),
        1 => Just(Budget::Unlimited),
        1 => (1..=100_u32).prop_map(Budget::PercentOfHardLimit),
        1 => Just(Budget::PercentOfHardLimit(100)),
        4 => (5_000..80_000_usize).prop_map(Budget::Bytes),
        1 => (80_000..4_000_000_usize).prop_map(Budget::Bytes),
    ];
    let hard_limit = prop_oneof![
        2 => Just(None),
        6 => (5_000..120_000_usize).prop_map(Some),
        1 => (120_000..4_000_000_usize).prop_map(Some),
    ];
    let quantum = prop_oneof![
        3 => Just(Some(0)),
        2 => Just(Some(100)),
        2 => Just(Some(5_000)),
        1 => Just(Some(MIB)),
        4 => Just(None),
    ];
    let lag = prop_oneof![3 => Just(None), 1 => Just(Some(0)), 4 => (5_000..300_000_usize).prop_map(Some)];
    (
        (budget, hard_limit, prop_oneof![1 => Just(0), 1 => 0..3_000_usize, 1 => 0..30_000_usize]),
        prop_oneof![1..200_usize, 1..5_000_usize],
        (quantum, lag),
        prop::option::weighted(0.3, 5_000..60_000_usize),
        (prop::bool::weighted(0.2), prop::bool::weighted(0.85)),
    )
        .prop_map(|((budget, hard_limit, reserve), floor, (quantum, lag), cap, (backoff, barrier))| {
            // A budget at most the hard limit, more often than not.
            let budget = match (budget, hard_limit) {
                (Budget::Bytes(bytes), Some(hard)) if bytes % 8 != 0 => Budget::Bytes(bytes.min(hard)),
                _ => budget,
            };
            Settings { budget, hard_limit, reserve, floor, quantum, lag, cap, backoff, barrier }
        })
}
