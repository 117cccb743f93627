//! Old and new, both counted, while one buffer is copied into another.

use super::account::Account;
use super::reservation::Reservation;

/// A reallocation under way: the reservation's old bytes and the new ones are charged together.
///
/// [`commit`](Self::commit) gives the old ones back; a drop without it (the allocation failed) gives the new ones back and
/// leaves the reservation as it was.
///
/// ```
/// let limiter = plimsoll::GlobalMemoryLimiter::builder().unlimited().build()?;
/// let reporter = limiter.reporter("logs/message");
/// let mut table = reporter.reserve(100);
/// let copying = table.replace(&reporter, 200);
/// assert_eq!(reporter.held_bytes(), 300);
/// copying.commit();
/// assert_eq!((reporter.held_bytes(), table.bytes()), (200, 200));
/// # Ok::<(), plimsoll::ConfigError>(())
/// ```
#[derive(Debug)]
#[must_use = "a replacement that is dropped leaves the old size"]
pub struct Replacement<'a, A: Account> {
    reservation: &'a mut Reservation,
    account: &'a A,
    /// What is charged beside the reservation.
    new_bytes: usize,
}

impl<'a, A: Account> Replacement<'a, A> {
    /// `new_bytes` are charged already.
    pub(crate) fn new(reservation: &'a mut Reservation, account: &'a A, new_bytes: usize) -> Self {
        Replacement { reservation, account, new_bytes }
    }

    /// The old buffer is gone: the reservation holds the new size.
    pub fn commit(mut self) {
        let new = std::mem::take(&mut self.new_bytes);
        let old = self.reservation.set_after_replacement(new);
        self.account.sub_charged(old);
    }
}

impl<A: Account> Drop for Replacement<'_, A> {
    fn drop(&mut self) {
        self.account.sub_charged(self.new_bytes);
    }
}
