//! A build: checked, planned, run on its threads, published, reported.
//!
//! | file | what is in it |
//! |---|---|
//! | [`watch`] | what a front end sees, and how it stops a build |
//! | `plan` | the options, checked, and every size decided |
//! | `folders` | the index folder's rules; temporary folders |
//! | `threads` | the run: flush threads, digest, sampler |
//! | `shared` | what the threads share |
//! | `admission` | how many batches are built at once |
//! | `batch`, `field`, `done`, `into_segment` | one batch: documents, writers, spills, segment |
//! | `hard`, `turns`, `room`, `safe_point` | under a hard limit: sizes, who waits, where a batch asks for what |
//! | `outcome` | what the batches came to, and which failure is told |
//! | `explain` | why writers were asked to spill |
//! | `publish` | the files of the new index, written and synced |
//! | `process` | processor time and resident memory |
mod admission;
mod batch;
mod done;
mod explain;
mod field;
mod folders;
mod hard;
mod into_segment;
mod outcome;
mod plan;
mod process;
mod publish;
mod room;
mod safe_point;
mod shared;
mod threads;
mod turns;
pub mod watch;

pub use watch::Watch;

use crate::accounting::{Batched, Charge, Leased, Mode, Off, PerTerm};
use crate::error::{Error, Result};
use crate::explained;
use crate::input::{self, Kind};
use crate::manifest::{self, Manifest};
use crate::options::{Accounting, BuildOptions, SpillOnRam};
use crate::query;
use crate::report::BuildReport;
use folders::Target;
use plan::Plan;
use plimsoll::GlobalMemoryLimiter;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a segment takes in the manifest, as it is made and written: entries in lists that double, their text, and it again.
const MANIFEST_BYTES_A_SEGMENT: usize = 1536;
/// The names of fields meanwhile: themselves, and in both texts.
const MANIFEST_COPIES: usize = 6;
/// The explained decisions meanwhile: themselves, again without times, and as text.
const EXPLAINED_COPIES: usize = 3;

/// Builds an index.
///
/// # Errors
/// [`Error::Usage`] for options that cannot work and index folders that have to stay untouched; [`Error::Input`] for the
/// first line, in input order, that cannot be indexed; [`Error::Interrupted`] when `watch` is told of a signal; otherwise
/// the first thing that failed. Nothing temporary stays, and an index that was there before is as it was.
pub fn build(options: &BuildOptions, watch: &Watch) -> Result<BuildReport> {
    let (plan, target) = prepare(options, watch)?;
    match options.accounting {
        Accounting::Off => run(options, &plan, &target, watch, Off, None),
        Accounting::PerTerm => {
            let limiter = plan.limiter()?;
            let mode = PerTerm::new(Batched::new(limiter.clone()));
            run(options, &plan, &target, watch, mode, Some(limiter))
        }
        Accounting::Batched if plan.hard.is_some() => {
            let limiter = plan.limiter()?;
            run(options, &plan, &target, watch, Leased::new(limiter.clone()), Some(limiter))
        }
        Accounting::Batched => {
            let limiter = plan.limiter()?;
            run(options, &plan, &target, watch, Batched::new(limiter.clone()), Some(limiter))
        }
    }
}

/// Builds an index with an accounting of the caller's own: what it holds is said to `mode`, and `options.accounting` is
/// not looked at. Keys of the report that tell of a limiter stay empty.
///
/// # Errors
/// As [`build`].
pub fn build_with<M: Mode>(options: &BuildOptions, watch: &Watch, mode: M) -> Result<BuildReport> {
    let (plan, target) = prepare(options, watch)?;
    run(options, &plan, &target, watch, mode, None)
}

fn prepare(options: &BuildOptions, watch: &Watch) -> Result<(Plan, Target)> {
    plan::check(options)?;
    let target = Target::check(&options.index, options.force)?;
    let inputs = input::list(&options.inputs, options.format)?;
    watch.total_bytes.store(inputs.bytes, Ordering::Relaxed);
    Ok((Plan::new(options, inputs)?, target))
}

fn run<M: Mode>(
    options: &BuildOptions,
    plan: &Plan,
    target: &Target,
    watch: &Watch,
    mode: M,
    limiter: Option<GlobalMemoryLimiter>,
) -> Result<BuildReport> {
    let mut index = target.publication(options.sync)?;
    let spill = target.spill(options.spill_dir.as_deref(), options.spill_quota_bytes)?;
    let swept = index.swept() + spill.swept();
    watch.swept_folders.store(swept.folders, Ordering::Relaxed);
    watch.swept_bytes.store(swept.bytes, Ordering::Relaxed);
    let spills_to_ram = folders::in_memory(&spill, options.spill_on_ram)?;
    watch.spills_to_ram.store(spills_to_ram && options.spill_on_ram == SpillOnRam::Warn, Ordering::Relaxed);
    let charge_spills = spills_to_ram && options.spill_on_ram == SpillOnRam::Charge;
    if charge_spills && plan.hard.is_some() {
        return Err(Error::Usage(format!(
            "{} is on a file system in memory, where spilled bytes stay charged and a spill makes no room under --hard-limit: \
             name another folder with --spill-dir, or give --spill-on-ram warn",
            spill.path().display()
        )));
    }

    let start = Instant::now();
    let (start_cpu, (start_resident_bytes, _)) = (process::seconds(), process::resident());
    let (ran, mut kept) = threads::run(plan, &mode, watch, index.path(), &spill, charge_spills, limiter.as_ref())?;
    let disk = spill.quota().clone();
    spill.remove()?;
    let threads::Ran { mut done, fields, digest: (input_bytes, input_sha256), counts, samples } = ran;
    let names: usize = fields.iter().map(String::len).sum();
    let manifest_bytes = done.len() * MANIFEST_BYTES_A_SEGMENT + MANIFEST_COPIES * names;
    shared::room(&mut kept, "the manifest", manifest_bytes)?;
    kept.charge(manifest_bytes);
    let mut manifest = Manifest {
        kind: match plan.inputs.kind {
            Kind::Text => manifest::Kind::Text,
            Kind::Jsonl => manifest::Kind::Jsonl,
        },
        fields: if plan.inputs.kind == Kind::Text { vec![batch::TEXT_FIELD.to_owned()] } else { fields },
        batch_bytes: plan.batch_bytes,
        documents: 0,
        skipped_documents: done.iter().map(|batch| batch.skipped).sum(),
        tokens: done.iter().map(|batch| batch.tokens).sum(),
        postings: done.iter().map(|batch| batch.postings).sum(),
        input_bytes,
        input_sha256,
        segments: Vec::with_capacity(done.len()),
    };
    for batch in &mut done {
        let entry = batch.entry(manifest.documents);
        manifest.documents += u64::from(batch.documents);
        manifest.segments.push(entry);
    }
    let files: Vec<_> = done.into_iter().flat_map(|batch| batch.written).collect();
    // every writer is gone: nobody is asked any more
    let explain = options.explain.then(|| explain::explain(limiter.as_ref()));
    if let Some(explain) = &explain {
        let bytes = explain.to_bytes();
        shared::room(&mut kept, "the explained decisions", EXPLAINED_COPIES * bytes.len())?;
        kept.charge(EXPLAINED_COPIES * bytes.len());
        index.write(explained::FILE_NAME, &bytes)?;
    }
    let go_on = || shared::signalled(&watch.signal);
    publish::complete(&mut index, &manifest.to_bytes(), files, go_on)?;
    let complete = (start.elapsed(), process::seconds());
    drop((kept, mode));
    // read back before it is the index, as whatever fails after that cannot leave the old one; the clock stands still
    let distinct_terms = query::distinct_terms(index.path())?;
    let index_sha256 = manifest::index_sha256(index.path())?;
    let (commit, commit_cpu) = (Instant::now(), process::seconds());
    let published = index.commit::<Error>(go_on)?;
    let seconds = (complete.0 + commit.elapsed()).as_secs_f64();
    let end_cpu = process::seconds();
    let cpu = (complete.1.0 + end_cpu.0 - commit_cpu.0, complete.1.1 + end_cpu.1 - commit_cpu.1);

    let stats = limiter.as_ref().map(GlobalMemoryLimiter::stats).unwrap_or_default();
    Ok(BuildReport {
        documents: manifest.documents,
        skipped_documents: manifest.skipped_documents,
        tokens: manifest.tokens,
        distinct_terms,
        postings: manifest.postings,
        input_bytes: manifest.input_bytes,
        index_bytes: manifest.index_bytes(),
        segments: manifest.segments.len() as u64,
        seconds,
        mb_per_s: manifest.input_bytes as f64 / 1e6 / seconds.max(1e-9),
        user_seconds: cpu.0 - start_cpu.0,
        sys_seconds: cpu.1 - start_cpu.1,
        threads: options.threads,
        accounting: options.accounting.name(),
        budget_bytes: plan.budget_bytes,
        hard_limit_bytes: options.hard_limit_bytes,
        floor_bytes: plan.floor_bytes,
        peak_held_bytes: limiter.as_ref().map(|_| stats.peak_held_bytes),
        mean_held_bytes: limiter.as_ref().map(|_| samples.mean_held_bytes),
        overdraft_peak_bytes: stats.overdraft_peak_bytes,
        start_resident_bytes,
        peak_resident_bytes: process::resident().1,
        forced_spills: counts.forced_spills.into_inner(),
        own_spills: counts.own_spills.into_inner(),
        runs: counts.runs.into_inner(),
        spilled_bytes: counts.spilled_bytes.load(Ordering::Relaxed),
        spill_ram_bytes: if spills_to_ram { counts.spilled_bytes.into_inner() } else { 0 },
        spill_disk_peak_bytes: disk.peak_bytes(),
        spill_disk_at_end_bytes: disk.used_bytes(),
        swept_folders: swept.folders,
        swept_bytes: swept.bytes,
        merge_passes: counts.merge_passes.into_inner(),
        publishes: stats.publishes,
        notifications: stats.notifications,
        decisions: stats.decisions,
        shortfall_episodes: stats.shortfall_episodes,
        syncs: published.synced_files + published.synced_folders,
        sync_seconds: published.sync_time.as_secs_f64(),
        accounting_errors: stats.accounting_errors,
        lag_bound_bytes: limiter.as_ref().map(|_| samples.lag_bound_bytes),
        held_at_end_bytes: limiter.as_ref().map_or(0, GlobalMemoryLimiter::held_bytes),
        published_at_end_bytes: limiter.as_ref().map_or(0, GlobalMemoryLimiter::published_bytes),
        index_sha256,
        explain,
    })
}

/// The failure of a thread that panicked, with what it said.
fn panicked(thread: &str, payload: &(dyn std::any::Any + Send)) -> Error {
    let said = payload.downcast_ref::<&str>().copied();
    let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Error::Failed(format!("the {thread} thread panicked: {said}"))
}
