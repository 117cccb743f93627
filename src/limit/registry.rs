//! Who is there: the cells and the arenas of one limiter.
//!
//! Order of locks: the transfer lock, a list, a cell's window; nobody takes an earlier one while holding a later one. A walk holds the read
//! side, so a cell that it sees stays until it is done; no user code runs meanwhile.

use super::arena_cell::ArenaCell;
use super::cell::Cell;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, RwLock, fence, mutant};
use std::sync::Arc;

/// A list from which members leave in any order.
#[derive(Debug)]
pub(crate) struct Members<T>(RwLock<Vec<Arc<T>>>);

/// Something that stands in a list.
pub(crate) trait Member {
    /// Where it stands in its list, kept by the list.
    fn slot(&self) -> &AtomicUsize;
}

impl<T: Member> Members<T> {
    fn new() -> Self {
        Members(RwLock::new(Vec::new()))
    }

    pub(crate) fn add(&self, member: Arc<T>) {
        let mut list = self.0.write();
        member.slot().store(list.len(), Ordering::Relaxed);
        list.push(member);
    }

    pub(crate) fn remove(&self, member: &T) {
        let mut list = self.0.write();
        let slot = member.slot().load(Ordering::Relaxed);
        let gone = list.swap_remove(slot);
        debug_assert!(std::ptr::eq(&*gone, member), "a slot names its own member");
        if let Some(moved) = list.get(slot) {
            moved.slot().store(slot, Ordering::Relaxed);
        }
        if list.capacity() > 64 && list.len() < list.capacity() / 4 {
            let half = list.capacity() / 2;
            list.shrink_to(half);
        }
        drop(list);
        // The reference that the list had is dropped here, outside the lock.
        drop(gone);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.read().len()
    }

    /// Runs `look` over the list. Keep it free of user code and of this list's lock.
    pub(crate) fn walk<R>(&self, look: impl FnOnce(&[Arc<T>]) -> R) -> R {
        look(&self.0.read())
    }
}

/// Everything that is registered with one limiter.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) cells: Members<Cell>,
    pub(crate) arenas: Members<ArenaCell>,
    /// Live cells, readable without a lock: a quantum depends on it.
    live: AtomicUsize,
    next_id: AtomicU64,
    /// Held during a transfer, and by a walk that met too many.
    transferring: Mutex<()>,
    /// Transfers that have begun and that are done; a walk that saw one under way goes again.
    transfers_begun: AtomicUsize,
    transfers_done: AtomicUsize,
}

/// How often a walk goes again without keeping transfers away.
const FREE_WALKS: usize = 2;

impl Registry {
    pub(crate) fn new() -> Self {
        Registry {
            cells: Members::new(),
            arenas: Members::new(),
            live: AtomicUsize::new(0),
            next_id: AtomicU64::new(0),
            transferring: Mutex::new(()),
            transfers_begun: AtomicUsize::new(0),
            transfers_done: AtomicUsize::new(0),
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Answers the how-manieth alive it is.
    pub(crate) fn add_cell(&self, cell: Arc<Cell>) -> usize {
        let number = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.cells.add(cell);
        number
    }

    /// Answers how many are left.
    pub(crate) fn remove_cell(&self, cell: &Cell) -> usize {
        self.cells.remove(cell);
        self.live.fetch_sub(1, Ordering::Relaxed) - 1
    }

    /// The exact sum of the cells that `counts` says yes to: each cell is exact at some instant during the walk and not
    /// older than the last change before it. The sum is no snapshot: changes go on meanwhile. A transfer under way is met
    /// neither twice nor not at all: a walk that meets one goes again, and after a few times keeps transfers away.
    pub(crate) fn exact_bytes(&self, counts: impl Fn(&Cell) -> bool) -> usize {
        for _ in 0..FREE_WALKS {
            // Acquire, from the end of a transfer: both of its sides are seen.
            let done = self.transfers_done.load(Ordering::Acquire);
            let sum = self.sum(&counts);
            // Every cell was read with Acquire, so a transfer of which one side was seen shows here as begun.
            if self.transfers_begun.load(Ordering::Relaxed) == done || mutant("walk_once") {
                return sum;
            }
        }
        let _no_transfer = self.transferring.lock();
        self.sum(&counts)
    }

    fn sum(&self, counts: &impl Fn(&Cell) -> bool) -> usize {
        self.cells.walk(|cells| {
            cells.iter().filter(|cell| counts(cell)).fold(0, |sum: usize, cell| sum.saturating_add(cell.total_bytes()))
        })
    }

    /// No transfer is under way, or begins, while the answer lives.
    pub(crate) fn keep_transfers_away(&self) -> MutexGuard<'_, ()> {
        self.transferring.lock()
    }

    /// Bytes go from one cell to another between this and the drop of what it answers. One at a time; take no list
    /// meanwhile.
    pub(crate) fn transfer(&self) -> Transfer<'_> {
        let alone = self.transferring.lock();
        self.transfers_begun.fetch_add(1, Ordering::Relaxed);
        // Release fence: whoever sees either side, also a change that is stored Relaxed, sees the transfer as begun.
        fence(Ordering::Release);
        Transfer { registry: self, _alone: alone }
    }
}

/// A transfer under way.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    registry: &'a Registry,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        self.registry.transfers_done.fetch_add(1, Ordering::Release);
    }
}
