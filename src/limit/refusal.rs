//! Why a `try_` charge was refused. Read again for the error, which neither walks nor allocates: others may have moved on.

use super::cell::{Cell, MAX_BYTES};
use super::core::Core;
use super::settings::NONE;
use crate::error::{Refusal, ReserveError};

impl Core {
    /// The error for a `try_` charge of `bytes` on `cell`.
    pub(crate) fn refusal(&self, cell: &Cell, bytes: usize) -> ReserveError {
        let held_bytes = cell.total_bytes();
        let error = |held_bytes, limit_bytes, kind| ReserveError { asked_bytes: bytes, held_bytes, limit_bytes, kind };
        let hard = self.settings.hard_limit_bytes();
        match cell.cap() {
            _ if bytes > MAX_BYTES => error(held_bytes, MAX_BYTES, Refusal::Overflow),
            Some(cap) if held_bytes.saturating_add(bytes) > cap => error(held_bytes, cap, Refusal::WriterCap),
            // The cap alone can have refused: on a shared account others may have released since.
            Some(cap) if hard == NONE => error(held_bytes, cap, Refusal::WriterCap),
            _ if held_bytes.saturating_add(bytes) > MAX_BYTES || hard == NONE => {
                error(held_bytes, MAX_BYTES, Refusal::Overflow)
            }
            _ => {
                let reserved = self.ledger.reserved_bytes();
                let top = self.top_bytes(cell);
                let by_reserve = top < hard && reserved.saturating_add(bytes) <= hard;
                if by_reserve {
                    error(reserved, top, Refusal::Reserve)
                } else {
                    error(reserved, hard, Refusal::HardLimit)
                }
            }
        }
    }
}
