//! What is kept of a workspace: how many bytes came through it, and its budget.
//!
//! Invariant: used is `own + elsewhere`, in wrapping arithmetic; either of the two may be below zero by itself. `own` is
//! changed by plain instructions, by whoever has the workspace and an account at hand. `elsewhere` is changed by locked
//! ones: reservations that are dropped without the workspace, and arenas, once a block. Nothing is ever moved from the one
//! to the other, so neither needs a lock.
//!
//! Growing changes the account first and then the workspace; shrinking goes the other way. So what came through a writer's
//! workspaces is never more than the writer's total. (An arena's own bytes go up before its writer's.)

use super::cell::{Handle, MAX_BYTES, clamp};
use crate::error::{Refusal, ReserveError};
use crate::sync::{AtomicUsize, Ordering, mutant, own_load};
use std::cmp::Ordering as Sign;

/// See the module. Shared by the workspace, its reservations and its arenas; a line of its own, since dropping a
/// reservation elsewhere writes it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct WorkspaceCell {
    own: AtomicUsize,
    elsewhere: AtomicUsize,
    pub(crate) budget_bytes: usize,
    /// The writer, which gets back what is left at the end.
    pub(crate) handle: Handle,
    pub(crate) name: Box<str>,
}

impl WorkspaceCell {
    pub(crate) fn new(handle: Handle, name: &str, budget_bytes: usize) -> Self {
        WorkspaceCell {
            own: AtomicUsize::new(0),
            elsewhere: AtomicUsize::new(0),
            budget_bytes,
            handle,
            name: name.into(),
        }
    }

    /// Exact for the owner; what others give back meanwhile is in it or not. Below zero, by a mistake, reads as 0.
    #[inline(always)]
    pub(crate) fn used_bytes(&self) -> usize {
        // Acquire, from a give-back: who is granted the bytes must see that they are no longer in use.
        clamp(own_load(&self.own).wrapping_add(self.elsewhere.load(Ordering::Acquire)))
    }

    /// Owner: `bytes` more came through it; the account has them already.
    #[inline(always)]
    pub(crate) fn add(&self, bytes: usize) {
        // Relaxed: the owner alone reads it.
        self.own.store(own_load(&self.own).wrapping_add(bytes), Ordering::Relaxed);
    }

    /// Owner: `bytes` go; the account still has them.
    #[inline(always)]
    pub(crate) fn sub(&self, bytes: usize) {
        self.own.store(own_load(&self.own).wrapping_sub(bytes), Ordering::Relaxed);
    }

    /// Anybody, without the workspace at hand: `bytes` go.
    pub(crate) fn give_back(&self, bytes: usize) {
        // Release, to the load in `used_bytes`.
        let order = if mutant("workspace_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.elsewhere.fetch_sub(bytes, order);
    }

    /// An arena has `bytes` more. Not through `own`: an arena knows its reporter, not the workspace's owner.
    pub(crate) fn arena_grown(&self, bytes: usize) {
        // Relaxed: a growth gives nobody anything.
        self.elsewhere.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether `bytes` more fit.
    #[inline(always)]
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), ReserveError> {
        let used = self.used_bytes();
        match used.checked_add(bytes) {
            Some(new) if new <= self.budget_bytes => Ok(()),
            _ => Err(self.refusal(used, bytes)),
        }
    }

    #[cold]
    #[inline(never)]
    fn refusal(&self, used: usize, bytes: usize) -> ReserveError {
        let (limit_bytes, kind) = match bytes > MAX_BYTES {
            true => (MAX_BYTES, Refusal::Overflow),
            false => (self.budget_bytes, Refusal::Workspace),
        };
        ReserveError { asked_bytes: bytes, held_bytes: used, limit_bytes, kind }
    }

    /// `writer/workspace`, for people.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.handle.0.name, self.name)
    }

    /// The caller's mistake: all that there was is given back already.
    #[cold]
    #[inline(never)]
    pub(crate) fn mistake_released_too_much(&self, surplus: usize) {
        let name = self.full_name();
        self.handle.0.core.telemetry.released_too_much(&name, surplus);
        if cfg!(debug_assertions) && !std::thread::panicking() {
            panic!("plimsoll: {name} released {surplus} bytes more than it held");
        }
    }
}

impl Drop for WorkspaceCell {
    fn drop(&mut self) {
        // The last reference: reservations and arenas have given back theirs, so what is left was charged by hand.
        let left = own_load(&self.own).wrapping_add(own_load(&self.elsewhere)) as isize;
        let cell = &self.handle.0;
        match left.cmp(&0) {
            Sign::Equal => {}
            Sign::Greater => {
                cell.core.give_back(cell, left.unsigned_abs());
                cell.core.telemetry.unbalanced(&self.full_name(), left.unsigned_abs());
            }
            // On drop a mistake is told and never asserted.
            Sign::Less => cell.core.telemetry.released_too_much(&self.full_name(), left.unsigned_abs()),
        }
    }
}
