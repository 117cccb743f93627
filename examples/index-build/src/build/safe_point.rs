//! What a batch asks for under a hard limit, step by step, and what it says if that cannot be had.
use crate::accounting::{Account, Mode};
use crate::build::batch::{Building, bad_line};
use crate::build::field::Field;
use crate::build::hard::option;
use crate::build::into_segment::IntoSegment;
use crate::build::room::{Attempt, Never, Stand, document, more, spill_bytes};
use crate::error::{Error, Result};
use crate::input::{Lines, line_end};
use crate::run::Limits;
use crate::run::write::last_bytes;
use crate::token::Tokenizer;
use plimsoll::Bytes;
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

    /// Whether what is charged would be more than the fixed part with these bytes: they stay while the batch waits.
    fn beyond_fixed(&self, bytes: usize) -> bool {
        self.turn.as_ref().is_some_and(|turn| self.account.charged_bytes() + bytes > turn.fixed_bytes)
    }

    /// The fixed part.
    pub(super) fn take_fixed(&mut self) -> Result<()> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let fixed = turn.fixed_bytes;
        let kept = spill_bytes::<M>(&[], turn.hard.run_block_bytes);
        let taken = self.ask(
            false,
            |account: &mut M::Account, _: &mut [Field<M>]| {
                if account.room(fixed) && account.keep(kept) { Ok(()) } else { Err(fixed) }
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

    fn room_for_buffer(&mut self, bytes: usize, what: &str) -> Result<()> {
        let asked = self.ask(self.beyond_fixed(bytes), more::<M>(bytes))?;
        asked.map_err(|never| bad_line(self.shared, self.place.1, self.place.2, self.refusal(what, never)))
    }

    /// The buffer of a line that is longer than it.
    pub(super) fn room_for_line(&mut self, bytes: usize, lines: &Lines) -> Result<()> {
        let Err(never) = self.ask(self.beyond_fixed(bytes), more::<M>(bytes))? else { return Ok(()) };
        let (file, offset, left) = lines.place();
        let path = &self.shared.plan.inputs.files[file].path;
        let length = line_end(path, offset, offset + left)? - offset;
        let mut buffer = lines.allocated_bytes();
        while (buffer as u64) < length {
            buffer *= 2;
        }
        let why = match (&self.turn, &never.holders) {
            (Some(turn), None) => format!(
                "the line is {} long, and a buffer for it alone needs a --hard-limit of at least {}",
                Bytes(length as usize),
                option(turn.hard.minimum_for(turn.fixed_bytes + buffer, turn.fixed_bytes))
            ),
            _ => self.refusal("the line", never),
        };
        self.place = (self.batch.number, file, offset);
        Err(bad_line(self.shared, file, offset, why))
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
        let scratch = last_bytes(longest).saturating_sub(tokenizer.allocated_bytes());
        let texts = std::mem::take(&mut self.texts);
        let limits = (self.shared.plan.block_bytes, self.shared.plan.limits.block_bytes);
        let first = self.beyond_fixed(scratch);
        let asked = self.ask(first, document::<M>(&texts, self.documents, scratch, limits))?;
        self.texts = texts;
        asked.map_err(|never| {
            let why = self.refusal("the document", never);
            bad_line(self.shared, self.place.1, self.place.2, why)
        })
    }

    /// A segment's writer.
    pub(super) fn room_for_segment(&mut self, bytes: usize) -> Result<()> {
        // from here on nothing is read any more
        self.account.bound(usize::MAX);
        let asked = self.ask(false, more::<M>(bytes))?;
        asked.map_err(|never| self.failure("its segment", never))
    }

    /// What the finished batch takes until the index is published.
    pub(super) fn keep_done(&mut self, bytes: usize) -> Result<()> {
        let shared = self.shared;
        let asked = self.ask(false, |_: &mut M::Account, _: &mut [Field<M>]| {
            let mut kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.room(bytes) { Ok(()) } else { Err(bytes) }
        })?;
        asked.map_err(|never| self.failure("its place in the index", never))
    }
}

impl<M: Mode> IntoSegment<'_, '_, '_, M> {
    /// What the merge of the first of `fields` takes, and the spills of those behind it; fewer sources at once where there
    /// is no room for more.
    pub(super) fn room_for_merge(&mut self, name: &str, fields: &mut [Field<M>]) -> Result<Limits> {
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
                    return Err(account.charged_bytes() + bytes);
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
