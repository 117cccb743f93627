//! What a batch asks for under a hard limit, step by step, and what it says if that cannot be had.
use crate::accounting::{Account, Mode};
use crate::build::batch::{Building, bad_line};
use crate::build::field::Field;
use crate::build::hard::option;
use crate::build::into_segment::IntoSegment;
use crate::build::room::{Attempt, Never, Stand, document, more, spill_bytes};
use crate::error::{Error, Result};
use crate::input::{Lines, line_end};
use crate::token::Tokenizer;
use plimsoll::Bytes;
use plimsoll::spill::merge::MergeLimits;
use plimsoll::spill::run::key_buffer_bytes;
use std::sync::PoisonError;

impl<M: Mode> Building<'_, '_, M> {
    /// Asks as [`Stand::ask`] does; a mode that never refuses has no turns.
    fn ask(
        &mut self,
        first: bool,
        attempt: impl FnMut(&mut M::Account, &mut [Field<M>]) -> Attempt,
    ) -> Result<std::result::Result<(), Never>> {
        let Building { shared, batch, turn, account, fields, .. } = self;
        let Some(turn) = turn else { return Ok(Ok(())) };
        Stand { shared: *shared, number: batch.number, turn, account, fields }.ask(first, attempt)
    }

    /// Why `what` cannot be had.
    fn refusal(&self, what: &str, never: Never) -> String {
        let Some(turn) = &self.turn else { return String::new() };
        turn.hard.refusal(what, never.total_bytes, turn.fixed_bytes, never.holders)
    }

    fn failure(&self, what: &str, never: Never) -> Error {
        Error::Failed(self.refusal(&format!("batch {}, {what}", self.batch.number), never))
    }

    /// Whether what is charged would be more than the fixed part with these bytes, and with what the lists of runs grow by
    /// when the batch spills before it waits: they stay while it does.
    fn beyond_fixed(&self, bytes: usize) -> bool {
        let Some(turn) = &self.turn else { return false };
        let lists: usize = self.fields.iter().map(Field::list_growth_bytes).sum();
        self.account.charged_bytes() + lists + bytes > turn.fixed_bytes
    }

    /// The fixed part.
    pub(super) fn take_fixed(&mut self) -> Result<()> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let fixed = turn.fixed_bytes;
        let kept = spill_bytes::<M>(&[], turn.hard.run_block_bytes);
        let taken =
            self.ask(
                false,
                |account: &mut M::Account, _: &mut [Field<M>]| {
                    if account.room(fixed) && account.keep(kept) { Ok(()) } else { Err((fixed, 0)) }
                },
            )?;
        self.account.bound(fixed);
        taken.map_err(|never| self.failure("its fixed part", never))
    }

    /// A field that is seen for the first time.
    pub(super) fn room_for_field(&mut self, bytes: usize) -> Result<()> {
        if let Some(turn) = &mut self.turn {
            let fixed = turn.hard.fixed_bytes(self.fields.len() + 1);
            if fixed > turn.fixed_bytes {
                turn.raise(fixed);
                if !turn.first {
                    self.account.bound(turn.fixed_bytes);
                }
            }
        }
        self.room_for_buffer(bytes, "its fields")
    }

    /// What parsing the line at hand takes.
    pub(super) fn room_for_parser(&mut self, bytes: usize) -> Result<()> {
        self.room_for_buffer(bytes, "parsing the line")
    }

    /// What to ask for when work was refused `bytes` and will be tried again: what it was refused before as well, unless it
    /// has got on since. So it asks for more each time, and ends.
    pub(super) fn asked_again(&self, bytes: usize, last: &mut Option<(usize, usize)>) -> usize {
        let charged = self.account.charged_bytes();
        let before = last.filter(|&(then, _)| then >= charged).map_or(0, |(_, asked)| asked);
        let asked = before.saturating_add(bytes);
        *last = Some((charged, asked));
        asked
    }

    fn room_for_buffer(&mut self, bytes: usize, what: &str) -> Result<()> {
        self.shared.go_on(self.batch.number)?;
        self.account.allow(0);
        let asked = self.ask(self.beyond_fixed(bytes), more::<M>(bytes))?;
        asked.map_err(|never| bad_line(self.shared, self.place.1, self.place.2, self.refusal(what, never)))
    }

    /// The buffer of a line that is longer than it. How long the line is is looked up when it first grows, so that one that
    /// can never be read is an error before others have to make room for its beginning.
    pub(super) fn room_for_line(&mut self, bytes: usize, lines: &Lines) -> Result<()> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let (hard, fixed) = (turn.hard, turn.fixed_bytes);
        let (file, offset, left) = lines.place();
        self.place = (self.batch.number, file, offset);
        if !turn.first {
            let length = line_end(&self.shared.plan.inputs.files[file].path, offset, offset + left)? - offset;
            let grown = |block: usize| {
                let doubled = std::iter::successors(Some(block), |buffer| buffer.checked_mul(2));
                doubled.take_while(|&buffer| (buffer as u64) < length).last().map_or(0, |buffer| 2 * buffer - block)
            };
            let had = lines.allocated_bytes();
            if self.account.charged_bytes().saturating_add(grown(had)) > hard.most_bytes(fixed) {
                let why = format!(
                    "the line is {} long, and a buffer for it alone needs a --hard-limit of at least {}",
                    Bytes(length as usize),
                    option(hard.minimum_for(fixed, |hard| grown(hard.input_block_bytes)))
                );
                return Err(bad_line(self.shared, file, offset, why));
            }
        }
        self.room_for_buffer(bytes, "the line")
    }

    /// The line at hand adds nothing: what its parser may have taken is not spoken for any more, as it is after a document.
    pub(super) fn nothing_added(&mut self) {
        if let Some(turn) = &self.turn {
            self.account.keep(spill_bytes(&self.fields, turn.hard.run_block_bytes));
        }
    }

    /// All that the document in `texts` can take, and the spill after it.
    pub(super) fn room_for_document(&mut self, tokenizer: &Tokenizer) -> Result<()> {
        if let Some(turn) = &mut self.turn
            && turn.first
            && self.account.charged_bytes() <= turn.fixed_bytes
        {
            // the long line before is done
            turn.leave_first();
            self.account.bound(turn.fixed_bytes);
            self.account.trim(turn.fixed_bytes);
        }
        let longest = self.texts.iter().map(|(_, text)| text.longest).max().unwrap_or(0);
        let scratch = key_buffer_bytes(longest).saturating_sub(tokenizer.allocated_bytes());
        let texts = std::mem::take(&mut self.texts);
        let limits = (self.shared.plan.block_bytes, self.shared.plan.limits.block_bytes);
        let first = self.beyond_fixed(scratch);
        let asked = self.ask(first, document::<M>(&texts, self.documents, scratch, limits))?;
        self.texts = texts;
        let never = match (asked, &self.turn) {
            (Err(never), _) => ("the document", never),
            (Ok(()), Some(turn)) => {
                // told now, and not when the whole batch was read
                let total_bytes = turn.fixed_bytes + turn.hard.long_term_bytes(longest);
                if total_bytes <= turn.hard.most_bytes(turn.fixed_bytes) {
                    return Ok(());
                }
                ("the document's longest term", Never { total_bytes, holders: None })
            }
            (Ok(()), None) => return Ok(()),
        };
        Err(bad_line(self.shared, self.place.1, self.place.2, self.refusal(never.0, never.1)))
    }

    /// A segment's writer.
    pub(super) fn room_for_segment(&mut self, bytes: usize) -> Result<()> {
        // from here on nothing is read any more
        self.account.bound(usize::MAX);
        if let Some(turn) = &mut self.turn {
            turn.leave_first();
        }
        let asked = self.ask(false, more::<M>(bytes))?;
        asked.map_err(|never| self.failure("its segment", never))
    }

    /// What the finished batch takes until the index is published.
    pub(super) fn keep_done(&mut self, bytes: usize) -> Result<()> {
        let shared = self.shared;
        let asked = self.ask(false, |_: &mut M::Account, _: &mut [Field<M>]| {
            let mut kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.room(bytes) { Ok(()) } else { Err((bytes, 0)) }
        })?;
        asked.map_err(|never| self.failure("its place in the index", never))
    }
}

impl<M: Mode> IntoSegment<'_, '_, '_, M> {
    /// What the merge of the first of `fields` takes, and the spills of those behind it; fewer sources at once where there
    /// is no room for more.
    pub(super) fn room_for_merge(&mut self, name: &str, fields: &mut [Field<M>]) -> Result<MergeLimits> {
        let (shared, number) = (self.shared, self.number);
        let Some(turn) = self.turn.as_deref_mut() else { return Ok(shared.plan.limits) };
        let fixed = turn.fixed_bytes;
        let (hard, run_block_bytes) = (turn.hard, turn.hard.run_block_bytes);
        let mut granted = shared.plan.limits;
        let mut stand = Stand { shared, number, turn, account: self.account, fields };
        let asked = stand.ask(false, |account, fields| {
            let Some((field, behind)) = fields.split_first() else { return Ok(()) };
            let mut limits = shared.plan.limits;
            loop {
                let bytes = field.merge_bytes(limits);
                if account.keep(spill_bytes(behind, run_block_bytes)) && account.room(bytes) {
                    granted = limits;
                    account.trim(fixed);
                    return Ok(());
                }
                if limits.fan_in <= 2 {
                    // as it was: a spill of all of them comes next
                    account.keep(spill_bytes(fields, run_block_bytes));
                    return Err((account.charged_bytes() + bytes, 0));
                }
                limits.fan_in = (limits.fan_in / 2).max(2);
            }
        })?;
        asked.map_err(|Never { total_bytes, holders }| {
            let what = format!("batch {number}, the merge of field {name}");
            Error::Failed(hard.refusal(&what, total_bytes, fixed, holders))
        })?;
        Ok(granted)
    }
}
