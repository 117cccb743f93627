//! What the batches came to, and which failure is told.
//!
//! A build with one bad line tells that line whatever the threads do: the batch of an input error stops itself and what
//! comes after it, the batches before it go on, and of all failures the first in input order is told. So is the line that
//! brings one field too many: the fields of the batches are counted in input order, as far as all batches before are done.
//! Any other failure stops everything at once.
use crate::build::done::Done;
use crate::error::{Error, Result};
use crate::input::json::MOST_FIELDS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A place in the input: batch, file, offset.
pub(super) type Place = (u32, usize, u64);

/// A field, and where it was first seen in its batch.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) file: usize,
    pub(super) offset: u64,
}

#[derive(Debug, Default)]
struct Inner {
    failure: Option<(Place, Error)>,
    done: BTreeMap<u32, Done>,
    /// fields of batches that wait for one before them
    seen: BTreeMap<u32, Vec<Seen>>,
    /// the first batch whose fields are not counted yet
    next: u32,
    fields: BTreeSet<String>,
}

/// The common result of all threads.
#[derive(Debug)]
pub(super) struct Outcome {
    /// batches from this number on do not go on
    limit: AtomicU64,
    inner: Mutex<Inner>,
}

/// The signal of an error that only says: somebody else has failed.
const CANCELLED: i32 = 0;

impl Outcome {
    pub(super) fn new() -> Outcome {
        Outcome { limit: AtomicU64::new(u64::MAX), inner: Mutex::default() }
    }

    /// Whether a batch may go on. Relaxed: a batch that sees it late only does work that nobody needs.
    #[inline]
    pub(super) fn go_on(&self, number: u32) -> Result<()> {
        if u64::from(number) < self.limit.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(Error::Interrupted { signal: CANCELLED })
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch, or something else, has failed at `place`.
    pub(super) fn fail(&self, place: Place, error: Error) {
        self.fail_in(&mut self.lock(), place, error);
    }

    fn fail_in(&self, inner: &mut Inner, place: Place, error: Error) {
        if matches!(error, Error::Interrupted { signal: CANCELLED }) {
            return;
        }
        let in_order = |error: &Error| matches!(error, Error::Input { .. } | Error::Usage(_));
        if in_order(&error) {
            self.limit.fetch_min(u64::from(place.0), Ordering::Relaxed);
        } else {
            self.limit.store(0, Ordering::Relaxed);
        }
        let earlier = match &inner.failure {
            None => true,
            // the first failure that stops everything stays; of those in input order the first there
            Some((_, told)) if !in_order(told) => false,
            Some((at, _)) => !in_order(&error) || place < *at,
        };
        if earlier {
            inner.failure = Some((place, error));
        }
    }

    /// The fields of a batch that has ended, well or badly. `line` makes the error of a line at a place.
    pub(super) fn fields(&self, number: u32, seen: Vec<Seen>, line: impl Fn(&Seen) -> Error) {
        let mut inner = self.lock();
        inner.seen.insert(number, seen);
        while let Some(seen) = {
            let next = inner.next;
            inner.seen.remove(&next)
        } {
            let batch = inner.next;
            inner.next += 1;
            for field in seen {
                if inner.fields.contains(&field.name) {
                    continue;
                }
                if inner.fields.len() == MOST_FIELDS {
                    self.fail_in(&mut inner, (batch, field.file, field.offset), line(&field));
                    break;
                }
                inner.fields.insert(field.name);
            }
        }
    }

    /// A batch is done.
    pub(super) fn done(&self, done: Done) {
        self.lock().done.insert(done.number, done);
    }

    /// The failure, or all batches in order and all fields in byte order.
    pub(super) fn end(self) -> Result<(Vec<Done>, Vec<String>)> {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        match inner.failure {
            Some((_, error)) => Err(error),
            None => Ok((inner.done.into_values().collect(), inner.fields.into_iter().collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(line: u64) -> Error {
        Error::Input { path: "a".into(), line, why: "bad".to_owned() }
    }

    fn told(outcome: Outcome) -> String {
        outcome.end().unwrap_err().to_string()
    }

    #[test]
    fn of_bad_lines_the_first_in_input_order_is_told() {
        let outcome = Outcome::new();
        outcome.fail((5, 0, 900), input(50));
        assert!(outcome.go_on(5).is_err() && outcome.go_on(4).is_ok());
        outcome.fail((2, 0, 300), input(20));
        outcome.fail((4, 0, 700), input(40));
        outcome.fail((4, 0, 700), outcome.go_on(4).unwrap_err());
        assert!(outcome.go_on(2).is_err() && outcome.go_on(1).is_ok());
        assert_eq!(told(outcome), "a, line 20: bad");
    }

    #[test]
    fn what_stops_everything_is_told_before_bad_lines() {
        let outcome = Outcome::new();
        outcome.fail((5, 0, 900), input(50));
        outcome.fail((7, 0, 0), Error::Interrupted { signal: 15 });
        outcome.fail((0, 0, 0), Error::Failed("later".to_owned()));
        outcome.fail((1, 0, 0), input(1));
        assert!(outcome.go_on(0).is_err());
        assert_eq!(told(outcome), "terminated, temporary files removed");
    }

    #[test]
    fn fields_are_counted_in_input_order_whatever_the_threads_do() {
        let seen = |from: usize, to: usize| -> Vec<Seen> {
            (from..to).map(|name| Seen { name: format!("f{name}"), file: 0, offset: name as u64 }).collect()
        };
        let line = |seen: &Seen| input(seen.offset);
        let outcome = Outcome::new();
        outcome.fields(2, seen(1000, 1100), line);
        outcome.fields(1, seen(500, 1010), line);
        assert!(outcome.go_on(1).is_ok(), "batch 0 is not known");
        outcome.fields(0, seen(0, 600), line);
        assert!(outcome.go_on(1).is_ok() && outcome.go_on(2).is_err());
        assert_eq!(told(outcome), "a, line 1024: bad");
    }
}
