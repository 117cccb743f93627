//! The sorted terms of a segment on their way into `.terms`. Holds one block, the last term (each term is stored as what
//! differs from it), the compressor, and the catalog that becomes the file's trailer; only the catalog grows with the
//! number of terms, by a few bytes a block.
//!
//! A block, before compression: the length of its entries (u32), the entries, then the bytes of the terms. Entries and
//! term bytes lie apart because they compress better so.
use std::path::Path;

use zstd_safe::{CCtx, CParameter, Strategy};

use super::format::{BLOCK_BYTES, MAX_COMPRESSED_RAW_BYTES, Part};
use super::output::{Output, SegmentFile};
use super::postings_out::{Place, PostingsEncoder};
use super::varint;
use super::writer::FieldStats;
use crate::error::{Error, Result};

/// The window and the match table cover one block: the context then takes little more than 100 KiB, tables of ZSTD's
/// entropy stage included, and never grows.
const WINDOW_LOG: u32 = 14;
const HASH_LOG: u32 = 12;
/// Bytes in front of a block's entries.
const BLOCK_HEAD: usize = 4;

pub(crate) struct DictionaryWriter {
    output: Output,
    context: CCtx<'static>,
    /// The block's head and entries.
    entries: Vec<u8>,
    /// The block's terms, each without the bytes that it shares with the one before.
    suffixes: Vec<u8>,
    terms_in_block: usize,
    compressed: Vec<u8>,
    last_term: Vec<u8>,
    any_term: bool,
    /// The separator in front of the block being filled: a beginning of its first term.
    separator: Vec<u8>,
    /// Where the block's last term with postings in the files has them.
    last_place: (u64, u64),
    catalog: Vec<u8>,
}

impl DictionaryWriter {
    pub(crate) fn create(dir: &Path, number: u32) -> Result<DictionaryWriter> {
        let output = Output::create(dir, Part::Terms, number)?;
        let mut context = CCtx::try_create().ok_or_else(|| Error::Failed("no memory for a ZSTD context".into()))?;
        for parameter in [
            CParameter::CompressionLevel(1),
            CParameter::WindowLog(WINDOW_LOG),
            CParameter::HashLog(HASH_LOG),
            CParameter::Strategy(Strategy::ZSTD_fast),
            CParameter::ContentSizeFlag(false),
        ] {
            context.set_parameter(parameter).map_err(zstd_failed)?;
        }
        let mut writer = DictionaryWriter {
            output,
            context,
            entries: Vec::new(),
            suffixes: Vec::new(),
            terms_in_block: 0,
            compressed: Vec::new(),
            last_term: Vec::new(),
            any_term: false,
            separator: Vec::new(),
            last_place: (0, 0),
            catalog: Vec::new(),
        };
        writer.start_block();
        writer.warm_up()?;
        Ok(writer)
    }

    pub(crate) fn begin_field(&mut self, name: &str) {
        varint::put(&mut self.catalog, name.len() as u64);
        self.catalog.extend_from_slice(name.as_bytes());
        self.last_term.clear();
        self.any_term = false;
        self.separator.clear();
    }

    /// The next term; it has to be greater than the one before.
    #[inline]
    pub(crate) fn begin_term(&mut self, term: &[u8]) -> Result<()> {
        let mut shared = shared_prefix(&self.last_term, term);
        if self.any_term && (shared == term.len() || self.last_term.get(shared).is_some_and(|&b| b > term[shared])) {
            return Err(Error::Failed("terms of a field have to ascend in byte order, each once".into()));
        }
        let full = self.entries.len() + self.suffixes.len() + (term.len() - shared) > BLOCK_BYTES;
        if self.terms_in_block > 0 && full {
            self.flush_block()?;
        }
        if self.terms_in_block == 0 {
            self.separator.clear();
            if self.any_term {
                self.separator.extend_from_slice(&term[..=shared]);
            }
            shared = 0;
        }
        self.any_term = true;
        self.terms_in_block += 1;
        let suffix = &term[shared..];
        self.suffixes.extend_from_slice(suffix);
        varint::put(&mut self.entries, shared as u64);
        varint::put(&mut self.entries, suffix.len() as u64);
        self.last_term.truncate(shared);
        if self.last_term.capacity() > MAX_COMPRESSED_RAW_BYTES {
            self.last_term.shrink_to(BLOCK_BYTES);
        }
        self.last_term.extend_from_slice(suffix);
        Ok(())
    }

    /// What the current term's postings came to.
    #[inline]
    pub(crate) fn end_term(&mut self, postings: &PostingsEncoder, place: Place) {
        let df = u64::from(postings.df());
        let inline = u64::from(place == Place::Inline);
        varint::put(&mut self.entries, (df - 1) << 1 | inline);
        varint::put(&mut self.entries, postings.occurrences() - df);
        match place {
            Place::Inline => self.entries.extend_from_slice(postings.inline()),
            Place::Files { post, pos } => {
                varint::put(&mut self.entries, post - self.last_place.0);
                varint::put(&mut self.entries, pos - self.last_place.1);
                self.last_place = (post, pos);
            }
        }
    }

    pub(crate) fn end_field(&mut self, stats: &FieldStats) -> Result<()> {
        if self.terms_in_block > 0 {
            self.flush_block()?;
        }
        varint::put(&mut self.catalog, 0);
        varint::put(&mut self.catalog, stats.terms);
        varint::put(&mut self.catalog, stats.postings);
        varint::put(&mut self.catalog, stats.tokens);
        varint::put(&mut self.catalog, u64::from(stats.documents_with_tokens));
        Ok(())
    }

    pub(crate) fn finish(self, documents: u32) -> Result<SegmentFile> {
        self.output.finish(&self.catalog, documents)
    }

    /// Compresses a full block of nothing, so that the context takes its memory now, where the caller counts it.
    fn warm_up(&mut self) -> Result<()> {
        self.compressed.reserve_exact(zstd_safe::compress_bound(BLOCK_BYTES));
        self.context.compress2(&mut self.compressed, &[0; BLOCK_BYTES]).map_err(zstd_failed)?;
        Ok(())
    }

    fn start_block(&mut self) {
        self.entries.clear();
        self.entries.extend_from_slice(&[0; BLOCK_HEAD]);
        self.suffixes.clear();
        self.terms_in_block = 0;
        self.last_place = (0, 0);
    }

    #[inline(never)]
    fn flush_block(&mut self) -> Result<()> {
        let entries_bytes = u32::try_from(self.entries.len() - BLOCK_HEAD)
            .map_err(|_| Error::Failed("the entries of a dictionary block exceed 4 GiB".into()))?;
        self.entries[..BLOCK_HEAD].copy_from_slice(&entries_bytes.to_le_bytes());
        let raw = self.entries.len() + self.suffixes.len();
        let (stored, compressed, crc);
        if raw > MAX_COMPRESSED_RAW_BYTES {
            self.output.put(&self.entries)?;
            self.output.put(&self.suffixes)?;
            (stored, compressed) = (raw, false);
            crc = crc32c::crc32c_append(crc32c::crc32c(&self.entries), &self.suffixes);
        } else {
            self.entries.extend_from_slice(&self.suffixes);
            self.compressed.clear();
            let bound = zstd_safe::compress_bound(raw);
            if self.compressed.capacity() < bound {
                self.compressed.reserve_exact(bound);
            }
            self.context.compress2(&mut self.compressed, &self.entries).map_err(zstd_failed)?;
            compressed = self.compressed.len() < raw;
            let bytes = if compressed { &self.compressed } else { &self.entries };
            self.output.put(bytes)?;
            stored = bytes.len();
            crc = crc32c::crc32c(bytes);
        }
        varint::put(&mut self.catalog, (stored as u64) << 1 | u64::from(compressed));
        varint::put(&mut self.catalog, raw as u64);
        varint::put(&mut self.catalog, self.separator.len() as u64);
        self.catalog.extend_from_slice(&self.separator);
        self.catalog.extend_from_slice(&crc.to_le_bytes());
        self.start_block();
        // one giant term must not keep its buffers for the rest of the segment
        for buffer in [&mut self.entries, &mut self.suffixes, &mut self.compressed] {
            if buffer.capacity() > MAX_COMPRESSED_RAW_BYTES {
                buffer.shrink_to(BLOCK_BYTES);
            }
        }
        Ok(())
    }

    /// Every buffer by capacity, and the compressor by its own account.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.output.allocated_bytes()
            + self.context.sizeof()
            + self.entries.capacity()
            + self.suffixes.capacity()
            + self.compressed.capacity()
            + self.last_term.capacity()
            + self.separator.capacity()
            + self.catalog.capacity()
    }
}

impl std::fmt::Debug for DictionaryWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionaryWriter").field("output", &self.output).finish_non_exhaustive()
    }
}

fn zstd_failed(code: zstd_safe::ErrorCode) -> Error {
    Error::Failed(format!("ZSTD refuses a dictionary block: {}", zstd_safe::get_error_name(code)))
}

/// How many leading bytes two terms have in common.
#[inline]
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let most = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= most && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < most && a[at] == b[at] {
        at += 1;
    }
    at
}
