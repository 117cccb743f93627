//! What the tests share: a limiter as the scenarios of the bug log want it, and a reader of `tracing` events.
#![allow(dead_code, reason = "every test file uses a part of it")]

use plimsoll::{ArenaHandle, LimiterBuilder, MIB, Reporter};
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;
use tracing::Level;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The quantum fixed at 1 MiB and a floor of one block, here 1 KiB.
pub(crate) fn fixed() -> LimiterBuilder {
    listen();
    plimsoll::GlobalMemoryLimiter::builder().quantum_bytes(MIB).block_bytes(1_024).floor_bytes(1_024)
}

/// Honours a request as an owner does; answers the bytes of the run.
pub(crate) fn spill_if_asked(arena: &mut ArenaHandle, reporter: &Reporter) -> Option<usize> {
    let spill = arena.begin_spill(reporter)?;
    let bytes = spill.bytes();
    spill.finish(0);
    Some(bytes)
}

/// A small generator of the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// One event: its level, and its message followed by ` name=value` for each field.
pub(crate) type Event = (Level, String);

/// Collects the events of this thread while `run` runs.
///
/// One subscriber for the whole process: with one for each thread, `tracing` may remember a place in the code as of no
/// interest because the first thread that passed it had none.
pub(crate) fn events_of(run: impl FnOnce()) -> Vec<Event> {
    listen();
    EVENTS.with_borrow_mut(Vec::clear);
    run();
    EVENTS.take()
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(Events);
        tracing::subscriber::set_global_default(subscriber).expect("nobody else sets one");
    });
}

/// How many events of `level` contain `text`.
pub(crate) fn count(events: &[Event], level: Level, text: &str) -> usize {
    events.iter().filter(|(at, event)| *at == level && event.contains(text)).count()
}

thread_local! {
    static EVENTS: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

struct Events;

impl<S: tracing::Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "plimsoll" {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let text = line.message + &line.fields;
        EVENTS.with_borrow_mut(|events| events.push((*event.metadata().level(), text)));
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl tracing::field::Visit for Line {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        let written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
        assert_eq!(written, Ok(()), "a string takes everything");
    }
}
