//! The face of the write side. What is pushed comes in order (fields by name, terms within a field, occurrences within a
//! term), so nothing is sorted and little is kept; the bytes of the files depend on what is pushed and on nothing else.
//! `build` drives it from the merge of a batch's runs.
use std::path::Path;

use serde::Serialize;

use super::dictionary_out::DictionaryWriter;
use super::format::Part;
use super::output::{PagedOutput, SegmentFile};
use super::postings_out::PostingsEncoder;
use crate::error::{Error, Result};

/// What one field of a segment came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FieldStats {
    /// Distinct terms.
    pub terms: u64,
    /// The sum of all document frequencies.
    pub postings: u64,
    /// The sum of all occurrences.
    pub tokens: u64,
    /// Documents with at least one token in this field.
    pub documents_with_tokens: u32,
}

/// Writes the three files of a segment. After an error, or when it is dropped before [`finish`](Self::finish), the files
/// stay as they are, for the caller to remove with the folder that holds them.
#[derive(Debug)]
pub struct SegmentWriter {
    dictionary: DictionaryWriter,
    postings: PostingsEncoder,
    post: PagedOutput,
    pos: PagedOutput,
    number: u32,
    field: Option<String>,
    in_field: bool,
    in_term: bool,
    stats: FieldStats,
    /// The fewest documents that the segment can have after what was pushed.
    documents_needed: u64,
}

impl SegmentWriter {
    /// Creates the files of segment `number` in `dir`; none of them may exist.
    ///
    /// # Errors
    /// If a file cannot be created, or there is no memory for the compressor.
    pub fn create(dir: &Path, number: u32) -> Result<SegmentWriter> {
        Ok(SegmentWriter {
            dictionary: DictionaryWriter::create(dir, number)?,
            postings: PostingsEncoder::new(),
            post: PagedOutput::create(dir, Part::Postings, number)?,
            pos: PagedOutput::create(dir, Part::Positions, number)?,
            number,
            field: None,
            in_field: false,
            in_term: false,
            stats: FieldStats::default(),
            documents_needed: 0,
        })
    }

    /// Opens a field.
    ///
    /// # Errors
    /// If another field is open, or `name` is not greater, by bytes, than the field before.
    pub fn begin_field(&mut self, name: &str) -> Result<()> {
        if self.in_field {
            return Err(self.misused("a field begins before the last one has ended"));
        }
        if self.field.as_deref().is_some_and(|last| last >= name) {
            return Err(self.misused("fields have to ascend in byte order, each once"));
        }
        self.dictionary.begin_field(name);
        let field = self.field.get_or_insert_default();
        field.clear();
        field.push_str(name);
        self.in_field = true;
        self.stats = FieldStats::default();
        Ok(())
    }

    /// Opens a term of the open field.
    ///
    /// # Errors
    /// If it is not greater, by bytes, than the term before, if no field or another term is open, or if writing fails.
    #[inline]
    pub fn begin_term(&mut self, term: &[u8]) -> Result<()> {
        if !self.in_field || self.in_term {
            return Err(self.misused("a term begins outside a field, or before the last term has ended"));
        }
        self.dictionary.begin_term(term)?;
        self.postings.begin(self.post.position(), self.pos.position());
        self.in_term = true;
        Ok(())
    }

    /// One occurrence of the open term.
    ///
    /// # Errors
    /// If (document, position) is not greater than the one before, if no term is open, or if writing fails.
    #[inline]
    pub fn occurrence(&mut self, doc: u32, position: u32) -> Result<()> {
        debug_assert!(self.in_term, "an occurrence belongs to an open term");
        self.postings.occurrence(doc, position, &mut self.post, &mut self.pos)
    }

    /// Closes the open term.
    ///
    /// # Errors
    /// If it had no occurrence, if none is open, or if writing fails.
    #[inline]
    pub fn end_term(&mut self) -> Result<()> {
        if !self.in_term {
            return Err(self.misused("no term is open"));
        }
        let Some(place) = self.postings.end(&mut self.post, &mut self.pos)? else {
            return Err(self.misused("a term without an occurrence"));
        };
        self.dictionary.end_term(&self.postings, place);
        self.in_term = false;
        self.stats.terms += 1;
        self.stats.postings += u64::from(self.postings.df());
        self.stats.tokens += self.postings.occurrences();
        self.documents_needed = self.documents_needed.max(u64::from(self.postings.last_doc()) + 1);
        Ok(())
    }

    /// Closes the open field and says what it came to.
    ///
    /// # Errors
    /// If a term is still open, if no field is, or if writing fails.
    pub fn end_field(&mut self, documents_with_tokens: u32) -> Result<FieldStats> {
        if !self.in_field || self.in_term {
            return Err(self.misused("a field ends that is not open, or before its last term"));
        }
        self.stats.documents_with_tokens = documents_with_tokens;
        self.dictionary.end_field(&self.stats)?;
        self.documents_needed = self.documents_needed.max(u64::from(documents_with_tokens));
        self.in_field = false;
        Ok(self.stats)
    }

    /// Writes what is left and gives back the three files, in the order of the manifest, not yet synced.
    ///
    /// # Errors
    /// If a field is still open, if there are fewer documents than the postings name, or if writing fails.
    pub fn finish(self, documents: u32) -> Result<Vec<SegmentFile>> {
        if self.in_field {
            return Err(self.misused("the segment ends before its last field"));
        }
        if self.documents_needed > u64::from(documents) {
            return Err(self.misused("postings name more documents than there are"));
        }
        Ok(vec![self.dictionary.finish(documents)?, self.post.finish(documents)?, self.pos.finish(documents)?])
    }

    /// All that the writer holds on the heap: buffers by capacity, the compressor by the library's own account. It grows by
    /// a few bytes for each dictionary block, and while a term longer than a block is written, by that term's length.
    pub fn allocated_bytes(&self) -> usize {
        self.dictionary.allocated_bytes()
            + self.postings.allocated_bytes()
            + self.post.allocated_bytes()
            + self.pos.allocated_bytes()
            + self.field.as_ref().map_or(0, String::capacity)
    }

    #[cold]
    fn misused(&self, why: &str) -> Error {
        let field = self.field.as_deref().unwrap_or("none");
        Error::Failed(format!("segment {}, field {field:?}: {why}", self.number))
    }
}
