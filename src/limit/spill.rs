//! A spill under way.

use super::arena::ArenaHandle;
use super::reporter::Reporter;
use crate::telemetry::SpillEnd;

/// The owner is writing its arena out. [`finish`](Self::finish) says what is left; a drop without it, by an error or a
/// panic, means that the spill failed: the arena is as large as before and can be asked again, after a pause (1 s by
/// default, [`LimiterBuilder::spill_backoff`](crate::LimiterBuilder::spill_backoff)).
///
/// Until one of the two, the arena's bytes count as covered: nobody else is asked for them.
#[derive(Debug)]
#[must_use = "a guard that is dropped says that the spill failed"]
pub struct SpillGuard<'a> {
    arena: &'a mut ArenaHandle,
    reporter: &'a Reporter,
    forced: bool,
    finished: bool,
}

impl<'a> SpillGuard<'a> {
    pub(crate) fn new(arena: &'a mut ArenaHandle, reporter: &'a Reporter, forced: bool) -> Self {
        SpillGuard { arena, reporter, forced, finished: false }
    }

    /// Whether the limiter had asked for it.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// What the arena had when the spill began, in bytes.
    pub fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// The run is written and the blocks are freed, but for `remaining_bytes` (block-backed).
    pub fn finish(mut self, remaining_bytes: usize) {
        self.finished = true;
        let end = if self.forced { SpillEnd::Forced } else { SpillEnd::Own };
        self.arena.core().telemetry.spilled(end);
        self.arena.spilled(self.reporter, remaining_bytes);
    }
}

impl Drop for SpillGuard<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.arena.core().telemetry.spilled(SpillEnd::Failed);
            self.arena.spill_failed();
        }
    }
}
