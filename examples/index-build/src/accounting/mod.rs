//! What the engine says about its memory, and who listens: nobody, the reference's way, or plimsoll.
//!
//! | file | what is in it |
//! |---|---|
//! | [`off`] | counts nothing |
//! | [`batched`] | every change through a plimsoll reporter |
//! | [`per_term`] | the counted calls of the reference before its change |
//! | [`leased`] | under a hard limit: what may be charged was taken before, by calls that may be refused |
//!
//! The writers, runs and merges say every change through these traits and know nothing of the modes; the mode is
//! chosen once a build, by type, so that `off` costs nothing and no mode is looked up in a loop. Charges are never
//! refused: who builds under a hard limit asks for room first ([`Account::room`], [`Meter::lease`]), where it can wait.
pub mod batched;
pub mod leased;
pub mod off;
pub mod per_term;

pub use batched::Batched;
pub use leased::Leased;
pub use off::Off;
pub use per_term::PerTerm;
pub use plimsoll::spill::Charge;

/// What a term's encoder reserves in three steps while the term is written to a run or a segment: a block of 128 document
/// gaps, one of frequencies, one of positions.
pub const ENCODER_STEPS: [usize; 3] = [512, 512, 512];

/// The account of one owner: bytes that it holds, which the library's runs and merges are charged to as well, and the work
/// of its term encoder.
pub trait Account: Charge {
    /// Room may be refused.
    const HARD: bool = false;

    /// A term is about to be encoded: its encoder's reservation grows in three steps.
    fn term_begins(&mut self);

    /// The term is written: the encoder's reservation is given back at once.
    fn term_ends(&mut self);

    /// Makes sure that `bytes` more can be charged, beside what is kept and what room was asked for since. False if a hard
    /// limit refuses; then nothing has changed. Without one there is always room.
    #[inline(always)]
    fn room(&mut self, _bytes: usize) -> bool {
        true
    }

    /// Of the room that was just asked for, `bytes` are for work that was refused them and is tried again: when that asks, it
    /// is not asked for a second time. 0 ends it.
    #[inline(always)]
    fn allow(&mut self, _bytes: usize) {}

    /// Keeps room for `bytes` more from here on, for a spill, instead of all that was asked for before. False if a hard
    /// limit refuses; then nothing has changed.
    #[inline(always)]
    fn keep(&mut self, _bytes: usize) -> bool {
        true
    }

    /// Gives back what was taken ahead: what stays is `bytes`, or what is charged and kept if that is more.
    #[inline(always)]
    fn trim(&mut self, _bytes: usize) {}

    /// Refuses room from here on that would bring what is charged above `bytes`.
    #[inline(always)]
    fn bound(&mut self, _bytes: usize) {}

    /// What is charged, where room is asked for; 0 elsewhere.
    #[inline(always)]
    fn charged_bytes(&self) -> usize {
        0
    }
}

/// Why a writer spills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The limiter has asked.
    Asked,
    /// Its cap, or the end of its addresses.
    Own,
}

/// A spill under way: the account that it works with. Dropped without [`Spilling::finish`], the spill has failed and
/// everything is still charged.
pub trait Spilling: Account {
    /// The run is written, and everything that the arena stands for is freed.
    fn finish(self);

    /// The same inside a document, which goes on: what the arena may grow to stays leased.
    fn finish_inside(self)
    where
        Self: Sized,
    {
        self.finish();
    }
}

/// The account of one field's writer, which can be asked to spill.
pub trait Meter {
    /// Everything but the arena.
    type Account: Account;
    /// A spill under way.
    type Spilling<'a>: Spilling
    where
        Self: 'a;

    /// Everything but the arena.
    fn account(&mut self) -> &mut Self::Account;

    /// What a spill would free is now `bytes`. Called when a block came or went, and never otherwise.
    fn set_arena(&mut self, bytes: usize);

    /// The vocabulary has a new term.
    fn new_term(&mut self);

    /// Whether the writer is asked to spill.
    fn spill_requested(&self) -> bool;

    /// Begins a spill; none if the limiter does not want it after all, or the arena is empty.
    fn begin_spill(&mut self, why: Why) -> Option<Self::Spilling<'_>>;

    /// Makes sure that the arena may become `bytes` large without a further call. False if a hard limit refuses; then
    /// nothing has changed.
    #[inline(always)]
    fn lease(&mut self, _bytes: usize) -> bool {
        true
    }

    /// Gives back what is leased beyond `bytes`, which is at least what there is.
    #[inline(always)]
    fn trim_lease(&mut self, _bytes: usize) {}

    /// What is leased; 0 where nothing has to be.
    #[inline(always)]
    fn leased_bytes(&self) -> usize {
        0
    }
}

/// One of the modes: makes meters and accounts.
pub trait Mode: Sync {
    /// Room may be refused, so it has to be asked for before anything is charged.
    const HARD: bool = false;

    type Account: Account + Send;
    type Meter: Meter<Account = Self::Account> + Send;

    /// An account without an arena.
    fn account(&self, name: &str) -> Self::Account;

    /// The meter of a writer of the batch with this account.
    fn meter(&self, name: &str, batch: &Self::Account) -> Self::Meter;

    /// What is held, exactly; 0 where nothing is counted.
    fn held_bytes(&self) -> usize;

    /// What a hard limit leaves, about.
    fn free_bytes(&self) -> usize {
        usize::MAX
    }

    /// Who holds most, for an error's text.
    fn holders(&self) -> String {
        String::new()
    }
}
