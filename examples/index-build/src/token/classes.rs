//! Runs of ASCII letters and digits and of bytes beyond ASCII, found 64 bytes at a time.
//!
//! A block of 64 bytes becomes three words, a bit a byte: in a run, upper case, beyond ASCII. Where runs begin and end is
//! then read off the words, so there is a branch a run and none a byte. The words are made eight bytes at a time with plain
//! arithmetic; a test compares them with what is found byte by byte.

/// Bits of 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Classes {
    /// an ASCII letter or digit, or a byte beyond ASCII
    run: u64,
    upper: u64,
    beyond: u64,
}

/// A run of bytes of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    /// An upper-case ASCII letter is in it.
    pub(super) upper: bool,
    /// A byte beyond ASCII is in it.
    pub(super) beyond: bool,
}

/// Walks over the runs of a text.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    text: &'a [u8],
    /// offset of the block
    base: usize,
    classes: Classes,
    /// bits of `classes.run` that were not handed out yet
    rest: u64,
}

impl<'a> Runs<'a> {
    #[inline]
    pub(super) fn of(text: &'a [u8]) -> Runs<'a> {
        let classes = block(text, 0);
        Runs { text, base: 0, classes, rest: classes.run }
    }

    /// Goes to the next block; false at the end of the text.
    #[inline]
    fn advance(&mut self) -> bool {
        if self.text.len() - self.base <= 64 {
            return false;
        }
        self.base += 64;
        self.classes = block(self.text, self.base);
        self.rest = self.classes.run;
        true
    }

    /// The next run.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Run> {
        while self.rest == 0 {
            if !self.advance() {
                return None;
            }
        }
        let from = self.rest.trailing_zeros();
        let length = (!(self.rest >> from)).trailing_zeros();
        let start = self.base + from as usize;
        if from + length < 64 {
            let bits = ((1u64 << length) - 1) << from;
            self.rest &= !bits;
            let Classes { upper, beyond, .. } = self.classes;
            return Some(Run {
                start,
                end: start + length as usize,
                upper: upper & bits != 0,
                beyond: beyond & bits != 0,
            });
        }
        Some(self.long(start, from))
    }

    /// A run that reaches the end of its block.
    #[inline(never)]
    fn long(&mut self, start: usize, from: u32) -> Run {
        let bits = u64::MAX << from;
        let (mut upper, mut beyond) = (self.classes.upper & bits != 0, self.classes.beyond & bits != 0);
        loop {
            self.rest = 0;
            if !self.advance() {
                return Run { start, end: self.text.len().min(self.base + 64), upper, beyond };
            }
            let length = (!self.rest).trailing_zeros();
            let bits = if length == 64 { u64::MAX } else { (1u64 << length) - 1 };
            upper |= self.classes.upper & bits != 0;
            beyond |= self.classes.beyond & bits != 0;
            if length < 64 {
                self.rest &= !bits;
                return Run { start, end: self.base + length as usize, upper, beyond };
            }
        }
    }
}

/// The classes of the 64 bytes at `at`; behind the end of the text there are separators.
#[inline]
fn block(text: &[u8], at: usize) -> Classes {
    match text.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
        Some(bytes) => classify(bytes),
        None => {
            let mut bytes = [0u8; 64];
            let rest = text.get(at..).unwrap_or_default();
            bytes[..rest.len()].copy_from_slice(rest);
            classify(&bytes)
        }
    }
}

/// Every byte of a word alike.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of every byte.
const HIGH: u64 = each(0x80);

/// The highest bit of every byte that is from `least` to `last`. No byte of `word` is beyond ASCII, so no sum carries.
#[inline(always)]
fn within(word: u64, least: u8, last: u8) -> u64 {
    (word + each(0x80 - least)) & !(word + each(0x7F - last))
}

/// The highest bits of the bytes, in their order, as a byte.
#[inline(always)]
fn gather(word: u64) -> u64 {
    (word & HIGH).wrapping_mul(0x0002_0408_1020_4081) >> 56
}

#[inline]
fn classify(bytes: &[u8; 64]) -> Classes {
    let (mut run, mut upper, mut beyond) = (0u64, 0u64, 0u64);
    for (number, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let ascii = word & !HIGH;
        let letter = within(ascii | each(0x20), b'a', b'z');
        let digit = within(ascii, b'0', b'9');
        run |= gather(letter | digit | word) << (8 * number);
        upper |= gather(within(ascii, b'A', b'Z') & !word) << (8 * number);
        beyond |= word & HIGH;
    }
    if beyond != 0 {
        beyond = 0;
        for (number, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            beyond |= gather(u64::from_le_bytes(*word)) << (8 * number);
        }
    }
    Classes { run, upper, beyond }
}

/// Byte by byte.
#[cfg(test)]
fn plainly(bytes: &[u8; 64]) -> Classes {
    let (mut run, mut upper, mut beyond) = (0u64, 0u64, 0u64);
    for (number, byte) in bytes.iter().enumerate() {
        run |= u64::from(byte.is_ascii_alphanumeric() || *byte >= 0x80) << number;
        upper |= u64::from(byte.is_ascii_uppercase()) << number;
        beyond |= u64::from(*byte >= 0x80) << number;
    }
    Classes { run, upper, beyond }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_byte_has_its_class_in_every_place() {
        for byte in 0..=255u8 {
            for place in [0, 7, 8, 15, 16, 63] {
                let mut bytes = [b' '; 64];
                bytes[place] = byte;
                assert_eq!(classify(&bytes), plainly(&bytes), "{byte:x} at {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_those_that_are_found_byte_by_byte(
            text in proptest::collection::vec(prop_oneof![9 => Just(b'a'), 1 => any::<u8>()], 0..400)
        ) {
            let mut runs = Runs::of(&text);
            let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
            let mut at = 0;
            while let Some(run) = runs.next() {
                prop_assert!(text[at..run.start].iter().all(|byte| !in_run(byte)));
                let found = &text[run.start..run.end];
                prop_assert!(!found.is_empty() && found.iter().all(in_run));
                prop_assert!(text.get(run.end).is_none_or(|byte| !in_run(byte)));
                prop_assert_eq!(run.upper, found.iter().any(u8::is_ascii_uppercase));
                prop_assert_eq!(run.beyond, !found.is_ascii());
                at = run.end;
            }
            prop_assert!(!text[at..].iter().any(in_run));
        }
    }
}
