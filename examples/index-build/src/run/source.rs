//! A source of terms in ascending order: a run, or what a writer still holds in memory.
use crate::accounting::Account;
use crate::writer::Writer;
use crate::writer::order::{Order, span};
use crate::writer::vocabulary::ALONE;
use plimsoll::spill::merge::{self, Target};
use plimsoll::spill::{RunReader, SpillError, SpillResult};

/// Where a merge takes terms from. Its key is the current term's first 8 bytes.
#[derive(Debug)]
pub struct Source<'a> {
    key: u64,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Run(Box<RunReader>),
    Memory { writer: &'a Writer, order: Order, next: usize, short: [u8; 8] },
}

/// Terms that are looked at ahead.
const AHEAD: usize = 16;

/// Reads from the records, bytes and postings of the terms that come next, so that the processor fetches them together
/// and not one after the other: in byte order they are all over the memory. The records are one round further ahead.
fn look_ahead(writer: &Writer, terms: &[(u64, u32)], from: usize) {
    let vocabulary = &writer.vocabulary;
    let round = |at: usize| terms.get(at.min(terms.len())..(at + AHEAD).min(terms.len())).unwrap_or_default();
    let mut seen = 0u32;
    for &(_, id) in round(from + AHEAD) {
        seen = seen.wrapping_add(vocabulary.record(id).tail);
    }
    for &(_, id) in round(from) {
        let record = vocabulary.record(id);
        seen = seen.wrapping_add(u32::from(vocabulary.touch(record)));
        if record.head != ALONE {
            seen = seen.wrapping_add(u32::from(writer.arena.touch(record.head)));
        }
    }
    std::hint::black_box(seen);
}

impl<'a> Source<'a> {
    /// A run, from its start.
    pub fn run(reader: RunReader) -> Source<'a> {
        Source { key: 0, kind: Kind::Run(Box::new(reader)) }
    }

    /// A writer's terms.
    pub fn memory(writer: &'a Writer, order: Order) -> Source<'a> {
        Source { key: 0, kind: Kind::Memory { writer, order, next: 0, short: [0; 8] } }
    }

    /// Frees what the source holds, and closes its file.
    pub fn release(self, account: &mut impl Account) {
        match self.kind {
            Kind::Run(reader) => reader.release(account),
            Kind::Memory { order, .. } => order.release(account),
        }
    }
}

/// Releases every source.
pub fn release_all<A: Account>(sources: Vec<Source<'_>>, account: &mut A) {
    for source in sources {
        source.release(account);
    }
}

impl<A: Account> merge::Source<A> for Source<'_> {
    #[inline]
    fn advance(&mut self, _: &mut A) -> SpillResult<bool> {
        match &mut self.kind {
            Kind::Run(reader) => {
                let more = reader.advance()?;
                self.key = reader.prefix();
                Ok(more)
            }
            Kind::Memory { writer, order, next, .. } => {
                let Some(&(key, _)) = order.terms().get(*next) else { return Ok(false) };
                if (*next).is_multiple_of(AHEAD) {
                    look_ahead(writer, order.terms(), *next);
                }
                self.key = key;
                *next += 1;
                Ok(true)
            }
        }
    }

    #[inline]
    fn prefix(&self) -> u64 {
        self.key
    }

    /// Puts a short term where [`merge::Source::key`] finds it.
    #[inline]
    fn settle(&mut self) {
        if let Kind::Memory { short, .. } = &mut self.kind {
            *short = self.key.to_be_bytes();
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match &self.kind {
            Kind::Run(reader) => reader.key(),
            Kind::Memory { writer, order, next, short } => {
                let record = writer.vocabulary.record(order.terms()[next - 1].1);
                writer.vocabulary.term_in(record, short)
            }
        }
    }

    #[inline]
    fn drain<T, E>(&mut self, target: &mut T, account: &mut A) -> Result<(), E>
    where
        T: Target<A>,
        E: From<SpillError> + From<T::Error>,
    {
        match &mut self.kind {
            Kind::Memory { writer, order, next, .. } => {
                let record = writer.vocabulary.record(order.terms()[*next - 1].1);
                span(&writer.arena, record, |piece, last| target.piece(piece, last, account))?;
                Ok(())
            }
            Kind::Run(reader) => merge::Source::drain(&mut **reader, target, account),
        }
    }
}
