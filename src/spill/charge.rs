//! Who pays for the memory of readers, writers and lists.

use crate::error::ReserveError;
use crate::limit::{Reporter, SharedReporter, WorkspaceAccount};

/// An account that buffers are charged to. [`Reporter`], [`SharedReporter`] and an account within a workspace are, by
/// reference; [`Uncounted`] is for who does not count; a builder with an account of its own implements it.
pub trait Charge {
    /// `bytes` are about to be allocated.
    fn charge(&mut self, bytes: usize);

    /// `bytes` have been freed.
    fn release(&mut self, bytes: usize);

    /// `bytes` are about to be allocated, if that is allowed.
    ///
    /// # Errors
    /// The account's limit refuses; nothing has changed.
    #[inline]
    fn try_charge(&mut self, bytes: usize) -> Result<(), ReserveError> {
        self.charge(bytes);
        Ok(())
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncounted;

impl Charge for Uncounted {
    #[inline(always)]
    fn charge(&mut self, _: usize) {}
    #[inline(always)]
    fn release(&mut self, _: usize) {}
}

macro_rules! by_reference {
    ($($account:ty),+) => {$(
        impl Charge for &$account {
            #[inline]
            fn charge(&mut self, bytes: usize) {
                <$account>::charge(self, bytes);
            }
            #[inline]
            fn release(&mut self, bytes: usize) {
                <$account>::release(self, bytes);
            }
            #[inline]
            fn try_charge(&mut self, bytes: usize) -> Result<(), ReserveError> {
                <$account>::try_charge(self, bytes)
            }
        }
    )+};
}

by_reference!(Reporter, SharedReporter, WorkspaceAccount<'_, Reporter>, WorkspaceAccount<'_, SharedReporter>);
