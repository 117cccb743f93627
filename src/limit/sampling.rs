//! Asking the signal source: on the thread of whoever notifies, never by the decider, and not from within itself.

use super::core::Core;
use crate::sync::Ordering;
use std::cell::Cell;

thread_local! {
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// This thread is asking a signal source.
struct Asking;

impl Asking {
    /// None if it is doing so already: a source may change accounts, which notifies.
    fn begin() -> Option<Asking> {
        (!ASKING.replace(true)).then_some(Asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.set(false);
    }
}

impl Core {
    /// Asks the source, on the notifier's thread and not from within itself; the decider works with what was stored last,
    /// so that a source which itself notifies cannot keep it going for ever.
    pub(crate) fn sample(&self) {
        if let Some(source) = self.signals.get()
            && let Some(_asking) = Asking::begin()
        {
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.pressure()));
            let Ok(pressure) = answer else {
                // What it said last stands.
                return self.telemetry.user_code_panicked("signal source");
            };
            self.decider.system_short.store(pressure.system_short_bytes, Ordering::Relaxed);
            self.decider.process_over.store(pressure.process_over_bytes, Ordering::Relaxed);
        }
    }
}
