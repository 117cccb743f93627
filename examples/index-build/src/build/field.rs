//! One field of one batch while it is built: the writer, its meter, its runs; and how it ends up in the segment.
//!
//! A spill that was asked for is honoured after the document, and inside one when a block was added. A writer's cap is
//! looked at after the document that reached it. The merge reads the runs and what is still in memory.
use crate::accounting::{ENCODER_STEPS, Meter, Mode, Spilling, Why};
use crate::build::into_segment::{IntoSegment, LONG_COPIES, LONG_TERM};
use crate::build::shared::Shared;
use crate::error::Result;
use crate::input::Batch;
use crate::run::{self, Beside, Source};
use crate::segment::FieldStats;
use crate::token::{Counted, Term};
use crate::writer::Writer;
use plimsoll::spill::merge::{MergeLimits, heap_bytes, merge, open_reduced};
use plimsoll::spill::run::key_buffer_bytes;
use plimsoll::spill::{Run, RunReader, RunWriter, Spool};
use std::sync::atomic::Ordering;

/// A field's writer and all that belongs to it.
pub(super) struct Field<M: Mode> {
    writer: Writer,
    pub(super) meter: M::Meter,
    spool: Spool,
    /// what the build was told that the spool has on disk
    disk_bytes: u64,
    batch: u32,
    /// a block was added since the cap was looked at
    grown: bool,
}

impl<M: Mode> Field<M> {
    /// The writer of field `number` in the batch.
    pub(super) fn new(
        shared: &Shared<'_, M>,
        batch: &Batch,
        number: usize,
        name: &str,
        account: &M::Account,
    ) -> Field<M> {
        let run_name = format!("b{:06}-f{number:04}", batch.number);
        Field {
            writer: Writer::new(shared.plan.block_bytes),
            meter: shared.mode.meter(&format!("b{}/{name}", batch.number), account),
            spool: Spool::new(shared.spill, &run_name),
            disk_bytes: 0,
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
            return self.spill(shared, Why::Own, true);
        }
        // under a hard limit what the document needs is leased, and a spill would give it back
        if M::HARD { Ok(()) } else { self.answer(shared) }
    }

    /// Spills if the limiter asks for it. While less than a block is in use the request stays: where a budget is below
    /// what the writers need, runs would be of a term each otherwise, and free nothing that is not taken again at once.
    #[inline]
    pub(super) fn answer(&mut self, shared: &Shared<'_, M>) -> Result<()> {
        if self.meter.spill_requested() && self.writer.used_bytes() >= shared.plan.block_bytes {
            return self.spill(shared, Why::Asked, false);
        }
        Ok(())
    }

    /// What its merge will read, about.
    pub(super) fn written_bytes(&self) -> u64 {
        self.writer.used_bytes() as u64 + self.spool.runs().map(Run::bytes).sum::<u64>()
    }

    /// After each document.
    #[inline]
    pub(super) fn document_done(&mut self, shared: &Shared<'_, M>) -> Result<()> {
        self.answer(shared)?;
        if self.grown {
            self.grown = false;
            if shared.plan.writer_cap_bytes.is_some_and(|cap| self.writer.held_bytes() >= cap) {
                return self.spill(shared, Why::Own, false);
            }
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self, shared: &Shared<'_, M>, why: Why, inside: bool) -> Result<()> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let Some(mut spilling) = self.meter.begin_spill(why) else { return Ok(()) };
        let (block_bytes, batch) = (shared.plan.limits.block_bytes, self.batch);
        let run = run::spill(&self.writer, &mut self.spool, block_bytes, &mut spilling, || shared.go_on(batch))?;
        self.writer.clear();
        if inside {
            spilling.finish_inside()
        } else {
            spilling.finish()
        }
        let count = match why {
            Why::Asked => &shared.counts.forced_spills,
            Why::Own => &shared.counts.own_spills,
        };
        count.fetch_add(1, Ordering::Relaxed);
        shared.run_written(run.bytes());
        shared.on_disk(&mut self.disk_bytes, self.spool.disk_bytes());
        shared.freed();
        Ok(())
    }

    /// Spills what there is and gives back what is leased.
    pub(super) fn rest(&mut self, shared: &Shared<'_, M>) -> Result<()> {
        self.spill(shared, Why::Own, false)?;
        self.trim_lease();
        Ok(())
    }

    /// Gives back what is leased and not used.
    pub(super) fn trim_lease(&mut self) {
        self.meter.trim_lease(self.writer.held_bytes());
    }

    /// What the text of a document makes of the writer at most, and what is charged besides on the way.
    pub(super) fn most_bytes(&self, text: &Counted, document: u32) -> (usize, usize) {
        self.writer.most_bytes(text, document)
    }

    /// What a spill takes after a text: the order of the terms, a copy of the longest.
    pub(super) fn spill_bytes(&self, text: &Counted) -> usize {
        self.writer.order_bytes(text.tokens) + key_buffer_bytes(self.writer.longest().max(text.longest))
    }

    /// What the list of runs grows by with the next one.
    pub(super) fn list_growth_bytes(&self) -> usize {
        self.spool.growth_bytes()
    }

    /// What a merge of so many sources at once takes, that of runs before it included. The segment's own part is what a long
    /// term takes there.
    pub(super) fn merge_bytes(&self, limits: MergeLimits) -> usize {
        let all = self.spool.len() + usize::from(!self.writer.is_empty());
        let (sources, passes) = (limits.fan_in.max(2).min(all), all > limits.fan_in);
        let runs = self.spool.runs().map(Run::longest_key_bytes).max().unwrap_or(0);
        let longest = runs.max(self.writer.longest());
        // the segment's writer charges its copies while it has others
        let segment = if longest > LONG_TERM { 3 * LONG_COPIES * longest } else { 0 };
        let reader = RunReader::most_bytes(limits.block_bytes, runs);
        let run = RunWriter::most_bytes(limits.block_bytes, runs) + self.spool.pass_growth_bytes();
        let lists = heap_bytes(sources) + ENCODER_STEPS.iter().sum::<usize>();
        sources * reader + lists + segment + self.writer.order_bytes(0) + if passes { run } else { 0 }
    }

    /// Merges everything into the open field of the segment, and frees it.
    pub(super) fn merge<P>(
        &mut self,
        shared: &Shared<'_, M>,
        limits: MergeLimits,
        segment: &mut IntoSegment<'_, '_, '_, M>,
        poll: &mut P,
    ) -> Result<FieldStats>
    where
        P: FnMut() -> Result<()>,
    {
        let account = self.meter.account();
        let in_memory = usize::from(!self.writer.is_empty());
        let told = &mut self.disk_bytes;
        let merged = |written, disk| {
            shared.run_written(written);
            shared.on_disk(told, disk);
        };
        let mut beside = Beside::new(poll, merged);
        let (readers, passes) = open_reduced(&mut self.spool, in_memory, limits, account, &mut beside)?;
        shared.counts.merge_passes.fetch_add(passes, Ordering::Relaxed);
        let mut sources: Vec<Source<'_>> = readers.into_iter().map(Source::run).collect();
        if in_memory > 0 {
            let order = self.writer.order(account);
            sources.push(Source::memory(&self.writer, order));
        }
        let merged = merge(&mut sources, segment, account, &mut beside);
        run::release_all(sources, account);
        merged?;
        self.spool.clear(account)?;
        shared.on_disk(&mut self.disk_bytes, self.spool.disk_bytes());
        let documents = self.writer.documents_with_tokens();
        self.writer.clear();
        self.meter.set_arena(0);
        shared.freed();
        segment.segment.end_field(documents)
    }
}
