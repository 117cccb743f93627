//! Content in pages, each followed by its CRC32C. No byte of a page is handed out before its sum was found right.

use super::source::{Flaw, Source};
use crate::spill::charge::{Charge, Uncounted};
use crate::spill::{SpillError, SpillResult};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

/// The CRC32C after each page.
const SUM_BYTES: usize = 4;

/// A payload that lies in a source as pages, the last one shorter if need be, each followed by the CRC32C of its bytes
/// (little-endian). Offsets count payload bytes.
///
/// Over a [`SourcedReader`](super::SourcedReader), a page that is damaged in one source is read from the next one, page by
/// page; a `SourcedReader` over several `Pages` does so request by request. As a [`Source`] it allocates one page for the
/// length of a request, unless the request covers whole pages and more, and does not charge it; who reads through a
/// [`PageReader`] decides who pays.
#[derive(Debug, Clone)]
pub struct Pages<S> {
    source: S,
    /// Where the first page begins in the source.
    start: u64,
    payload_bytes: u64,
    page_bytes: usize,
}

impl<S: Source> Pages<S> {
    /// How large the payload of a page may be.
    pub const PAGE_BYTES: RangeInclusive<usize> = 4 << 10..=64 << 10;

    /// `payload_bytes` bytes in pages of `page_bytes` each, from the byte `start` of `source` on. Reads nothing. What the
    /// numbers say is not trusted: a buffer is never larger than a page, and a read behind the source's end is an error.
    ///
    /// # Errors
    /// [`SpillError::Corrupt`] if the size is outside [`PAGE_BYTES`](Self::PAGE_BYTES), or no file could be so long.
    pub fn new(source: S, start: u64, payload_bytes: u64, page_bytes: usize) -> SpillResult<Pages<S>> {
        let corrupt = |why: String| Err(SpillError::corrupt(source.name(), start, why));
        if !Self::PAGE_BYTES.contains(&page_bytes) {
            return corrupt(format!("pages of {page_bytes} bytes, they have 4096 to 65536"));
        }
        let end = Self::stored_bytes(payload_bytes, page_bytes).and_then(|stored| stored.checked_add(start));
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return corrupt(format!("{payload_bytes} bytes in pages, no file is so long"));
        }
        Ok(Pages { source, start, payload_bytes, page_bytes })
    }

    /// What so much payload takes with its sums, in bytes; none beyond 64 bits, or if a page holds nothing.
    pub fn stored_bytes(payload_bytes: u64, page_bytes: usize) -> Option<u64> {
        let pages = payload_bytes.checked_next_multiple_of(page_bytes as u64)? / page_bytes as u64;
        payload_bytes.checked_add(pages.checked_mul(SUM_BYTES as u64)?)
    }

    /// The payload's length.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Where the pages are.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Where the payload's byte `offset` lies in the source.
    pub fn place(&self, offset: u64) -> u64 {
        let (page, within) = (offset / self.page_bytes as u64, offset % self.page_bytes as u64);
        (page.saturating_mul(self.step() as u64).saturating_add(within)).saturating_add(self.start)
    }

    /// A reader that `account` pays for. Allocates nothing yet.
    pub fn reader<C: Charge>(&self, account: C) -> PageReader<'_, S, C> {
        PageReader { pages: self, page: Page { bytes: Vec::new(), holds: 0..0, account } }
    }

    fn step(&self) -> usize {
        self.page_bytes + SUM_BYTES
    }

    /// Reads whole pages with their sums into `bytes`, and moves the payload to its start; answers how much that is.
    fn read_whole(&self, bytes: &mut [u8], at: u64) -> SpillResult<usize> {
        let step = self.step();
        let check = |bytes: &[u8]| check(bytes, step);
        match self.source.read_checked_at(bytes, self.place(at), &check) {
            Ok(()) => {}
            // each page by itself may still be had from one source or another
            Err(SpillError::Sources { .. }) if bytes.len() > step => {
                for (number, page) in (0..).zip(bytes.chunks_exact_mut(step)) {
                    self.source.read_checked_at(page, self.place(at + number * self.page_bytes as u64), &check)?;
                }
            }
            Err(error) => return Err(error),
        }
        let pages = bytes.len() / step;
        for number in 1..pages {
            bytes.copy_within(number * step..number * step + self.page_bytes, number * self.page_bytes);
        }
        Ok(pages * self.page_bytes)
    }
}

impl<S: Source> Source for Pages<S> {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        self.reader(Uncounted).read_exact_at(bytes, offset)
    }

    fn name(&self) -> &Path {
        self.source.name()
    }
}

/// Reads [`Pages`] through one page, which it keeps: what follows in the same page is not read again. It holds at most a
/// page with its sum, allocated at its first use, charged to `C` before and released when it is dropped.
#[derive(Debug)]
pub struct PageReader<'a, S, C: Charge = Uncounted> {
    pages: &'a Pages<S>,
    page: Page<C>,
}

#[derive(Debug)]
struct Page<C: Charge> {
    bytes: Vec<u8>,
    /// What part of the payload this is; empty if it holds none.
    holds: Range<u64>,
    account: C,
}

impl<C: Charge> Page<C> {
    /// Makes it so many bytes long, of any content.
    fn resize(&mut self, bytes: usize) -> SpillResult<()> {
        self.holds = 0..0;
        let had = self.bytes.capacity();
        if bytes > had {
            // the old one goes first: nothing of it is needed
            self.bytes = Vec::new();
            self.account.release(had);
            self.account.try_charge(bytes)?;
            self.bytes.reserve_exact(bytes);
            // the allocator may give more than it was asked for
            self.account.charge(self.bytes.capacity() - bytes);
        }
        self.bytes.resize(bytes, 0);
        Ok(())
    }
}

impl<C: Charge> Drop for Page<C> {
    fn drop(&mut self) {
        let had = self.bytes.capacity();
        self.bytes = Vec::new();
        self.account.release(had);
    }
}

impl<S: Source, C: Charge> PageReader<'_, S, C> {
    /// What it has allocated, in bytes.
    pub fn allocated_bytes(&self) -> usize {
        self.page.bytes.capacity()
    }

    /// Fills `bytes` from the payload's byte `offset` on, with checked bytes. Whole pages go directly to where they belong.
    /// May block.
    ///
    /// # Errors
    /// [`SpillError::End`] behind the payload's end; [`SpillError::Corrupt`] if a page does not match its sum;
    /// [`SpillError::Memory`] if the account refuses the page; else what the source says. `bytes` may hold anything then.
    pub fn read_exact_at(&mut self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        let pages = self.pages;
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > pages.payload_bytes) {
            return Err(pages.source.end(offset, bytes.len()));
        }
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            // pages with their sums, read in one go and then moved together: as many as fit with the sums
            let whole = if at % pages.page_bytes as u64 == 0 { rest.len() / pages.step() } else { 0 };
            let count = if whole > 0 && !self.page.holds.contains(&at) {
                pages.read_whole(&mut rest[..whole * pages.step()], at)?
            } else {
                let page = self.rest_of_page(at)?;
                let count = page.len().min(rest.len());
                rest[..count].copy_from_slice(&page[..count]);
                count
            };
            (rest, at) = (&mut rest[count..], at + count as u64);
        }
        Ok(())
    }

    /// The payload from `offset` to the end of its page: at least one byte, checked. May block.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at), and [`SpillError::End`] where `offset` is at the payload's end.
    #[inline]
    pub fn rest_of_page(&mut self, offset: u64) -> SpillResult<&[u8]> {
        if !self.page.holds.contains(&offset) {
            self.load(offset)?;
        }
        let holds = &self.page.holds;
        Ok(&self.page.bytes[(offset - holds.start) as usize..(holds.end - holds.start) as usize])
    }

    fn load(&mut self, offset: u64) -> SpillResult<()> {
        let pages = self.pages;
        if offset >= pages.payload_bytes {
            return Err(pages.source.end(offset, 1));
        }
        let from = offset - offset % pages.page_bytes as u64;
        let bytes = (pages.payload_bytes - from).min(pages.page_bytes as u64);
        self.page.resize(bytes as usize + SUM_BYTES)?;
        pages.source.read_checked_at(&mut self.page.bytes, pages.place(from), &|bytes| check(bytes, pages.step()))?;
        self.page.holds = from..from + bytes;
        Ok(())
    }
}

/// Checks pages that follow each other.
fn check(bytes: &[u8], step: usize) -> Result<(), Flaw> {
    for (number, page) in bytes.chunks(step).enumerate() {
        let sum = page.split_last_chunk::<SUM_BYTES>().map(|(payload, sum)| (crc32c::crc32c(payload), *sum));
        if sum.is_none_or(|(right, found)| right.to_le_bytes() != found) {
            return Err(Flaw { at: number * step, why: "page does not match its checksum" });
        }
    }
    Ok(())
}
