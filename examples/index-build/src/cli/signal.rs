//! Ctrl-C and SIGTERM: a thread takes them from the system and hands the first one on; nothing runs in a signal handler.
//!
//! A command that has something to clean up is asked to stop and says itself when it has done so, so a second signal
//! changes nothing. A command that only reads ends at once. Either way the exit code is 128 + signal. Where there are no
//! such signals the system's own way of ending a process stays.
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Who is told of a signal.
pub(super) trait Stop: Send + Sync + 'static {
    /// The word that the work polls: 0, or the signal that asks it to stop.
    fn word(&self) -> &AtomicI32;
}

impl Stop for AtomicI32 {
    fn word(&self) -> &AtomicI32 {
        self
    }
}

impl Stop for crate::build::Watch {
    fn word(&self) -> &AtomicI32 {
        &self.signal
    }
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    #[cfg(unix)]
    running: Option<(signal_hook::iterator::Handle, std::thread::JoinHandle<()>)>,
}

impl Listener {
    /// The first signal is stored in the word of `work`, which cleans up and ends.
    pub(super) fn asking<S: Stop>(work: &Arc<S>) -> Listener {
        let work = Arc::clone(work);
        Listener::start(move |signal| {
            // Relaxed: a number alone; the first one stays, so that the exit code names what came first
            let _ = work.word().compare_exchange(0, signal, Relaxed, Relaxed);
        })
    }

    /// The first signal ends the process: for work that leaves nothing behind.
    pub(super) fn ending() -> Listener {
        Listener::start(|signal| std::process::exit(128 + signal))
    }

    #[cfg(unix)]
    fn start(act: impl Fn(i32) + Send + 'static) -> Listener {
        use signal_hook::consts::{SIGINT, SIGTERM};
        // where signals or a thread cannot be had, the system's own way of ending a process stays
        let running = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).ok().and_then(|mut signals| {
            let handle = signals.handle();
            let listen = move || signals.forever().for_each(act);
            let thread = std::thread::Builder::new().name("index-build-signals".to_owned()).spawn(listen).ok()?;
            Some((handle, thread))
        });
        Listener { running }
    }

    #[cfg(not(unix))]
    fn start(_act: impl Fn(i32) + Send + 'static) -> Listener {
        Listener {}
    }
}

#[cfg(unix)]
impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.running.take() {
            handle.close();
            let _ = thread.join(); // it cannot panic, and nothing would follow from it
        }
    }
}
