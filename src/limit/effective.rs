//! Every setting in force, for people.

use crate::units::Bytes;
use std::fmt;

/// Where a setting came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The value of the documentation.
    Default,
    /// Given by the caller.
    Option,
    /// Computed from other settings.
    Derived,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Default => "default",
            Origin::Option => "option",
            Origin::Derived => "derived",
        })
    }
}

/// Every setting in force and where it came from. `Display` prints one line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effective {
    /// The budget of the whole process, not of a thread or a writer; none is unlimited.
    pub budget_bytes: (Option<usize>, Origin),
    /// What `try_` calls are never granted past; none without one.
    pub hard_limit_bytes: Option<usize>,
    /// What of the budget writers with an arena cannot use.
    pub reserve_bytes: usize,
    /// No arena below this is asked to spill.
    pub floor_bytes: (usize, Origin),
    /// What one writer may hold; none is not capped.
    pub writer_cap_bytes: (Option<usize>, Origin),
    /// One block of an arena.
    pub block_bytes: (usize, Origin),
    /// The size at which a reporter publishes; 0 publishes every change.
    pub quantum_bytes: (usize, Origin),
    /// What all reporters together may hold back, unless the quantum is fixed; none is unlimited.
    pub lag_bytes: (Option<usize>, Origin),
    /// What all reporters together may hold back now.
    pub lag_bound_bytes: usize,
    /// Whether only writers with an arena count against the budget.
    pub writer_share: bool,
    /// Whether the system's process-wide barrier is used, so that idle writers' windows can be moved.
    pub process_barrier: bool,
    /// The selector's name.
    pub selector: &'static str,
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional =
            |value: Option<usize>, none: &str| value.map_or(none.to_owned(), |bytes| Bytes(bytes).to_string());
        let (budget, floor, cap) = (self.budget_bytes, self.floor_bytes, self.writer_cap_bytes);
        let (block, quantum) = (self.block_bytes, self.quantum_bytes);
        writeln!(f, "budget       {} in all ({})", optional(budget.0, "unlimited"), budget.1)?;
        writeln!(f, "hard limit   {}", optional(self.hard_limit_bytes, "none"))?;
        writeln!(f, "reserve      {}", Bytes(self.reserve_bytes))?;
        writeln!(f, "floor        {} ({})", Bytes(floor.0), floor.1)?;
        writeln!(f, "writer cap   {} ({})", optional(cap.0, "none"), cap.1)?;
        writeln!(f, "block        {} ({})", Bytes(block.0), block.1)?;
        match quantum.0 {
            0 => writeln!(f, "quantum      0, every change is published ({})", quantum.1)?,
            bytes => writeln!(f, "quantum      {} a reporter ({})", Bytes(bytes), quantum.1)?,
        }
        writeln!(f, "lag budget   {} in all ({})", optional(self.lag_bytes.0, "unlimited"), self.lag_bytes.1)?;
        writeln!(f, "lag bound    {} in all", Bytes(self.lag_bound_bytes))?;
        writeln!(f, "counts       {}", if self.writer_share { "writers with an arena" } else { "everything held" })?;
        writeln!(
            f,
            "barrier      {}",
            if self.process_barrier { "process-wide" } else { "none, owners move their windows" }
        )?;
        write!(f, "selector     {}", self.selector)
    }
}
