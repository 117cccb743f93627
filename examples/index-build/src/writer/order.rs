//! The terms of a writer in byte order, and each one's postings as pieces of a span.
//!
//! The order is scratch: 16 bytes a term, charged before it is allocated and released with [`Order::release`]. The key
//! that is sorted by is the term's first 8 bytes, so that few comparisons have to look at the terms themselves.
use crate::accounting::Account;
use crate::writer::arena::Arena;
use crate::writer::stream::{occurrence, varint};
use crate::writer::vocabulary::{ALONE, Record, Vocabulary};

/// Term ids, sorted by the terms' bytes.
#[derive(Debug, Default)]
pub struct Order {
    terms: Vec<(u64, u32)>,
}

impl Order {
    /// Sorts a vocabulary.
    pub fn of(vocabulary: &Vocabulary, account: &mut impl Account) -> Order {
        account.charge(Order::bytes(vocabulary.len()));
        let mut terms = Vec::with_capacity(vocabulary.len());
        terms.extend((0..vocabulary.len() as u32).map(|id| (vocabulary.record(id).key, id)));
        terms.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| vocabulary.compare_beyond_key(a.1, b.1)));
        Order { terms }
    }

    /// What the order of so many terms takes.
    pub fn bytes(terms: usize) -> usize {
        terms * size_of::<(u64, u32)>()
    }

    /// Term ids and their keys.
    pub fn terms(&self) -> &[(u64, u32)] {
        &self.terms
    }

    /// Frees it, said to the account that was charged.
    pub fn release(self, account: &mut impl Account) {
        let bytes = self.terms.capacity() * size_of::<(u64, u32)>();
        drop(self.terms);
        account.release(bytes);
    }
}

/// Hands the postings of a term to `each` as the pieces of one span; the last piece is marked.
#[inline]
pub fn span<E>(arena: &Arena, record: &Record, mut each: impl FnMut(&[u8], bool) -> Result<(), E>) -> Result<(), E> {
    if record.head != ALONE {
        for (piece, last) in arena.pieces(record.head, record.tail) {
            each(piece, last)?;
        }
        return Ok(());
    }
    let (first, second) = occurrence(None, record.last_document, record.last_position);
    let (first, at) = varint(first);
    let (second, length) = varint(second.unwrap_or(0));
    // two numbers of at most 5 bytes
    let both = (u128::from(first) | u128::from(second) << (8 * at)).to_le_bytes();
    each(&both[..(at + length) as usize], true)
}
