//! The part of a writer's total that a spill frees.

use super::account::Sealed;
use super::arena_cell::{ArenaCell, State};
use super::cell::Handle;
use super::decide::NOTICE;
use super::reporter::Reporter;
use super::spill::SpillGuard;
use super::unwind::OnUnwind;
use super::workspace_cell::WorkspaceCell;
use crate::error::{Refusal, ReserveError};
use crate::sync::{Ordering, fence, mutant};
use std::sync::Arc;
use std::task::Waker;

impl ArenaCell {
    /// The most that one arena can say it has in flight (1 TiB less one byte; all of the address space on 32 bits): a
    /// larger one is refused by `try_grow_bytes`, and asked to spill before it gets there.
    pub(crate) const MAX_BYTES: usize = if usize::BITS > 40 { (1u64 << 40) as usize - 1 } else { usize::MAX / 2 };
}

/// One spillable arena of a writer.
///
/// Its bytes are **block-backed**: what it has taken from the allocator in blocks, used or not. The limiter hears of it
/// only when that number changes, which is once a block; what is written into a block costs nothing. The bytes are part of
/// the writer's total and are changed through its reporter.
///
/// The limiter asks for a spill by a flag that the owner polls ([`spill_requested`](Self::spill_requested), one relaxed
/// load of the arena's own line) on its own thread, at its next token or document. An owner that is parked can be woken
/// instead: [`set_waker`](Self::set_waker).
///
/// Dropping the handle gives its bytes back and takes it out of every decision.
///
/// ```
/// use plimsoll::{GlobalMemoryLimiter, MIB};
/// let limiter = GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).floor_bytes(4 * MIB).build()?;
/// let reporter = limiter.reporter("logs/message");
/// let mut arena = reporter.arena("postings");
/// arena.set_bytes(&reporter, 65 * MIB);
/// assert!(arena.spill_requested());
/// if let Some(spill) = arena.begin_spill(&reporter) {
///     // write the run, free the blocks
///     spill.finish(0);
/// }
/// assert_eq!((limiter.held_bytes(), limiter.stats().forced_spills), (0, 1));
/// # Ok::<(), plimsoll::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct ArenaHandle {
    handle: Handle,
    arena: Arc<ArenaCell>,
    /// The owner's copy of the bytes.
    bytes: usize,
    /// Where they count too, if anywhere.
    workspace: Option<Arc<WorkspaceCell>>,
}

impl ArenaHandle {
    pub(crate) fn new(handle: Handle, arena: Arc<ArenaCell>) -> Self {
        ArenaHandle { handle, arena, bytes: 0, workspace: None }
    }

    /// The same, empty still, in a workspace.
    pub(crate) fn within(mut self, workspace: Arc<WorkspaceCell>) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Its block-backed bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The end of its address space, in bytes. At 31/32 of it the arena asks itself to spill.
    pub fn max_bytes(&self) -> usize {
        self.arena.max_bytes
    }

    /// Says how many block-backed bytes it has now. Cannot be refused.
    ///
    /// With the same number as before this is one compare. Otherwise the limiter is notified, on this thread: it may
    /// decide, ask arenas to spill (this one too) and wake their owners; that takes no lock without pressure, and a walk
    /// over all writers with it.
    ///
    /// # Panics
    ///
    /// In debug builds through another writer's reporter; in release builds that is counted and the arena goes over to the
    /// reporter given. Always through a reporter of another limiter.
    #[inline]
    pub fn set_bytes(&mut self, reporter: &Reporter, bytes: usize) {
        if bytes != self.bytes || !self.handle.same(&reporter.handle) {
            self.change(reporter, bytes);
        }
    }

    /// Takes `bytes` more, asked before a block is allocated.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] past the arena's address space, over the budget of its [workspace](crate::Workspace) or over the
    /// writer's cap; nothing has changed then.
    ///
    /// # Panics
    ///
    /// As [`set_bytes`](Self::set_bytes).
    pub fn try_grow_bytes(&mut self, reporter: &Reporter, bytes: usize) -> Result<(), ReserveError> {
        self.check(reporter);
        let new = match self.bytes.checked_add(bytes) {
            Some(new) if new <= self.arena.max_bytes => new,
            _ => {
                return Err(ReserveError {
                    asked_bytes: bytes,
                    held_bytes: self.bytes,
                    limit_bytes: self.arena.max_bytes,
                    kind: Refusal::ArenaAddressSpace,
                });
            }
        };
        if bytes == 0 {
            return Ok(());
        }
        if let Some(workspace) = &self.workspace {
            workspace.admit(bytes)?;
        }
        // The arena first, as in `grow_to`; taken back if the account refuses.
        self.arena.set_bytes(new);
        let shrinks = OnUnwind::new(|| self.arena.set_bytes(self.bytes));
        if let Err(error) = reporter.try_charge(bytes) {
            drop(shrinks);
            if self.is_counted_on() {
                // Somebody may have decided by the size of the attempt: the request covers less.
                self.handle.0.core.decide(NOTICE);
            }
            return Err(error);
        }
        shrinks.disarm();
        self.workspace_grown(bytes);
        self.bytes = new;
        self.grown();
        Ok(())
    }

    /// Whether the limiter asks for a spill: one relaxed load of the arena's own line.
    ///
    /// Advisory. It stays set until the owner begins a spill; below the floor [`begin_spill`](Self::begin_spill) does not
    /// act on it.
    #[inline(always)]
    pub fn spill_requested(&self) -> bool {
        self.arena.spill_requested()
    }

    /// Begins the spill that was asked for.
    ///
    /// None if none is asked for, or if the arena is empty or below the floor by now: then the request stays, and nothing
    /// has to be spilled.
    ///
    /// # Panics
    ///
    /// As [`set_bytes`](Self::set_bytes).
    pub fn begin_spill<'a>(&'a mut self, reporter: &'a Reporter) -> Option<SpillGuard<'a>> {
        self.check(reporter);
        let floor = reporter.handle.0.core.settings.floor_bytes();
        if !self.spill_requested() || self.bytes == 0 || (self.bytes < floor && !self.near_its_end()) {
            return None;
        }
        Some(self.begin(reporter))
    }

    /// Begins a spill of the writer's own accord (its cap, the end of its input): the floor does not matter.
    ///
    /// None if the arena is empty: an empty run helps nobody.
    ///
    /// # Panics
    ///
    /// As [`set_bytes`](Self::set_bytes).
    pub fn begin_own_spill<'a>(&'a mut self, reporter: &'a Reporter) -> Option<SpillGuard<'a>> {
        self.check(reporter);
        if self.bytes == 0 { None } else { Some(self.begin(reporter)) }
    }

    /// Has `waker` called whenever a spill is asked for, on the thread that asks: it may only unpark or push to a queue.
    /// None takes it away. If a request is pending already, it is woken at once.
    pub fn set_waker(&self, waker: Option<Waker>) {
        let waker = waker.map(Arc::new);
        let before = std::mem::replace(&mut *self.arena.waker.lock(), waker.clone());
        drop(before);
        if self.spill_requested()
            && let Some(waker) = waker
        {
            waker.wake_by_ref();
        }
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.arena.name
    }

    /// Runs that it has written: spills that finished.
    pub fn runs(&self) -> u64 {
        self.arena.runs()
    }

    /// The largest size at which the arena is not asked by itself.
    fn near_its_end(&self) -> bool {
        self.bytes > self.arena.max_bytes - self.arena.max_bytes / 32
    }

    fn begin<'a>(&'a mut self, reporter: &'a Reporter) -> SpillGuard<'a> {
        let forced = self.arena.begin();
        SpillGuard::new(self, reporter, forced)
    }

    #[cold]
    #[inline(never)]
    fn change(&mut self, reporter: &Reporter, bytes: usize) {
        self.check(reporter);
        if bytes > self.bytes {
            self.grow_to(reporter, bytes);
            self.grown();
        } else if bytes < self.bytes {
            self.shrink_to(reporter, bytes);
            let core = &self.handle.0.core;
            if self.is_counted_on() {
                // The request covers less from here on, and the alarm line counts on what it covered.
                core.telemetry.notified(&self.arena.notifications);
                core.decide(NOTICE);
            } else {
                core.notify(&self.arena);
            }
        }
    }

    /// The arena first, then the account, so that a decision which the charge brings about sees the arena.
    fn grow_to(&mut self, reporter: &Reporter, bytes: usize) {
        let before = self.bytes;
        self.arena.set_bytes(bytes);
        let shrinks = OnUnwind::new(|| self.arena.set_bytes(before));
        reporter.charge(bytes - before);
        shrinks.disarm();
        self.workspace_grown(bytes - before);
        self.bytes = bytes;
    }

    /// The account first, so that nobody sees bytes held that are neither in an arena nor in use.
    fn shrink_to(&mut self, reporter: &Reporter, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.workspace_shrunk(before - bytes);
        let follows = OnUnwind::new(|| self.arena.set_bytes(bytes));
        reporter.sub_charged(before - bytes);
        drop(follows);
    }

    /// After its bytes went down: whether it was asked with more. If it is asked later, the decider sees what it has now.
    fn is_counted_on(&self) -> bool {
        fence(Ordering::SeqCst);
        self.spill_requested()
    }

    fn grown(&self) {
        if self.near_its_end() {
            let word = self.arena.word();
            if word.state() == State::Idle {
                self.arena.request(word, self.bytes);
            }
        }
        self.handle.0.core.notify(&self.arena);
    }

    fn workspace_grown(&self, bytes: usize) {
        if let Some(workspace) = &self.workspace {
            workspace.arena_grown(bytes);
        }
    }

    fn workspace_shrunk(&self, bytes: usize) {
        if let Some(workspace) = &self.workspace {
            workspace.give_back(bytes);
        }
    }

    /// A spill has freed all but `remaining` bytes: account, arena, word, in this order, then the limiter hears of it.
    pub(crate) fn spilled(&mut self, reporter: &Reporter, remaining: usize) {
        if remaining > self.bytes {
            self.grow_to(reporter, remaining);
        } else {
            self.shrink_to(reporter, remaining);
        }
        self.arena.finish();
        let core = &self.handle.0.core;
        core.telemetry.notified(&self.arena.notifications);
        core.decide(NOTICE);
    }

    /// A spill did not finish: everything is as before, and the arena is left alone for a time.
    pub(crate) fn spill_failed(&self) {
        let core = &self.handle.0.core;
        self.arena.abort(core.decider.now_ms(), core.settings.backoff_ms());
        if !mutant("abort_silent") {
            core.decide(NOTICE);
        }
    }

    pub(crate) fn core(&self) -> &super::core::Core {
        &self.handle.0.core
    }

    #[inline]
    fn check(&mut self, reporter: &Reporter) {
        if !self.handle.same(&reporter.handle) {
            self.adopt(reporter);
        }
    }

    #[cold]
    #[inline(never)]
    fn adopt(&mut self, reporter: &Reporter) {
        let (owner, given) = (self.handle.clone(), reporter.handle.clone());
        if !Arc::ptr_eq(&owner.0.core, &given.0.core) {
            panic!(
                "plimsoll: arena {} of {} was changed through a reporter of another limiter",
                self.arena.name, owner.0.name
            );
        }
        let goes_over = || {
            owner.0.core.loses_arena(&owner.0);
            *self.arena.owner.lock() = Arc::clone(&given.0);
            self.handle = given.clone();
        };
        owner.0.core.transfer(&owner.0, &given.0, self.bytes, goes_over);
        given.0.core.gains_arena(&given.0);
        given.0.core.wrong_account("arena", &owner.0.name, &given.0.name, self.bytes);
    }
}

impl Drop for ArenaHandle {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.workspace_shrunk(bytes);
        let cell = &self.handle.0;
        let leaves = OnUnwind::new(|| cell.core.leave_arena_quietly(cell, &self.arena));
        cell.core.give_back(cell, bytes);
        leaves.disarm();
        cell.core.leave_arena(cell, &self.arena);
    }
}
