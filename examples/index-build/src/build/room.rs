//! Under a hard limit: where a batch asks for room, and what it gives back before it waits.
//!
//! Between documents, and between the fields of a merge, it asks for all that the next step can take at most: the lease of
//! each field, the work of the largest spill afterwards (which is kept, so that this spill is never refused), buffers. If
//! that is refused, it spills what it has and asks again; then it waits its turn ([`super::turns`]). In the middle of a
//! document nothing is asked, and nothing can be refused.
use crate::accounting::{Account, ENCODER_STEPS, Meter, Mode};
use crate::build::field::Field;
use crate::build::shared::Shared;
use crate::build::turns::{Turn, Waited};
use crate::error::Result;
use crate::token::Counted;
use plimsoll::Bytes;
use plimsoll::spill::RunWriter;

/// A part of a lease that is not needed is given back when it is this many blocks, and a quarter of the need.
const IDLE_BLOCKS: usize = 4;

/// A batch at a place where it can spill: everything that it can ask with.
pub(super) struct Stand<'x, 's, 'a, M: Mode> {
    pub(super) shared: &'s Shared<'a, M>,
    pub(super) number: u32,
    pub(super) turn: &'x mut Turn<'s>,
    pub(super) account: &'x mut M::Account,
    pub(super) fields: &'x mut [Field<M>],
}

/// It cannot be had: the bytes that the batch would have come to, and who held most if that was the reason.
#[derive(Debug)]
pub(super) struct Never {
    pub(super) total_bytes: usize,
    pub(super) holders: Option<String>,
}

/// An attempt: nothing, or the bytes that the batch would have come to: in its purse, which is never below the fixed part,
/// and in leases.
pub(super) type Attempt = std::result::Result<(), (usize, usize)>;

impl<M: Mode> Stand<'_, '_, '_, M> {
    /// Asks until it is granted or cannot be had. With `first`, what is asked for stays while the batch waits again.
    pub(super) fn ask(
        &mut self,
        first: bool,
        mut attempt: impl FnMut(&mut M::Account, &mut [Field<M>]) -> Attempt,
    ) -> Result<std::result::Result<(), Never>> {
        if first {
            self.account.bound(usize::MAX);
        }
        let free = !first || self.turn.take_first();
        if free && attempt(self.account, self.fields).is_ok() {
            return Ok(Ok(()));
        }
        self.rest()?;
        let hard = self.turn.hard;
        let fixed = self.turn.fixed_bytes;
        let total = |(purse, leases): (usize, usize)| purse.max(fixed) + leases;
        let total_bytes = match if free { attempt(self.account, self.fields) } else { Err((0, 0)) } {
            Ok(()) => return Ok(Ok(())),
            Err(refused) => total(refused),
        };
        if total_bytes > hard.most_bytes(fixed) {
            return Ok(Err(Never { total_bytes, holders: None }));
        }
        let more = total_bytes.saturating_sub(fixed);
        let mode = self.shared.mode;
        let (account, fields) = (&mut *self.account, &mut *self.fields);
        let mut last = total_bytes;
        let waited = self.turn.wait(
            first,
            || {
                let asked = attempt(account, fields);
                last = asked.err().map_or(last, total);
                asked.is_ok()
            },
            || mode.free_bytes() >= (4 * more).min(more.max(hard.limit_bytes / 4)),
            || self.shared.go_on(self.number),
            || format!("room for batch {} ({} in all)", self.number, Bytes(total_bytes)),
        )?;
        Ok(match waited {
            Waited::Granted => Ok(()),
            Waited::InVain if last > hard.most_bytes(fixed) => Err(Never { total_bytes: last, holders: None }),
            Waited::InVain => Err(Never { total_bytes: last, holders: Some(mode.holders()) }),
        })
    }

    /// Spills what there is and gives back everything but the fixed part.
    fn rest(&mut self) -> Result<()> {
        for field in self.fields.iter_mut() {
            field.rest(self.shared)?;
        }
        // less than before is never refused
        self.account.keep(0);
        self.account.trim(self.turn.fixed_bytes);
        self.shared.turns.freed();
        Ok(())
    }
}

/// Room for `bytes` more in the purse.
pub(super) fn more<M: Mode>(bytes: usize) -> impl FnMut(&mut M::Account, &mut [Field<M>]) -> Attempt {
    move |account, _| if account.room(bytes) { Ok(()) } else { Err((account.charged_bytes() + bytes, 0)) }
}

/// What a spill of any of these fields takes, and what their lists of runs grow by when all of them are spilled.
pub(super) fn spill_bytes<M: Mode>(fields: &[Field<M>], run_block_bytes: usize) -> usize {
    spill_bytes_after(fields, &[], run_block_bytes)
}

/// The same after a document; `texts` are those of some fields, in order.
fn spill_bytes_after<M: Mode>(fields: &[Field<M>], texts: &[(usize, Counted)], run_block_bytes: usize) -> usize {
    let (mut texts, mut work, mut lists) = (texts.iter().peekable(), 0, 0);
    for (number, field) in fields.iter().enumerate() {
        let text = texts.next_if(|(field, _)| *field == number).map_or(Counted::default(), |(_, text)| *text);
        work = work.max(field.spill_bytes(&text));
        lists += field.list_growth_bytes();
    }
    let encoder: usize = ENCODER_STEPS.iter().sum();
    work + lists + encoder + RunWriter::most_bytes(run_block_bytes, 0)
}

/// The leases of a document, and what is kept for the spill after it; `scratch` is what the tokenizer may come to besides.
pub(super) fn document<M: Mode>(
    texts: &[(usize, Counted)],
    document: u32,
    scratch: usize,
    limits: (usize, usize),
) -> impl FnMut(&mut M::Account, &mut [Field<M>]) -> Attempt + use<'_, M> {
    let (block_bytes, run_block_bytes) = limits;
    move |account, fields| {
        let (mut copied, mut leases, mut granted) = (0, 0, true);
        for &(number, text) in texts {
            let field = &mut fields[number];
            let (bytes, copy) = field.most_bytes(&text, document);
            copied = copied.max(copy);
            leases += bytes;
            let leased = field.meter.leased_bytes();
            if leased.saturating_sub(bytes) > (IDLE_BLOCKS * block_bytes).max(bytes / 4) {
                field.meter.trim_lease(bytes);
            }
            granted = granted && field.meter.lease(bytes);
        }
        let work = spill_bytes_after(fields, texts, run_block_bytes).max(copied) + scratch;
        if granted && account.keep(work) {
            return Ok(());
        }
        for &(number, _) in texts {
            fields[number].trim_lease();
        }
        Err((account.charged_bytes() + work, leases))
    }
}
