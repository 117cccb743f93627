//! The face of the read side: one segment, its fields, and readers of their terms and postings. What is here borrows the
//! segment, so any number of readers can work on it side by side.
use std::path::{Path, PathBuf};

use plimsoll::spill::read::{Pages, Reader};

use super::catalog::{self, Field};
use super::format::Part;
use super::pages::{self, PageCursor};
use super::postings::Postings;
use super::read_at::Source;
use super::terms::{Decoder, TermInfo, Terms};
use crate::error::Result;

/// An open segment.
#[derive(Debug)]
pub struct Segment {
    number: u32,
    terms: Source,
    post: Pages<Source>,
    pos: Pages<Source>,
    fields: Vec<Field>,
}

impl Segment {
    /// Opens segment `number` in `dir` and checks what its files say of themselves; blocks and pages are checked when they
    /// are read. Its three files are read through readers that `reader` makes, which decides how long they stay open.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::error::Error::Corrupt) or [`Error::Io`](crate::error::Error::Io), naming the file.
    pub fn open(dir: &Path, number: u32, reader: &dyn Fn(PathBuf) -> Reader) -> Result<Segment> {
        let open = |part| Source::open(dir, part, number, reader);
        let (terms, post, pos) = (open(Part::Terms)?, open(Part::Postings)?, open(Part::Positions)?);
        for other in [&post, &pos] {
            if other.footer.documents != terms.footer.documents {
                return Err(other.corrupt(other.footer.trailer_offset, "the files of a segment differ in documents"));
            }
        }
        let (post, pos) = (pages::pages(post)?, pages::pages(pos)?);
        let fields = catalog::read(&terms)?;
        Ok(Segment { number, terms, post, pos, fields })
    }

    fn files(&self) -> [&Source; 3] {
        [&self.terms, self.post.source(), self.pos.source()]
    }

    /// How often its files were opened.
    pub fn opens(&self) -> u64 {
        self.files().map(Source::opens).iter().sum()
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn documents(&self) -> u32 {
        self.terms.footer.documents
    }

    /// Where the terms are, for errors that are about the segment as a whole.
    pub fn path(&self) -> &Path {
        self.terms.path()
    }

    /// The bytes of one of its files.
    pub fn part_bytes(&self, part: Part) -> u64 {
        match part {
            Part::Terms => self.terms.bytes,
            Part::Postings => self.post.source().bytes,
            Part::Positions => self.pos.source().bytes,
        }
    }

    /// Its fields in byte order; a field of the index without a document here may be missing.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok()?;
        Some(&self.fields[at])
    }

    /// The catalog and the readers of its files, by capacity; what is read through the segment is its readers' own.
    pub fn allocated_bytes(&self) -> usize {
        let fields = self.fields.iter().map(Field::allocated_bytes).sum::<usize>();
        let files = self.files().map(Source::allocated_bytes).iter().sum::<usize>();
        fields + files + self.fields.capacity() * size_of::<Field>()
    }

    /// All terms of one of its fields, in byte order.
    pub fn terms<'a>(&'a self, field: &'a Field) -> Terms<'a> {
        Terms::new(&self.terms, field)
    }

    /// Finds a term byte for byte.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::error::Error::Corrupt) if the block that would hold it is damaged.
    pub fn look_up(&self, field: &Field, term: &[u8], decoder: &mut Decoder) -> Result<Option<TermInfo>> {
        Terms::look_up(&self.terms, field, term, decoder)
    }

    /// A reader of postings of this segment; it takes up to two pages once it is used.
    pub fn postings(&self) -> Postings<'_> {
        Postings::new(&self.terms, PageCursor::new(&self.post), PageCursor::new(&self.pos))
    }
}
