//! What the library and the build warn of, on stderr, a line each: `index-build: warning: ...`. Events below a warning
//! are not asked for, so they cost one load where they are raised.
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Mutex;

use indicatif::ProgressBar;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The bar that is on the terminal now, which a line must not be written across.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Names the bar that lines are written above; none when it is gone.
pub(super) fn show_above(bar: Option<ProgressBar>) {
    // a panic between lock and unlock cannot leave an Option half written
    *BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = bar;
}

/// From here on warnings are written, unless `quiet`. To be called once; later calls change nothing.
pub(super) fn listen(quiet: bool) {
    if !quiet {
        let _ = tracing::subscriber::set_global_default(Lines);
    }
}

struct Lines;

impl Lines {
    fn text(event: &Event<'_>) -> String {
        let mut line = Line::default();
        event.record(&mut line);
        match line.fields.as_str() {
            "" => format!("index-build: warning: {}", line.message),
            fields => format!("index-build: warning: {} ({fields})", line.message),
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1) // spans are not asked for, so this one is never looked at
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let text = Lines::text(event);
        let write = || {
            // a closed stderr is no reason to fail
            let _ = writeln!(std::io::stderr(), "{text}");
        };
        match &*BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// The message first, then the other fields in the order in which they were given.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // writing to a String cannot fail
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => {
                let comma = if self.fields.is_empty() { "" } else { ", " };
                write!(self.fields, "{comma}{name} {value:?}")
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the lines instead of writing them.
    struct Kept(std::sync::Arc<Mutex<Vec<String>>>);

    impl Subscriber for Kept {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            Lines.enabled(metadata)
        }
        fn new_span(&self, span: &Attributes<'_>) -> Id {
            Lines.new_span(span)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(Lines::text(event));
        }
    }

    #[test]
    fn a_warning_is_one_line_with_its_message_first_and_what_is_less_is_not_said() {
        let kept = std::sync::Arc::default();
        tracing::subscriber::with_default(Kept(std::sync::Arc::clone(&kept)), || {
            tracing::info!("not said");
            tracing::warn!(writer = "a\nb", bytes = 5, "{} too much", 3);
            tracing::error!("plain");
        });
        let lines = kept.lock().unwrap().clone();
        assert_eq!(
            lines,
            ["index-build: warning: 3 too much (writer \"a\\nb\", bytes 5)", "index-build: warning: plain"]
        );
    }
}
