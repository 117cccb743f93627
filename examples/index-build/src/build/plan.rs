//! What a build is asked for, checked, with every size decided: plain data that all threads read.
//!
//! Sizes of blocks and the fan-in of merges follow from the budget and the threads, so that what is not an arena stays a
//! small part of it. None of them changes the index: that depends on input, format, fields and batch size alone.
use crate::error::{Error, Result};
use crate::input::{Inputs, Kind, json};
use crate::open_files::most_open_files;
use crate::options::{Accounting, BuildOptions};
use crate::run::Limits;
use plimsoll::{Bytes, GlobalMemoryLimiter, KIB, MIB};

/// The smallest block of an arena that the command takes: a few slices.
const LEAST_BLOCK_BYTES: usize = 512;
/// The largest: an arena's addresses still have 64 of them.
const MOST_BLOCK_BYTES: usize = 64 * MIB;
/// A batch stays below 2^32 bytes, so that its documents and positions fit 32 bits.
const MOST_BATCH_BYTES: u64 = u32::MAX as u64;

/// A build that can begin.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) inputs: Inputs,
    /// Only these, sorted, if any were given.
    pub(super) fields: Option<Vec<String>>,
    pub(super) batch_bytes: u64,
    pub(super) block_bytes: usize,
    /// Flush threads to start.
    pub(super) threads: usize,
    pub(super) budget_bytes: Option<usize>,
    /// With a budget, or if it was given.
    pub(super) floor_bytes: Option<usize>,
    pub(super) writer_cap_bytes: Option<usize>,
    pub(super) quantum_bytes: Option<usize>,
    pub(super) limits: Limits,
    /// Finished files that may stay open until they are synced.
    pub(super) kept_files: usize,
    pub(super) input_block_bytes: usize,
    pub(super) skip_bad: bool,
}

fn usage(why: impl Into<String>) -> Error {
    Error::Usage(why.into())
}

/// Checks what can be checked before anything is looked at.
pub(super) fn check(options: &BuildOptions) -> Result<()> {
    let zero = [
        ("--budget", options.budget_bytes == Some(0)),
        ("--floor", options.floor_bytes == Some(0)),
        ("--writer-cap", options.writer_cap_bytes == Some(0)),
        ("--block-bytes", options.block_bytes == 0),
        ("--batch-bytes", options.batch_bytes == 0),
        ("--threads", options.threads == 0),
    ];
    if let Some((option, _)) = zero.iter().find(|(_, zero)| *zero) {
        return Err(usage(format!("{option} is 0: give at least 1")));
    }
    if !(LEAST_BLOCK_BYTES..=MOST_BLOCK_BYTES).contains(&options.block_bytes) {
        let (block, least, most) = (Bytes(options.block_bytes), Bytes(LEAST_BLOCK_BYTES), Bytes(MOST_BLOCK_BYTES));
        return Err(usage(format!("--block-bytes is {block}: give {least} to {most}")));
    }
    if options.batch_bytes > MOST_BATCH_BYTES {
        return Err(usage("--batch-bytes is 4 GiB or more: documents of a batch are numbered with 32 bits"));
    }
    if options.accounting == Accounting::Off && options.budget_bytes.is_some() {
        return Err(usage("--budget needs accounting: choose --accounting batched, or leave the budget out"));
    }
    if let Some(fields) = &options.fields {
        if fields.is_empty() {
            return Err(usage("--fields names no field"));
        }
        if fields.len() > json::MOST_FIELDS {
            return Err(usage(format!(
                "--fields names {} fields: an index has at most {}",
                fields.len(),
                json::MOST_FIELDS
            )));
        }
    }
    Ok(())
}

impl Plan {
    /// Decides every size. `options` has been checked.
    pub(super) fn new(options: &BuildOptions, inputs: Inputs) -> Result<Plan> {
        let mut fields = options.fields.clone();
        if let Some(fields) = &mut fields {
            if inputs.kind == Kind::Text {
                return Err(usage(
                    "--fields is for JSON lines: the input is text, give --format jsonl or leave it out",
                ));
            }
            fields.sort();
            fields.dedup();
        }
        let floor_bytes = match (options.floor_bytes, options.budget_bytes) {
            (None, Some(budget)) => Some((64 * MIB).min(budget / 16).max(options.block_bytes)),
            (given, _) => given,
        };
        let known_fields = match inputs.kind {
            Kind::Text => 1,
            Kind::Jsonl => fields.as_ref().map_or(1, Vec::len),
        };
        let batches = inputs.bytes.div_ceil(options.batch_bytes).max(1);
        let threads = options.threads.min(usize::try_from(batches).unwrap_or(usize::MAX));
        let descriptors = Descriptors::share(most_open_files(), threads);
        let threads = descriptors.threads;
        let each = options.budget_bytes.map_or(usize::MAX, |budget| budget / threads);
        let run_block = (each / 64).clamp(KIB, 64 * KIB);
        let fan_in = (each / 4 / run_block).clamp(4, 64).min(descriptors.fan_in);
        let plan = Plan {
            fields,
            batch_bytes: options.batch_bytes,
            block_bytes: options.block_bytes,
            threads,
            budget_bytes: options.budget_bytes,
            floor_bytes,
            writer_cap_bytes: options.writer_cap_bytes,
            quantum_bytes: options.quantum_bytes,
            limits: Limits { block_bytes: run_block, fan_in },
            kept_files: descriptors.kept,
            input_block_bytes: (each / 16).clamp(4 * KIB, 128 * KIB) & !(4 * KIB - 1),
            skip_bad: options.skip_bad,
            inputs,
        };
        if let (Some(floor), Some(budget)) = (plan.floor_bytes, plan.budget_bytes)
            && options.floor_bytes.is_some()
            && floor > budget
        {
            let (floor, budget) = (Bytes(floor), Bytes(budget));
            return Err(usage(format!(
                "--floor {floor} is above --budget {budget}: give a budget of at least {floor}"
            )));
        }
        plan.check_minimum(known_fields)?;
        Ok(plan)
    }

    /// The budget has to hold the floor, and the first block of every field of one batch.
    pub(super) fn check_minimum(&self, fields: usize) -> Result<()> {
        let Some(budget) = self.budget_bytes else { return Ok(()) };
        let blocks = self.block_bytes.saturating_mul(fields);
        let minimum = blocks.max(self.floor_bytes.unwrap_or(0));
        if budget >= minimum {
            return Ok(());
        }
        let (given, least, block) = (Bytes(budget), Bytes(minimum), Bytes(self.block_bytes));
        Err(usage(format!(
            "--budget {given} is below the minimum of {least}: a block of {block} for each of {fields} fields of a batch; \
             give a larger budget or smaller --block-bytes"
        )))
    }

    /// The limiter of this build.
    pub(super) fn limiter(&self) -> Result<GlobalMemoryLimiter> {
        let mut builder = GlobalMemoryLimiter::builder().name("index-build").block_bytes(self.block_bytes);
        builder = match self.budget_bytes {
            Some(budget) => builder.budget_bytes(budget),
            None => builder.unlimited(),
        };
        if let Some(floor) = self.floor_bytes {
            builder = builder.floor_bytes(floor);
        }
        if let Some(quantum) = self.quantum_bytes {
            builder = builder.quantum_bytes(quantum);
        }
        builder.build().map_err(|error| usage(error.to_string()))
    }
}

/// How the file descriptors of the process are shared out: none of it changes the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Descriptors {
    /// flush threads that can have all that a batch needs
    threads: usize,
    /// sources of a merge
    fan_in: usize,
    /// finished files that are kept open until they are synced
    kept: usize,
}

/// Standard streams, signals, the digest, the look for a batch's end, and some that a library may want.
const OF_THE_PROCESS: usize = 12;
/// Three files of a segment, a run that is written, and one to spare.
const OF_A_THREAD: usize = 5;
/// Finished segment files that are kept open at most.
const MOST_KEPT: usize = 192;

impl Descriptors {
    fn share(most: usize, threads: usize) -> Descriptors {
        let kept = (most.saturating_sub(32) / 2).min(MOST_KEPT);
        let left = most.saturating_sub(OF_THE_PROCESS + kept);
        let threads = threads.min(left / (OF_A_THREAD + 2)).max(1);
        Descriptors { threads, fan_in: (left / threads).saturating_sub(OF_A_THREAD).max(2), kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_together_stay_below_the_limit_of_open_files() {
        for most in 20..3000 {
            for threads in [1, 2, 8, 30, 1000] {
                let shared = Descriptors::share(most, threads);
                let all = OF_THE_PROCESS + shared.kept + shared.threads * (OF_A_THREAD + shared.fan_in);
                assert!(all <= most && shared.threads <= threads && shared.fan_in >= 2, "{most}: {shared:?}");
            }
        }
        let usual = Descriptors::share(1024, 8);
        assert_eq!((usual.threads, usual.kept), (8, MOST_KEPT));
        assert!(usual.fan_in >= 64);
        assert_eq!(Descriptors::share(0, 8), Descriptors { threads: 1, fan_in: 2, kept: 0 });
        assert_eq!(Descriptors::share(usize::MAX, 8).threads, 8);
    }
}
