//! One account as the model has it.

use plimsoll::{ArenaHandle, Reporter, Reservation, SharedReporter};

/// The end of every arena's address space.
pub(crate) const ARENA_END: usize = 100_000;

/// Its reporter may be gone before what it has charged.
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) reporter: Option<Reporter>,
    pub(crate) shared: Option<SharedReporter>,
    pub(crate) cap: usize,
    /// Its own, so that it does not follow the limiter's.
    pub(crate) own_cap: bool,
    pub(crate) charged: usize,
    pub(crate) held: Vec<Reservation>,
    /// What each reservation should say.
    pub(crate) bytes: Vec<usize>,
    pub(crate) arenas: Vec<(ArenaHandle, usize)>,
}

impl Writer {
    pub(crate) fn total(&self) -> usize {
        self.charged + self.bytes.iter().sum::<usize>() + self.arenas.iter().map(|arena| arena.1).sum::<usize>()
    }

    /// Whether the reserve is for it.
    pub(crate) fn is_apart(&self) -> bool {
        self.arenas.is_empty()
    }

    pub(crate) fn push(&mut self, reservation: Reservation, bytes: usize) {
        self.held.push(reservation);
        self.bytes.push(bytes);
    }

    pub(crate) fn pop(&mut self, which: usize) -> (Reservation, usize) {
        (self.held.swap_remove(which), self.bytes.swap_remove(which))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.reporter.is_none() && self.shared.is_none() && self.held.is_empty() && self.arenas.is_empty()
    }
}

/// The reporter in either form; `$body` is compiled for both. None if it is gone.
macro_rules! with_account {
    ($writer:expr, |$account:ident| $body:expr) => {
        match (&$writer.reporter, &$writer.shared) {
            (Some($account), _) => Some($body),
            (None, Some($account)) => Some($body),
            (None, None) => None,
        }
    };
}
pub(crate) use with_account;

/// Runs `work` on another thread and waits for it.
pub(crate) fn elsewhere<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(work).join().expect("no panic there")
}
