//! The payload of `.post` and `.pos`, read through one page at a time; no byte is handed out before its page's CRC32C was
//! checked. Offsets count payload bytes, as the writer's do.
use plimsoll::spill::read::{PageReader, Pages};
use plimsoll::spill::{SpillError, Uncounted};

use super::format::{HEADER_BYTES, PAGE_BYTES};
use super::read_at::{Source, failed};
use super::varint;
use crate::error::{Error, Result};

/// Reads the payload's length from the trailer, and checks that the body is exactly as long as its pages.
pub(crate) fn pages(source: Source) -> Result<Pages<Source>> {
    let trailer = source.trailer()?;
    let mut rest = trailer.as_slice();
    let at = source.footer.trailer_offset;
    let payload = varint::take(&mut rest).filter(|_| rest.is_empty());
    let payload = payload.ok_or_else(|| source.corrupt(at, "the trailer is not one length"))?;
    if Pages::<Source>::stored_bytes(payload, PAGE_BYTES) != Some(at - HEADER_BYTES as u64) {
        return Err(source.corrupt(at, "the pages are not as long as the trailer says"));
    }
    Pages::new(source, HEADER_BYTES as u64, payload, PAGE_BYTES).map_err(failed)
}

/// A place in the payload, with the page around it.
#[derive(Debug)]
pub(crate) struct PageCursor<'a> {
    pages: &'a Pages<Source>,
    page: PageReader<'a, Source>,
    at: u64,
}

impl<'a> PageCursor<'a> {
    pub(crate) fn new(pages: &'a Pages<Source>) -> PageCursor<'a> {
        PageCursor { pages, page: pages.reader(Uncounted), at: 0 }
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<()> {
        if offset > self.pages.payload_bytes() {
            return Err(self.corrupt("an offset points behind the last page"));
        }
        self.at = offset;
        Ok(())
    }

    pub(crate) fn skip(&mut self, bytes: u64) -> Result<()> {
        self.seek(self.at.saturating_add(bytes))
    }

    pub(crate) fn read(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let page = self.rest_of_page()?;
            let count = page.len().min(out.len());
            let (head, rest) = out.split_at_mut(count);
            head.copy_from_slice(&page[..count]);
            self.at += count as u64;
            out = rest;
        }
        Ok(())
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let page = self.rest_of_page()?;
        let mut rest = page;
        if let Some(value) = varint::take(&mut rest) {
            self.at += (page.len() - rest.len()) as u64;
            return Ok(value);
        }
        // cut by the page's end, or too long
        let mut bytes = [0; 10];
        for end in 1..=bytes.len() {
            self.read(&mut bytes[end - 1..end])?;
            if bytes[end - 1] < 0x80 {
                return varint::take(&mut &bytes[..end]).ok_or_else(|| self.corrupt("a number exceeds 64 bits"));
            }
        }
        Err(self.corrupt("a number exceeds 64 bits"))
    }

    #[inline]
    fn rest_of_page(&mut self) -> Result<&[u8]> {
        let (pages, at) = (self.pages, self.at);
        self.page.rest_of_page(at).map_err(|error| unread(pages, at, error))
    }

    /// An error at this place of the file.
    #[cold]
    pub(crate) fn corrupt(&self, why: &str) -> Error {
        self.pages.source().corrupt(self.pages.place(self.at), why)
    }
}

#[cold]
fn unread(pages: &Pages<Source>, at: u64, error: SpillError) -> Error {
    if at >= pages.payload_bytes() {
        return pages.source().corrupt(pages.place(at), "postings go on behind the last page");
    }
    failed(error)
}
