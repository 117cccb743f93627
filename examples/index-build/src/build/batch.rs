//! One batch on one flush thread: its documents into writers, its writers into a segment.
//!
//! A document is added whole or not at all. What the thread itself holds (input block, line, parser, tokenizer, segment
//! writer) is charged to an account of the batch; each field has its own. Under a hard limit room is asked for before each
//! step ([`super::safe_point`]).
use crate::accounting::{Account, Charge, Mode};
use crate::build::admission::Ticket;
use crate::build::field::Field;
use crate::build::outcome::{Place, Seen};
use crate::build::shared::Shared;
use crate::build::turns::Turn;
use crate::error::{Error, Result};
use crate::input::json::{self, Bad, Fields, Parser};
use crate::input::{Batch, Kind, Lines, line_number};
use crate::token::{self, Counted, Sink, Term, Tokenizer};
use std::cell::Cell;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What a reporter with an arena takes on the heap, about.
const REPORTER_BYTES: usize = 640;
/// The name of a text's only field.
pub(super) const TEXT_FIELD: &str = "text";

/// Builds a batch and says how it ended. Under a hard limit `turn` is its place among those that were let in.
pub(super) fn run<'s, M: Mode>(
    shared: &'s Shared<'_, M>,
    batch: Batch,
    mut ticket: Ticket<'_>,
    turn: Option<Turn<'s>>,
) {
    let mut building = Building::new(shared, batch, turn);
    let built = building.begin().and_then(|()| building.documents(&mut ticket));
    let place = building.place;
    shared.outcome.fields(batch.number, std::mem::take(&mut building.seen), |seen| {
        bad_line(shared, seen.file, seen.offset, too_many_fields())
    });
    let done = built.and_then(|()| building.segment()).and_then(|done| {
        building.keep_done(done.allocated_bytes())?;
        Ok(done)
    });
    match done {
        Ok(done) => {
            shared.kept.lock().unwrap_or_else(PoisonError::into_inner).charge(done.allocated_bytes());
            shared.outcome.done(done);
        }
        Err(error) => shared.outcome.fail(place, error),
    }
}

fn too_many_fields() -> String {
    format!("the index would have more than {} fields: choose some with --fields", json::MOST_FIELDS)
}

/// The error of the line at `offset`; its number is counted now.
pub(super) fn bad_line<M: Mode>(shared: &Shared<'_, M>, file: usize, offset: u64, why: String) -> Error {
    let path = &shared.plan.inputs.files[file].path;
    match line_number(path, offset) {
        Ok(line) => Error::Input { path: path.clone(), line, why },
        Err(error) => error,
    }
}

pub(super) struct Building<'s, 'a, M: Mode> {
    pub(super) shared: &'s Shared<'a, M>,
    pub(super) batch: Batch,
    pub(super) account: M::Account,
    pub(super) fields: Vec<Field<M>>,
    pub(super) names: Vec<String>,
    /// under a hard limit: what the document has for each of some fields
    pub(super) texts: Vec<(usize, Counted)>,
    /// fields in order of appearance
    seen: Vec<Seen>,
    pub(super) documents: u32,
    pub(super) skipped: u64,
    /// the line that is being read
    pub(super) place: Place,
    /// the budget does not hold a block for each field: the rest of the batch is only looked through
    beyond_budget: bool,
    /// under a hard limit; left when all of the above is gone
    pub(super) turn: Option<Turn<'s>>,
}

/// Takes the tokens of one field of one document.
struct Tokens<'t, 'a, M: Mode> {
    shared: &'t Shared<'a, M>,
    field: &'t mut Field<M>,
    account: &'t mut M::Account,
    document: u32,
    position: u32,
}

impl<M: Mode> Sink for Tokens<'_, '_, M> {
    fn token(&mut self, token: &[u8]) -> Result<()> {
        self.term(Term::of(token))
    }

    #[inline(always)]
    fn term(&mut self, term: Term<'_>) -> Result<()> {
        let position = self.position;
        self.position = match position.checked_add(1) {
            Some(next) => next,
            None => return Err(Error::Failed("a document has 2^32 tokens".to_owned())),
        };
        self.field.token(self.shared, term, self.document, position)
    }

    fn scratch(&mut self, old: usize, new: usize) {
        self.account.charge(new - old);
    }
}

impl<'s, 'a, M: Mode> Building<'s, 'a, M> {
    fn new(shared: &'s Shared<'a, M>, batch: Batch, turn: Option<Turn<'s>>) -> Self {
        Building {
            shared,
            batch,
            turn,
            account: shared.mode.account(&format!("b{}", batch.number)),
            fields: Vec::new(),
            names: Vec::new(),
            texts: Vec::new(),
            seen: Vec::new(),
            documents: 0,
            skipped: 0,
            place: (batch.number, 0, 0),
            beyond_budget: false,
        }
    }

    /// Takes what is fixed.
    fn begin(&mut self) -> Result<()> {
        if M::HARD {
            self.take_fixed()?;
        }
        if self.shared.plan.inputs.kind == Kind::Text { self.field(TEXT_FIELD, 0, 0) } else { Ok(()) }
    }

    /// A field that was seen for the first time.
    fn field(&mut self, name: &str, file: usize, offset: u64) -> Result<()> {
        let number = self.fields.len();
        // its place in lists that double, its name in some of them, its reporter and arena; until the batch ends
        let bytes = 2 * size_of::<Field<M>>() + 4 * (size_of::<String>() + name.len()) + REPORTER_BYTES;
        if M::HARD {
            self.room_for_field(bytes)?;
        }
        self.account.charge(bytes);
        self.fields.push(Field::new(self.shared, &self.batch, number, name, &self.account));
        self.names.push(name.to_owned());
        self.seen.push(Seen { name: name.to_owned(), file, offset });
        // Relaxed: an estimate for admission
        self.shared.counts.fields.fetch_max(number + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads all documents.
    fn documents(&mut self, ticket: &mut Ticket<'_>) -> Result<()> {
        let shared = self.shared;
        let (inputs, number) = (&shared.plan.inputs, self.batch.number);
        let (mut tokenizer, mut parser, mut table) =
            (Tokenizer::new(), Parser::new(), Fields::new(shared.plan.fields.clone()));
        let mut lines = Lines::new(shared.plan.input_block_bytes, &mut self.account);
        let block_read = Cell::new(false);
        let mut block = |bytes: usize| {
            block_read.set(true);
            shared.turns.moved();
            shared.watch.done_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            shared.go_on(number)
        };
        for part in self.batch.parts(inputs) {
            lines.open(inputs, part)?;
            loop {
                let mut last = None;
                let line = loop {
                    match lines.next(inputs, &mut self.account, &mut block) {
                        Err(Error::Room { bytes }) => {
                            let bytes = self.asked_again(bytes, &mut last);
                            self.room_for_line(bytes, &lines)?;
                            self.account.allow(bytes);
                        }
                        line => break line?,
                    }
                };
                if last.is_some() {
                    self.account.allow(0);
                }
                let Some(line) = line else { break };
                self.place = (number, part.file, line.offset);
                match inputs.kind {
                    Kind::Text => self.text(line.bytes, &mut tokenizer)?,
                    Kind::Jsonl => self.json(line.bytes, &mut tokenizer, &mut parser, &mut table)?,
                }
                if block_read.replace(false) {
                    ticket.charged();
                    // a field that few documents have answers as well
                    self.fields.iter_mut().try_for_each(|field| field.answer(shared))?;
                }
            }
        }
        lines.release(&mut self.account);
        parser.release(&mut self.account);
        let scratch = tokenizer.allocated_bytes();
        drop(tokenizer);
        self.account.release(scratch);
        if self.beyond_budget {
            shared.plan.check_minimum(self.fields.len())?;
        }
        Ok(())
    }

    #[inline]
    fn text(&mut self, line: &[u8], tokenizer: &mut Tokenizer) -> Result<()> {
        if M::HARD {
            self.texts.clear();
            self.texts.push((0, token::count(line)));
            self.room_for_document(tokenizer)?;
        }
        self.value(0, line, tokenizer)?;
        self.document_done()
    }

    fn json(&mut self, line: &[u8], tokenizer: &mut Tokenizer, parser: &mut Parser, table: &mut Fields) -> Result<()> {
        let (_, file, offset) = self.place;
        let line = if offset == 0 { json::without_mark(line) } else { line };
        let mut last = None;
        let parsed = loop {
            match parser.parse(line, table, &mut self.account) {
                Err(Bad::Room(bytes)) => {
                    let bytes = self.asked_again(bytes, &mut last);
                    self.room_for_parser(bytes)?;
                    self.account.allow(bytes);
                }
                parsed => break parsed,
            }
        };
        if last.is_some() {
            self.account.allow(0);
        }
        match parsed {
            Ok(()) => {}
            Err(Bad::Line(_)) if self.shared.plan.skip_bad => {
                self.skipped += 1;
                self.nothing_added();
                return Ok(());
            }
            Err(Bad::Line(why)) => return Err(bad_line(self.shared, file, offset, why)),
            Err(Bad::Fields) => return Err(bad_line(self.shared, file, offset, too_many_fields())),
            Err(Bad::Room(_)) => {}
        }
        while self.fields.len() < table.names().len() {
            self.field(&table.names()[self.fields.len()], file, offset)?;
            self.beyond_budget |= self.shared.plan.check_minimum(self.fields.len()).is_err();
        }
        if !self.beyond_budget {
            if M::HARD {
                self.texts.clear();
                self.texts.extend(parser.values(line).map(|(number, value)| (number, token::count(value))));
                self.room_for_document(tokenizer)?;
            }
            for (number, value) in parser.values(line) {
                self.value(number, value, tokenizer)?;
            }
        } else {
            self.nothing_added();
        }
        self.document_done()
    }

    /// The text of one field of the document.
    #[inline]
    fn value(&mut self, field: usize, text: &[u8], tokenizer: &mut Tokenizer) -> Result<()> {
        let field = &mut self.fields[field];
        let mut tokens =
            Tokens { shared: self.shared, field, account: &mut self.account, document: self.documents, position: 0 };
        tokenizer.each(text, &mut tokens)?;
        field.document_done(self.shared)
    }

    #[inline]
    fn document_done(&mut self) -> Result<()> {
        // a batch has fewer than 2^32 bytes and a line's rest, and every document but its last takes one
        self.documents = self
            .documents
            .checked_add(1)
            .ok_or_else(|| Error::Failed("a batch has 2^32 documents: choose a smaller --batch-bytes".to_owned()))?;
        Ok(())
    }
}
