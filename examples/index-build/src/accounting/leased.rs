//! Under a hard limit: nothing is charged that was not taken before, by a call that may be refused.
//!
//! All that a batch holds beside its arenas is one **purse**: an account without an arena, whose bytes are taken ahead
//! ([`Account::room`]) where the batch can wait, and spent in the middle of the work without a call. What of it is **kept**
//! ([`Account::keep`]) is for a spill alone, so that the spill that makes room is never the one that is refused. An arena's
//! bytes are its **lease**: what it may grow to until the next place where it can spill, taken as bytes of the arena, as a
//! spill frees all of it. So the limiter's totals move when room is taken or given back, and never in between.
//!
//! A charge beyond what was taken is a mistake of the builder's: debug builds assert. Release builds ask for it then, and
//! record it as an overdraft if it is refused, which the report shows.
use crate::accounting::batched::ARENA;
use crate::accounting::{Account, Charge, ENCODER_STEPS, Meter, Mode, Spilling, Why};
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, Reporter, SharedReporter, SpillGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The mode under a hard limit.
#[derive(Debug, Clone)]
pub struct Leased {
    limiter: GlobalMemoryLimiter,
}

impl Leased {
    /// Counts with `limiter`, which has a hard limit.
    pub fn new(limiter: GlobalMemoryLimiter) -> Leased {
        Leased { limiter }
    }
}

/// What one owner has taken and charged. Relaxed throughout: one thread at a time uses it, and hands it on with everything
/// else that it made.
#[derive(Debug)]
struct Purse {
    reporter: SharedReporter,
    taken: AtomicUsize,
    charged: AtomicUsize,
    /// what may be charged up to by work that has asked for room, or for which it is kept
    spoken_for: AtomicUsize,
    /// what may not be charged beyond when room is asked for
    bound: AtomicUsize,
    /// of what is spoken for, what work that is tried again may ask for once more
    allowed: AtomicUsize,
}

/// Room is taken in whole multiples of this, if there is so much.
const STEP_BYTES: usize = 8 << 10;

impl Purse {
    /// Takes what is lacking so that `bytes` can be charged, and remembers that they may be.
    #[inline]
    fn speak_for(&self, bytes: usize) -> bool {
        let granted = bytes <= self.taken.load(Relaxed) || self.take_to(bytes);
        if granted {
            self.spoken_for.store(bytes, Relaxed);
        }
        granted
    }

    #[cold]
    fn take_to(&self, bytes: usize) -> bool {
        let lacking = bytes - self.taken.load(Relaxed);
        let steps = lacking.next_multiple_of(STEP_BYTES);
        let granted = [steps, lacking].into_iter().find(|&bytes| self.reporter.try_charge(bytes).is_ok());
        self.taken.fetch_add(granted.unwrap_or(0), Relaxed);
        granted.is_some()
    }

    /// More is charged than was taken.
    #[cold]
    fn short(&self, charged: usize) {
        debug_assert!(false, "{} has {} taken and {charged} charged", self.reporter.name(), self.taken.load(Relaxed));
        if !self.take_to(charged) {
            let lacking = charged - self.taken.load(Relaxed);
            self.reporter.charge(lacking);
            self.taken.fetch_add(lacking, Relaxed);
        }
    }

    fn give_back_to(&self, bytes: usize) {
        let taken = self.taken.load(Relaxed);
        let stays = bytes.max(self.charged.load(Relaxed)).max(self.spoken_for.load(Relaxed));
        if taken > stays {
            self.taken.store(stays, Relaxed);
            self.reporter.release(taken - stays);
        }
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        self.reporter.release(*self.taken.get_mut());
    }
}

/// A purse, shared by a batch and its writers.
#[derive(Debug)]
pub struct LeasedAccount {
    purse: Arc<Purse>,
}

impl Charge for LeasedAccount {
    #[inline]
    fn charge(&mut self, bytes: usize) {
        let charged = self.purse.charged.fetch_add(bytes, Relaxed) + bytes;
        if charged > self.purse.taken.load(Relaxed) {
            self.purse.short(charged);
        }
    }

    #[inline]
    fn release(&mut self, bytes: usize) {
        self.purse.charged.fetch_sub(bytes, Relaxed);
    }
}

impl Account for LeasedAccount {
    const HARD: bool = true;

    #[inline]
    fn term_begins(&mut self) {
        self.charge(ENCODER_STEPS.iter().sum());
    }

    #[inline]
    fn term_ends(&mut self) {
        self.release(ENCODER_STEPS.iter().sum());
    }

    #[inline]
    fn room(&mut self, bytes: usize) -> bool {
        let allowed = self.purse.allowed.load(Relaxed);
        let Some(more) = bytes.checked_sub(allowed).filter(|&more| more > 0) else {
            self.purse.allowed.store(allowed - bytes, Relaxed);
            return true;
        };
        if self.purse.charged.load(Relaxed).saturating_add(bytes) > self.purse.bound.load(Relaxed) {
            return false;
        }
        let before = self.purse.spoken_for.load(Relaxed).max(self.purse.charged.load(Relaxed));
        let granted = self.purse.speak_for(before.saturating_add(more));
        if granted {
            self.purse.allowed.store(0, Relaxed);
        }
        granted
    }

    fn allow(&mut self, bytes: usize) {
        self.purse.allowed.store(bytes, Relaxed);
    }

    #[inline]
    fn keep(&mut self, bytes: usize) -> bool {
        self.purse.speak_for(self.purse.charged.load(Relaxed).saturating_add(bytes))
    }

    fn trim(&mut self, bytes: usize) {
        self.purse.give_back_to(bytes);
    }

    fn bound(&mut self, bytes: usize) {
        self.purse.bound.store(bytes, Relaxed);
    }

    #[inline]
    fn charged_bytes(&self) -> usize {
        self.purse.charged.load(Relaxed)
    }
}

/// A writer's meter: its lease, and the batch's purse.
#[derive(Debug)]
pub struct LeasedMeter {
    // before the reporter, so that it is given back first
    arena: ArenaHandle,
    reporter: Reporter,
    account: LeasedAccount,
}

/// A spill under way.
#[derive(Debug)]
pub struct LeasedSpill<'a> {
    account: &'a mut LeasedAccount,
    leased: usize,
    guard: SpillGuard<'a>,
}

impl Charge for LeasedSpill<'_> {
    #[inline]
    fn charge(&mut self, bytes: usize) {
        self.account.charge(bytes);
    }
    #[inline]
    fn release(&mut self, bytes: usize) {
        self.account.release(bytes);
    }
}

impl Account for LeasedSpill<'_> {
    #[inline]
    fn term_begins(&mut self) {
        self.account.term_begins();
    }
    #[inline]
    fn term_ends(&mut self) {
        self.account.term_ends();
    }
}

impl Spilling for LeasedSpill<'_> {
    fn finish(self) {
        self.guard.finish(0);
    }

    fn finish_inside(self) {
        self.guard.finish(self.leased);
    }
}

impl Meter for LeasedMeter {
    type Account = LeasedAccount;
    type Spilling<'a> = LeasedSpill<'a>;

    #[inline]
    fn account(&mut self) -> &mut LeasedAccount {
        &mut self.account
    }

    #[inline]
    fn set_arena(&mut self, bytes: usize) {
        if bytes == 0 || bytes > self.arena.bytes() {
            self.outside(bytes);
        }
    }

    #[inline(always)]
    fn new_term(&mut self) {}

    #[inline(always)]
    fn spill_requested(&self) -> bool {
        self.arena.spill_requested()
    }

    fn begin_spill(&mut self, why: Why) -> Option<LeasedSpill<'_>> {
        let LeasedMeter { arena, reporter, account } = self;
        let leased = arena.bytes();
        let guard = match why {
            Why::Asked => arena.begin_spill(reporter),
            Why::Own => arena.begin_own_spill(reporter),
        }?;
        Some(LeasedSpill { account, leased, guard })
    }

    fn lease(&mut self, bytes: usize) -> bool {
        let leased = self.arena.bytes();
        bytes <= leased || self.arena.try_grow_bytes(&self.reporter, bytes - leased).is_ok()
    }

    fn trim_lease(&mut self, bytes: usize) {
        if bytes < self.arena.bytes() {
            self.arena.set_bytes(&self.reporter, bytes);
        }
    }

    #[inline]
    fn leased_bytes(&self) -> usize {
        self.arena.bytes()
    }
}

impl LeasedMeter {
    /// The arena is gone, or larger than its lease.
    #[cold]
    fn outside(&mut self, bytes: usize) {
        debug_assert!(bytes == 0, "{} has {} leased, not {bytes}", self.reporter.name(), self.arena.bytes());
        if bytes == 0 || !self.lease(bytes) {
            self.arena.set_bytes(&self.reporter, bytes);
        }
    }
}

impl Mode for Leased {
    const HARD: bool = true;
    type Account = LeasedAccount;
    type Meter = LeasedMeter;

    fn account(&self, name: &str) -> LeasedAccount {
        let zero = || AtomicUsize::new(0);
        let reporter = self.limiter.shared_reporter(name);
        let bound = AtomicUsize::new(usize::MAX);
        LeasedAccount {
            purse: Arc::new(Purse {
                reporter,
                taken: zero(),
                charged: zero(),
                spoken_for: zero(),
                bound,
                allowed: zero(),
            }),
        }
    }

    fn meter(&self, name: &str, batch: &LeasedAccount) -> LeasedMeter {
        let reporter = self.limiter.reporter(name);
        let arena = reporter.arena(ARENA);
        LeasedMeter { arena, reporter, account: LeasedAccount { purse: Arc::clone(&batch.purse) } }
    }

    fn held_bytes(&self) -> usize {
        self.limiter.held_bytes()
    }

    fn free_bytes(&self) -> usize {
        let limit = self.limiter.hard_limit_bytes().unwrap_or(usize::MAX);
        limit.saturating_sub(self.limiter.reserved_bytes())
    }

    fn holders(&self) -> String {
        let snapshot = self.limiter.snapshot();
        let most = snapshot.writers.iter().take(3);
        let most: Vec<String> =
            most.map(|writer| format!("{} {}", writer.name, plimsoll::Bytes(writer.held_bytes))).collect();
        most.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll::{KIB, MIB};

    fn mode() -> (GlobalMemoryLimiter, Leased) {
        let limiter = GlobalMemoryLimiter::builder().hard_limit_bytes(MIB).build().unwrap();
        (limiter.clone(), Leased::new(limiter))
    }

    #[test]
    fn what_is_charged_was_taken_before_and_what_is_kept_stays_for_a_spill() {
        let (limiter, mode) = mode();
        let mut account = mode.account("batch");
        assert!(account.keep(100 * KIB) && account.room(50 * KIB));
        let held = limiter.held_bytes();
        assert!((150 * KIB..=160 * KIB).contains(&held), "{held}");
        account.charge(150 * KIB);
        assert_eq!((account.charged_bytes(), limiter.held_bytes()), (150 * KIB, held), "taken before");
        account.release(100 * KIB);
        assert!(account.room(10 * KIB), "beside what was spoken for");
        assert!(limiter.held_bytes() >= 160 * KIB);
        assert!(!account.room(MIB) && !account.keep(MIB), "refused, and nothing has changed");
        assert_eq!(account.charged_bytes(), 50 * KIB);
        assert!(account.keep(0));
        account.trim(70 * KIB);
        assert_eq!(limiter.held_bytes(), 70 * KIB);
        account.trim(0);
        assert_eq!(limiter.held_bytes(), 50 * KIB, "what is charged stays");
        account.bound(60 * KIB);
        assert!(account.room(10 * KIB) && !account.room(11 * KIB) && account.keep(100 * KIB));
        drop(account);
        assert_eq!((limiter.held_bytes(), limiter.stats().overdraft_peak_bytes), (0, 0));
    }

    #[test]
    fn a_lease_is_the_arenas_and_a_spill_gives_it_back_but_inside_a_document() {
        let (limiter, mode) = mode();
        let account = mode.account("batch");
        let mut meter = mode.meter("batch/field", &account);
        assert!(meter.lease(300 * KIB) && !meter.lease(2 * MIB));
        meter.set_arena(200 * KIB);
        assert_eq!((meter.leased_bytes(), limiter.held_bytes()), (300 * KIB, 300 * KIB));
        meter.begin_spill(Why::Own).unwrap().finish_inside();
        assert_eq!((meter.leased_bytes(), limiter.held_bytes()), (300 * KIB, 300 * KIB));
        drop(meter.begin_spill(Why::Own).unwrap());
        assert_eq!(limiter.held_bytes(), 300 * KIB, "a spill that failed");
        meter.begin_spill(Why::Own).unwrap().finish();
        assert_eq!((meter.leased_bytes(), limiter.held_bytes()), (0, 0));
        assert!(meter.begin_spill(Why::Own).is_none());
        assert!(meter.lease(300 * KIB));
        meter.trim_lease(10 * KIB);
        meter.set_arena(0);
        assert_eq!((meter.leased_bytes(), limiter.held_bytes()), (0, 0));
    }
}
