//! What an operator sees: every writer, the largest first.

use super::arena_cell::{ArenaCell, State};
use super::cell::Cell;
use super::core::Core;
use super::decision::{Decision, Shortfall};
use crate::sync::Ordering;
use crate::telemetry::Stats;
use crate::units::Bytes;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One arena of a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaSnapshot {
    /// Its name.
    pub name: String,
    /// Block-backed bytes.
    pub bytes: usize,
    /// Bytes whose spill is asked for or running.
    pub in_flight_bytes: usize,
    /// Whether its owner is asked to spill and has not begun.
    pub requested: bool,
    /// Runs written so far.
    pub runs: u64,
}

/// One writer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterSnapshot {
    /// Its name.
    pub name: String,
    /// What it holds, exact at some instant of the walk.
    pub held_bytes: usize,
    /// What of it is in the lagged sum.
    pub published_bytes: usize,
    /// Its cap, if it has one.
    pub cap_bytes: Option<usize>,
    /// Its arenas, in order of registration.
    pub arenas: Vec<ArenaSnapshot>,
}

impl WriterSnapshot {
    /// The part that a spill frees.
    pub fn arena_bytes(&self) -> usize {
        self.arenas.iter().map(|arena| arena.bytes).sum()
    }

    /// The part of it that is on its way out.
    pub fn in_flight_bytes(&self) -> usize {
        self.arenas.iter().map(|arena| arena.in_flight_bytes).sum()
    }
}

/// All writers of a limiter, those that hold most first. `Display` prints a small table.
///
/// A walk and not an instant: each figure is exact at some moment during the call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The limiter's name.
    pub limiter: String,
    /// The sum over the writers below.
    pub held_bytes: usize,
    /// The lagged sum.
    pub published_bytes: usize,
    /// What reporters may hold back.
    pub lag_bound_bytes: usize,
    /// The budget; none is unlimited.
    pub budget_bytes: Option<usize>,
    /// Bytes whose spill is asked for or running.
    pub in_flight_bytes: usize,
    /// The shortfall, while it lasts.
    pub shortfall: Option<Shortfall>,
    /// The last of the decisions below.
    pub last_decision: Option<Arc<Decision>>,
    /// The last 64 decisions that asked for a spill, or with which a shortfall began, oldest first. Those before are
    /// forgotten; [`Decision::number`] says how many there were.
    pub decisions: Vec<Arc<Decision>>,
    /// Every live writer, by held bytes descending, then by name.
    pub writers: Vec<WriterSnapshot>,
}

impl Core {
    pub(crate) fn stats(&self) -> Stats {
        // An arena that is leaving may count twice for a moment.
        self.registry.arenas.walk(|arenas| {
            let notifications = arenas.iter().map(|arena| arena.notifications.get()).sum();
            self.telemetry.stats(&self.ledger, notifications)
        })
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        // The references are cloned, so that nothing is locked while names are copied.
        let arenas: Vec<Arc<ArenaCell>> = self.registry.arenas.walk(<[_]>::to_vec);
        let cells: Vec<Arc<Cell>> = self.registry.cells.walk(<[_]>::to_vec);
        let mut by_owner: HashMap<u64, Vec<&ArenaCell>> = HashMap::new();
        for arena in &arenas {
            by_owner.entry(arena.owner.lock().id).or_default().push(arena);
        }
        let mut writers: Vec<WriterSnapshot> = cells
            .iter()
            .map(|cell| {
                let mut own = by_owner.remove(&cell.id).unwrap_or_default();
                own.sort_unstable_by_key(|arena| arena.id);
                WriterSnapshot {
                    name: cell.name.to_string(),
                    held_bytes: cell.total_bytes(),
                    published_bytes: cell.published_bytes(),
                    cap_bytes: cell.cap(),
                    arenas: own.into_iter().map(look).collect(),
                }
            })
            .collect();
        writers.sort_by(|a, b| b.held_bytes.cmp(&a.held_bytes).then_with(|| a.name.cmp(&b.name)));
        let budget = self.settings.budget_bytes();
        let (shortfall, decisions) = self.decider.told();
        Snapshot {
            limiter: self.telemetry.name().to_owned(),
            held_bytes: writers.iter().map(|writer| writer.held_bytes).sum(),
            published_bytes: self.ledger.published_bytes(),
            lag_bound_bytes: self.ledger.granted_bytes(),
            budget_bytes: (budget != usize::MAX).then_some(budget),
            in_flight_bytes: writers.iter().map(WriterSnapshot::in_flight_bytes).sum(),
            shortfall,
            last_decision: decisions.last().cloned(),
            decisions,
            writers,
        }
    }
}

fn look(arena: &ArenaCell) -> ArenaSnapshot {
    let word = arena.word();
    let bytes = arena.bytes();
    ArenaSnapshot {
        name: arena.name.to_string(),
        bytes,
        in_flight_bytes: word.covers_bytes(bytes),
        requested: word.state() == State::Requested,
        runs: arena.runs(),
    }
}

/// Rows that the table prints; the rest is summed up in one.
const ROWS: usize = 20;

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = self.budget_bytes.map_or("unlimited".to_owned(), |bytes| Bytes(bytes).to_string());
        writeln!(
            f,
            "{}: {} held of {budget}, {} published, lag at most {}, {} in flight",
            self.limiter,
            Bytes(self.held_bytes),
            Bytes(self.published_bytes),
            Bytes(self.lag_bound_bytes),
            Bytes(self.in_flight_bytes)
        )?;
        if let Some(shortfall) = &self.shortfall {
            writeln!(
                f,
                "shortfall by {}: {} missing, {} persistent, {} writers, {} would fit",
                shortfall.source,
                Bytes(shortfall.missing_bytes),
                Bytes(shortfall.persistent_bytes),
                shortfall.writers,
                shortfall.writers_that_fit
            )?;
        }
        let width = self.writers.iter().take(ROWS).map(|writer| writer.name.chars().count()).max().unwrap_or(0).max(6);
        writeln!(f, "{:width$} {:>12} {:>12} {:>12} {:>6}", "writer", "held", "arena", "in flight", "runs")?;
        for writer in self.writers.iter().take(ROWS) {
            writeln!(
                f,
                "{:width$} {:>12} {:>12} {:>12} {:>6}",
                writer.name,
                Bytes(writer.held_bytes),
                Bytes(writer.arena_bytes()),
                Bytes(writer.in_flight_bytes()),
                writer.arenas.iter().map(|arena| arena.runs).sum::<u64>()
            )?;
        }
        if let Some(rest) = self.writers.get(ROWS..).filter(|rest| !rest.is_empty()) {
            let held = rest.iter().map(|writer| writer.held_bytes).sum();
            writeln!(f, "{} more hold {}", rest.len(), Bytes(held))?;
        }
        Ok(())
    }
}

impl Cell {
    /// Whether it counts as a writer: it has an arena.
    pub(crate) fn has_arena(&self) -> bool {
        self.arenas.load(Ordering::Relaxed) > 0
    }
}
