//! Why a `try_` call was refused, for people: which setting, who holds what, what could be spilled.

use super::arena_cell::ArenaCell;
use super::cell::Cell;
use super::core::Core;
use super::decision::OneLine;
use crate::error::{Refusal, ReserveError};
use crate::units::Bytes;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// Holders that an explanation names.
const HOLDERS: usize = 3;

/// A refusal explained: see [`GlobalMemoryLimiter::explain`](crate::GlobalMemoryLimiter::explain). `Display` is one line.
///
/// Sums are those of a walk, as of the call and not as of the refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The refusal itself.
    pub error: ReserveError,
    /// The name of the setting to change; none if no setting changes it.
    pub setting: Option<&'static str>,
    /// What all writers hold together, in bytes.
    pub held_bytes: usize,
    /// Live writers, shared accounts included.
    pub writers: usize,
    /// The three writers of the whole process that hold most: name and bytes, the largest first, the older one of two
    /// alike. Fewer if fewer hold anything.
    pub holders: Vec<(String, usize)>,
    /// Arena bytes that no spill is asked for yet: what spills could free.
    pub spillable_bytes: usize,
    /// Arena bytes whose spill is asked for or running: what will be free without further asking.
    pub in_flight_bytes: usize,
}

impl Refusal {
    /// The setting behind it, as an option or a method is called.
    fn setting(self) -> Option<&'static str> {
        match self {
            Refusal::WriterCap => Some("writer_cap_bytes"),
            Refusal::ArenaAddressSpace => Some("arena_with_address_space"),
            Refusal::HardLimit => Some("hard_limit_bytes"),
            Refusal::Reserve => Some("reserve_bytes"),
            Refusal::Workspace => Some("the workspace's budget_bytes"),
            Refusal::Overflow => None,
        }
    }
}

impl Core {
    /// See [`Explanation`].
    pub(crate) fn explain(&self, error: &ReserveError) -> Explanation {
        let mut top: Vec<(usize, Arc<Cell>)> = Vec::with_capacity(HOLDERS + 1);
        let (held_bytes, writers) = self.registry.cells.walk(|cells| {
            let mut sum = 0usize;
            for cell in cells {
                let held = cell.total_bytes();
                sum = sum.saturating_add(held);
                let place =
                    top.partition_point(|(bytes, other)| (Reverse(*bytes), other.id) < (Reverse(held), cell.id));
                if held > 0 && place < HOLDERS {
                    top.insert(place, (held, Arc::clone(cell)));
                    top.truncate(HOLDERS);
                }
            }
            (sum, cells.len())
        });
        let (spillable_bytes, in_flight_bytes) = self.registry.arenas.walk(|arenas| {
            arenas.iter().map(|arena| spillable(arena)).fold((0usize, 0usize), |(idle, covered), (more, leaving)| {
                (idle.saturating_add(more), covered.saturating_add(leaving))
            })
        });
        Explanation {
            error: *error,
            setting: error.kind.setting(),
            held_bytes,
            writers,
            holders: top.into_iter().map(|(held, cell)| (cell.name.to_string(), held)).collect(),
            spillable_bytes,
            in_flight_bytes,
        }
    }
}

/// What a further spill of the arena could free, and what is on its way out.
fn spillable(arena: &ArenaCell) -> (usize, usize) {
    let word = arena.word();
    let bytes = arena.bytes();
    let leaving = word.covers_bytes(bytes);
    (bytes - leaving, leaving)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; ", self.error)?;
        let setting = self.setting.unwrap_or_default();
        match self.error.kind {
            Refusal::WriterCap | Refusal::HardLimit | Refusal::Workspace => write!(f, "raise {setting}, or spill")?,
            Refusal::ArenaAddressSpace => write!(f, "spill the arena, or give it more by {setting}")?,
            Refusal::Reserve => write!(f, "lower {setting}, or spill")?,
            Refusal::Overflow => f.write_str("no setting changes that")?,
        }
        let writers = if self.writers == 1 { "writer" } else { "writers" };
        write!(
            f,
            "; in all {} held by {} {writers}, {} can be spilled, {} in flight",
            Bytes(self.held_bytes),
            self.writers,
            Bytes(self.spillable_bytes),
            Bytes(self.in_flight_bytes)
        )?;
        for (n, (name, bytes)) in self.holders.iter().enumerate() {
            write!(f, "{}{} {}", if n > 0 { ", " } else { "; most: " }, OneLine(name), Bytes(*bytes))?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{GlobalMemoryLimiter, KIB, MIB};

    /// Every kind has a text of its own, and the kinds without a producer in this crate's tests are made by hand.
    #[test]
    fn each_kind_names_its_setting_and_what_to_do_with_it() {
        let limiter = GlobalMemoryLimiter::builder().unlimited().build().unwrap();
        let texts = [
            (Refusal::WriterCap, "raise writer_cap_bytes, or spill"),
            (Refusal::ArenaAddressSpace, "spill the arena, or give it more by arena_with_address_space"),
            (Refusal::HardLimit, "raise hard_limit_bytes, or spill"),
            (Refusal::Reserve, "lower reserve_bytes, or spill"),
            (Refusal::Workspace, "raise the workspace's budget_bytes, or spill"),
            (Refusal::Overflow, "no setting changes that"),
        ];
        for (kind, text) in texts {
            let error = ReserveError { asked_bytes: KIB, held_bytes: MIB, limit_bytes: MIB, kind };
            assert_eq!(
                limiter.explain(&error).to_string(),
                format!("{error}; {text}; in all 0 B held by 0 writers, 0 B can be spilled, 0 B in flight")
            );
        }
    }
}
