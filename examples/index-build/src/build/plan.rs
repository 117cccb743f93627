//! What a build is asked for, checked, with every size decided: plain data that all threads read.
//!
//! Sizes of blocks and the fan-in of merges follow from the budget and the threads, so that what is not an arena stays a
//! small part of it. None of them changes the index: that depends on input, format, fields and batch size alone.
use crate::build::hard::{Given, Hard, block_sizes, option};
use crate::error::{Error, Result};
use crate::input::{Inputs, Kind, json};
use crate::options::{Accounting, BuildOptions};
use plimsoll::spill::merge::{MergeLimits, most_open_files};
use plimsoll::{Bytes, GlobalMemoryLimiter, KIB, MIB};

/// The smallest block of an arena that the command takes: a few slices.
const LEAST_BLOCK_BYTES: usize = 512;
/// The largest: an arena's addresses still have 64 of them.
const MOST_BLOCK_BYTES: usize = 64 * MIB;
/// What a segment takes in lists until the index is published, about.
const SEGMENT_LIST_BYTES: usize = 2560;
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
    /// Under a hard limit.
    pub(super) hard: Option<Hard>,
    /// With a budget, or if it was given.
    pub(super) floor_bytes: Option<usize>,
    pub(super) writer_cap_bytes: Option<usize>,
    pub(super) quantum_bytes: Option<usize>,
    pub(super) limits: MergeLimits,
    pub(super) input_block_bytes: usize,
    /// Handles of finished files that are kept open until they are synced; further files are opened again for that.
    pub(super) open_files: usize,
    pub(super) skip_bad: bool,
}

fn usage(why: impl Into<String>) -> Error {
    Error::Usage(why.into())
}

/// Checks what can be checked before anything is looked at.
pub(super) fn check(options: &BuildOptions) -> Result<()> {
    let zero = [
        ("--budget", options.budget_bytes == Some(0)),
        ("--hard-limit", options.hard_limit_bytes == Some(0)),
        ("--floor", options.floor_bytes == Some(0)),
        ("--writer-cap", options.writer_cap_bytes == Some(0)),
        ("--block-bytes", options.block_bytes == 0),
        ("--batch-bytes", options.batch_bytes == 0),
        ("--spill-quota", options.spill_quota_bytes == Some(0)),
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
    if options.hard_limit_bytes.is_some() && options.accounting != Accounting::Batched {
        return Err(usage(match options.accounting {
            Accounting::Off => "--hard-limit needs accounting: choose --accounting batched, or leave the limit out",
            _ => {
                "--hard-limit needs --accounting batched: per-term makes the reference's calls, which are never refused"
            }
        }));
    }
    if let (Some(hard), Some(budget)) = (options.hard_limit_bytes, options.budget_bytes)
        && hard < budget
    {
        let (hard, budget) = (Bytes(hard), Bytes(budget));
        return Err(usage(format!("--hard-limit {hard} is below --budget {budget}: give at least the budget")));
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
        let batches = inputs.bytes.div_ceil(options.batch_bytes).max(1);
        let descriptors = most_open_files();
        let threads = options.threads.min(usize::try_from(batches).unwrap_or(usize::MAX));
        let threads = threads.min(descriptors.saturating_sub(OTHER_FILES) / THREAD_FILES).max(1);
        // whole pages, so that a minimum does not depend on the length of a path
        let lists = inputs.allocated_bytes() + threads.max(batches.min(1 << 20) as usize) * SEGMENT_LIST_BYTES;
        let given = Given {
            threads,
            block_bytes: options.block_bytes,
            jsonl: inputs.kind == Kind::Jsonl,
            budget_bytes: options.budget_bytes,
            lists_bytes: lists.next_multiple_of(4 * KIB),
        };
        let hard = options.hard_limit_bytes.map(|limit| Hard::of(given, limit));
        let budget_bytes = hard.map(|hard| given.budget_under(hard.limit_bytes)).or(options.budget_bytes);
        let floor_bytes = match (options.floor_bytes, budget_bytes) {
            (None, Some(budget)) => Some((64 * MIB).min(budget / 16).max(options.block_bytes)),
            (given, _) => given,
        };
        let known_fields = match inputs.kind {
            Kind::Text => 1,
            Kind::Jsonl => fields.as_ref().map_or(1, Vec::len),
        };
        let each = budget_bytes.map_or(usize::MAX, |budget| budget / threads);
        let (run_block, input_block_bytes) = block_sizes(each);
        let plan = Plan {
            fields,
            batch_bytes: options.batch_bytes,
            block_bytes: options.block_bytes,
            threads,
            budget_bytes,
            hard,
            floor_bytes,
            writer_cap_bytes: options.writer_cap_bytes,
            quantum_bytes: options.quantum_bytes,
            limits: MergeLimits { block_bytes: run_block, fan_in: (each / 4 / run_block).clamp(4, 64) },
            input_block_bytes,
            open_files: (descriptors.saturating_sub(OTHER_FILES + threads * THREAD_FILES) / 2).min(MOST_OPEN_FILES),
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

    /// The budget has to hold the floor, and the first block of every field of one batch; a hard limit all that a batch needs
    /// to go on.
    pub(super) fn check_minimum(&self, fields: usize) -> Result<()> {
        if let Some(hard) = &self.hard
            && let Some(least) = hard.below_minimum(fields)
        {
            let (given, block, least) = (Bytes(hard.limit_bytes), Bytes(self.block_bytes), option(least));
            let noun = if fields == 1 { "field" } else { "fields" };
            return Err(usage(format!(
                "--hard-limit {given} is below the minimum of {least}: one batch of {fields} {noun} with blocks of {block}, \
                 its segment, and a small document; give a larger limit or smaller --block-bytes"
            )));
        }
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
        if let Some(hard) = &self.hard {
            builder = builder.hard_limit_bytes(hard.limit_bytes).reserve_bytes(hard.reserve_bytes());
        }
        if let Some(floor) = self.floor_bytes {
            builder = builder.floor_bytes(floor);
        }
        if let Some(quantum) = self.quantum_bytes {
            builder = builder.quantum_bytes(quantum);
        }
        builder.build().map_err(|error| usage(error.to_string()))
    }
}

/// Descriptors that are left to the process: its own streams, two owner files, the digest, the sampler, whoever embeds it.
const OTHER_FILES: usize = 16;
/// Descriptors of a flush thread: input, three of a segment, the spool that is merged (one file, however many runs are in
/// it), another file of it where the first one takes no more runs, the spool of a field that spills meanwhile, one to spare.
const THREAD_FILES: usize = 8;
/// Files that wait open for their sync, if the descriptors allow it.
const MOST_OPEN_FILES: usize = 192;

#[cfg(test)]
mod tests {
    use super::*;

    /// B44: whatever the limit on open files is, all threads together stay below it.
    #[test]
    fn threads_merges_and_waiting_files_fit_the_descriptors() {
        for descriptors in [32usize, 64, 256, 1024, 1 << 20] {
            for asked in [1usize, 4, 30, 500] {
                let threads = asked.min(descriptors.saturating_sub(OTHER_FILES) / THREAD_FILES).max(1);
                let waiting =
                    (descriptors.saturating_sub(OTHER_FILES + threads * THREAD_FILES) / 2).min(MOST_OPEN_FILES);
                let all = OTHER_FILES + threads * THREAD_FILES + waiting;
                assert!(all <= descriptors, "{descriptors} descriptors, {threads} threads: {all}");
            }
        }
    }
}
