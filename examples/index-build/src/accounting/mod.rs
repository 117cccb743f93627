//! What the engine says about its memory, and who listens: nobody, the reference's way, or plimsoll.
//!
//! The writers, runs and merges say every change through these traits and know nothing of the three modes; the mode is
//! chosen once a build, by type, so that `off` costs nothing and no mode is looked up in a loop.

/// The account of one owner: bytes that it holds, and the work of its term encoder.
pub trait Account {
    /// `bytes` are about to be allocated.
    fn charge(&mut self, bytes: usize);

    /// `bytes` have been freed.
    fn release(&mut self, bytes: usize);

    /// A term is about to be encoded: its encoder's reservation grows in three steps.
    fn term_begins(&mut self);

    /// The term is written: the encoder's reservation is given back at once.
    fn term_ends(&mut self);

    /// A buffer is about to change from `old` to `new` bytes of capacity by copying: both exist for a while.
    fn replace<T>(&mut self, old: usize, new: usize, work: impl FnOnce() -> T) -> T
    where
        Self: Sized,
    {
        self.charge(new);
        let done = work();
        self.release(old);
        done
    }
}

/// The account of one field's writer, which can be asked to spill.
pub trait Meter {
    /// What charges while a spill runs.
    type Account: Account;

    /// Everything but the arena.
    fn account(&mut self) -> &mut Self::Account;

    /// What a spill would free is now `bytes`. Called when a block came or went, and never otherwise.
    fn set_arena(&mut self, bytes: usize);

    /// The vocabulary has a new term.
    fn new_term(&mut self);
}

/// Counts nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Off;

impl Account for Off {
    #[inline(always)]
    fn charge(&mut self, _: usize) {}
    #[inline(always)]
    fn release(&mut self, _: usize) {}
    #[inline(always)]
    fn term_begins(&mut self) {}
    #[inline(always)]
    fn term_ends(&mut self) {}
}

impl Meter for Off {
    type Account = Off;
    #[inline(always)]
    fn account(&mut self) -> &mut Off {
        self
    }
    #[inline(always)]
    fn set_arena(&mut self, _: usize) {}
    #[inline(always)]
    fn new_term(&mut self) {}
}
