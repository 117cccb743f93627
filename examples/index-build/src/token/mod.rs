//! What a token is, on bytes: a maximal run of alphanumeric characters, lower-cased one character to one.
//!
//! The text is UTF-8 in which every maximal invalid part stands for U+FFFD, which is not alphanumeric. A single invalid
//! byte taken as a separator gives the same tokens, because the bytes that follow it in the invalid part cannot start a
//! character either. `classes` finds runs of ASCII letters, digits and bytes beyond ASCII, 64 bytes at a time; a run
//! without bytes beyond ASCII is a token as it is, any other is decoded here, and asked about at `char`. ASCII separates
//! whatever stands around it, so no character and no invalid part lies in two runs.
//! The builder, the queries and nothing else use this folder, so that both read text alike.
mod classes;
mod count;

pub use count::{Counted, count};

use crate::error::Result;
use classes::Runs;

/// A token: up to 8 bytes are in its key, all of a longer one is in `long`.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a> {
    /// The first 8 bytes as a big-endian word, filled up with 0: terms sort by it.
    pub key: u64,
    pub length: usize,
    /// The bytes, if there are more than 8.
    pub long: &'a [u8],
}

impl<'a> Term<'a> {
    /// The term of these bytes.
    #[inline(always)]
    pub fn of(bytes: &'a [u8]) -> Term<'a> {
        Term { key: key(bytes), length: bytes.len(), long: bytes }
    }

    /// The bytes; those of a short one are put into `short`.
    #[inline]
    pub fn bytes<'b>(&'b self, short: &'b mut [u8; 8]) -> &'b [u8] {
        if self.length > 8 {
            return self.long;
        }
        *short = self.key.to_be_bytes();
        &short[..self.length]
    }
}

/// The first 8 bytes of a term as a big-endian word.
#[inline(always)]
pub fn key(term: &[u8]) -> u64 {
    if let Some(first) = term.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let length = term.len() as u32;
    if let (Some(first), Some(last)) = (term.first_chunk::<4>(), term.last_chunk::<4>()) {
        return u64::from(u32::from_be_bytes(*first)) << 32
            | u64::from(u32::from_be_bytes(*last)) << (8 * (8 - length));
    }
    match *term {
        [a] => u64::from(a) << 56,
        [a, b] => u64::from(a) << 56 | u64::from(b) << 48,
        [a, b, c] => u64::from(a) << 56 | u64::from(b) << 48 | u64::from(c) << 40,
        _ => 0,
    }
}

/// What receives the tokens of a text.
pub trait Sink {
    /// The next token, lower-cased. Borrowed from the text where lower-casing changes nothing.
    fn token(&mut self, token: &[u8]) -> Result<()>;

    /// The same for who can use a key.
    #[inline]
    fn term(&mut self, term: Term<'_>) -> Result<()> {
        self.token(term.bytes(&mut [0; 8]))
    }

    /// Called before the buffer for changed tokens grows from `old` to `new` bytes of capacity.
    fn scratch(&mut self, old: usize, new: usize);
}

/// The bit that makes an ASCII letter lower case; digits have it anyway.
const LOWER: u8 = 0x20;
/// It, in every byte of a word.
const LOWER_WORD: u64 = u64::from_ne_bytes([LOWER; 8]);

/// Splits texts into tokens; keeps one buffer for tokens that lower-casing changes.
#[derive(Debug, Default)]
pub struct Tokenizer {
    scratch: Vec<u8>,
}

impl Tokenizer {
    /// A tokenizer with no buffer yet.
    pub fn new() -> Tokenizer {
        Tokenizer::default()
    }

    /// The capacity of the buffer, which [`Sink::scratch`] has been told of.
    pub fn allocated_bytes(&self) -> usize {
        self.scratch.capacity()
    }

    /// Frees the buffer.
    pub fn release(&mut self) {
        self.scratch = Vec::new();
    }

    /// Hands every token of `text` to `sink`, in order.
    #[inline]
    pub fn each<S: Sink>(&mut self, text: &[u8], sink: &mut S) -> Result<()> {
        let mut runs = Runs::of(text);
        while let Some(run) = runs.next() {
            if run.beyond {
                self.beyond_ascii(&text[run.start..run.end], sink)?;
                continue;
            }
            let length = run.end - run.start;
            // the parts of a term stay apart until the call: put together in memory here, they would be read back at once
            let (first, long) = if length <= 8 {
                let first = match text[run.start..].first_chunk::<8>() {
                    // what stands behind the token is cut off
                    Some(eight) => u64::from_be_bytes(*eight) & u64::MAX << (64 - 8 * length),
                    None => key(&text[run.start..run.end]),
                };
                (first | LOWER_WORD & u64::MAX << (64 - 8 * length), &[][..])
            } else {
                let long =
                    if run.upper { self.lowered(&text[run.start..run.end], sink) } else { &text[run.start..run.end] };
                (key(long), long)
            };
            sink.term(Term { key: first, length, long })?;
        }
        Ok(())
    }

    /// The tokens of a run with bytes beyond ASCII.
    #[inline(never)]
    fn beyond_ascii<S: Sink>(&mut self, run: &[u8], sink: &mut S) -> Result<()> {
        let mut at = 0;
        while at < run.len() {
            at = self.token_of_run(run, at, sink)?;
        }
        Ok(())
    }

    /// The token at `start`, if there is one. Returns where to go on.
    fn token_of_run<S: Sink>(&mut self, text: &[u8], start: usize, sink: &mut S) -> Result<usize> {
        self.scratch.clear();
        let mut at = start;
        // bytes of [start, copied) are in the buffer, lower-cased; nothing was changed while the buffer is empty
        let mut copied = start;
        let mut changed = false;
        while let Some(&byte) = text.get(at) {
            if byte < 0x80 {
                changed |= byte.is_ascii_uppercase();
                at += 1;
                continue;
            }
            let Some((character, length)) = decode(&text[at..]) else { break };
            if !character.is_alphanumeric() {
                break;
            }
            let lower = lower(character);
            if lower != character {
                self.copy_lowered(&text[copied..at], sink);
                let mut utf8 = [0u8; 4];
                let utf8 = lower.encode_utf8(&mut utf8).as_bytes();
                self.room(utf8.len(), sink);
                self.scratch.extend_from_slice(utf8);
                changed = true;
                copied = at + length;
            }
            at += length;
        }
        if changed {
            self.copy_lowered(&text[copied..at], sink);
            sink.term(Term::of(&self.scratch))?;
        } else if at > start {
            sink.term(Term::of(&text[start..at]))?;
        }
        // what ended the token separates; a whole character is skipped at once
        Ok(at + text.get(at..).and_then(decode).map_or(1, |(_, length)| length))
    }

    /// An ASCII token in lower case.
    #[inline]
    fn lowered<S: Sink>(&mut self, token: &[u8], sink: &mut S) -> &[u8] {
        self.scratch.clear();
        self.room(token.len(), sink);
        self.scratch.extend_from_slice(token);
        self.scratch.iter_mut().for_each(|byte| *byte |= LOWER);
        &self.scratch
    }

    /// Appends bytes of which only ASCII letters have to be lower-cased.
    fn copy_lowered<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) {
        self.room(bytes.len(), sink);
        let from = self.scratch.len();
        self.scratch.extend_from_slice(bytes);
        self.scratch[from..].make_ascii_lowercase();
    }

    /// Makes room for `more` bytes, announced before it is taken.
    #[inline(always)]
    fn room<S: Sink>(&mut self, more: usize, sink: &mut S) {
        let need = self.scratch.len().saturating_add(more);
        if need > self.scratch.capacity() {
            self.grow(need, sink);
        }
    }

    #[cold]
    fn grow<S: Sink>(&mut self, need: usize, sink: &mut S) {
        let capacity = need.max(64).checked_next_power_of_two().unwrap_or(need);
        sink.scratch(self.scratch.capacity(), capacity);
        self.scratch.reserve_exact(capacity - self.scratch.len());
    }
}

/// The first character of its lower-case form: the simple mapping, one character to one, without context.
fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

/// The character beyond ASCII at the start of `bytes` and its length; `None` if the bytes are not one.
#[inline]
fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let tail = |at: usize| bytes.get(at).filter(|&&byte| byte & 0xC0 == 0x80).map(|&byte| u32::from(byte & 0x3F));
    let first = u32::from(*bytes.first()?);
    let (value, length, least) = match first {
        0xC2..=0xDF => ((first & 0x1F) << 6 | tail(1)?, 2, 0x80),
        0xE0..=0xEF => ((first & 0x0F) << 12 | tail(1)? << 6 | tail(2)?, 3, 0x800),
        0xF0..=0xF4 => ((first & 0x07) << 18 | tail(1)? << 12 | tail(2)? << 6 | tail(3)?, 4, 0x10000),
        _ => return None,
    };
    // overlong forms, surrogates and values beyond U+10FFFF are no characters
    if value < least { None } else { char::from_u32(value).map(|character| (character, length)) }
}

/// The tokens of a text, for queries.
pub fn tokens(text: &str) -> Vec<String> {
    struct Collect(Vec<String>);
    impl Sink for Collect {
        fn token(&mut self, token: &[u8]) -> Result<()> {
            // lower-casing whole characters of a string gives a string
            self.0.push(String::from_utf8_lossy(token).into_owned());
            Ok(())
        }
        fn scratch(&mut self, _: usize, _: usize) {}
    }
    let mut collect = Collect(Vec::new());
    // collecting never fails
    let _ = Tokenizer::new().each(text.as_bytes(), &mut collect);
    collect.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, word for word: decode lossily, split, lower-case.
    fn plainly(bytes: &[u8]) -> Vec<Vec<u8>> {
        String::from_utf8_lossy(bytes)
            .split(|c: char| !c.is_alphanumeric())
            .filter(|token| !token.is_empty())
            .map(|token| token.chars().map(|c| c.to_lowercase().next().unwrap()).collect::<String>().into_bytes())
            .collect()
    }

    #[derive(Default)]
    struct All {
        tokens: Vec<Vec<u8>>,
        scratch: usize,
    }

    impl Sink for All {
        fn token(&mut self, token: &[u8]) -> Result<()> {
            self.tokens.push(token.to_vec());
            Ok(())
        }
        fn scratch(&mut self, old: usize, new: usize) {
            assert_eq!(old, self.scratch);
            self.scratch = new;
        }
    }

    fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
        let (mut tokenizer, mut all) = (Tokenizer::new(), All::default());
        tokenizer.each(bytes, &mut all).unwrap();
        assert_eq!(tokenizer.allocated_bytes(), all.scratch, "growth of the buffer is announced");
        all.tokens
    }

    #[test]
    fn a_key_is_the_first_eight_bytes_filled_up() {
        for length in 0..20usize {
            let term: Vec<u8> = (1..=length as u8).collect();
            let mut plain = [0u8; 8];
            plain[..length.min(8)].copy_from_slice(&term[..length.min(8)]);
            assert_eq!(key(&term), u64::from_be_bytes(plain), "{length}");
        }
    }

    #[test]
    fn text_is_split_at_everything_that_is_not_alphanumeric() {
        assert_eq!(tokens("GET /a_b-c HTTP/1.1\r"), ["get", "a", "b", "c", "http", "1", "1"]);
        assert!(tokens("").is_empty() && tokens(" -_\0\r\u{FEFF}").is_empty());
    }

    #[test]
    fn lower_case_is_one_character_to_one_without_context() {
        assert_eq!(
            tokens("\u{130}stanbul \u{39F}\u{3A3} \u{212A}elvin \u{23A}x"),
            ["istanbul", "\u{3BF}\u{3C3}", "kelvin", "\u{2C65}x"]
        );
    }

    #[test]
    fn invalid_bytes_separate_and_are_in_no_token() {
        for bytes in [
            &b"a\xE2\x82b\xFFc"[..],
            b"\xC0\x80x\xED\xA0\x80y\xF4\x90\x80\x80z",
            b"caf\xE9 na\xC3\xAFve \xC3",
            b"\xF0\x9F\x98",
            b"\x80\x80A\xC3\x89B\xC3",
            b"\xE0\x9F\xBFk",
        ] {
            assert_eq!(split(bytes), plainly(bytes), "{bytes:x?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn any_bytes_give_the_tokens_of_their_lossy_text(bytes in proptest::collection::vec(prop_oneof![
            any::<u8>(), Just(b' '), 0x41u8..0x7B, Just(0xC3u8), Just(0xE2u8), 0x80u8..0xC0
        ], 0..80)) {
            prop_assert_eq!(split(&bytes), plainly(&bytes));
        }

        #[test]
        fn any_text_gives_the_tokens_of_the_definition(text in "[\\PC aB\u{130}\u{3A3}\u{23A}\u{1E9E}\u{661}\u{660E}]{0,60}") {
            prop_assert_eq!(split(text.as_bytes()), plainly(text.as_bytes()));
        }
    }
}
