//! What a build answers: the keys of the command's JSON object, in the contract's names.
use serde::Serialize;

use crate::explained::Explained;

/// Figures of one finished build. Bytes are bytes, times are seconds; `None` prints as null.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BuildReport {
    pub documents: u64,
    pub skipped_documents: u64,
    pub tokens: u64,
    pub distinct_terms: u64,
    pub postings: u64,
    pub input_bytes: u64,
    pub index_bytes: u64,
    pub segments: u64,
    pub seconds: f64,
    pub mb_per_s: f64,
    pub user_seconds: f64,
    pub sys_seconds: f64,
    pub threads: usize,
    pub accounting: &'static str,
    pub budget_bytes: Option<usize>,
    pub hard_limit_bytes: Option<usize>,
    pub floor_bytes: Option<usize>,
    pub peak_held_bytes: Option<usize>,
    pub mean_held_bytes: Option<usize>,
    pub overdraft_peak_bytes: usize,
    pub start_resident_bytes: u64,
    pub peak_resident_bytes: u64,
    pub forced_spills: u64,
    pub own_spills: u64,
    pub runs: u64,
    pub spilled_bytes: u64,
    pub spill_ram_bytes: u64,
    /// The most that spilled runs had on disk at any time, and what is still counted when they are gone: 0.
    pub spill_disk_peak_bytes: u64,
    pub spill_disk_at_end_bytes: u64,
    /// Folders of killed builds that were removed at the start, and the bytes in them.
    pub swept_folders: u64,
    pub swept_bytes: u64,
    pub merge_passes: u64,
    pub publishes: u64,
    pub notifications: u64,
    pub decisions: u64,
    pub shortfall_episodes: u64,
    /// Files and folders that were synced, each once.
    pub syncs: u64,
    pub sync_seconds: f64,
    pub accounting_errors: u64,
    pub lag_bound_bytes: Option<usize>,
    pub held_at_end_bytes: usize,
    pub published_at_end_bytes: usize,
    pub index_sha256: String,
    /// If it was asked for.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explained>,
}
