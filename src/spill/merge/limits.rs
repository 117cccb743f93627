//! How many sources a merge reads at once, and how large their blocks are.

use crate::spill::run::{LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, RunReader, RunWriter};

/// How runs are written and merged. Neither number changes what a merge makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeLimits {
    /// Payload of a run's blocks in bytes, which is about what a reader or a writer holds: 256 to 65536, 65536 by default.
    pub block_bytes: usize,
    /// Sources that are merged at once, at least 2; 16 by default. A merge that is refused the memory for so many takes
    /// fewer.
    pub fan_in: usize,
}

impl Default for MergeLimits {
    fn default() -> Self {
        MergeLimits { block_bytes: MOST_BLOCK_BYTES, fan_in: FAN_IN }
    }
}

/// Sources that a workspace should hold before its blocks are the largest: nine hundred runs take three passes then.
const FAN_IN: usize = 16;
/// More are not merged at once: the merge itself would be slower than another pass.
const MOST_FAN_IN: usize = 1024;
/// The keys that a workspace is divided for, in bytes; a merge whose keys are longer takes fewer sources.
const KEY_BYTES: usize = 256;

impl MergeLimits {
    /// For a workspace of so many bytes and a process that may have so many files open: blocks of up to 64 KiB, as long as
    /// 16 sources fit, then as many sources as do. The runs of a spool are in one file, unless it could not be cut, so
    /// descriptors only bound the fan-in where every run may be in another.
    pub fn of(workspace_bytes: usize, open_files: usize) -> MergeLimits {
        let each = workspace_bytes / (FAN_IN + 1);
        let beside = RunReader::most_bytes(LEAST_BLOCK_BYTES, KEY_BYTES) - LEAST_BLOCK_BYTES;
        let block_bytes = each.saturating_sub(beside).clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        let readers = workspace_bytes.saturating_sub(RunWriter::most_bytes(block_bytes, KEY_BYTES))
            / RunReader::most_bytes(block_bytes, KEY_BYTES);
        // one for the run that is written
        let open = open_files.saturating_sub(1);
        MergeLimits { block_bytes, fan_in: readers.min(open).clamp(2, MOST_FAN_IN) }
    }
}

/// How many files the process may have open at once: the system's limit, and the largest number without one.
#[cfg(unix)]
pub fn most_open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// How many files the process may have open at once: a number that every system allows.
#[cfg(not(unix))]
pub fn most_open_files() -> usize {
    512
}
