//! The counted calls of the reference before its change, for comparison: exactly these, and no more.
//!
//! For each new term the writer's total is reported: one process-wide lock, a look-up in the table of writers, a read of
//! the memory signal (a stored value). For each term that is written to a run or a segment the encoder's reservation
//! grows three times and is released once, and each of the four changes two atomics that all threads share. What changes
//! with blocks (arenas, buffers) goes through plimsoll, so that budgets work in this mode too.
use crate::accounting::batched::{ARENA, Batched, BatchedAccount, BatchedSpill, begin};
use crate::accounting::{Account, Charge, ENCODER_STEPS, Meter, Mode, Spilling, Why};
use plimsoll::ArenaHandle;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all threads share, as they did there.
#[derive(Debug, Default)]
struct Process {
    /// what each writer holds, by its number
    writers: Mutex<HashMap<u64, usize>>,
    /// the memory signal, as somebody stored it
    signal: AtomicUsize,
    /// what the build holds
    build: AtomicUsize,
    /// what the process holds
    process: AtomicUsize,
    next_writer: AtomicU64,
}

impl Process {
    #[inline]
    fn grow(&self, bytes: usize) {
        // Relaxed: sums only; nothing is published through them
        self.build.fetch_add(bytes, Ordering::Relaxed);
        self.process.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    fn release(&self, bytes: usize) {
        self.build.fetch_sub(bytes, Ordering::Relaxed);
        self.process.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[inline]
    fn term_begins(&self) {
        for step in ENCODER_STEPS {
            self.grow(step);
        }
    }

    #[inline]
    fn term_ends(&self) {
        self.release(ENCODER_STEPS.iter().sum());
    }
}

/// The mode `per-term`.
#[derive(Debug)]
pub struct PerTerm {
    blocks: Batched,
    process: Arc<Process>,
}

impl PerTerm {
    /// Blocks are counted by `blocks`, terms as the reference did.
    pub fn new(blocks: Batched) -> PerTerm {
        PerTerm { blocks, process: Arc::default() }
    }
}

/// One owner's account.
#[derive(Debug)]
pub struct PerTermAccount {
    blocks: BatchedAccount,
    process: Arc<Process>,
}

impl Charge for PerTermAccount {
    #[inline]
    fn charge(&mut self, bytes: usize) {
        self.blocks.charge(bytes);
    }

    #[inline]
    fn release(&mut self, bytes: usize) {
        self.blocks.release(bytes);
    }
}

impl Account for PerTermAccount {
    #[inline]
    fn term_begins(&mut self) {
        self.process.term_begins();
    }

    #[inline]
    fn term_ends(&mut self) {
        self.process.term_ends();
    }
}

/// A writer's meter.
#[derive(Debug)]
pub struct PerTermMeter {
    arena: ArenaHandle,
    account: PerTermAccount,
    bytes: usize,
    writer: u64,
}

/// A spill under way.
#[derive(Debug)]
pub struct PerTermSpill<'a> {
    blocks: BatchedSpill<'a>,
    process: &'a Process,
}

impl Charge for PerTermSpill<'_> {
    #[inline]
    fn charge(&mut self, bytes: usize) {
        self.blocks.charge(bytes);
    }

    #[inline]
    fn release(&mut self, bytes: usize) {
        self.blocks.release(bytes);
    }
}

impl Account for PerTermSpill<'_> {
    #[inline]
    fn term_begins(&mut self) {
        self.process.term_begins();
    }

    #[inline]
    fn term_ends(&mut self) {
        self.process.term_ends();
    }
}

impl Spilling for PerTermSpill<'_> {
    fn finish(self) {
        self.blocks.finish();
    }
}

impl Meter for PerTermMeter {
    type Account = PerTermAccount;
    type Spilling<'a> = PerTermSpill<'a>;

    #[inline]
    fn account(&mut self) -> &mut PerTermAccount {
        &mut self.account
    }

    #[inline]
    fn set_arena(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.arena.set_bytes(&self.account.blocks.reporter, bytes);
    }

    #[inline]
    fn new_term(&mut self) {
        let process = &self.account.process;
        let mut writers = process.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = writers.get_mut(&self.writer) {
            *bytes = self.bytes;
        }
        // Relaxed: a stored figure, read to be looked at
        black_box(process.signal.load(Ordering::Relaxed));
    }

    #[inline(always)]
    fn spill_requested(&self) -> bool {
        self.arena.spill_requested()
    }

    fn begin_spill(&mut self, why: Why) -> Option<PerTermSpill<'_>> {
        let PerTermAccount { blocks, process } = &mut self.account;
        Some(PerTermSpill { blocks: begin(&mut self.arena, blocks, why)?, process })
    }
}

impl Drop for PerTermMeter {
    fn drop(&mut self) {
        self.account.process.writers.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.writer);
    }
}

impl Mode for PerTerm {
    type Account = PerTermAccount;
    type Meter = PerTermMeter;

    fn account(&self, name: &str) -> PerTermAccount {
        PerTermAccount { blocks: self.blocks.account(name), process: Arc::clone(&self.process) }
    }

    fn meter(&self, name: &str, _: &Self::Account) -> PerTermMeter {
        let reporter = self.blocks.limiter.reporter(name);
        let arena = reporter.arena(ARENA);
        // Relaxed: only the numbers have to differ
        let writer = self.process.next_writer.fetch_add(1, Ordering::Relaxed);
        self.process.writers.lock().unwrap_or_else(PoisonError::into_inner).insert(writer, 0);
        let account = PerTermAccount { blocks: BatchedAccount::new(reporter), process: Arc::clone(&self.process) };
        PerTermMeter { arena, account, bytes: 0, writer }
    }

    fn held_bytes(&self) -> usize {
        self.blocks.held_bytes()
    }
}
