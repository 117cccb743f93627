//! How many bytes all spools of a process may have on disk.

use super::error::{SpillError, SpillResult};
use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// A disk quota in bytes, shared by everybody who has a clone: exact, so what is not written, removed or given back to the
/// file system is given back here. Without a limit it only counts.
#[derive(Debug, Clone)]
pub struct DiskQuota {
    shared: Arc<Shared>,
    limit_bytes: u64,
}

#[derive(Debug, Default)]
struct Shared {
    used: AtomicU64,
    peak: AtomicU64,
}

impl DiskQuota {
    /// At most so many bytes.
    pub fn new(limit_bytes: u64) -> DiskQuota {
        DiskQuota { shared: Arc::default(), limit_bytes }
    }

    /// Any number of bytes, counted.
    pub fn unlimited() -> DiskQuota {
        DiskQuota::new(u64::MAX)
    }

    /// What is on disk, or about to be, in bytes.
    pub fn used_bytes(&self) -> u64 {
        // Relaxed: a count only, nothing is published through it
        self.shared.used.load(Ordering::Relaxed)
    }

    /// The most that was on disk at any time, or about to be, in bytes; never above the limit.
    pub fn peak_bytes(&self) -> u64 {
        // Relaxed: as above
        self.shared.peak.load(Ordering::Relaxed)
    }

    /// The limit in bytes; none means that it only counts.
    pub fn limit_bytes(&self) -> Option<u64> {
        (self.limit_bytes != u64::MAX).then_some(self.limit_bytes)
    }

    /// Takes `bytes` that are about to be written.
    ///
    /// # Errors
    /// [`SpillError::Quota`]; nothing has changed.
    pub(crate) fn take(&self, bytes: u64) -> SpillResult<()> {
        // Relaxed: a count only; compare-exchange keeps it below the limit under any interleaving
        let taken = self.shared.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&after| after <= self.limit_bytes)
        });
        match taken {
            Ok(before) => {
                // Relaxed: a maximum of values that there were, whatever order they come in
                self.shared.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used_bytes) => Err(SpillError::Quota { asked_bytes: bytes, used_bytes, limit_bytes: self.limit_bytes }),
        }
    }

    /// Gives back what is not on disk any more.
    pub(crate) fn give_back(&self, bytes: u64) {
        // Relaxed: as above
        let before = self.shared.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "no more is given back than was taken");
    }
}
