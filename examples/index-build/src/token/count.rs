//! What a text can bring to a writer, by one look at its runs: how many tokens at most, and how long.
use super::classes::Runs;

/// Upper bounds; exact for a text in ASCII.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Tokens.
    pub tokens: usize,
    /// Bytes of the tokens that are longer than 8.
    pub long_bytes: usize,
    /// Bytes of the longest token.
    pub longest: usize,
}

/// Counts a text.
pub fn count(text: &[u8]) -> Counted {
    let mut counted = Counted::default();
    let mut runs = Runs::of(text);
    while let Some(run) = runs.next() {
        let length = run.end - run.start;
        let (tokens, bytes) = match run.beyond {
            // a separator between two tokens; and a character of two bytes may become one of three in lower case
            true => (length.div_ceil(2), length + length.div_ceil(2)),
            false => (1, length),
        };
        counted.tokens += tokens;
        if bytes > 8 {
            counted.long_bytes += bytes;
        }
        counted.longest = counted.longest.max(bytes);
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::token::{Sink, Tokenizer};
    use proptest::prelude::*;

    #[derive(Default)]
    struct Exact(Counted);
    impl Sink for Exact {
        fn token(&mut self, token: &[u8]) -> Result<()> {
            self.0.tokens += 1;
            self.0.long_bytes += if token.len() > 8 { token.len() } else { 0 };
            self.0.longest = self.0.longest.max(token.len());
            Ok(())
        }
        fn scratch(&mut self, _: usize, _: usize) {}
    }

    fn exact(text: &[u8]) -> Counted {
        let mut exact = Exact::default();
        Tokenizer::new().each(text, &mut exact).unwrap();
        exact.0
    }

    proptest! {
        #[test]
        fn a_text_in_ascii_is_counted_exactly(text in "[a-cZ0 .\\-]{0,200}") {
            prop_assert_eq!(count(text.as_bytes()), exact(text.as_bytes()));
        }

        #[test]
        fn no_text_has_more_or_longer_tokens(text in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "[aÄ\u{23A}\u{130}ſ€ß \u{4E00}\u{2028}-]{0,80}".prop_map(String::into_bytes),
        ]) {
            let (most, exact) = (count(&text), exact(&text));
            prop_assert!(most.tokens >= exact.tokens && most.long_bytes >= exact.long_bytes && most.longest >= exact.longest);
        }
    }
}
