//! The words of a question, split by the tokenizer that split the documents.
use crate::error::Result;
use crate::token::{Sink, Tokenizer};

struct Words(Vec<Vec<u8>>);

impl Sink for Words {
    fn token(&mut self, token: &[u8]) -> Result<()> {
        self.0.push(token.to_vec());
        Ok(())
    }

    fn scratch(&mut self, _old: usize, _new: usize) {}
}

/// The tokens of `text`, in order.
pub(crate) fn words(text: &str) -> Result<Vec<Vec<u8>>> {
    let mut words = Words(Vec::new());
    Tokenizer::new().each(text.as_bytes(), &mut words)?;
    Ok(words.0)
}
