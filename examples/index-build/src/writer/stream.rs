//! How the occurrences of one term are written: a stream of varints that needs no count in advance.
//!
//! The first occurrence in a document is varint((document - last document) << 1 | 1), varint(position); each further one
//! is varint((position - last position) << 1). A span starts from document 0, so spans of one term can be copied one
//! after the other without decoding. A span that goes on in a document that an earlier span has begun says that document
//! again. [`Decoder`] takes a span in pieces that may end inside a varint.

/// A varint of at most 5 bytes, as the low bytes of a word, and its length.
#[inline(always)]
pub fn varint(value: u64) -> (u64, u32) {
    if value < 0x80 {
        return (value, 1);
    }
    let (mut bits, mut length, mut rest) = (0u64, 0u32, value);
    while rest >= 0x80 {
        bits |= (rest & 0x7F | 0x80) << (8 * length);
        length += 1;
        rest >>= 7;
    }
    (bits | rest << (8 * length), length + 1)
}

/// The two numbers that say an occurrence; the second only for a new document.
#[inline(always)]
pub fn occurrence(last: Option<(u32, u32)>, document: u32, position: u32) -> (u64, Option<u64>) {
    match last {
        Some((same, before)) if same == document => (u64::from(position - before) << 1, None),
        Some((before, _)) => (u64::from(document - before) << 1 | 1, Some(u64::from(position))),
        None => (u64::from(document) << 1 | 1, Some(u64::from(position))),
    }
}

/// What is wrong with a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A number has more bytes than any that is written.
    Varint,
    /// A document or a position is beyond its type, or does not ascend.
    Order,
    /// The span ends inside an occurrence, or holds none.
    Cut,
}

impl Fault {
    /// For an error's text.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Varint => "a number in a postings span is too long",
            Fault::Order => "documents or positions of a postings span do not ascend",
            Fault::Cut => "a postings span ends inside an occurrence",
        }
    }
}

impl From<Fault> for crate::error::Error {
    fn from(fault: Fault) -> Self {
        crate::error::Error::Failed(fault.text().to_owned())
    }
}

/// The number at `at`, and what is behind it, if all of it is there and none of it is too long.
#[inline(always)]
fn whole(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let mut value = u64::from(first & 0x7F);
    for more in 1..5 {
        let byte = *bytes.get(at + more)?;
        value |= u64::from(byte & 0x7F) << (7 * more);
        if byte < 0x80 {
            return Some((value, at + more + 1));
        }
    }
    None
}

/// Reads spans, piece by piece.
#[derive(Debug, Default)]
pub struct Decoder {
    value: u64,
    shift: u32,
    document: u32,
    position: u32,
    /// an occurrence of the span has been read
    started: bool,
    /// the document has been read, its position has not
    position_next: bool,
}

impl Decoder {
    /// Hands every occurrence that ends in `bytes` to `each`. `Fault` is what the bytes did wrong, `E` what `each` said.
    #[inline]
    pub fn feed<E: From<Fault>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        while at < bytes.len() {
            // whole occurrences without a look at what a piece before has left; what is cut, or wrong, goes the slow way
            if !self.position_next
                && self.shift == 0
                && let Some((value, behind)) = whole(bytes, at)
            {
                if value & 1 == 0 {
                    self.number(value, &mut each)?;
                    at = behind;
                    continue;
                }
                if let Some((position, behind)) = whole(bytes, behind) {
                    self.number(value, &mut each)?;
                    self.number(position, &mut each)?;
                    at = behind;
                    continue;
                }
            }
            self.byte(bytes[at], &mut each)?;
            at += 1;
        }
        Ok(())
    }

    /// The next byte of a number.
    fn byte<E: From<Fault>>(&mut self, byte: u8, each: &mut impl FnMut(u32, u32) -> Result<(), E>) -> Result<(), E> {
        self.value |= u64::from(byte & 0x7F) << self.shift;
        if byte >= 0x80 {
            self.shift += 7;
            return if self.shift > 28 { Err(Fault::Varint.into()) } else { Ok(()) };
        }
        let value = self.value;
        (self.value, self.shift) = (0, 0);
        self.number(value, each)
    }

    #[inline(always)]
    fn number<E: From<Fault>>(
        &mut self,
        value: u64,
        each: &mut impl FnMut(u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.position_next {
            self.position = u32::try_from(value).map_err(|_| Fault::Order)?;
            self.position_next = false;
            self.started = true;
            return each(self.document, self.position);
        }
        let step = u32::try_from(value >> 1).map_err(|_| Fault::Order)?;
        // a span begins with a document; after that every step leads on
        if !self.started && value & 1 == 0 || self.started && step == 0 {
            return Err(Fault::Order.into());
        }
        if value & 1 == 1 {
            self.document = self.document.checked_add(step).ok_or(Fault::Order)?;
            self.position_next = true;
            return Ok(());
        }
        self.position = self.position.checked_add(step).ok_or(Fault::Order)?;
        each(self.document, self.position)
    }

    /// The span has ended: the next one starts from document 0.
    #[inline]
    pub fn end(&mut self) -> Result<(), Fault> {
        let whole = self.started && !self.position_next && self.shift == 0;
        *self = Decoder::default();
        if whole { Ok(()) } else { Err(Fault::Cut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl From<Fault> for String {
        fn from(fault: Fault) -> String {
            fault.text().to_owned()
        }
    }

    fn bytes_of(occurrences: &[(u32, u32)]) -> Vec<u8> {
        let (mut bytes, mut last) = (Vec::new(), None);
        for &(document, position) in occurrences {
            let (first, second) = occurrence(last, document, position);
            for value in std::iter::once(first).chain(second) {
                let (bits, length) = varint(value);
                bytes.extend_from_slice(&bits.to_le_bytes()[..length as usize]);
            }
            last = Some((document, position));
        }
        bytes
    }

    proptest! {
        #[test]
        fn a_span_read_in_any_pieces_gives_what_was_written(
            occurrences in proptest::collection::btree_set((any::<u32>(), prop_oneof![0u32..50, any::<u32>()]), 1..40),
            piece in 1usize..9
        ) {
            let occurrences: Vec<_> = occurrences.into_iter().collect();
            let bytes = bytes_of(&occurrences);
            let (mut decoder, mut read) = (Decoder::default(), Vec::new());
            for _ in 0..2 {
                read.clear();
                for piece in bytes.chunks(piece) {
                    decoder.feed::<String>(piece, |d, p| { read.push((d, p)); Ok(()) }).unwrap();
                }
                decoder.end().unwrap();
                prop_assert_eq!(&read, &occurrences);
            }
        }

        #[test]
        fn no_bytes_make_the_decoder_panic_or_descend(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let (mut decoder, mut last) = (Decoder::default(), None);
            let _ = decoder.feed::<String>(&bytes, |d, p| {
                assert!(last < Some((d, p)));
                last = Some((d, p));
                Ok(())
            });
            let _ = decoder.end();
        }
    }

    #[test]
    fn a_span_that_is_cut_or_empty_is_a_fault() {
        for bytes in [&[][..], &[1], &[0x81], &[1, 0x80]] {
            let mut decoder = Decoder::default();
            decoder.feed::<String>(bytes, |_, _| Ok(())).unwrap();
            assert_eq!(decoder.end(), Err(Fault::Cut));
        }
        for (bytes, fault) in [(&[2u8][..], Fault::Order), (&[1, 0, 1], Fault::Order), (&[0x80; 5], Fault::Varint)] {
            assert_eq!(Decoder::default().feed::<String>(bytes, |_, _| Ok(())), Err(fault.text().to_owned()));
        }
    }
}
