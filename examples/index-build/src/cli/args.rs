//! What the command line may say, as the contract of the command has it. Declarations only: names, units, defaults and
//! the texts of `--help`; what cannot be said by one option alone is checked by the commands themselves.
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use super::size;
use crate::options::{Accounting, BuildOptions, Format, SpillOnRam, Sync};

const SIZES: &str = "\
Sizes are whole numbers: 4096 (bytes), 512KiB, 64MiB, 1GiB (powers of two), 10kB, 10MB, 1GB (powers of ten).
Exit codes: 0 done, 1 failed, 2 usage or a configuration that cannot work, 130 after Ctrl-C, 143 after SIGTERM.";

/// Builds and reads inverted indexes under a memory budget, accounted by plimsoll.
///
/// Without a command it indexes the Rust sources that cargo has already downloaded (at most 256 MiB) into the cargo
/// target folder, under a budget of 64 MiB with a floor of 1 MiB and 8 flush threads, and checks 20 terms against a
/// plain scan of the same input.
#[derive(Debug, Parser)]
#[command(name = "index-build", version, after_help = SIZES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) output: Output,
}

/// How every command talks.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Output {
    /// Print one JSON object on stdout and nothing else there; sizes are in bytes, times in seconds
    #[arg(long, global = true, display_order = 900)]
    pub(super) json: bool,
    /// No progress bar, no warnings, and no table after a build or an expansion; errors and what was asked for stay
    #[arg(long, global = true, display_order = 900)]
    pub(super) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Build an index of files and folders
    #[command(after_help = SIZES, next_line_help = true)]
    Build(Box<Build>),
    /// Look up a term, a phrase, or documents that hold all or any of some terms
    #[command(after_help = "A query without a hit is done too: exit code 0.")]
    Query(Query),
    /// Compare an index with a truth file; exit code 1 on any difference, or if nothing was compared
    Verify(Verify),
    /// Make a large file of a small one: identifiers change in each pass, words stay
    #[command(after_help = SIZES, next_line_help = true)]
    Expand(Expand),
    /// Measure what accounting costs: the same build off, per term and batched, in turn
    #[command(after_help = SIZES, next_line_help = true)]
    Compare(Compare),
    /// Show what an index consists of
    Inspect(Inspect),
}

#[derive(Debug, Args)]
pub(super) struct Build {
    /// Files, and folders, which are walked in byte order of relative path; one document a line
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    input: Vec<PathBuf>,
    /// The index folder; a non-empty one needs --force
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// auto: .jsonl and .ndjson are JSON lines, the rest is text; both in one build need text or jsonl said here
    #[arg(long, value_enum, default_value = "auto")]
    format: FormatName,
    /// Only these fields of JSON lines, separated by commas [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    fields: Option<Vec<String>>,
    /// Soft limit of everything held: above it, arenas are asked to spill [default: unlimited]
    #[arg(long, value_name = "SIZE", value_parser = size::memory_above_zero)]
    budget: Option<usize>,
    /// Never hold more than this: spill, wait, or fail and say what is needed; needs --accounting batched; alone it sets
    /// the budget to 7/8 of it [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size::memory_above_zero)]
    hard_limit: Option<usize>,
    /// No arena below this is asked to spill [default: the smaller of 64MiB and budget / 16, at least one block]
    #[arg(long, value_name = "SIZE", value_parser = size::memory_above_zero)]
    floor: Option<usize>,
    /// Arena plus vocabulary at which one field's writer spills of itself, after the document that reaches it
    /// [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size::memory_above_zero)]
    writer_cap: Option<usize>,
    /// The size at which a writer publishes what it has changed; 0 publishes every change [default: 1MiB, less where a
    /// sixteenth of the budget, shared by the live writers, is less]
    #[arg(long, value_name = "SIZE", value_parser = size::memory)]
    quantum: Option<usize>,
    /// What an arena grows by
    #[arg(long, value_name = "SIZE", value_parser = size::memory_above_zero, default_value = "32KiB")]
    block_bytes: usize,
    /// Input bytes of a batch, which becomes one segment; it ends with the document that reaches this
    #[arg(long, value_name = "SIZE", value_parser = size::above_zero, default_value = "16MiB")]
    batch_bytes: u64,
    /// Upper bound of flush threads, each with one batch at a time [default: the processors of this machine]
    #[arg(long, value_name = "N", value_parser = thread_count)]
    threads: Option<usize>,
    /// Where spilled runs go, removed at the end [default: a temporary folder in the parent of the index folder]
    #[arg(long, value_name = "DIR")]
    spill_dir: Option<PathBuf>,
    /// The most bytes that spilled runs may have on disk at any time, all threads together; a build that needs more fails
    /// [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size::above_zero)]
    spill_quota: Option<u64>,
    /// What to do if the spill directory lies in memory: warn and show the bytes, charge them, or refuse to build
    #[arg(long, value_enum, default_value = "warn")]
    spill_on_ram: SpillOnRamName,
    /// What is counted: nothing, each term as the reference did, or through plimsoll's reporters
    #[arg(long, value_enum, default_value = "batched")]
    accounting: AccountingName,
    /// final: every file that stays is synced before the build says that it is done; none: nothing is
    #[arg(long, value_enum, default_value = "final")]
    sync: SyncName,
    /// Count malformed JSON lines and give them no document id, instead of failing
    #[arg(long)]
    skip_bad: bool,
    /// Replace an older index, once the new one is published
    #[arg(long)]
    force: bool,
    /// Also say why each spill was asked for, on stderr or in the JSON object, and keep it in the index folder, where
    /// inspect shows it; the index itself is the same
    #[arg(long)]
    explain: bool,
}

impl Build {
    pub(super) fn options(self) -> BuildOptions {
        let defaults = BuildOptions::default();
        BuildOptions {
            inputs: self.input,
            index: self.index,
            format: self.format.into(),
            fields: self.fields,
            budget_bytes: self.budget,
            hard_limit_bytes: self.hard_limit,
            floor_bytes: self.floor,
            writer_cap_bytes: self.writer_cap,
            quantum_bytes: self.quantum,
            block_bytes: self.block_bytes,
            batch_bytes: self.batch_bytes,
            threads: self.threads.unwrap_or(defaults.threads),
            spill_dir: self.spill_dir,
            spill_quota_bytes: self.spill_quota,
            spill_on_ram: self.spill_on_ram.into(),
            accounting: self.accounting.into(),
            sync: self.sync.into(),
            skip_bad: self.skip_bad,
            force: self.force,
            explain: self.explain,
        }
    }
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["term", "phrase", "and", "or"]))]
pub(super) struct Query {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    pub(super) index: PathBuf,
    /// The field to look in; needed if the index has several
    #[arg(long, value_name = "F")]
    pub(super) field: Option<String>,
    /// A term, looked up byte for byte: not tokenized, not put in lower case
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub(super) term: Option<String>,
    /// Words that follow one another in a document, whatever separates them
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub(super) phrase: Option<String>,
    /// Documents that hold all of these words, separated by commas
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(super) and: Option<String>,
    /// Documents that hold any of these words, separated by commas
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(super) or: Option<String>,
    /// Also say the first N document ids [default: 0]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(super) ids: usize,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    pub(super) index: PathBuf,
    /// The truth file: its section `raw` is compared with a text index, `fields` with one of JSON lines
    #[arg(long, value_name = "FILE")]
    pub(super) truth: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Expand {
    /// The file to read, once for each pass
    #[arg(long, value_name = "FILE")]
    pub(super) input: PathBuf,
    /// The file to write; replaced if it exists, once the new one is whole
    #[arg(long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Stop at the end of the first pass that reaches this size
    #[arg(long, value_name = "SIZE", value_parser = size::above_zero)]
    pub(super) bytes: u64,
    /// The same seed makes the same file
    #[arg(long, value_name = "N")]
    pub(super) seed: u64,
}

#[derive(Debug, Args)]
pub(super) struct Compare {
    /// Files and folders, as for build
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub(super) input: Vec<PathBuf>,
    /// Only these fields of JSON lines, separated by commas [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    pub(super) fields: Option<Vec<String>>,
    /// auto: .jsonl and .ndjson are JSON lines, the rest is text
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) format: FormatName,
    /// Numbers of flush threads, separated by commas; each is measured by itself
    #[arg(long, value_name = "N,N", value_delimiter = ',', num_args = 1, value_parser = thread_count, default_value = "1,2,8,30")]
    pub(super) threads: Vec<usize>,
    /// How often each mode is measured; tables show the median (min..max)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value = "5")]
    pub(super) rounds: u32,
    /// Modes in the order of the first round, separated by commas; the next round goes the other way; off is measured
    /// twice, so that off-again beside off shows the noise
    #[arg(
        long,
        value_enum,
        value_name = "MODES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "off,per-term,batched"
    )]
    pub(super) modes: Vec<AccountingName>,
    /// Arena plus vocabulary at which a writer spills of itself, the same in all modes [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size::memory_above_zero)]
    pub(super) writer_cap: Option<usize>,
    /// Input bytes of a batch
    #[arg(long, value_name = "SIZE", value_parser = size::above_zero, default_value = "16MiB")]
    pub(super) batch_bytes: u64,
    /// Where the temporary indexes go, removed after each run [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    pub(super) index: PathBuf,
}

fn thread_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=4096) if !text.starts_with('+') => Ok(threads),
        _ => Err("a number of threads is a whole number from 1 to 4096".to_owned()),
    }
}

/// A named choice of the command line for each enum of the options, so that those stay plain data.
macro_rules! names {
    ($(#[$doc:meta] $name:ident for $of:ident { $($variant:ident),+ })+) => {$(
        #[$doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub(super) enum $name { $($variant),+ }

        impl From<$name> for $of {
            fn from(name: $name) -> $of {
                match name { $($name::$variant => $of::$variant),+ }
            }
        }
    )+};
}

names! {
    /// `--format`.
    FormatName for Format { Auto, Text, Jsonl }
    /// `--spill-on-ram`.
    SpillOnRamName for SpillOnRam { Warn, Charge, Refuse }
    /// `--accounting` and `--modes`.
    AccountingName for Accounting { Off, PerTerm, Batched }
    /// `--sync`.
    SyncName for Sync { Final, None }
}
