//! A second, smaller budget under a writer's.

use super::account::{Account, Sealed};
use super::arena::ArenaHandle;
use super::cell::Handle;
use super::reporter::Reporter;
use super::reservation::Reservation;
use super::shared::SharedReporter;
use super::workspace_cell::WorkspaceCell;
use crate::error::ReserveError;
use std::cell::Cell as NotSync;
use std::marker::PhantomData;
use std::sync::Arc;

/// A budget for a part of what a writer holds: its postings, say, at 32 MiB. What comes through it counts here and on the
/// writer's account too, and **both are checked**: `try_` calls are refused by the workspace or by whatever refuses the
/// writer. The workspace is asked first; [`ReserveError::kind`] says who it was, and nothing has changed on either side.
/// A writer's cap holds over all that it has, whatever workspaces it came through.
///
/// It has no account of its own: it is used through one, by [`Reporter::within`]. So it can be kept beside its
/// reporter and move to another thread with it, and cannot be used from two threads at once (`Send`, `!Sync`). Its count
/// costs a few plain instructions a change on top of the writer's.
///
/// # Two policies
///
/// *Refuse*: `try_` calls, before something is allocated. *Spill threshold*: calls without `try_`, and arenas, are granted
/// always and counted exactly above the budget too; [`over_budget`](Self::over_budget) says when to spill. An index
/// writer wants the second for its posting arena, looked at once a block or a document, and the first for buffers that it
/// can do without.
///
/// ```
/// use plimsoll::{GlobalMemoryLimiter, KIB, MIB, Refusal};
/// let limiter = GlobalMemoryLimiter::builder().unlimited().writer_cap_bytes(64 * MIB).build()?;
/// let reporter = limiter.reporter("logs/message");
/// let postings = reporter.workspace("postings", 32 * MIB);
/// let mut arena = reporter.within(&postings).arena("blocks");
/// let mut runs = 0;
/// for _ in 0..3_000 {
///     arena.set_bytes(&reporter, arena.bytes() + 32 * KIB); // once a block
///     if postings.over_budget()
///         && let Some(spill) = arena.begin_own_spill(&reporter)
///     {
///         spill.finish(0); // write the run and free the blocks here
///         runs += 1;
///     }
/// }
/// assert_eq!((runs, arena.bytes() / KIB), (2, 30_400));
///
/// let refused = reporter.within(&postings).try_reserve(4 * MIB).unwrap_err();
/// assert_eq!(refused.kind, Refusal::Workspace);
/// assert_eq!(refused.to_string(), "4 MiB more refused by the workspace: 29.6 MiB used of 32 MiB");
/// let scratch = reporter.try_reserve(4 * MIB)?; // beside the workspace there is room
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Its end
///
/// Reservations and arenas may outlive it and give back to it all the same. When the last of them is gone, what was
/// charged by hand and not released is given back to the writer, counted as an accounting error and told by name.
#[derive(Debug)]
pub struct Workspace {
    cell: Arc<WorkspaceCell>,
    /// Not `Sync`: the cell has one writing thread.
    one_writer: PhantomData<NotSync<()>>,
}

/// A change is stored before anything can panic in here, so a workspace behind a reference is right after a caught panic.
impl std::panic::RefUnwindSafe for Workspace {}

impl Workspace {
    fn new(handle: &Handle, name: &str, budget_bytes: usize) -> Self {
        let cell = WorkspaceCell::new(handle.clone(), name, budget_bytes);
        Workspace { cell: Arc::new(cell), one_writer: PhantomData }
    }

    /// What came through it and is still held, in bytes: exact, but for what is being dropped on other threads.
    #[inline]
    pub fn used_bytes(&self) -> usize {
        self.cell.used_bytes()
    }

    /// What it may use, in bytes.
    #[inline]
    pub fn budget_bytes(&self) -> usize {
        self.cell.budget_bytes
    }

    /// What its own budget leaves, in bytes: 0 above it. The writer's limits may leave less.
    pub fn available_bytes(&self) -> usize {
        self.budget_bytes().saturating_sub(self.used_bytes())
    }

    /// Whether more is used than its budget: the moment for the writer to spill by itself. Not at exactly the budget.
    #[inline]
    pub fn over_budget(&self) -> bool {
        self.used_bytes() > self.budget_bytes()
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.cell.name
    }
}

impl Reporter {
    /// A second, smaller budget of `budget_bytes` under this writer's; see [`Workspace`]. Names are for people.
    pub fn workspace(&self, name: &str, budget_bytes: usize) -> Workspace {
        Workspace::new(&self.handle, name, budget_bytes)
    }

    /// This writer's account, bounded by one of its workspaces too. Costs nothing: make one wherever it is needed.
    ///
    /// # Panics
    ///
    /// In debug builds if the workspace belongs to another writer. In release builds the bytes then count on this writer and
    /// in that workspace, and both sums stay right.
    #[inline(always)]
    pub fn within<'a>(&'a self, workspace: &'a Workspace) -> WorkspaceAccount<'a, Reporter> {
        WorkspaceAccount::new(self, workspace)
    }
}

impl SharedReporter {
    /// A second, smaller budget of `budget_bytes` for one of the account's users; see [`Workspace`]. One thread uses it at
    /// a time: let each have its own.
    pub fn workspace(&self, name: &str, budget_bytes: usize) -> Workspace {
        Workspace::new(&self.handle, name, budget_bytes)
    }

    /// This account, bounded by one of its workspaces too.
    ///
    /// # Panics
    ///
    /// As [`Reporter::within`].
    #[inline(always)]
    pub fn within<'a>(&'a self, workspace: &'a Workspace) -> WorkspaceAccount<'a, SharedReporter> {
        WorkspaceAccount::new(self, workspace)
    }
}

/// A writer's account as seen from one of its workspaces: [`Reporter::within`]. Whatever is changed through it counts in
/// both.
///
/// An [`Account`]: reservations made through it are changed through it, or through another one of the same two.
///
/// ```
/// let limiter = plimsoll::GlobalMemoryLimiter::builder().unlimited().build()?;
/// let reporter = limiter.reporter("logs/message");
/// let encoders = reporter.workspace("encoders", 1_000);
/// let account = reporter.within(&encoders);
/// let mut scratch = account.try_reserve(600)?;
/// scratch.try_grow(&account, 400)?;
/// assert!(scratch.try_grow(&account, 1).is_err());
/// std::thread::spawn(move || drop(scratch)); // gives back to both
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WorkspaceAccount<'a, A: Account> {
    account: &'a A,
    workspace: &'a Workspace,
}

impl<A: Account> Clone for WorkspaceAccount<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Account> Copy for WorkspaceAccount<'_, A> {}

impl<'a, A: Account> WorkspaceAccount<'a, A> {
    #[inline(always)]
    fn new(account: &'a A, workspace: &'a Workspace) -> Self {
        if cfg!(debug_assertions) && !workspace.cell.handle.same(account.handle()) {
            wrong_account(&workspace.cell, account.handle());
        }
        WorkspaceAccount { account, workspace }
    }

    /// Records `bytes` more. Cannot be refused; the workspace may be over its budget then.
    ///
    /// # Panics
    ///
    /// As [`Reporter::charge`].
    #[inline(always)]
    pub fn charge(&self, bytes: usize) {
        self.add(bytes);
    }

    /// Gives `bytes` back.
    ///
    /// # Panics
    ///
    /// In debug builds if the workspace has less. In release builds all that it has is given back, to both, and the
    /// surplus is counted and told with the workspace's name.
    #[inline(always)]
    pub fn release(&self, bytes: usize) {
        let cell = &self.workspace.cell;
        let used = cell.used_bytes();
        self.sub_charged(bytes.min(used));
        if bytes > used {
            cell.mistake_released_too_much(bytes - used);
        }
    }

    /// Records `bytes` more if both the workspace and the writer allow it.
    ///
    /// # Errors
    ///
    /// [`ReserveError`] over the workspace's budget ([`Refusal::Workspace`](crate::Refusal::Workspace)), or as the account's
    /// own `try_charge`; then nothing has changed, on either side.
    #[inline(always)]
    pub fn try_charge(&self, bytes: usize) -> Result<(), ReserveError> {
        self.try_add(bytes)
    }

    /// Charges `bytes` and answers the reservation that gives them back, to both. Cannot be refused.
    ///
    /// # Panics
    ///
    /// As [`charge`](Self::charge).
    pub fn reserve(&self, bytes: usize) -> Reservation {
        self.add(bytes);
        Reservation::within(self.account.handle().clone(), Arc::clone(&self.workspace.cell), bytes)
    }

    /// Charges `bytes`, before they are allocated, if both the workspace and the writer allow it.
    ///
    /// # Errors
    ///
    /// As [`try_charge`](Self::try_charge).
    pub fn try_reserve(&self, bytes: usize) -> Result<Reservation, ReserveError> {
        self.try_add(bytes)?;
        Ok(Reservation::within(self.account.handle().clone(), Arc::clone(&self.workspace.cell), bytes))
    }
}

impl WorkspaceAccount<'_, Reporter> {
    /// Registers a spillable arena of this writer whose bytes count in the workspace too. It is changed through its
    /// reporter, as every arena: [`ArenaHandle::set_bytes`] may take the workspace over its budget
    /// ([`Workspace::over_budget`]), [`ArenaHandle::try_grow_bytes`] is refused before that.
    pub fn arena(&self, name: &str) -> ArenaHandle {
        self.arena_with_address_space(name, usize::MAX)
    }

    /// The same for an arena whose addresses end at `max_bytes`: see [`Reporter::arena_with_address_space`].
    pub fn arena_with_address_space(&self, name: &str, max_bytes: usize) -> ArenaHandle {
        self.account.arena_with_address_space(name, max_bytes).within(Arc::clone(&self.workspace.cell))
    }
}

impl<A: Account> Account for WorkspaceAccount<'_, A> {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl<A: Account> Sealed for WorkspaceAccount<'_, A> {
    const IN_WORKSPACE: bool = true;

    #[inline(always)]
    fn add(&self, bytes: usize) {
        self.account.add(bytes);
        self.workspace.cell.add(bytes);
    }
    #[inline(always)]
    fn add_to_account(&self, bytes: usize) {
        self.account.add(bytes);
    }
    #[inline(always)]
    fn sub_charged(&self, bytes: usize) {
        self.workspace.cell.sub(bytes);
        self.account.sub_charged(bytes);
    }
    #[inline(always)]
    fn try_add(&self, bytes: usize) -> Result<(), ReserveError> {
        // Nothing is stored before both have agreed. Nobody else adds to the workspace in between.
        self.workspace.cell.admit(bytes)?;
        self.account.try_add(bytes)?;
        self.workspace.cell.add(bytes);
        Ok(())
    }
    #[inline(always)]
    fn handle(&self) -> &Handle {
        self.account.handle()
    }
    #[inline(always)]
    fn workspace(&self) -> Option<&Arc<WorkspaceCell>> {
        Some(&self.workspace.cell)
    }
}

#[cold]
#[inline(never)]
fn wrong_account(workspace: &WorkspaceCell, given: &Handle) {
    given.0.core.wrong_account("workspace", &workspace.handle.0.name, &given.0.name, workspace.used_bytes());
}
