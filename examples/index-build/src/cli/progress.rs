//! A progress bar on stderr, if that is a terminal and nobody asked for quiet; else nothing is written and no thread
//! runs. The bar reads the counters of the work ten times a second, so the work knows nothing of it.
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::warning;

/// What the bar shows at one instant.
#[derive(Debug)]
pub(super) struct Step {
    /// Bytes done, and all that there are; 0 while that is not known. None where the work is not measured in bytes.
    pub(super) bytes: Option<(u64, u64)>,
    pub(super) note: String,
}

/// A running bar; it is wiped when this is dropped.
#[derive(Debug)]
pub(super) struct Progress {
    running: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Progress {
    pub(super) fn start(quiet: bool, step: impl Fn() -> Step + Send + 'static) -> Progress {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress { running: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(match step().bytes {
            Some(_) => style(
                "{elapsed_precise} [{bar:32}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}  {msg}",
            ),
            None => style("{elapsed_precise}  {msg}"),
        });
        warning::show_above(Some(bar.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let draw = move || {
            // Relaxed: a wish alone; the join in drop is what orders
            while !stopped.load(Relaxed) {
                let step = step();
                if let Some((done, total)) = step.bytes {
                    bar.set_length(total.max(done));
                    bar.set_position(done);
                }
                bar.set_message(step.note);
                std::thread::park_timeout(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        };
        let thread = std::thread::Builder::new().name("index-build-progress".to_owned()).spawn(draw);
        Progress { running: thread.ok().map(|thread| (stop, thread)) }
    }
}

/// A template that is not understood costs its looks, not the work.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            stop.store(true, Relaxed);
            thread.thread().unpark();
            let _ = thread.join(); // a bar that panicked is no reason to fail
            warning::show_above(None);
        }
    }
}
