//! RAII bytes: charged before the allocation, given back on drop.
//!
//! Update order, a contract that others may rely on: growing charges the account first and then the reservation's own
//! bytes; shrinking lowers the reservation's own bytes first and then the account. So the sum of a writer's reservations
//! is never above its total, and what a reservation says is backed at every moment. Sibling reservations of one writer
//! share its cap and its total, nothing else. A workspace that it came through stands between the two: after the account
//! when growing, before it when shrinking.

use super::account::Account;
use super::cell::Handle;
use super::replacement::Replacement;
use super::workspace_cell::WorkspaceCell;
use crate::error::ReserveError;
use std::sync::Arc;

/// Bytes of one account that are given back when this is dropped.
///
/// Move-only, `Send`: it may be dropped anywhere. It remembers the account that it charged, and the
/// [workspace](crate::Workspace) that it came through, if there is one. Changed **through its reporter** it takes the
/// owner's fast path; dropped without one at hand it takes the account's lock for a moment (about 20 ns), so where that is
/// often, end it with [`free_with`](Self::free_with).
///
/// Two policies, by the name of the method: `try_` refuses over the writer's cap and then nothing has changed; without
/// `try_` the bytes are granted always, and [`Reporter::over_cap`](crate::Reporter::over_cap) says when to spill.
///
/// # A reporter that is not its own
///
/// Changing a reservation through another reporter than the one it was made with is a mistake. Debug builds assert. In
/// release builds [`free_with`](Self::free_with) and [`replace`](Self::replace) count it, and the reservation goes over to the
/// reporter given, with all its bytes; grow, shrink and resize, which are made several times a term, count on the reporter
/// given without looking. Then the sum is right all the same, and both writers are told of: the one that is left with too
/// much when it is dropped, the other when it goes below zero. A workspace counts as part of the reporter here: bytes that
/// came through one are changed through [`Reporter::within`](crate::Reporter::within) of it, and that always looks.
///
/// ```
/// use plimsoll::{GlobalMemoryLimiter, KIB};
/// let limiter = GlobalMemoryLimiter::builder().unlimited().writer_cap_bytes(100 * KIB).build()?;
/// let reporter = limiter.reporter("logs/message");
/// let mut scratch = reporter.try_reserve(40 * KIB)?;
/// scratch.try_resize(&reporter, 64 * KIB)?;
/// let refused = scratch.try_grow(&reporter, 50 * KIB).unwrap_err();
/// assert_eq!(refused.to_string(), "50 KiB more refused by writer_cap_bytes: 64 KiB held of 100 KiB");
/// drop(scratch);
/// assert_eq!(limiter.held_bytes(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a reservation that is dropped gives its bytes back"]
pub struct Reservation {
    handle: Handle,
    bytes: usize,
    workspace: Option<Arc<WorkspaceCell>>,
}

impl Reservation {
    /// Of `bytes` that are charged already.
    pub(crate) fn new(handle: Handle, bytes: usize) -> Self {
        Reservation { handle, bytes, workspace: None }
    }

    /// Of `bytes` that are charged already, on the account and in the workspace.
    pub(crate) fn within(handle: Handle, workspace: Arc<WorkspaceCell>, bytes: usize) -> Self {
        Reservation { handle, bytes, workspace: Some(workspace) }
    }

    /// What it holds.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` more. Cannot be refused.
    ///
    /// # Panics
    ///
    /// In debug builds as [`Reporter::charge`](crate::Reporter::charge), and through a reporter that is not its own.
    #[inline(always)]
    pub fn grow(&mut self, account: &impl Account, bytes: usize) {
        self.check_hot(account);
        account.add(bytes);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// Takes `bytes` more, before they are allocated.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] over the writer's cap; nothing has changed then.
    ///
    /// # Panics
    ///
    /// In debug builds through a reporter that is not its own.
    #[inline(always)]
    pub fn try_grow(&mut self, account: &impl Account, bytes: usize) -> Result<(), ReserveError> {
        self.check_hot(account);
        account.try_add(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives `bytes` back.
    ///
    /// # Panics
    ///
    /// In debug builds if it holds less; in release builds all of it is given back then, and the mistake is counted.
    #[inline(always)]
    pub fn shrink(&mut self, account: &impl Account, bytes: usize) {
        self.check_hot(account);
        let (left, wrapped) = self.bytes.overflowing_sub(bytes);
        self.bytes = left;
        if wrapped {
            return self.shrunk_below_zero(account, bytes);
        }
        account.sub_charged(bytes);
    }

    /// Holds exactly `bytes` from here on. Cannot be refused. One step: no other total is seen in between.
    ///
    /// # Panics
    ///
    /// As [`grow`](Self::grow).
    #[inline(always)]
    pub fn resize(&mut self, account: &impl Account, bytes: usize) {
        self.check_hot(account);
        if bytes >= self.bytes {
            account.add(bytes - self.bytes);
            self.bytes = bytes;
        } else {
            let less = self.bytes - bytes;
            self.bytes = bytes;
            account.sub_charged(less);
        }
    }

    /// Holds exactly `bytes` from here on, if that is less than now or the writer's cap allows it.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] over the writer's cap; nothing has changed then.
    ///
    /// # Panics
    ///
    /// In debug builds through a reporter that is not its own.
    #[inline(always)]
    pub fn try_resize(&mut self, account: &impl Account, bytes: usize) -> Result<(), ReserveError> {
        if bytes > self.bytes {
            return self.try_grow(account, bytes - self.bytes);
        }
        self.check_hot(account);
        let less = self.bytes - bytes;
        self.bytes = bytes;
        account.sub_charged(less);
        Ok(())
    }

    /// Gives everything back and stays usable; answers how much that was. A second call answers 0.
    pub fn free(&mut self) -> usize {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(workspace) = &self.workspace {
            workspace.give_back(bytes);
        }
        let cell = &self.handle.0;
        cell.core.give_back(cell, bytes);
        bytes
    }

    /// Ends the reservation through its reporter, on the owner's fast path.
    pub fn free_with(mut self, account: &impl Account) {
        self.check(account);
        account.sub_charged(std::mem::take(&mut self.bytes));
    }

    /// Takes `bytes` out into a reservation of their own. The account's total does not move.
    ///
    /// Answers none, and changes nothing, if it holds less.
    pub fn split(&mut self, bytes: usize) -> Option<Reservation> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(Reservation { handle: self.handle.clone(), bytes, workspace: self.workspace.clone() })
    }

    /// Takes everything out into a reservation of its own and stays behind with nothing.
    pub fn take(&mut self) -> Reservation {
        let bytes = std::mem::take(&mut self.bytes);
        Reservation { handle: self.handle.clone(), bytes, workspace: self.workspace.clone() }
    }

    /// Puts `other` into this one. The total does not move.
    ///
    /// # Errors
    ///
    /// `other` itself, unchanged, if it belongs to another writer or workspace: [`transfer`](Self::transfer) it first.
    pub fn merge(&mut self, mut other: Reservation) -> Result<(), Reservation> {
        if !self.handle.same(&other.handle) || !same_workspace(self.workspace.as_ref(), other.workspace.as_ref()) {
            return Err(other);
        }
        self.bytes += std::mem::take(&mut other.bytes);
        Ok(())
    }

    /// Hands the bytes over to another writer, as when a writer gives its buffer to a spill; or to another workspace of the
    /// same writer, or from or to none, and then the writer's total does not move. Cannot be refused.
    ///
    /// At rest they count once. Meanwhile an exact walk sees them once too (it goes again when it meets a transfer); the
    /// lagged sum may miss them for a moment, and never has them twice.
    pub fn transfer(&mut self, to: &impl Account) {
        if self.belongs_to(to) {
            return;
        }
        if let Some(workspace) = self.workspace.take() {
            workspace.give_back(self.bytes);
        }
        if !self.handle.same(to.handle()) {
            self.transfer_account(to);
        }
        // Kept from here on: `to` is at hand, so this is its owner.
        if let Some(workspace) = to.workspace() {
            workspace.add(self.bytes);
            self.workspace = Some(Arc::clone(workspace));
        }
    }

    /// The account's part of a transfer.
    fn transfer_account(&mut self, to: &impl Account) {
        let (from, into) = (self.handle.clone(), to.handle());
        if Arc::ptr_eq(&from.0.core, &into.0.core) {
            from.0.core.transfer(&from.0, &into.0, self.bytes, || self.handle = into.clone());
        } else {
            let bytes = std::mem::take(&mut self.bytes);
            self.handle = into.clone();
            from.0.core.give_back(&from.0, bytes);
            to.add_to_account(bytes);
            self.bytes = bytes;
        }
    }

    /// Charges a new size beside the present one, for the time that one buffer is copied into another. See
    /// [`Replacement`].
    ///
    /// # Errors
    ///
    /// [`ReserveError`] if both together pass the writer's cap; nothing has changed then.
    pub fn try_replace<'a, A: Account>(
        &'a mut self,
        account: &'a A,
        new_bytes: usize,
    ) -> Result<Replacement<'a, A>, ReserveError> {
        self.check(account);
        account.try_add(new_bytes)?;
        Ok(Replacement::new(self, account, new_bytes))
    }

    /// The same, and cannot be refused.
    ///
    /// # Panics
    ///
    /// As [`grow`](Self::grow).
    pub fn replace<'a, A: Account>(&'a mut self, account: &'a A, new_bytes: usize) -> Replacement<'a, A> {
        self.check(account);
        account.add(new_bytes);
        Replacement::new(self, account, new_bytes)
    }

    /// The name of the writer that it belongs to.
    pub fn writer(&self) -> &str {
        &self.handle.0.name
    }

    /// The new size is what it holds; the old one was given back by the caller.
    pub(crate) fn set_after_replacement(&mut self, bytes: usize) -> usize {
        std::mem::replace(&mut self.bytes, bytes)
    }

    /// In the calls that are made several times a term: two instructions that only debug builds pay. Within a workspace the
    /// half of it is always looked at, since its own end cannot tell such bytes from those charged by hand.
    #[inline(always)]
    fn check_hot<A: Account>(&mut self, account: &A) {
        if cfg!(debug_assertions) {
            self.check(account);
        } else if A::IN_WORKSPACE && !same_workspace(self.workspace.as_ref(), account.workspace()) {
            self.adopt(account);
        }
    }

    #[inline(always)]
    fn check(&mut self, account: &impl Account) {
        if !self.belongs_to(account) {
            self.adopt(account);
        }
    }

    /// Whether this is the account, and the workspace or none, that it has charged.
    #[inline(always)]
    fn belongs_to(&self, account: &impl Account) -> bool {
        self.handle.same(account.handle()) && same_workspace(self.workspace.as_ref(), account.workspace())
    }

    #[cold]
    #[inline(never)]
    fn adopt(&mut self, account: &impl Account) {
        let owner = full_name(&self.handle, self.workspace.as_ref());
        let given = full_name(account.handle(), account.workspace());
        self.transfer(account);
        self.handle.0.core.wrong_account("reservation", &owner, &given, self.bytes);
    }

    #[cold]
    #[inline(never)]
    fn shrunk_below_zero(&mut self, account: &impl Account, bytes: usize) {
        let held = std::mem::take(&mut self.bytes).wrapping_add(bytes);
        account.sub_charged(held);
        let cell = &self.handle.0;
        cell.core.mistake_released_too_much(cell, bytes - held);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.free();
    }
}

#[inline(always)]
fn same_workspace(one: Option<&Arc<WorkspaceCell>>, other: Option<&Arc<WorkspaceCell>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// `writer` or `writer/workspace`, for people.
fn full_name(handle: &Handle, workspace: Option<&Arc<WorkspaceCell>>) -> String {
    workspace.map_or_else(|| handle.0.name.to_string(), |workspace| workspace.full_name())
}
