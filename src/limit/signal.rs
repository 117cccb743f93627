//! What the process and the machine say, as the decision sees it. Sources live elsewhere; the core knows this trait only.

use crate::sync::{AtomicUsize, Ordering};
use std::fmt;

/// Memory that the process or the machine is short of, in bytes. All zero is no pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Pressure {
    /// How far the system's available memory is below its water mark.
    pub system_short_bytes: usize,
    /// How far the process is above its soft limit.
    pub process_over_bytes: usize,
}

impl Pressure {
    /// Both terms; see the fields.
    pub fn new(system_short_bytes: usize, process_over_bytes: usize) -> Self {
        Pressure { system_short_bytes, process_over_bytes }
    }

    /// The deeper of the two: they overlap, so they are never added.
    pub fn deepest_bytes(&self) -> usize {
        self.system_short_bytes.max(self.process_over_bytes)
    }
}

/// Where [`Pressure`] comes from.
///
/// Asked at every change of an arena's block size, on the writer's thread and outside every lock of the limiter. It has
/// to answer with a value that is stored already: a few loads, no system call, no waiting. Whoever samples the machine
/// does so on a thread of its own and calls [`GlobalMemoryLimiter::poll`](crate::GlobalMemoryLimiter::poll) when a
/// change should not wait for the next block.
pub trait SignalSource: Send + Sync + fmt::Debug {
    /// The latest value.
    fn pressure(&self) -> Pressure;
}

/// A source that says what it was told: for tests, and for a process that has signals of its own.
///
/// Share it with an `Arc`: `Arc<ScriptedSignals>` is a source too. Both terms are written and read independently, with
/// relaxed ordering: a reader may see one of them changed and the other not yet.
#[derive(Debug, Default)]
pub struct ScriptedSignals {
    system_short_bytes: AtomicUsize,
    process_over_bytes: AtomicUsize,
}

impl ScriptedSignals {
    /// No pressure yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the source says from now on.
    pub fn set(&self, pressure: Pressure) {
        // Relaxed: numbers only, nothing is published through them.
        self.system_short_bytes.store(pressure.system_short_bytes, Ordering::Relaxed);
        self.process_over_bytes.store(pressure.process_over_bytes, Ordering::Relaxed);
    }
}

impl SignalSource for ScriptedSignals {
    fn pressure(&self) -> Pressure {
        Pressure::new(self.system_short_bytes.load(Ordering::Relaxed), self.process_over_bytes.load(Ordering::Relaxed))
    }
}

impl<S: SignalSource + ?Sized> SignalSource for std::sync::Arc<S> {
    fn pressure(&self) -> Pressure {
        (**self).pressure()
    }
}
