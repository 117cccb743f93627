//! One field of one batch while it is built: the writer, its meter, its runs; and how it ends up in the segment.
//!
//! A spill that was asked for is honoured after the document, and inside one when a block was added. A writer's cap is
//! looked at after the document that reached it. The merge reads the runs and what is still in memory.
use crate::accounting::{Account, Meter, Mode, Spilling, Why};
use crate::build::shared::Shared;
use crate::error::{Error, Result};
use crate::input::Batch;
use crate::run::{self, Source, Spills, Target};
use crate::segment::{FieldStats, SegmentWriter};
use crate::token::Term;
use crate::writer::{Decoder, Writer};
use std::sync::atomic::Ordering;

/// A field's writer and all that belongs to it.
pub(super) struct Field<M: Mode> {
    writer: Writer,
    pub(super) meter: M::Meter,
    spills: Spills,
    /// what the list of runs is charged with
    list_bytes: usize,
    batch: u32,
    /// a block was added since the cap was looked at
    grown: bool,
}

impl<M: Mode> Field<M> {
    /// The writer of field `number` in the batch.
    pub(super) fn new(shared: &Shared<'_, M>, batch: &Batch, number: usize, name: &str) -> Field<M> {
        let run_name = format!("b{:06}-f{number:04}", batch.number);
        Field {
            writer: Writer::new(shared.plan.block_bytes),
            meter: shared.mode.meter(&format!("b{}/{name}", batch.number)),
            spills: Spills::new(shared.spill.to_owned(), run_name),
            list_bytes: 0,
            batch: batch.number,
            grown: false,
        }
    }

    /// The next token.
    #[inline(always)]
    pub(super) fn token(&mut self, shared: &Shared<'_, M>, term: Term<'_>, document: u32, position: u32) -> Result<()> {
        if self.writer.add(&mut self.meter, term, document, position) { self.block_added(shared) } else { Ok(()) }
    }

    #[cold]
    fn block_added(&mut self, shared: &Shared<'_, M>) -> Result<()> {
        self.grown = true;
        if self.writer.is_full() {
            return self.spill(shared, Why::Own);
        }
        self.answer(shared)
    }

    /// Spills if the limiter asks for it. While less than a block is in use the request stays: where a budget is below
    /// what the writers need, runs would be of a term each otherwise, and free nothing that is not taken again at once.
    #[inline]
    pub(super) fn answer(&mut self, shared: &Shared<'_, M>) -> Result<()> {
        if self.meter.spill_requested() && self.writer.used_bytes() >= shared.plan.block_bytes {
            return self.spill(shared, Why::Asked);
        }
        Ok(())
    }

    /// What its merge will read, about.
    pub(super) fn written_bytes(&self) -> u64 {
        self.writer.used_bytes() as u64 + self.spills.runs().iter().map(|run| run.bytes).sum::<u64>()
    }

    /// After each document.
    #[inline]
    pub(super) fn document_done(&mut self, shared: &Shared<'_, M>) -> Result<()> {
        self.answer(shared)?;
        if self.grown {
            self.grown = false;
            if shared.plan.writer_cap_bytes.is_some_and(|cap| self.writer.held_bytes() >= cap) {
                return self.spill(shared, Why::Own);
            }
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self, shared: &Shared<'_, M>, why: Why) -> Result<()> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let Some(mut spilling) = self.meter.begin_spill(why) else { return Ok(()) };
        let path = self.spills.next_path();
        let mut poll = || shared.go_on(self.batch);
        let run = run::spill(&self.writer, &path, shared.plan.limits.block_bytes, &mut spilling, &mut poll)?;
        self.writer.clear();
        spilling.finish();
        let count = match why {
            Why::Asked => &shared.counts.forced_spills,
            Why::Own => &shared.counts.own_spills,
        };
        count.fetch_add(1, Ordering::Relaxed);
        shared.run_written(run.bytes);
        self.spills.push(run);
        self.settle_list();
        shared.admission.freed();
        Ok(())
    }

    fn settle_list(&mut self) {
        let (before, now) = (self.list_bytes, self.spills.allocated_bytes());
        if now > before {
            self.meter.account().charge(now - before);
        } else {
            self.meter.account().release(before - now);
        }
        self.list_bytes = now;
    }

    /// Merges everything into the open field of the segment, and frees it.
    pub(super) fn merge<P>(
        &mut self,
        shared: &Shared<'_, M>,
        segment: &mut IntoSegment<'_, M::Account>,
        poll: &mut P,
    ) -> Result<FieldStats>
    where
        P: FnMut() -> Result<()>,
    {
        let account = self.meter.account();
        let in_memory = usize::from(!self.writer.is_empty());
        let mut passes = u64::from(!self.spills.runs().is_empty());
        let mut changed = |written, removed| {
            shared.run_written(written);
            shared.runs_removed(removed);
        };
        passes += run::reduce(&mut self.spills, in_memory, shared.plan.limits, account, poll, &mut changed)?;
        shared.counts.merge_passes.fetch_add(passes, Ordering::Relaxed);
        let mut sources = Spills::open(self.spills.runs(), account)?;
        if in_memory > 0 {
            let order = self.writer.order(account);
            sources.push(Source::memory(&self.writer, order));
        }
        let merged = run::merge(&mut sources, segment, account, poll);
        run::release_all(sources, account);
        merged?;
        shared.runs_removed(self.spills.clear()?);
        self.settle_list();
        let documents = self.writer.documents_with_tokens();
        self.writer.clear();
        self.meter.set_arena(0);
        shared.admission.freed();
        segment.segment.end_field(documents)
    }
}

/// A segment as the target of a merge. What its writer holds is charged to the batch.
pub(super) struct IntoSegment<'a, A: Account> {
    pub(super) segment: SegmentWriter,
    decoder: Decoder,
    account: &'a mut A,
    /// charged as long as the segment is written
    expected: usize,
    charged: usize,
    /// terms since the charge was settled
    terms: u32,
    /// length of the last term, if it was long
    long: usize,
}

/// What a new segment's writer takes, about; most of it is ZSTD's context. Said before the first one is there to be asked.
const NEW_SEGMENT_BYTES: usize = 128 << 10;
/// What its buffers grow by at most: pages of postings, positions and terms, and a dictionary block in its three forms.
const GROWN_SEGMENT_BYTES: usize = 4 * (64 << 10);
/// Terms after which the segment's own account of its memory is looked at again.
const SETTLE_TERMS: u32 = 256;
/// A term of more bytes is looked at at once.
const LONG_TERM: usize = 1 << 10;
/// Copies of a long term that the segment's writer may make: the term before, the open block, its compressed form.
const LONG_COPIES: usize = 4;

impl<'a, A: Account> IntoSegment<'a, A> {
    /// Creates the segment's files. What its writer takes when it is new, and what its buffers may grow by when `written`
    /// bytes of terms and postings go through them, is charged before that.
    pub(super) fn create<M: Mode>(
        shared: &Shared<'_, M>,
        number: u32,
        written: u64,
        account: &'a mut A,
    ) -> Result<Self> {
        let new = match shared.counts.segment_bytes.load(Ordering::Relaxed) {
            0 => NEW_SEGMENT_BYTES,
            known => known,
        };
        let grown = usize::try_from(written.saturating_mul(2)).unwrap_or(usize::MAX).min(GROWN_SEGMENT_BYTES);
        let expected = new + grown;
        account.charge(expected);
        let created = SegmentWriter::create(shared.index, number);
        let segment = match created {
            Ok(segment) => segment,
            Err(error) => {
                account.release(expected);
                return Err(error);
            }
        };
        shared.counts.segment_bytes.store(segment.allocated_bytes(), Ordering::Relaxed);
        let mut into = IntoSegment {
            segment,
            decoder: Decoder::default(),
            account,
            expected,
            charged: expected,
            terms: 0,
            long: 0,
        };
        into.settle();
        Ok(into)
    }

    fn settle(&mut self) {
        let now = self.segment.allocated_bytes().max(self.expected);
        if now > self.charged {
            self.account.charge(now - self.charged);
        } else {
            self.account.release(self.charged - now);
        }
        self.charged = now;
        self.terms = 0;
    }

    /// Begins a term that is long, or follows one: the term is copied, and its block is compressed when the next one begins.
    /// What that may take is charged before, and settled after.
    #[cold]
    fn begin_long(&mut self, term: &[u8]) -> Result<()> {
        let most = LONG_COPIES * term.len().max(self.long);
        self.long = if term.len() > LONG_TERM { term.len() } else { 0 };
        self.account.charge(most);
        let begun = self.segment.begin_term(term);
        self.settle();
        self.account.release(most);
        begun
    }

    /// Finishes the segment's files and frees its writer.
    pub(super) fn finish(self, documents: u32) -> Result<Vec<crate::segment::SegmentFile>> {
        let most = LONG_COPIES * self.long;
        self.account.charge(most);
        let files = self.segment.finish(documents);
        self.account.release(self.charged + most);
        files
    }
}

impl<A: Account, B: Account> Target<B> for IntoSegment<'_, A> {
    #[inline]
    fn begin_term(&mut self, term: &[u8], account: &mut B) -> Result<()> {
        account.term_begins();
        if term.len() > LONG_TERM || self.long > 0 {
            return self.begin_long(term);
        }
        self.segment.begin_term(term)
    }

    #[inline]
    fn piece(&mut self, bytes: &[u8], last: bool, _: &mut B) -> Result<()> {
        let segment = &mut self.segment;
        self.decoder.feed::<Error>(bytes, |document, position| segment.occurrence(document, position))?;
        if last {
            self.decoder.end()?;
        }
        Ok(())
    }

    #[inline]
    fn end_term(&mut self, account: &mut B) -> Result<()> {
        self.segment.end_term()?;
        account.term_ends();
        self.terms += 1;
        if self.terms == SETTLE_TERMS {
            self.settle();
        }
        Ok(())
    }
}
