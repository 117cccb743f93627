//! What a decision leaves behind for people: why, who, and what is missing.

use std::fmt;
use std::time::Duration;

/// Which term of the pressure is the deepest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PressureSource {
    /// What is held is above the budget.
    Budget,
    /// The system's available memory is below its water mark.
    System,
    /// The process is above its soft limit.
    Process,
}

impl fmt::Display for PressureSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PressureSource::Budget => "budget",
            PressureSource::System => "system memory",
            PressureSource::Process => "process memory",
        })
    }
}

/// One decision that asked arenas to spill, as it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Time since the limiter was built.
    pub at: Duration,
    /// The exact sum that the walk found.
    pub exact_bytes: usize,
    /// The lagged sum.
    pub published_bytes: usize,
    /// What reporters may hold back.
    pub granted_bytes: usize,
    /// The budget in force; none is unlimited.
    pub budget_bytes: Option<usize>,
    /// What has to be given back, before what is in flight is taken off.
    pub overage_bytes: usize,
    /// What was in flight already.
    pub in_flight_bytes: usize,
    /// The deepest source of pressure.
    pub source: PressureSource,
    /// How many arenas were asked.
    pub requests: usize,
    /// The first of them, in order, at most 32: arena as `writer/arena`, and its bytes.
    pub victims: Vec<(String, usize)>,
    /// What is missing even if all of them spill.
    pub shortfall_bytes: usize,
}

/// A state with numbers: all that can be asked is asked, and it is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortfall {
    /// The deepest source of pressure when the episode began.
    pub source: PressureSource,
    /// What was missing then, in bytes.
    pub missing_bytes: usize,
    /// What no spill frees: held minus arenas.
    pub persistent_bytes: usize,
    /// One floor for each live arena.
    pub floor_sum_bytes: usize,
    /// Live arenas.
    pub writers: usize,
    /// How many arenas of one floor each would fit beside what is persistent.
    pub writers_that_fit: usize,
}
