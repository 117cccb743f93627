//! Several ways to the same content.

use super::source::{Flaw, Source};
use crate::spill::{SpillError, SpillResult};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use std::path::Path;

/// For so many requests a source whose system call failed is asked last, before it gets another chance to serve.
const REST: usize = 100;

/// Several sources of the same content, in the order in which they are asked. While the first one is healthy it serves
/// everything, and the others cost nothing. A request that fails on it, by an error or by a check, begins afresh on the
/// next one, and what it failed on is left out for the rest of this request; other requests go on undisturbed.
///
/// Every source is asked before a request fails. A source with a failed system call serves the next hundred requests only
/// if the others cannot, so that a dead disk is not asked each time; a wrong check-sum says nothing of other places.
#[derive(Debug)]
pub struct SourcedReader {
    first: Health,
    others: Vec<Health>,
    retried: AtomicU64,
}

#[derive(Debug)]
struct Health {
    source: Box<dyn Source>,
    /// Requests that do without it if they can.
    rests: AtomicUsize,
    failed: AtomicU64,
}

impl SourcedReader {
    /// One source.
    pub fn new(first: impl Source + 'static) -> SourcedReader {
        SourcedReader { first: Health::new(first), others: Vec::new(), retried: AtomicU64::new(0) }
    }

    /// Another one, to be asked after those that are there.
    #[must_use]
    pub fn or(mut self, other: impl Source + 'static) -> SourcedReader {
        self.others.push(Health::new(other));
        self
    }

    /// How many sources there are.
    pub fn sources(&self) -> usize {
        1 + self.others.len()
    }

    /// How many requests have failed on the source of this number, counted from 0; none if there is no such source.
    pub fn failed(&self, source: usize) -> Option<u64> {
        // Relaxed: a count only, nothing is published through it
        self.all().nth(source).map(|health| health.failed.load(Ordering::Relaxed))
    }

    /// How many requests were served by another source than the first one they asked.
    pub fn retried(&self) -> u64 {
        // Relaxed: as above
        self.retried.load(Ordering::Relaxed)
    }

    /// Fills `bytes` from `offset` on. May block.
    ///
    /// # Errors
    /// What the source says, if it is the only one; else [`SpillError::Sources`] with what was said first, after all have
    /// failed. `bytes` may hold anything then.
    #[inline]
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        self.serve(&mut |source| source.read_exact_at(bytes, offset))
    }

    /// Appends the `bytes` bytes from `offset` on to `out`. May block. See [`Source::append_at`].
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at), but `out` is as it was then, capacity aside.
    pub fn append_at(&self, out: &mut Vec<u8>, bytes: usize, offset: u64) -> SpillResult<()> {
        let start = out.len();
        self.serve(&mut |source| {
            let appended = source.append_at(out, bytes, offset);
            if appended.is_err() {
                out.truncate(start);
            }
            appended
        })
    }

    fn all(&self) -> impl Iterator<Item = &Health> {
        std::iter::once(&self.first).chain(&self.others)
    }

    #[inline]
    fn serve(&self, read: &mut dyn FnMut(&dyn Source) -> SpillResult<()>) -> SpillResult<()> {
        if self.first.is_healthy() {
            match read(&*self.first.source) {
                Ok(()) => Ok(()),
                Err(error) => self.serve_by_others(Some(error), read),
            }
        } else {
            self.serve_by_others(None, read)
        }
    }

    /// Asks those that do not rest, then those that do. `failed` is what the first one said, if it was asked.
    #[cold]
    fn serve_by_others(
        &self,
        failed: Option<SpillError>,
        read: &mut dyn FnMut(&dyn Source) -> SpillResult<()>,
    ) -> SpillResult<()> {
        // one bit each; from the 65th on they do not rest
        let mut resting = 0u64;
        let mut first_error = failed.inspect(|error| self.first.note(error));
        let skipped = usize::from(first_error.is_some());
        let mut ask = |health: &Health| match read(&*health.source) {
            Ok(()) => {
                if first_error.is_some() {
                    // Relaxed: a count only
                    self.retried.fetch_add(1, Ordering::Relaxed);
                }
                Some(Ok(()))
            }
            Err(error) => {
                health.note(&error);
                first_error.get_or_insert(error);
                None
            }
        };
        for (number, health) in self.all().enumerate().skip(skipped) {
            if number < u64::BITS as usize && health.rests() {
                resting |= 1 << number;
            } else if let Some(served) = ask(health) {
                return served;
            }
        }
        let resting = self.all().take(u64::BITS as usize).enumerate().filter(|(number, _)| resting >> number & 1 == 1);
        if let Some(served) = resting.map(|(_, health)| health).find_map(ask) {
            return served;
        }
        match first_error {
            Some(first) if !self.others.is_empty() => {
                Err(SpillError::Sources { sources: self.sources(), first: Box::new(first) })
            }
            Some(only) => Err(only),
            None => Ok(()),
        }
    }
}

impl Health {
    fn new(source: impl Source + 'static) -> Health {
        Health { source: Box::new(source), rests: AtomicUsize::new(0), failed: AtomicU64::new(0) }
    }

    #[inline]
    fn is_healthy(&self) -> bool {
        // Relaxed: a hint, which source to ask first
        self.rests.load(Ordering::Relaxed) == 0
    }

    /// Whether it rests, of which this is one request less.
    fn rests(&self) -> bool {
        // Relaxed: as above
        self.rests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rests| rests.checked_sub(1)).is_ok()
    }

    fn note(&self, error: &SpillError) {
        // Relaxed: a count and a hint
        self.failed.fetch_add(1, Ordering::Relaxed);
        if error.io_error().is_some() {
            self.rests.store(REST, Ordering::Relaxed);
        }
    }
}

impl Source for SourcedReader {
    #[inline]
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        SourcedReader::read_exact_at(self, bytes, offset)
    }

    fn name(&self) -> &Path {
        self.first.source.name()
    }

    #[inline]
    fn read_checked_at(
        &self,
        bytes: &mut [u8],
        offset: u64,
        check: &dyn Fn(&[u8]) -> Result<(), Flaw>,
    ) -> SpillResult<()> {
        self.serve(&mut |source| source.read_checked_at(bytes, offset, check))
    }

    fn append_at(&self, out: &mut Vec<u8>, bytes: usize, offset: u64) -> SpillResult<()> {
        SourcedReader::append_at(self, out, bytes, offset)
    }
}
