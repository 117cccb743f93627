//! A batch's segment as the target of its fields' merges. What its writer holds is charged to the batch.
//!
//! It is asked for what it holds every few hundred terms, and after each long one; what it grows by (the catalogue of its
//! dictionary, a few bytes a block) is charged then. Under a hard limit room for that is asked first, here as nowhere else
//! in the middle of the work: see [`super::turns`].
use crate::accounting::{Account, Charge, Mode};
use crate::build::shared::Shared;
use crate::build::turns::{Turn, Waited};
use crate::error::{Error, Result};
use crate::segment::{SegmentFile, SegmentWriter};
use crate::writer::Decoder;
use plimsoll::Bytes;
use plimsoll::spill::SpillError;
use plimsoll::spill::merge::Target;
use std::sync::atomic::Ordering;

/// See the module.
pub(super) struct IntoSegment<'x, 's, 'a, M: Mode> {
    pub(super) segment: SegmentWriter,
    decoder: Decoder,
    pub(super) shared: &'s Shared<'a, M>,
    pub(super) number: u32,
    pub(super) account: &'x mut M::Account,
    /// under a hard limit
    pub(super) turn: Option<&'x mut Turn<'s>>,
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
pub(super) const LONG_TERM: usize = 1 << 10;
/// Copies of a long term that the segment's writer may make: the term before, the open block, its compressed form.
pub(super) const LONG_COPIES: usize = 4;

/// What a new segment's writer takes, as far as it is known.
fn new_bytes<M: Mode>(shared: &Shared<'_, M>) -> usize {
    match shared.counts.segment_bytes.load(Ordering::Relaxed) {
        0 => NEW_SEGMENT_BYTES,
        known => known,
    }
}

/// What is charged as long as a segment is written that `written` bytes of terms and postings go through.
pub(super) fn expected_bytes<M: Mode>(shared: &Shared<'_, M>, written: u64) -> usize {
    let grown = usize::try_from(written.saturating_mul(2)).unwrap_or(usize::MAX).min(GROWN_SEGMENT_BYTES);
    new_bytes(shared) + grown
}

impl<'x, 's, 'a, M: Mode> IntoSegment<'x, 's, 'a, M> {
    /// Creates the segment's files. What its writer takes when it is new, and what its buffers may grow by, `expected` in
    /// all, is charged before that.
    pub(super) fn create(
        shared: &'s Shared<'a, M>,
        number: u32,
        expected: usize,
        account: &'x mut M::Account,
        turn: Option<&'x mut Turn<'s>>,
    ) -> Result<Self> {
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
            shared,
            number,
            account,
            turn,
            expected,
            charged: expected,
            terms: 0,
            long: 0,
        };
        into.settle()?;
        Ok(into)
    }

    fn settle(&mut self) -> Result<()> {
        let now = self.segment.allocated_bytes().max(self.expected);
        if now > self.charged {
            if M::HARD {
                self.ask(now - self.charged)?;
            }
            self.account.charge(now - self.charged);
        } else {
            self.account.release(self.charged - now);
        }
        self.charged = now;
        self.terms = 0;
        Ok(())
    }

    /// Room for what the segment's writer has grown by.
    fn ask(&mut self, bytes: usize) -> Result<()> {
        if self.account.room(bytes) {
            return Ok(());
        }
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let (account, shared, number) = (&mut *self.account, self.shared, self.number);
        let what = || format!("{} for the catalogue of segment {number}", Bytes(bytes));
        match turn.wait(false, || account.room(bytes), || true, || shared.go_on(number), what)? {
            Waited::Granted => Ok(()),
            Waited::InVain => Err(Error::Failed(format!(
                "{} are refused by --hard-limit, and nobody can give any back (most is held by {}): give a larger \
                 --hard-limit, or smaller --batch-bytes",
                what(),
                shared.mode.holders()
            ))),
        }
    }

    /// Begins a term that is long, or follows one: the term is copied, and its block is compressed when the next one begins.
    /// What that may take is charged before, and settled after.
    #[cold]
    fn begin_long(&mut self, term: &[u8]) -> Result<()> {
        let most = LONG_COPIES * term.len().max(self.long);
        self.long = if term.len() > LONG_TERM { term.len() } else { 0 };
        self.account.charge(most);
        let begun = self.segment.begin_term(term);
        let settled = self.settle();
        self.account.release(most);
        begun.and(settled)
    }

    /// Finishes the segment's files and frees its writer.
    pub(super) fn finish(self, documents: u32) -> Result<Vec<SegmentFile>> {
        let most = LONG_COPIES * self.long;
        self.account.charge(most);
        let files = self.segment.finish(documents);
        self.account.release(self.charged + most);
        files
    }
}

impl<M: Mode, B: Account> Target<B> for IntoSegment<'_, '_, '_, M> {
    type Error = Error;

    #[inline(always)]
    fn begin(&mut self, term: &[u8], _: &mut B) -> Result<()> {
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

    #[inline(always)]
    fn end(&mut self, _: &mut B) -> Result<()> {
        self.segment.end_term()?;
        self.terms += 1;
        if self.terms == SETTLE_TERMS {
            self.settle()?;
        }
        Ok(())
    }
    fn blame(error: Error, corrupt: impl FnOnce(String) -> SpillError) -> Error {
        match error {
            // what is wrong with a span
            Error::Failed(why) => corrupt(why).into(),
            error => error,
        }
    }
}
