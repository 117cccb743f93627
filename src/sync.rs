//! The one shim for synchronisation, and the only file that knows loom. Everything else takes atomics, locks and fences
//! from here; statistics alone use std's atomics (`telemetry`), so that they do not multiply what a model explores.
//!
//! Both sides have the same shape: locks as parking_lot has them (a guard, no `Result`; a wait takes the guard and gives
//! it back), `own_load` for the single writer of a word, `light_fence` for the cheap side of the process-wide barrier,
//! `rmw_fence` for the side that has just done a locked operation, `process_barrier` for the expensive side.

pub(crate) use imp::*;

/// Numbers that only have to differ: std's on both sides, so that they are no part of a model.
#[cfg(feature = "spill")]
pub(crate) use std::sync::atomic::AtomicU64 as Numbers;

#[cfg(not(all(test, loom)))]
mod imp {
    #[cfg(feature = "spill")]
    pub(crate) use parking_lot::RwLockReadGuard;
    pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

    /// Wakes who waits for something that a mutex guards.
    #[cfg(feature = "spill")]
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(parking_lot::Condvar);

    #[cfg(feature = "spill")]
    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// Cells whose windows are closed under one barrier: owners wait meanwhile, so not too many.
    pub(crate) const BATCH: usize = 64;

    /// The single writer's read of its own word, or a read of a word that is written under a lock which is held.
    #[inline(always)]
    pub(crate) fn own_load(word: &AtomicUsize) -> usize {
        word.load(Ordering::Relaxed)
    }

    /// Cheap side of the process-wide barrier: keeps the compiler from moving the owner's load of a window's end above
    /// its store of `held`. The processor may still do so; `process_barrier` on the other side rules that out.
    #[inline(always)]
    pub(crate) fn light_fence() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Keeps a load and a store of the caller's own word two instructions: after one that changes memory in place, the next
    /// change of the same word waits some five cycles.
    #[inline(always)]
    pub(crate) fn keep_apart() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Orders a locked read-modify-write before the loads that follow. On x86 the operation itself does it.
    #[inline(always)]
    pub(crate) fn rmw_fence() {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        fence(Ordering::SeqCst);
    }

    /// Makes the process able to use [`process_barrier`]; false where the system has none.
    pub(crate) fn prepare_process_barrier() -> bool {
        crate::membarrier::register()
    }

    /// After it returned true, every other thread of the process has passed a full fence since it was called.
    pub(crate) fn process_barrier() -> bool {
        fence(Ordering::SeqCst);
        crate::membarrier::issue()
    }
}

#[cfg(all(test, loom))]
mod imp {
    use crate::tests::loom::mutant;
    pub(crate) use loom::sync::MutexGuard;
    #[cfg(feature = "spill")]
    pub(crate) use loom::sync::RwLockReadGuard;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

    /// Each cell by itself, so that a model sees what happens between two batches.
    pub(crate) const BATCH: usize = 1;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a panic ends the model")
        }
        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    #[cfg(feature = "spill")]
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    #[cfg(feature = "spill")]
    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).expect("a panic ends the model")
        }
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    #[derive(Debug)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            RwLock(loom::sync::RwLock::new(value))
        }
        pub(crate) fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
            self.0.read().expect("a panic ends the model")
        }
        pub(crate) fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
            self.0.write().expect("a panic ends the model")
        }
        #[cfg(feature = "spill")]
        pub(crate) fn try_write(&self) -> Option<loom::sync::RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }
    }

    /// An unsynchronised load: an ordinary one directly before the store hides interleavings from loom 0.7.3, because a
    /// store depends on the last access of its word alone. It also reports a second writer.
    #[expect(unsafe_code, reason = "loom's unsynchronised load, in models only")]
    pub(crate) fn own_load(word: &AtomicUsize) -> usize {
        // SAFETY: loom itself checks that nobody else writes the word at the same time.
        unsafe { word.unsync_load() }
    }

    // A full fence is more than the processor does here: what relies on another fence of its own is checked without this
    // one (mutant `notify_without_fence`).
    pub(crate) fn light_fence() {
        if !["no_light_fence", "notify_without_fence", "crosser_unordered", "finish_relaxed"].into_iter().any(mutant) {
            fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn keep_apart() {}

    pub(crate) fn rmw_fence() {
        if !mutant("no_rmw_fence") {
            fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn prepare_process_barrier() -> bool {
        true
    }

    pub(crate) fn process_barrier() -> bool {
        if !mutant("no_process_barrier") {
            fence(Ordering::SeqCst);
        }
        true
    }
}

/// A place in a protocol that a model breaks on purpose, to show that it would notice. Always false outside of models.
#[cfg(not(all(test, loom)))]
#[inline(always)]
pub(crate) const fn mutant(_name: &str) -> bool {
    false
}
#[cfg(all(test, loom))]
pub(crate) use crate::tests::loom::mutant;
