//! What a decision leaves behind for people: why, who, who not, and what is missing.

use crate::units::Bytes;
use std::fmt::{self, Write};
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

/// Why an arena was not asked when others were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PassedOver {
    /// Its spill is asked for or running: that counts as covered.
    InFlight,
    /// It is smaller than the floor, or empty: a run of it would help too little.
    BelowFloor,
    /// Its spill failed a short time ago; see [`LimiterBuilder::spill_backoff`](crate::LimiterBuilder::spill_backoff).
    Exempt,
    /// Those that were asked are enough.
    NotNeeded,
    /// It was chosen, but its owner was faster: it had begun a spill of its own, or left.
    MovedOn,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PassedOver::InFlight => "in flight already",
            PassedOver::BelowFloor => "below the floor",
            PassedOver::Exempt => "exempt after a failed spill",
            PassedOver::NotNeeded => "not needed",
            PassedOver::MovedOn => "moved on by itself",
        })
    }
}

/// How many arenas were passed over for each reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PassedOverCounts {
    /// For [`PassedOver::InFlight`].
    pub in_flight: usize,
    /// For [`PassedOver::BelowFloor`], empty ones too.
    pub below_floor: usize,
    /// For [`PassedOver::Exempt`].
    pub exempt: usize,
    /// For [`PassedOver::NotNeeded`].
    pub not_needed: usize,
    /// For [`PassedOver::MovedOn`].
    pub moved_on: usize,
}

impl PassedOverCounts {
    /// All of them: with a walk, the live arenas that were not asked.
    pub fn total(&self) -> usize {
        self.each().iter().map(|(_, count)| count).sum()
    }

    /// Every reason with its count.
    pub fn each(&self) -> [(PassedOver, usize); 5] {
        [
            (PassedOver::InFlight, self.in_flight),
            (PassedOver::BelowFloor, self.below_floor),
            (PassedOver::Exempt, self.exempt),
            (PassedOver::NotNeeded, self.not_needed),
            (PassedOver::MovedOn, self.moved_on),
        ]
    }

    pub(crate) fn of_mut(&mut self, why: PassedOver) -> &mut usize {
        match why {
            PassedOver::InFlight => &mut self.in_flight,
            PassedOver::BelowFloor => &mut self.below_floor,
            PassedOver::Exempt => &mut self.exempt,
            PassedOver::NotNeeded => &mut self.not_needed,
            PassedOver::MovedOn => &mut self.moved_on,
        }
    }
}

/// One decision that asked arenas to spill, or with which a shortfall began, as it was taken.
///
/// Names are `writer/arena`, of each at most 256 bytes. `Display` is one line, without number and time; it shows the first
/// three of each list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The how-manieth it is of those that left a record, from 1: the last one's number says how many there were.
    pub number: u64,
    /// Time since the limiter was built.
    pub at: Duration,
    /// Whether it looked at every writer. With many arenas some decisions take the next in the order of the last walk, by the
    /// lagged sum; who was passed over is not told then.
    pub walked: bool,
    /// The exact sum that the walk found; without one, the lagged sum.
    pub exact_bytes: usize,
    /// What of the reserve was unused: it counts against the budget as if it were held.
    pub kept_free_bytes: usize,
    /// The lagged sum.
    pub published_bytes: usize,
    /// What reporters may hold back.
    pub granted_bytes: usize,
    /// The budget in force; none is unlimited.
    pub budget_bytes: Option<usize>,
    /// The floor in force: no arena below it is asked.
    pub floor_bytes: usize,
    /// What has to be given back, before what is in flight is taken off.
    pub overage_bytes: usize,
    /// What was in flight already.
    pub in_flight_bytes: usize,
    /// The deepest source of pressure.
    pub source: PressureSource,
    /// How many arenas were asked.
    pub requests: usize,
    /// What all of them had, in bytes.
    pub requested_bytes: usize,
    /// The first of them, in order, at most 32: name, and its bytes.
    pub victims: Vec<(String, usize)>,
    /// Who was not asked, the largest first, at most 16, none that is empty: name, its bytes, and why. Empty without a walk.
    pub passed_over: Vec<(String, usize, PassedOver)>,
    /// How many were not asked, by reason. All 0 without a walk.
    pub passed_over_counts: PassedOverCounts,
    /// What is missing even if all of them spill.
    pub shortfall_bytes: usize,
}

/// Names of a list that `Display` shows.
const SHOWN: usize = 3;

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over by {}: {} held of ", Bytes(self.overage_bytes), self.source, Bytes(self.exact_bytes))?;
        match self.budget_bytes {
            Some(budget) => write!(f, "{}", Bytes(budget))?,
            None => f.write_str("unlimited")?,
        }
        if self.kept_free_bytes > 0 {
            write!(f, " with {} kept free", Bytes(self.kept_free_bytes))?;
        }
        let (published, lag) = (Bytes(self.published_bytes), Bytes(self.granted_bytes));
        write!(f, ", {published} published, lag at most {lag}, {} in flight already; ", Bytes(self.in_flight_bytes))?;
        match self.requests {
            0 => f.write_str("nobody can be asked")?,
            requests => write!(f, "asked {requests} for {}: ", Bytes(self.requested_bytes))?,
        }
        for (n, (name, bytes)) in self.victims.iter().take(SHOWN).enumerate() {
            write!(f, "{}{} {}", if n > 0 { ", " } else { "" }, OneLine(name), Bytes(*bytes))?;
        }
        more(f, self.requests, self.victims.len())?;
        let passed = self.passed_over_counts.total();
        if passed > 0 {
            write!(f, "; passed over {passed}")?;
            let reasons = self.passed_over_counts.each().into_iter().filter(|&(_, count)| count > 0);
            for (n, (why, count)) in reasons.enumerate() {
                write!(f, "{}{count} {why}", if n > 0 { ", " } else { ": " })?;
                if why == PassedOver::BelowFloor {
                    write!(f, " of {}", Bytes(self.floor_bytes))?;
                }
            }
        }
        for (n, (name, bytes, why)) in self.passed_over.iter().take(SHOWN).enumerate() {
            write!(f, "{}{} {} ({why})", if n > 0 { ", " } else { "; largest " }, OneLine(name), Bytes(*bytes))?;
        }
        if !self.walked {
            f.write_str("; next in the order of the last walk")?;
        }
        if self.shortfall_bytes > 0 {
            write!(f, "; {} missing all the same", Bytes(self.shortfall_bytes))?;
        }
        Ok(())
    }
}

fn more(f: &mut fmt::Formatter<'_>, all: usize, named: usize) -> fmt::Result {
    match all - named.min(SHOWN).min(all) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

/// A caller's name in a line of text: what would end the line, or move the cursor, is escaped.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter.is_control() {
            true => write!(f, "{}", letter.escape_default()),
            false => f.write_char(letter),
        })
    }
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
