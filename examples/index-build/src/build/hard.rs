//! The sizes of a build under a hard limit: what is fixed, what documents may take, and the least that works.
//!
//! ```text
//! 0        base                    fixed, of every batch that is built         hard limit
//! |--------|----------------------|----------------------|---------------------------|
//!   lists,   up to half of the limit: blocks of input,      documents: leases of fields,
//!   digest   lists, a segment's writer, a merge of two      work of spills, wider merges
//! ```
//!
//! A batch that waits holds its fixed part and nothing else ([`super::room`]), so the rest is there for whoever goes on:
//! what one document, or one merge, may need is known beforehand, the same on every run, and an error that says so is told
//! at once.
use crate::accounting::ENCODER_STEPS;
use crate::build::into_segment::{LONG_COPIES, LONG_TERM};
use crate::token::Counted;
use crate::writer::Writer;
use plimsoll::spill::RunReader;
use plimsoll::spill::run::key_buffer_bytes;
use plimsoll::{Bytes, KIB, MIB};

/// What a field of a batch takes but for its writer: its place in lists, its reporter, its spool with a few runs.
const FIELD_BYTES: usize = 3 * KIB;
/// Buffers of the tokenizer, lists of runs, the catalogue of a segment, beside what is said by name.
const SLACK_BYTES: usize = 24 * KIB;
/// The same for the parser of JSON lines.
const PARSER_BYTES: usize = 64 * KIB;
/// A segment's writer when it is new, and its buffers when they have grown.
const SEGMENT_BYTES: usize = 448 * KIB;
/// The document that the minimum is for.
const FIRST_DOCUMENT: Counted = Counted { tokens: 32, long_bytes: 256, longest: 64 };

/// What the sizes follow from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub(super) threads: usize,
    pub(super) block_bytes: usize,
    pub(super) jsonl: bool,
    /// The budget, if it was given.
    pub(super) budget_bytes: Option<usize>,
    /// The input's list, and what the batches come to until the index is published.
    pub(super) lists_bytes: usize,
}

/// The sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hard {
    given: Given,
    pub(super) limit_bytes: usize,
    pub(super) run_block_bytes: usize,
    pub(super) input_block_bytes: usize,
}

impl Given {
    /// The budget under a hard limit: unless it is given, seven eighths.
    pub(super) fn budget_under(&self, limit_bytes: usize) -> usize {
        self.budget_bytes.unwrap_or(limit_bytes - limit_bytes / 8).min(limit_bytes)
    }
}

/// Blocks of runs and of the input, by the budget of a thread.
pub(super) fn block_sizes(each: usize) -> (usize, usize) {
    ((each / 64).clamp(KIB, 64 * KIB), (each / 16).clamp(4 * KIB, 128 * KIB) & !(4 * KIB - 1))
}

impl Hard {
    pub(super) fn of(given: Given, limit_bytes: usize) -> Hard {
        let (run_block_bytes, input_block_bytes) = block_sizes(given.budget_under(limit_bytes) / given.threads);
        Hard { given, limit_bytes, run_block_bytes, input_block_bytes }
    }

    /// What is held beside all batches.
    fn base_bytes(&self) -> usize {
        self.given.lists_bytes.min(self.limit_bytes / 8) + (64 * KIB).min(self.input_block_bytes)
    }

    /// What a batch of so many fields holds from its admission to its end.
    pub(super) fn fixed_bytes(&self, fields: usize) -> usize {
        let run = self.run_block_bytes + KIB;
        let encoder: usize = ENCODER_STEPS.iter().sum();
        let parser = if self.given.jsonl { PARSER_BYTES } else { 0 };
        let documents = self.input_block_bytes + parser + run;
        let merge = SEGMENT_BYTES + run + 2 * (run + size_of::<RunReader>());
        documents.max(merge) + SLACK_BYTES + encoder + fields * FIELD_BYTES
    }

    /// What the other batches may hold while one of this fixed part needs more.
    fn others_bytes(&self, fixed: usize) -> usize {
        ((self.given.threads - 1) * fixed).min((self.limit_bytes / 2).saturating_sub(fixed))
    }

    /// The most that one batch can come to, its fixed part included.
    pub(super) fn most_bytes(&self, fixed: usize) -> usize {
        self.limit_bytes.saturating_sub(self.base_bytes() + self.others_bytes(fixed))
    }

    /// What so many fields need for a small document.
    fn first_bytes(&self, fields: usize) -> usize {
        let (field, copied) = Writer::new(self.given.block_bytes).most_bytes(&FIRST_DOCUMENT, 1 << 20);
        fields * field + copied.max(FIRST_DOCUMENT.tokens * 16)
    }

    /// Whether a batch may begin beside those that hold and expect so much. More are let in only where each has room for a
    /// few blocks a field, so that they do not spill at every document.
    pub(super) fn fits(&self, others_fixed: usize, others_expected: usize, fields: usize) -> bool {
        let fixed = self.fixed_bytes(fields);
        let room = self.given.budget_under(self.limit_bytes).saturating_sub(self.base_bytes());
        others_fixed + fixed <= self.limit_bytes / 2 && others_expected + self.expected_bytes(fields) <= room
    }

    /// What a batch is expected to hold when it goes well.
    pub(super) fn expected_bytes(&self, fields: usize) -> usize {
        self.fixed_bytes(fields) + 2 * self.first_bytes(fields)
    }

    /// What writers cannot use: the fixed parts, also of batches that have not begun.
    pub(super) fn reserve_bytes(&self) -> usize {
        let fixed = self.fixed_bytes(1);
        let all = self.base_bytes() + fixed + self.others_bytes(fixed);
        all.min(self.given.budget_under(self.limit_bytes) / 4 * 3)
    }

    /// The least limit under which a batch of so many fields can be built, if this one is below it.
    pub(super) fn below_minimum(&self, fields: usize) -> Option<usize> {
        let need = |hard: &Hard| hard.base_bytes() + hard.fixed_bytes(fields) + hard.first_bytes(fields);
        if need(self) <= self.limit_bytes { None } else { Some(self.least(need)) }
    }

    /// The least limit under which a batch with this fixed part has room for what `more` says besides.
    pub(super) fn minimum_for(&self, fixed: usize, more: impl Fn(&Hard) -> usize) -> usize {
        self.least(|hard| {
            // blocks are larger under larger limits
            let fixed = fixed + (hard.fixed_bytes(1) - self.fixed_bytes(1));
            let all = hard.base_bytes() + fixed + more(hard);
            // half of a limit, or all of it but the other batches' fixed parts
            all + ((hard.given.threads - 1) * fixed).min(all.saturating_sub(2 * fixed))
        })
    }

    /// What the merge of a term of so many bytes takes at most, beside the fixed part.
    pub(super) fn long_term_bytes(&self, longest: usize) -> usize {
        if longest <= LONG_TERM { 0 } else { 3 * (LONG_COPIES * longest + key_buffer_bytes(longest)) }
    }

    /// The least limit of which `need` is not more.
    fn least(&self, need: impl Fn(&Hard) -> usize) -> usize {
        let mut limit = self.limit_bytes;
        loop {
            let least = need(&Hard::of(self.given, limit));
            if least <= limit {
                return limit;
            }
            limit = least;
        }
    }

    /// Why `what` cannot be had. `holders` are those who held most when nobody could give any back; none if it never can.
    pub(super) fn refusal(&self, what: &str, total: usize, fixed: usize, holders: Option<String>) -> String {
        let (limit, most) = (Bytes(self.limit_bytes), self.most_bytes(fixed));
        let (need, left) = (Bytes(total), Bytes(most));
        match holders {
            None => format!(
                "{what} needs {need}, and --hard-limit {limit} leaves one batch {left}: give a --hard-limit of at least {}",
                option(self.minimum_for(fixed, |_| total.saturating_sub(fixed)))
            ),
            Some(holders) => format!(
                "{what} needs {need}, and nobody can give any back (most is held by {holders}): give a larger --hard-limit \
                 than {limit}, fewer --threads, or larger --batch-bytes"
            ),
        }
    }
}

/// A size as an option takes it, rounded up: steps of 16 KiB, so that it does not depend on the length of a path.
pub(super) fn option(bytes: usize) -> String {
    if bytes < 64 * MIB {
        format!("{}KiB", bytes.next_multiple_of(16 * KIB) / KIB)
    } else {
        format!("{}MiB", bytes.div_ceil(MIB))
    }
}
