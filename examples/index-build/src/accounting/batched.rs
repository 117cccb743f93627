//! Every change through a plimsoll reporter: a few plain instructions each, published in quanta.
//!
//! An account keeps its charges in reservations, so that what an error or a panic leaves behind is given back when the
//! account is dropped. A meter's arena is told to the limiter when a block came or went.
use crate::accounting::{Account, Charge, ENCODER_STEPS, Meter, Mode, Spilling, Why};
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, Reporter, Reservation, SpillGuard};

/// What an arena stands for: all that a spill frees.
pub(super) const ARENA: &str = "postings and vocabulary";

/// The mode `batched`.
#[derive(Debug, Clone)]
pub struct Batched {
    pub(super) limiter: GlobalMemoryLimiter,
}

impl Batched {
    /// Counts with `limiter`.
    pub fn new(limiter: GlobalMemoryLimiter) -> Batched {
        Batched { limiter }
    }
}

/// What an owner has charged. The encoder's swings have a reservation of their own.
#[derive(Debug)]
struct Charges {
    held: Reservation,
    encoder: Reservation,
}

impl Charges {
    #[inline(always)]
    fn term_begins(&mut self, reporter: &Reporter) {
        for step in ENCODER_STEPS {
            self.encoder.grow(reporter, step);
        }
    }

    #[inline(always)]
    fn term_ends(&mut self, reporter: &Reporter) {
        let all = self.encoder.bytes();
        self.encoder.shrink(reporter, all);
    }
}

/// One owner's account.
#[derive(Debug)]
pub struct BatchedAccount {
    // before the reporter, so that they are given back first
    charges: Charges,
    pub(super) reporter: Reporter,
}

impl BatchedAccount {
    /// An account with nothing in it.
    pub fn new(reporter: Reporter) -> BatchedAccount {
        let charges = Charges { held: reporter.reserve(0), encoder: reporter.reserve(0) };
        BatchedAccount { charges, reporter }
    }
}

impl Charge for BatchedAccount {
    #[inline]
    fn charge(&mut self, bytes: usize) {
        self.charges.held.grow(&self.reporter, bytes);
    }

    #[inline]
    fn release(&mut self, bytes: usize) {
        self.charges.held.shrink(&self.reporter, bytes);
    }
}

impl Account for BatchedAccount {
    #[inline(always)]
    fn term_begins(&mut self) {
        self.charges.term_begins(&self.reporter);
    }

    #[inline(always)]
    fn term_ends(&mut self) {
        self.charges.term_ends(&self.reporter);
    }
}

/// A writer's meter.
#[derive(Debug)]
pub struct BatchedMeter {
    arena: ArenaHandle,
    account: BatchedAccount,
}

impl BatchedMeter {
    /// A meter with an empty arena.
    pub fn new(reporter: Reporter) -> BatchedMeter {
        let arena = reporter.arena(ARENA);
        BatchedMeter { arena, account: BatchedAccount::new(reporter) }
    }
}

/// Begins a spill of `arena` that works with `account`.
pub(super) fn begin<'a>(
    arena: &'a mut ArenaHandle,
    account: &'a mut BatchedAccount,
    why: Why,
) -> Option<BatchedSpill<'a>> {
    let BatchedAccount { charges, reporter } = account;
    let guard = match why {
        Why::Asked => arena.begin_spill(reporter),
        Why::Own => arena.begin_own_spill(reporter),
    }?;
    Some(BatchedSpill { charges, reporter, guard })
}

/// A spill under way.
#[derive(Debug)]
pub struct BatchedSpill<'a> {
    charges: &'a mut Charges,
    reporter: &'a Reporter,
    guard: SpillGuard<'a>,
}

impl Charge for BatchedSpill<'_> {
    #[inline]
    fn charge(&mut self, bytes: usize) {
        self.charges.held.grow(self.reporter, bytes);
    }

    #[inline]
    fn release(&mut self, bytes: usize) {
        self.charges.held.shrink(self.reporter, bytes);
    }
}

impl Account for BatchedSpill<'_> {
    #[inline(always)]
    fn term_begins(&mut self) {
        self.charges.term_begins(self.reporter);
    }

    #[inline(always)]
    fn term_ends(&mut self) {
        self.charges.term_ends(self.reporter);
    }
}

impl Spilling for BatchedSpill<'_> {
    fn finish(self) {
        self.guard.finish(0);
    }
}

impl Meter for BatchedMeter {
    type Account = BatchedAccount;
    type Spilling<'a> = BatchedSpill<'a>;

    #[inline]
    fn account(&mut self) -> &mut BatchedAccount {
        &mut self.account
    }

    #[inline]
    fn set_arena(&mut self, bytes: usize) {
        self.arena.set_bytes(&self.account.reporter, bytes);
    }

    #[inline(always)]
    fn new_term(&mut self) {}

    #[inline(always)]
    fn spill_requested(&self) -> bool {
        self.arena.spill_requested()
    }

    fn begin_spill(&mut self, why: Why) -> Option<BatchedSpill<'_>> {
        begin(&mut self.arena, &mut self.account, why)
    }
}

impl Mode for Batched {
    type Account = BatchedAccount;
    type Meter = BatchedMeter;

    fn account(&self, name: &str) -> BatchedAccount {
        BatchedAccount::new(self.limiter.reporter(name))
    }

    fn meter(&self, name: &str, _: &Self::Account) -> BatchedMeter {
        BatchedMeter::new(self.limiter.reporter(name))
    }

    fn held_bytes(&self) -> usize {
        self.limiter.held_bytes()
    }
}
