//! The error for a `try_` charge that was refused: neither walks nor allocates. Its numbers are read again, so others may
//! have moved on; who refused is as it was.

use super::cell::{Cell, MAX_BYTES};
use super::core::Core;
use crate::error::{Refusal, ReserveError};

impl Core {
    /// The error for a `try_` charge of `bytes` on `cell` that `kind` refused.
    pub(crate) fn refusal(&self, cell: &Cell, bytes: usize, kind: Refusal) -> ReserveError {
        let (held_bytes, limit_bytes) = match kind {
            Refusal::WriterCap => (cell.total_bytes(), cell.cap().unwrap_or(MAX_BYTES)),
            Refusal::HardLimit => (self.ledger.reserved_bytes(), self.settings.hard_limit_bytes()),
            Refusal::Reserve => (self.ledger.reserved_bytes(), self.top_bytes(cell)),
            Refusal::Overflow | Refusal::ArenaAddressSpace | Refusal::Workspace => (cell.total_bytes(), MAX_BYTES),
        };
        ReserveError { asked_bytes: bytes, held_bytes, limit_bytes, kind }
    }
}
