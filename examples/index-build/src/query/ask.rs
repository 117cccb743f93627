//! The questions of the command and their answers. Document frequencies of terms and phrases of one word come from the
//! dictionaries; the rest is counted from postings, one segment after the other, so that an answer needs memory for the
//! documents of one segment at most.
use std::cmp::Ordering;

use serde::Serialize;

use super::index::Index;
use super::phrase;
use super::words::words;
use crate::error::{Error, Result};
use crate::segment::{Decoder, Field, Segment, TermInfo};

/// What is asked of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// This term, byte for byte.
    Term(String),
    /// The words of this text one after the other, whatever separates them; a phrase of one word is a term.
    Phrase(String),
    /// All words of this text in one document, in any order; a comma separates like any other sign.
    And(String),
    /// At least one word of this text.
    Or(String),
}

/// What a question came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Documents that match.
    pub df: u64,
    /// How often, for a term or phrase; overlapping phrases count each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrences: Option<u64>,
    /// Documents in the index.
    pub documents: u64,
    /// The first documents that match, as many as were asked for.
    pub ids: Vec<u64>,
}

impl Answer {
    fn found(&mut self, limit: usize, id: u64) {
        self.df += 1;
        if self.ids.len() < limit {
            self.ids.push(id);
        }
    }
}

impl Index {
    /// Answers a question; `field` may be left out where there is only one, `ids` is how many documents to name.
    ///
    /// # Errors
    /// [`Error::Usage`] for a field that does not exist or is missing, or a question without a word; [`Error::Corrupt`] or
    /// [`Error::Io`] from the files.
    pub fn query(&self, field: Option<&str>, query: &Query, ids: usize) -> Result<Answer> {
        let field = self.field(field)?;
        let words = match query {
            Query::Term(term) => vec![term.as_bytes().to_vec()],
            Query::Phrase(text) | Query::And(text) | Query::Or(text) => {
                let words = words(text)?;
                if words.is_empty() {
                    return Err(Error::Usage(format!("{text:?} holds no word: letters or digits are needed")));
                }
                words
            }
        };
        let Some(field) = field else {
            let occurrences = matches!(query, Query::Term(_) | Query::Phrase(_)).then_some(0);
            return Ok(Answer { occurrences, documents: self.manifest().documents, ..Answer::default() });
        };
        match query {
            Query::Term(_) | Query::Phrase(_) => self.phrase(field, &words, ids),
            Query::And(_) => self.combined(field, words, ids, true),
            Query::Or(_) => self.combined(field, words, ids, false),
        }
    }

    /// A term, or terms at consecutive positions; they are taken as they are.
    pub(crate) fn phrase(&self, field: &str, words: &[Vec<u8>], ids: usize) -> Result<Answer> {
        let mut answer = Answer { occurrences: Some(0), documents: self.manifest().documents, ..Answer::default() };
        let mut occurrences = 0u64;
        let mut decoder = Decoder::new()?;
        for (base, segment) in self.based_segments() {
            let Some(field) = segment.field(field) else { continue };
            let Some(infos) = look_up_all(segment, field, words, &mut decoder)? else { continue };
            if let [info] = infos.as_slice() {
                answer.df += u64::from(info.df);
                occurrences = occurrences.saturating_add(info.occurrences);
                let mut postings = segment.postings();
                postings.start(info)?;
                while answer.ids.len() < ids {
                    let Some((doc, _)) = postings.next_document()? else { break };
                    answer.ids.push(base + u64::from(doc));
                }
            } else {
                let mut last = None;
                phrase::matches(segment, &infos, |doc, _| {
                    occurrences += 1;
                    if last.replace(doc) != Some(doc) {
                        answer.found(ids, base + u64::from(doc));
                    }
                })?;
            }
        }
        answer.occurrences = Some(occurrences);
        Ok(answer)
    }

    /// Documents with all words, or with any.
    fn combined(&self, field: &str, mut words: Vec<Vec<u8>>, ids: usize, all: bool) -> Result<Answer> {
        words.sort();
        words.dedup();
        let mut answer = Answer { documents: self.manifest().documents, ..Answer::default() };
        let mut decoder = Decoder::new()?;
        for (base, segment) in self.based_segments() {
            let Some(field) = segment.field(field) else { continue };
            let mut infos = Vec::new();
            for word in &words {
                infos.extend(segment.look_up(field, word, &mut decoder)?);
            }
            if infos.is_empty() || all && infos.len() < words.len() {
                continue;
            }
            // the rarest first keeps an intersection small
            infos.sort_by_key(|info| info.df);
            let mut docs = all_documents(segment, &infos[0])?;
            for info in &infos[1..] {
                docs = if all { intersect(segment, docs, info)? } else { unite(segment, &docs, info)? };
            }
            for doc in docs {
                answer.found(ids, base + u64::from(doc));
            }
        }
        Ok(answer)
    }
}

/// The entries of all words, or `None` if a word is not in the segment.
fn look_up_all(
    segment: &Segment,
    field: &Field,
    words: &[Vec<u8>],
    decoder: &mut Decoder,
) -> Result<Option<Vec<TermInfo>>> {
    let mut infos = Vec::with_capacity(words.len());
    for word in words {
        match segment.look_up(field, word, decoder)? {
            Some(info) => infos.push(info),
            None => return Ok(None),
        }
    }
    Ok(Some(infos))
}

fn all_documents(segment: &Segment, info: &TermInfo) -> Result<Vec<u32>> {
    let mut postings = segment.postings();
    postings.start(info)?;
    let mut docs = Vec::new();
    while let Some((doc, _)) = postings.next_document()? {
        docs.push(doc);
    }
    Ok(docs)
}

/// Keeps of `docs` those that hold the term.
fn intersect(segment: &Segment, mut docs: Vec<u32>, info: &TermInfo) -> Result<Vec<u32>> {
    let mut postings = segment.postings();
    postings.start(info)?;
    let mut current = postings.next_document()?;
    let (mut kept, mut at) = (0, 0);
    while let (Some((doc, _)), true) = (current, at < docs.len()) {
        match docs[at].cmp(&doc) {
            Ordering::Less => at += 1,
            Ordering::Greater => current = postings.next_document()?,
            Ordering::Equal => {
                docs[kept] = doc;
                kept += 1;
                at += 1;
            }
        }
    }
    docs.truncate(kept);
    Ok(docs)
}

/// `docs` and the documents that hold the term, in order, each once.
fn unite(segment: &Segment, docs: &[u32], info: &TermInfo) -> Result<Vec<u32>> {
    let mut postings = segment.postings();
    postings.start(info)?;
    let mut out = Vec::with_capacity(docs.len());
    let mut rest = docs.iter().copied().peekable();
    while let Some((doc, _)) = postings.next_document()? {
        while let Some(other) = rest.next_if(|&other| other < doc) {
            out.push(other);
        }
        rest.next_if_eq(&doc);
        out.push(doc);
    }
    out.extend(rest);
    Ok(out)
}
