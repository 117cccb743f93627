//! What a merge reads, writes and asks.

use crate::spill::charge::Charge;
use crate::spill::error::{SpillError, SpillResult};
use crate::spill::run::RunReader;

/// Where a merge takes records from, in strictly ascending order of their keys: a run, or what a builder still holds in
/// memory. `C` is the account that the merge works with.
pub trait Source<C> {
    /// Goes to the next record; false at the end.
    ///
    /// # Errors
    /// What reading it says.
    fn advance(&mut self, account: &mut C) -> SpillResult<bool>;

    /// The first 8 bytes of the current record's key, as [`prefix`](crate::spill::run::prefix) makes it.
    fn prefix(&self) -> u64;

    /// Called once after each [`Source::advance`] that said true, before [`Source::key`] is asked.
    #[inline]
    fn settle(&mut self) {}

    /// The current record's key.
    fn key(&self) -> &[u8];

    /// Hands the pieces of the current record to a target.
    ///
    /// # Errors
    /// What reading them says, or the target.
    fn drain<T, E>(&mut self, target: &mut T, account: &mut C) -> Result<(), E>
    where
        T: Target<C>,
        E: From<SpillError> + From<T::Error>;
}

/// Where merged records go: a run, or whatever is built.
pub trait Target<C> {
    /// What it may fail with.
    type Error;

    /// The next record.
    ///
    /// # Errors
    /// What the target says; the merge ends with it.
    fn begin(&mut self, key: &[u8], account: &mut C) -> Result<(), Self::Error>;

    /// Bytes of the record; the last ones of a span are marked.
    ///
    /// # Errors
    /// As [`Target::begin`].
    fn piece(&mut self, bytes: &[u8], last: bool, account: &mut C) -> Result<(), Self::Error>;

    /// No more pieces.
    ///
    /// # Errors
    /// As [`Target::begin`].
    fn end(&mut self, account: &mut C) -> Result<(), Self::Error>;

    /// An error about a piece that came from a run. If it is about the bytes, `corrupt` makes one of it that names file and
    /// offset.
    fn blame(error: Self::Error, corrupt: impl FnOnce(String) -> SpillError) -> Self::Error {
        let _ = corrupt;
        error
    }
}

/// What goes on beside a merge. The account is the merge's.
pub trait Watch<C> {
    /// What the merge may fail with.
    type Error: From<SpillError>;

    /// Whether to go on: asked about every thousand records, and before each group of runs becomes one.
    ///
    /// # Errors
    /// The reason not to; the merge ends with it.
    #[inline]
    fn go_on(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A record is about to be merged.
    #[inline]
    fn record_begins(&mut self, account: &mut C) {
        let _ = account;
    }

    /// It has been.
    #[inline]
    fn record_ends(&mut self, account: &mut C) {
        let _ = account;
    }

    /// A group of runs has become one of `written_bytes`, and its spool has `disk_bytes` on disk now.
    fn merged(&mut self, written_bytes: u64, disk_bytes: u64) {
        let _ = (written_bytes, disk_bytes);
    }
}

/// Nothing goes on beside it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl<C> Watch<C> for Unwatched {
    type Error = SpillError;
}

impl<C: Charge> Source<C> for RunReader {
    #[inline]
    fn advance(&mut self, _: &mut C) -> SpillResult<bool> {
        RunReader::advance(self)
    }

    #[inline]
    fn prefix(&self) -> u64 {
        RunReader::prefix(self)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        RunReader::key(self)
    }

    #[inline]
    fn drain<T, E>(&mut self, target: &mut T, account: &mut C) -> Result<(), E>
    where
        T: Target<C>,
        E: From<SpillError> + From<T::Error>,
    {
        while let Some((piece, last)) = self.piece()? {
            if let Err(error) = target.piece(piece, last, account) {
                return Err(T::blame(error, |why| self.corrupt(why)).into());
            }
        }
        Ok(())
    }
}
