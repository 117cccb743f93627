//! The writer of one field of one batch: what the inner loop of a build calls.
//!
//! A new term costs a table entry, a record and its bytes; its first occurrence stays in the record, and only a second
//! one starts a stream in the arena. Before anything is allocated the meter is told the new sum of arena and vocabulary,
//! all of which a spill frees; between allocations it is told nothing but new terms.
use crate::accounting::{Account, Charge, Meter};
use crate::token::{Counted, Term};
use crate::writer::arena::Arena;
use crate::writer::order::Order;
use crate::writer::stream::{occurrence, varint};
use crate::writer::vocabulary::{ALONE, Vocabulary};

/// One field of one batch.
#[derive(Debug)]
pub struct Writer {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) arena: Arena,
    block_bytes: usize,
    documents_with_tokens: u32,
    /// what the meter was told last
    settled: usize,
}

impl Writer {
    /// A writer that holds nothing yet.
    pub fn new(block_bytes: usize) -> Writer {
        Writer {
            vocabulary: Vocabulary::new(block_bytes),
            arena: Arena::new(block_bytes),
            block_bytes,
            documents_with_tokens: 0,
            settled: 0,
        }
    }

    /// Bytes of the posting blocks: they change only when a block comes or goes.
    pub fn arena_bytes(&self) -> usize {
        self.arena.bytes() + self.arena.list_bytes()
    }

    /// Capacities of the vocabulary's table, records and bytes: they change when a block comes or the table grows.
    pub fn vocabulary_bytes(&self) -> usize {
        self.vocabulary.bytes() + self.vocabulary.list_bytes()
    }

    /// What a spill frees: arena and vocabulary.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.arena_bytes() + self.vocabulary_bytes()
    }

    /// What of that is in use: about what a run would be made of.
    pub fn used_bytes(&self) -> usize {
        self.arena.used_bytes() + self.vocabulary.used_bytes()
    }

    /// What the text of one document may come to at most: what is held then, and what is charged besides on the way.
    pub fn most_bytes(&self, text: &Counted, document: u32) -> (usize, usize) {
        let (vocabulary, copied) = self.vocabulary.most_growth_bytes(text);
        let value_bytes = varint(u64::from(document) << 1 | 1).1.max(varint(2 * text.tokens as u64).1) as usize;
        let arena = self.arena.most_growth_bytes(text.tokens, value_bytes);
        (self.held_bytes() + vocabulary + arena, copied)
    }

    /// What the order of the terms takes when so many have come to them.
    pub fn order_bytes(&self, more: usize) -> usize {
        Order::bytes(self.terms() + more)
    }

    /// Bytes of the longest term, if one is longer than 8.
    pub fn longest(&self) -> usize {
        self.vocabulary.longest()
    }

    /// Whether a spill would write nothing.
    pub fn is_empty(&self) -> bool {
        self.vocabulary.is_empty()
    }

    /// Terms in memory.
    pub fn terms(&self) -> usize {
        self.vocabulary.len()
    }

    /// Addresses are nearly used up: the writer has to be spilled before more than a few blocks are added.
    pub fn is_full(&self) -> bool {
        self.arena.is_full() || self.vocabulary.is_full()
    }

    /// Documents of the batch with at least one token in this field, spilled ones too.
    pub fn documents_with_tokens(&self) -> u32 {
        self.documents_with_tokens
    }

    /// The next token: documents ascend, positions ascend within one. True if a block was added: time to ask whether to
    /// spill.
    #[inline(always)]
    pub fn add<M: Meter>(&mut self, meter: &mut M, term: Term<'_>, document: u32, position: u32) -> bool {
        self.documents_with_tokens += u32::from(position == 0);
        let hash = Vocabulary::hash(term);
        let Some(id) = self.vocabulary.find(hash, term) else {
            meter.new_term();
            let growth = self.vocabulary.growth_bytes(term.length);
            if growth.0 > 0 {
                return self.add_growing(meter, growth, (hash, term), document, position);
            }
            self.vocabulary.insert(hash, term, document, position);
            return false;
        };
        let mut grown = false;
        let (mut held, block_bytes) = (self.settled, self.block_bytes);
        let record = self.vocabulary.record_mut(id);
        let mut grow = |_: usize| {
            grown = true;
            held += block_bytes;
            meter.set_arena(held);
        };
        if record.head == ALONE {
            // the first occurrence is written when the second comes
            record.head = self.arena.start(&mut grow);
            record.tail = record.head;
            let (first, second) = occurrence(None, record.last_document, record.last_position);
            for value in std::iter::once(first).chain(second) {
                let (bits, length) = varint(value);
                record.tail = self.arena.append(record.tail, bits, length, &mut grow);
            }
        }
        let (first, second) = occurrence(Some((record.last_document, record.last_position)), document, position);
        let (mut bits, mut length) = varint(first);
        if let Some(second) = second {
            let (more, more_length) = varint(second);
            if length + more_length <= 8 {
                bits |= more << (8 * length);
                length += more_length;
            } else {
                record.tail = self.arena.append(record.tail, bits, length, &mut grow);
                (bits, length) = (more, more_length);
            }
        }
        record.tail = self.arena.append(record.tail, bits, length, &mut grow);
        (record.last_document, record.last_position) = (document, position);
        if grown {
            self.settle(meter);
        }
        grown
    }

    /// A new term for which the vocabulary takes a block, or a larger table: so much more, and so much while it is copied.
    #[cold]
    fn add_growing<M: Meter>(
        &mut self,
        meter: &mut M,
        (bytes, copied): (usize, usize),
        (hash, term): (u32, Term<'_>),
        document: u32,
        position: u32,
    ) -> bool {
        // while the table is copied the old one exists as well
        meter.account().charge(copied);
        meter.set_arena(self.settled + bytes);
        self.vocabulary.insert(hash, term, document, position);
        self.settle(meter);
        meter.account().release(copied);
        true
    }

    /// After growth the sum is said to the byte, lists of blocks included.
    #[cold]
    fn settle<M: Meter>(&mut self, meter: &mut M) {
        self.settled = self.held_bytes();
        meter.set_arena(self.settled);
    }

    /// The terms in byte order, for a spill or a merge.
    pub fn order(&self, account: &mut impl Account) -> Order {
        Order::of(&self.vocabulary, account)
    }

    /// Gives all blocks and the table back to the allocator. The caller tells the meter.
    pub fn clear(&mut self) {
        self.vocabulary = Vocabulary::new(self.block_bytes);
        self.arena = Arena::new(self.block_bytes);
        self.settled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::{Off, Why};
    use crate::error::Error;
    use crate::writer::order::span;
    use crate::writer::stream::Decoder;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Term -> occurrences.
    type Plain = BTreeMap<Vec<u8>, Vec<(u32, u32)>>;

    fn read(writer: &Writer) -> Plain {
        let order = writer.order(&mut Off);
        let mut plain = Plain::new();
        let mut last = Vec::new();
        for &(_, id) in order.terms() {
            let (record, mut short, mut decoder) = (writer.vocabulary.record(id), [0; 8], Decoder::default());
            let term = writer.vocabulary.term(record, &mut short).to_vec();
            assert!(term > last, "terms ascend");
            let occurrences = plain.entry(term.clone()).or_default();
            span(&writer.arena, record, |piece, _| {
                decoder.feed::<Error>(piece, |document, position| {
                    occurrences.push((document, position));
                    Ok(())
                })
            })
            .unwrap();
            decoder.end().unwrap();
            last = term;
        }
        plain
    }

    /// Remembers what it was told.
    #[derive(Default)]
    struct Told {
        off: Off,
        arena: Vec<usize>,
        terms: usize,
    }

    impl Meter for Told {
        type Account = Off;
        type Spilling<'a> = Off;
        fn account(&mut self) -> &mut Off {
            &mut self.off
        }
        fn set_arena(&mut self, bytes: usize) {
            if self.arena.last() != Some(&bytes) {
                self.arena.push(bytes);
            }
        }
        fn new_term(&mut self) {
            self.terms += 1;
        }
        fn spill_requested(&self) -> bool {
            false
        }
        fn begin_spill(&mut self, _: Why) -> Option<Off> {
            None
        }
    }

    proptest! {
        #[test]
        fn what_was_added_is_read_back_in_byte_order(
            documents in proptest::collection::vec(proptest::collection::vec("[a-d]{1,2}|[ab]{7,10}|z{30,40}", 0..12), 1..40),
            gap in prop_oneof![Just(1u32), Just(1000), Just(70_000_000)],
            block_bytes in prop_oneof![Just(64usize), Just(1024), Just(32768)]
        ) {
            let (mut writer, mut told, mut plain) = (Writer::new(block_bytes), Told::default(), Plain::new());
            for (document, terms) in documents.iter().enumerate() {
                for (position, term) in terms.iter().enumerate() {
                    let (document, position) = (document as u32 * gap, position as u32 * gap);
                    writer.add(&mut told, Term::of(term.as_bytes()), document, position);
                    plain.entry(term.clone().into_bytes()).or_default().push((document, position));
                }
            }
            prop_assert_eq!(read(&writer), plain);
            prop_assert_eq!(told.terms, writer.terms());
            prop_assert_eq!(told.arena.last().copied().unwrap_or(0), writer.held_bytes());
            prop_assert_eq!(writer.documents_with_tokens() as usize, documents.iter().filter(|terms| !terms.is_empty()).count());
            writer.clear();
            prop_assert_eq!(writer.held_bytes(), 0);
        }
    }

    /// Remembers the most that it was told, with what was charged at that moment.
    #[derive(Default)]
    struct Most {
        charged: Charged,
        arena: usize,
        most: usize,
    }

    #[derive(Default)]
    struct Charged(usize, usize);

    impl Charge for Charged {
        fn charge(&mut self, bytes: usize) {
            self.0 += bytes;
            self.1 = self.1.max(self.0);
        }
        fn release(&mut self, bytes: usize) {
            self.0 -= bytes;
        }
    }

    impl Account for Charged {
        fn term_begins(&mut self) {}
        fn term_ends(&mut self) {}
    }

    impl crate::accounting::Spilling for Charged {
        fn finish(self) {}
    }

    impl Meter for Most {
        type Account = Charged;
        type Spilling<'a> = Charged;
        fn account(&mut self) -> &mut Charged {
            &mut self.charged
        }
        fn set_arena(&mut self, bytes: usize) {
            self.arena = bytes;
            self.most = self.most.max(bytes);
        }
        fn new_term(&mut self) {}
        fn spill_requested(&self) -> bool {
            false
        }
        fn begin_spill(&mut self, _: Why) -> Option<Charged> {
            None
        }
    }

    /// A document's text, of streams that grow at different rates.
    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => proptest::collection::vec("[a-d]|[a-e]{2}|[ab]{7,10}|[0-9]{3}", 0..60).prop_map(|words| words.join(" ")),
            1 => "[a-z]{1,3000}( [a-z]{1,3}){0,9}",
            1 => (1usize..400).prop_map(|times| "ab ".repeat(times)),
            1 => (1usize..300, 1usize..40).prop_map(|(from, more)| {
                (from..from + more).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")
            }),
        ]
    }

    proptest! {
        /// What is leased before a document is enough for it, whatever the writer holds already.
        #[test]
        fn no_document_takes_more_than_was_said_before_it(
            texts in proptest::collection::vec((any_text(), 1usize..20), 1..25),
            gap in prop_oneof![Just(1u32), Just(90_000)],
            block_bytes in prop_oneof![Just(512usize), Just(1000), Just(4096), Just(10_000), Just(32768)]
        ) {
            struct Add<'a>(&'a mut Writer, &'a mut Most, u32, u32);
            impl crate::token::Sink for Add<'_> {
                fn token(&mut self, token: &[u8]) -> crate::error::Result<()> {
                    self.0.add(self.1, Term::of(token), self.2, self.3);
                    self.3 += 1;
                    Ok(())
                }
                fn scratch(&mut self, _: usize, _: usize) {}
            }
            let (mut writer, mut meter, mut document) = (Writer::new(block_bytes), Most::default(), 0);
            for (text, times) in texts {
                for _ in 0..times {
                    let counted = crate::token::count(text.as_bytes());
                    let (most, copied) = writer.most_bytes(&counted, document);
                    (meter.most, meter.charged.1) = (0, 0);
                    let mut add = Add(&mut writer, &mut meter, document, 0);
                    crate::token::Tokenizer::new().each(text.as_bytes(), &mut add).unwrap();
                    prop_assert!(meter.most <= most, "{} of {most}", meter.most);
                    prop_assert!(meter.charged.1 <= copied && meter.charged.0 == 0);
                    prop_assert!(meter.arena == writer.held_bytes() || meter.arena == 0);
                    document += gap;
                }
            }
        }
    }

    /// B71: the meter hears of blocks, not of terms.
    #[test]
    fn a_million_terms_tell_the_meter_of_blocks_only() {
        let (mut writer, mut told) = (Writer::new(1 << 20), Told::default());
        let mut grown = 0;
        for number in 0..1_000_000u32 {
            grown += usize::from(writer.add(
                &mut told,
                Term::of(format!("{}", number % 5000).as_bytes()),
                number / 10,
                number % 10,
            ));
        }
        let blocks = writer.held_bytes() >> 20;
        assert!(
            grown <= blocks + 20 && told.arena.len() <= 2 * grown,
            "{grown} growths, {blocks} MiB, {:?}",
            told.arena
        );
    }
}
