//! A small writer over a mock arena that really counts its blocks. B30: a document larger than the whole budget. B31: tiny
//! budgets. B71: the limiter is not called but for a new block.
mod common;

use common::fixed;
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Refusal, Reporter, ReserveError};

/// Postings in blocks; only the count of the blocks is real.
struct Blocks {
    block: usize,
    used: usize,
    backed: usize,
}

impl Blocks {
    fn room(&self) -> usize {
        self.backed - self.used
    }
    fn blocks_for(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.room()).div_ceil(self.block) * self.block
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Policy {
    /// Asks before it allocates; what is refused leaves nothing behind.
    Hard,
    /// Takes what it needs and spills after the document.
    Spill,
}

struct Writer {
    policy: Policy,
    reporter: Reporter,
    arena: ArenaHandle,
    blocks: Blocks,
    entries: usize,
    /// Entries of each run.
    runs: Vec<usize>,
    documents: usize,
}

impl Writer {
    fn new(limiter: &GlobalMemoryLimiter, name: &str, block: usize, policy: Policy) -> Self {
        let reporter = limiter.reporter(name);
        let arena = reporter.arena("postings");
        let blocks = Blocks { block, used: 0, backed: 0 };
        Writer { policy, reporter, arena, blocks, entries: 0, runs: vec![], documents: 0 }
    }

    /// One document of `bytes` of postings.
    fn add(&mut self, bytes: usize) -> Result<(), ReserveError> {
        let more = self.blocks.blocks_for(bytes);
        match self.policy {
            Policy::Hard => self.arena.try_grow_bytes(&self.reporter, more)?,
            Policy::Spill => self.arena.set_bytes(&self.reporter, self.blocks.backed + more),
        }
        self.blocks.backed += more;
        self.blocks.used += bytes;
        self.entries += 1;
        self.documents += 1;
        assert_eq!(self.arena.bytes(), self.blocks.backed);
        if self.arena.spill_requested() || self.reporter.over_cap() {
            self.spill();
        }
        Ok(())
    }

    fn spill(&mut self) {
        let forced = self.arena.spill_requested();
        let spill =
            if forced { self.arena.begin_spill(&self.reporter) } else { self.arena.begin_own_spill(&self.reporter) };
        if let Some(spill) = spill {
            assert!(self.entries > 0, "a run without entries");
            self.runs.push(self.entries);
            self.entries = 0;
            (self.blocks.used, self.blocks.backed) = (0, 0);
            spill.finish(0);
        }
    }
}

/// B30, hard limit.
#[test]
fn a_document_larger_than_the_cap_is_refused_alone_and_the_next_hundred_are_indexed() {
    let limiter = fixed().budget_bytes(MIB).writer_cap_bytes(MIB).build().expect("a valid configuration");
    let mut writer = Writer::new(&limiter, "writer", 32 * KIB, Policy::Hard);
    writer.add(1_000).expect("an ordinary document");
    let before = limiter.held_bytes();
    let error = writer.add(8 * MIB).expect_err("it cannot fit");
    assert_eq!((error.kind, error.limit_bytes, error.held_bytes), (Refusal::WriterCap, MIB, 32 * KIB));
    assert_eq!((limiter.held_bytes(), writer.documents, writer.runs.len()), (before, 1, 0));
    for _ in 0..100 {
        if writer.add(20_000).is_err() {
            writer.spill();
            writer.add(20_000).expect("an empty arena has room");
        }
    }
    assert_eq!(writer.documents, 101);
    assert!(writer.runs.iter().all(|&entries| entries > 0));
    assert_eq!(writer.runs.iter().sum::<usize>() + writer.entries, 101);
    assert_eq!(limiter.stats().shortfall_episodes, 0);
}

/// B30, spill policy.
#[test]
fn a_document_larger_than_the_budget_is_accepted_and_makes_exactly_one_run() {
    let limiter = fixed().budget_bytes(MIB).build().expect("a valid configuration");
    let mut writer = Writer::new(&limiter, "writer", 32 * KIB, Policy::Spill);
    writer.add(8 * MIB).expect("it is only recorded");
    assert_eq!((writer.runs.as_slice(), writer.documents), ([1].as_slice(), 1));
    let decision = limiter.snapshot().last_decision.expect("it asked");
    assert_eq!((decision.overage_bytes, decision.exact_bytes), (7 * MIB, 8 * MIB), "the overshoot is reported");
    assert!(limiter.stats().peak_held_bytes >= 8 * MIB);
    assert_eq!(limiter.held_bytes(), 0);
    for _ in 0..100 {
        writer.add(1_000).expect("an ordinary document");
    }
    assert_eq!((writer.documents, writer.runs.as_slice()), (101, [1].as_slice()), "100 kB are no reason to spill");
    assert_eq!(limiter.stats().shortfall_episodes, 0);
}

/// B31: below eight first blocks construction fails (see `budgets`); at eight, and with smaller blocks below, runs stay few.
#[test]
fn tiny_budgets_make_no_run_of_each_document() {
    const DOCUMENT: usize = 600;
    let cases = [(8 * MIB, MIB), (8 * MIB - 1, 32 * KIB), (MIB, 4 * KIB), (64 * KIB, KIB), (8 * KIB, KIB)];
    for (budget, block) in cases {
        let builder = GlobalMemoryLimiter::builder().budget_bytes(budget).block_bytes(block).writers_hint(8);
        let limiter = builder.build().unwrap_or_else(|error| panic!("{budget}: {error}"));
        let mut writers: Vec<_> =
            (0..8).map(|n| Writer::new(&limiter, &format!("writer {n}"), block, Policy::Spill)).collect();
        for document in 0..10_000 {
            writers[document % 8].add(DOCUMENT).expect("it is only recorded");
        }
        let runs: usize = writers.iter().map(|writer| writer.runs.len()).sum();
        let most = 10_000 * DOCUMENT / block + 8;
        assert!(runs <= most && runs < 10_000, "{runs} runs at {budget}, at most {most}");
        assert_eq!(writers.iter().map(|writer| writer.documents).sum::<usize>(), 10_000);
        let entries = |writer: &Writer| writer.runs.iter().sum::<usize>() + writer.entries;
        assert_eq!(writers.iter().map(entries).sum::<usize>(), 10_000);
        drop(writers);
        assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
    }
}

/// B71. What a change costs is the instruction bench's to say.
#[test]
fn ten_million_terms_in_a_hundred_blocks_notify_and_publish_a_hundred_times() {
    let limiter = fixed().budget_bytes(1_024 * MIB).build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    let (block, terms) = (MIB, 10_000_000_usize);
    for term in 1..=terms {
        let used = term * (100 * MIB / 1_000) / (terms / 1_000); // 10 bytes a term and a half
        arena.set_bytes(&reporter, used.div_ceil(block) * block);
    }
    let stats = limiter.stats();
    assert_eq!((arena.bytes(), stats.notifications, stats.publishes), (100 * MIB, 100, 100));
    assert_eq!(stats.decisions, 0);
    for _ in 0..1_000_000 {
        arena.set_bytes(&reporter, 100 * MIB);
    }
    assert_eq!(limiter.stats(), stats, "without a new block the limiter is not called at all");
}
