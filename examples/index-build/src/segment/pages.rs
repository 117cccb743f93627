//! The payload of `.post` and `.pos`, read through one page at a time; no byte is handed out before its page's CRC32C was
//! checked. Offsets count payload bytes, as the writer's do.
use super::format::{HEADER_BYTES, PAGE_BYTES, PAGE_CRC_BYTES};
use super::read_at::Source;
use super::varint;
use crate::error::{Error, Result};

const PAGE: u64 = PAGE_BYTES as u64;
const STEP: u64 = (PAGE_BYTES + PAGE_CRC_BYTES) as u64;

/// Reads the payload's length from the trailer, and checks that the body is exactly as long as its pages.
pub(crate) fn payload_bytes(source: &Source) -> Result<u64> {
    let trailer = source.trailer()?;
    let mut rest = trailer.as_slice();
    let at = source.footer.trailer_offset;
    let payload = varint::take(&mut rest).filter(|_| rest.is_empty());
    let payload = payload.ok_or_else(|| source.corrupt(at, "the trailer is not one length"))?;
    let crcs = payload.div_ceil(PAGE).checked_mul(PAGE_CRC_BYTES as u64);
    if crcs.and_then(|crcs| payload.checked_add(crcs)) != Some(at - HEADER_BYTES as u64) {
        return Err(source.corrupt(at, "the pages are not as long as the trailer says"));
    }
    Ok(payload)
}

/// A place in the payload, with the page around it.
#[derive(Debug)]
pub(crate) struct PageCursor<'a> {
    source: &'a Source,
    payload: u64,
    at: u64,
    page: Vec<u8>,
    /// Payload offsets that `page` covers; empty when there is none.
    from: u64,
    to: u64,
}

impl<'a> PageCursor<'a> {
    pub(crate) fn new(source: &'a Source, payload: u64) -> PageCursor<'a> {
        PageCursor { source, payload, at: 0, page: Vec::new(), from: 0, to: 0 }
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<()> {
        if offset > self.payload {
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
        if self.at < self.from || self.at >= self.to {
            self.load()?;
        }
        Ok(&self.page[(self.at - self.from) as usize..(self.to - self.from) as usize])
    }

    #[cold]
    fn load(&mut self) -> Result<()> {
        if self.at >= self.payload {
            return Err(self.corrupt("postings go on behind the last page"));
        }
        let number = self.at / PAGE;
        let from = number * PAGE;
        let bytes = (self.payload - from).min(PAGE) as usize;
        (self.from, self.to) = (0, 0);
        self.page.clear();
        self.page.reserve_exact(bytes + PAGE_CRC_BYTES);
        self.page.resize(bytes + PAGE_CRC_BYTES, 0);
        let offset = HEADER_BYTES as u64 + number * STEP;
        self.source.read(&mut self.page, offset)?;
        let (payload, crc) = self.page.split_at(bytes);
        if crc32c::crc32c(payload).to_le_bytes() != crc {
            return Err(self.source.corrupt(offset, "page does not match its checksum"));
        }
        (self.from, self.to) = (from, from + bytes as u64);
        Ok(())
    }

    /// An error at this place of the file.
    #[cold]
    pub(crate) fn corrupt(&self, why: &str) -> Error {
        self.source.corrupt(HEADER_BYTES as u64 + self.at / PAGE * STEP + self.at % PAGE, why)
    }
}
