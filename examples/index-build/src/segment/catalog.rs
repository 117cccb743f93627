//! The trailer of `.terms`: the fields of a segment, and for each the blocks of its terms. Read once when the segment is
//! opened, and checked so that every block lies inside the file and no block can make a reader allocate more than the
//! file's own size, or [`MAX_COMPRESSED_RAW_BYTES`], justifies.
use super::format::{HEADER_BYTES, MAX_COMPRESSED_RAW_BYTES};
use super::read_at::Source;
use super::varint;
use super::writer::FieldStats;
use crate::error::Result;

/// One field of a segment.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub stats: FieldStats,
    /// The separators of all blocks, one after the other.
    separators: Vec<u8>,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    pub(crate) stored: usize,
    pub(crate) raw: usize,
    pub(crate) compressed: bool,
    pub(crate) crc: u32,
    separator_end: usize,
}

impl Field {
    pub(crate) fn block(&self, index: usize) -> Option<&Block> {
        self.blocks.get(index)
    }

    fn separator(&self, index: usize) -> &[u8] {
        let from = index.checked_sub(1).map_or(0, |before| self.blocks[before].separator_end);
        &self.separators[from..self.blocks[index].separator_end]
    }

    /// Names, separators and block list, by capacity.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.name.capacity() + self.separators.capacity() + self.blocks.capacity() * size_of::<Block>()
    }

    /// The only block that can hold `term`.
    pub(crate) fn block_of(&self, term: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.blocks.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.separator(middle) <= term { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }
}

/// Reads the catalog of a `.terms` file.
pub(crate) fn read(source: &Source) -> Result<Vec<Field>> {
    let trailer = source.trailer()?;
    let mut rest = trailer.as_slice();
    let mut fields: Vec<Field> = Vec::new();
    let mut offset = HEADER_BYTES as u64;
    while !rest.is_empty() {
        let at = source.footer.trailer_offset + (trailer.len() - rest.len()) as u64;
        let field = parse_field(&mut rest, &mut offset, source.footer.trailer_offset, source.footer.documents)
            .map_err(|why| source.corrupt(at, why))?;
        if fields.last().is_some_and(|last| last.name >= field.name) {
            return Err(source.corrupt(at, "the fields are not in byte order"));
        }
        fields.push(field);
    }
    if offset != source.footer.trailer_offset {
        return Err(source.corrupt(offset, "bytes that belong to no field"));
    }
    Ok(fields)
}

fn parse_field(
    rest: &mut &[u8],
    offset: &mut u64,
    body_end: u64,
    documents: u32,
) -> std::result::Result<Field, &'static str> {
    const CUT: &str = "the catalog is cut off";
    let name_bytes = varint::take(rest).ok_or(CUT)?;
    let name = varint::take_bytes(rest, name_bytes).ok_or(CUT)?;
    let name = std::str::from_utf8(name).map_err(|_| "a field's name is not UTF-8")?.to_owned();
    let mut field = Field { name, stats: FieldStats::default(), separators: Vec::new(), blocks: Vec::new() };
    loop {
        let head = varint::take(rest).ok_or(CUT)?;
        if head == 0 {
            break;
        }
        let (stored, compressed) = (head >> 1, head & 1 == 1);
        let raw = varint::take(rest).ok_or(CUT)?;
        let separator_bytes = varint::take(rest).ok_or(CUT)?;
        let separator = varint::take_bytes(rest, separator_bytes).ok_or(CUT)?;
        let crc = varint::take_bytes(rest, 4).ok_or(CUT)?;
        let crc = u32::from_le_bytes(crc.try_into().map_err(|_| CUT)?);
        let end = offset.checked_add(stored).filter(|&end| stored > 0 && end <= body_end);
        let end = end.ok_or("a block lies outside the file")?;
        let fits = if compressed { stored < raw && raw <= MAX_COMPRESSED_RAW_BYTES as u64 } else { stored == raw };
        if !fits {
            return Err("the lengths of a block do not fit together");
        }
        let after = field.blocks.len().checked_sub(1).map(|last| field.separator(last));
        if after.map_or(!separator.is_empty(), |last| last >= separator) {
            return Err("the blocks are not in the order of their terms");
        }
        field.separators.extend_from_slice(separator);
        let separator_end = field.separators.len();
        let stored = usize::try_from(stored).map_err(|_| "a block exceeds this machine's address space")?;
        let raw = usize::try_from(raw).map_err(|_| "a block exceeds this machine's address space")?;
        field.blocks.push(Block { offset: *offset, stored, raw, compressed, crc, separator_end });
        *offset = end;
    }
    field.stats = FieldStats {
        terms: varint::take(rest).ok_or(CUT)?,
        postings: varint::take(rest).ok_or(CUT)?,
        tokens: varint::take(rest).ok_or(CUT)?,
        documents_with_tokens: varint::take_u32(rest).ok_or(CUT)?,
    };
    let FieldStats { terms, postings, tokens, documents_with_tokens } = field.stats;
    let empty = [terms == 0, postings == 0, tokens == 0, documents_with_tokens == 0, field.blocks.is_empty()];
    if empty.iter().any(|&e| e != empty[0])
        || terms > postings
        || postings > tokens
        || documents_with_tokens > documents
    {
        return Err("the counts of a field do not fit together");
    }
    Ok(field)
}
