//! What a build is asked for. Plain data: the command line and the tests fill it, [`crate::build`] reads it.
use std::path::PathBuf;

/// How the input's bytes become documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `.jsonl` and `.ndjson` are JSON lines, the rest is text; both in one build is a usage error.
    #[default]
    Auto,
    /// One document a line, one field named `text`.
    Text,
    /// One JSON object a line, a field for each top-level string value.
    Jsonl,
}

/// What the build counts, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accounting {
    /// Nothing.
    Off,
    /// The counted calls of the reference before its change, for comparison.
    PerTerm,
    /// Through plimsoll's reporters.
    #[default]
    Batched,
}

impl Accounting {
    /// As the command line writes it.
    pub fn name(self) -> &'static str {
        match self {
            Accounting::Off => "off",
            Accounting::PerTerm => "per-term",
            Accounting::Batched => "batched",
        }
    }
}

/// What is synced before a build says that it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Every file that stays, once, and the directories that name them.
    #[default]
    Final,
    /// Nothing.
    None,
}

/// What to do when the spill directory lies on a file system in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpillOnRam {
    /// Warn, and show the bytes.
    #[default]
    Warn,
    /// Charge the spilled bytes like any other memory.
    Charge,
    /// Refuse to build.
    Refuse,
}

/// Everything a build is asked for; [`Default`] is what the command does without options, inputs and index aside.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Files as given; a folder is walked in byte order of relative path.
    pub inputs: Vec<PathBuf>,
    /// The index folder.
    pub index: PathBuf,
    pub format: Format,
    /// Only these fields of JSON lines; all if none are given.
    pub fields: Option<Vec<String>>,
    /// Soft budget; none is unlimited.
    pub budget_bytes: Option<usize>,
    /// Never held more than this: the build waits, or fails, instead. Without a budget, that is seven eighths of it.
    pub hard_limit_bytes: Option<usize>,
    /// No arena below this is asked to spill.
    pub floor_bytes: Option<usize>,
    /// Arena plus vocabulary of one field's writer; it spills itself after the document that reaches it.
    pub writer_cap_bytes: Option<usize>,
    /// A fixed quantum instead of the shared one; 0 publishes every change.
    pub quantum_bytes: Option<usize>,
    pub block_bytes: usize,
    pub batch_bytes: u64,
    /// Upper bound of flush threads.
    pub threads: usize,
    pub spill_dir: Option<PathBuf>,
    /// The most that spilled runs may have on disk; none is no limit.
    pub spill_quota_bytes: Option<u64>,
    pub spill_on_ram: SpillOnRam,
    pub accounting: Accounting,
    pub sync: Sync,
    pub skip_bad: bool,
    pub force: bool,
    /// Also tell the decisions of the build, and keep them in the index folder.
    pub explain: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            inputs: Vec::new(),
            index: PathBuf::new(),
            format: Format::Auto,
            fields: None,
            budget_bytes: None,
            hard_limit_bytes: None,
            floor_bytes: None,
            writer_cap_bytes: None,
            quantum_bytes: None,
            block_bytes: 32 << 10,
            batch_bytes: 16 << 20,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            spill_dir: None,
            spill_quota_bytes: None,
            spill_on_ram: SpillOnRam::Warn,
            accounting: Accounting::Batched,
            sync: Sync::Final,
            skip_bad: false,
            force: false,
            explain: false,
        }
    }
}
