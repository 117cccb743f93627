//! The documents of one term, in order, with frequencies, and on request the positions in each. One reader serves any
//! number of terms of its segment, so that its two pages and its block buffers are allocated once. Everything is checked:
//! documents ascend and exist, positions ascend, frequencies add up to what the dictionary says.
use bitpacking::{BitPacker, BitPacker4x};

use super::format::PACKED;
use super::pages::PageCursor;
use super::read_at::Source;
use super::terms::{TermInfo, TermPlace};
use super::varint;
use crate::error::{Error, Result};

/// Reads the postings of terms of one segment; [`start`](Self::start) chooses the term.
#[derive(Debug)]
pub struct Postings<'a> {
    terms: &'a Source,
    documents: u32,
    post: PageCursor<'a>,
    pos: PageCursor<'a>,
    inline: bool,
    block_offset: u64,
    gaps: [u32; PACKED],
    more: [u32; PACKED],
    docs_at: usize,
    docs_end: usize,
    /// Documents that are not in the block buffers yet.
    docs_left: u32,
    /// The next document is at least this.
    next_doc: u64,
    /// Occurrences that the documents to come have to add up to.
    occurrences_left: u64,
    steps: [u32; PACKED],
    steps_at: usize,
    steps_end: usize,
    /// Positions that are not in the block buffer yet.
    steps_left: u64,
    /// Positions of earlier documents that nobody asked for.
    skip: u64,
    /// Positions of the current document that were not read yet.
    unread: u32,
    /// The last position read of the current document.
    position: Option<u32>,
}

impl<'a> Postings<'a> {
    pub(crate) fn new(terms: &'a Source, post: PageCursor<'a>, pos: PageCursor<'a>) -> Postings<'a> {
        Postings {
            terms,
            documents: terms.footer.documents,
            post,
            pos,
            inline: true,
            block_offset: 0,
            gaps: [0; PACKED],
            more: [0; PACKED],
            docs_at: 0,
            docs_end: 0,
            docs_left: 0,
            next_doc: 0,
            occurrences_left: 0,
            steps: [0; PACKED],
            steps_at: 0,
            steps_end: 0,
            steps_left: 0,
            skip: 0,
            unread: 0,
            position: None,
        }
    }

    /// Goes before the first document of a term of this segment.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the entry points outside the files.
    pub fn start(&mut self, info: &TermInfo) -> Result<()> {
        (self.docs_at, self.docs_end, self.docs_left) = (0, 0, info.df);
        (self.steps_at, self.steps_end, self.steps_left) = (0, 0, info.occurrences);
        self.next_doc = 0;
        self.occurrences_left = info.occurrences;
        self.skip = 0;
        self.unread = 0;
        self.position = None;
        self.block_offset = info.block_offset;
        self.inline = matches!(info.place, TermPlace::Inline { .. });
        match info.place {
            TermPlace::Files { post, pos } => {
                self.post.seek(post)?;
                self.pos.seek(pos)
            }
            TermPlace::Inline { len, bytes } => {
                let mut rest = &bytes[..usize::from(len)];
                self.unpack_inline(&mut rest, info).ok_or_else(|| self.corrupt("an entry's postings are damaged"))
            }
        }
    }

    fn unpack_inline(&mut self, rest: &mut &[u8], info: &TermInfo) -> Option<()> {
        self.docs_end = info.df as usize;
        self.steps_end = usize::try_from(info.occurrences).ok()?;
        for (gap, more) in self.gaps.get_mut(..self.docs_end)?.iter_mut().zip(&mut self.more) {
            let value = varint::take(rest)?;
            *gap = u32::try_from(value >> 1).ok()?;
            *more = if value & 1 == 1 { varint::take_u32(rest)? } else { 0 };
        }
        for step in self.steps.get_mut(..self.steps_end)? {
            *step = varint::take_u32(rest)?;
        }
        (self.docs_left, self.steps_left) = (0, 0);
        rest.is_empty().then_some(())
    }

    /// The next document and how often the term occurs in it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Io`]; the reader is of no use for this term then.
    #[inline]
    pub fn next_document(&mut self) -> Result<Option<(u32, u32)>> {
        self.skip += u64::from(self.unread);
        self.unread = 0;
        self.position = None;
        if self.docs_at == self.docs_end {
            if self.docs_left == 0 {
                return if self.occurrences_left == 0 {
                    Ok(None)
                } else {
                    Err(self.corrupt("the frequencies do not add up to the term's occurrences"))
                };
            }
            self.load_documents()?;
        }
        let doc = self.next_doc + u64::from(self.gaps[self.docs_at]);
        let frequency = u64::from(self.more[self.docs_at]) + 1;
        self.docs_at += 1;
        if doc >= u64::from(self.documents) {
            return Err(self.corrupt("a posting names a document that does not exist"));
        }
        let (Some(left), Ok(frequency)) = (self.occurrences_left.checked_sub(frequency), u32::try_from(frequency))
        else {
            return Err(self.corrupt("the frequencies exceed the term's occurrences"));
        };
        self.next_doc = doc + 1;
        self.occurrences_left = left;
        self.unread = frequency;
        Ok(Some((doc as u32, frequency)))
    }

    /// The next position in the current document; positions that are not asked for are skipped.
    ///
    /// # Errors
    /// As [`next_document`](Self::next_document).
    #[inline]
    pub fn next_position(&mut self) -> Result<Option<u32>> {
        if self.unread == 0 {
            return Ok(None);
        }
        if self.skip > 0 || self.steps_at == self.steps_end {
            self.load_positions()?;
        }
        let step = self.steps[self.steps_at];
        self.steps_at += 1;
        self.unread -= 1;
        let position = match self.position {
            None => Some(step),
            Some(last) => last.checked_add(step).filter(|_| step > 0),
        };
        let position = position.ok_or_else(|| self.corrupt("the positions of a document do not ascend"))?;
        self.position = Some(position);
        Ok(Some(position))
    }

    fn load_documents(&mut self) -> Result<()> {
        self.docs_at = 0;
        if self.docs_left as usize >= PACKED {
            let mut bits = [0; 2];
            self.post.read(&mut bits)?;
            unpack(&mut self.post, bits[0], &mut self.gaps)?;
            unpack(&mut self.post, bits[1], &mut self.more)?;
            self.docs_end = PACKED;
        } else {
            self.docs_end = self.docs_left as usize;
            for i in 0..self.docs_end {
                let value = self.post.varint()?;
                self.gaps[i] = u32::try_from(value >> 1).map_err(|_| self.corrupt("a gap exceeds 32 bits"))?;
                self.more[i] = if value & 1 == 1 { tail_u32(&mut self.post)? } else { 0 };
            }
        }
        self.docs_left -= self.docs_end as u32;
        Ok(())
    }

    /// Drops the positions to skip, whole blocks without unpacking them, and fills the buffer.
    fn load_positions(&mut self) -> Result<()> {
        loop {
            let here = self.skip.min((self.steps_end - self.steps_at) as u64);
            self.steps_at += here as usize;
            self.skip -= here;
            if self.steps_at < self.steps_end {
                return Ok(());
            }
            (self.steps_at, self.steps_end) = (0, 0);
            if self.steps_left >= PACKED as u64 {
                let mut bits = [0];
                self.pos.read(&mut bits)?;
                if self.skip >= PACKED as u64 {
                    self.skip -= PACKED as u64;
                    self.pos.skip(BitPacker4x::compressed_block_size(bits[0]) as u64)?;
                } else {
                    unpack(&mut self.pos, bits[0], &mut self.steps)?;
                    self.steps_end = PACKED;
                }
                self.steps_left -= PACKED as u64;
            } else if self.steps_left > 0 {
                let end = self.steps_left as usize;
                for step in &mut self.steps[..end] {
                    *step = tail_u32(&mut self.pos)?;
                }
                self.steps_end = end;
                self.steps_left = 0;
            } else {
                return Err(self.corrupt("a term has fewer positions than occurrences"));
            }
        }
    }

    #[cold]
    fn corrupt(&self, why: &str) -> Error {
        if self.inline { self.terms.corrupt(self.block_offset, why) } else { self.post.corrupt(why) }
    }
}

fn tail_u32(cursor: &mut PageCursor<'_>) -> Result<u32> {
    let value = cursor.varint()?;
    u32::try_from(value).map_err(|_| cursor.corrupt("a number exceeds 32 bits"))
}

fn unpack(cursor: &mut PageCursor<'_>, bits: u8, out: &mut [u32; PACKED]) -> Result<()> {
    if bits == 0 {
        out.fill(0);
        return Ok(());
    }
    if bits > 32 {
        return Err(cursor.corrupt("a block of more than 32 bits a number"));
    }
    let mut packed = [0; 4 * PACKED];
    let packed = &mut packed[..BitPacker4x::compressed_block_size(bits)];
    cursor.read(packed)?;
    BitPacker4x::new().decompress(packed, out, bits);
    Ok(())
}
