//! The three files of a segment, read from end to end.
#![no_main]

use index_build::error::{Error, Result};
use index_build::segment::{Decoder, Part, Segment, SegmentWriter, part_name};
use libfuzzer_sys::fuzz_target;
use plimsoll::spill::read::Reader;
use plimsoll_fuzz::{Input, Memory, most_allocated};
use std::path::Path;
use std::sync::{Arc, OnceLock};

type Files = [Vec<u8>; 3];

const FOLDER: &str = "index";
const HEADER_BYTES: usize = 32;
const FOOTER_BYTES: usize = 40;
const PAGE_BYTES: usize = 64 << 10;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() % 3 {
        0 => any_bytes(&mut input),
        1 => one_change(&mut input),
        _ => forged(&mut input),
    }
});

/// What a reader takes beside what the file's size justifies: a decompressed block (at most 1 MiB, and the buffers of the
/// walks), two pages, the text of an error.
const BESIDE_BYTES: usize = 4 << 20;
/// A block of the catalog takes at least 8 bytes there, and 56 in a list that doubles.
const BYTES_A_BYTE: usize = 24;

/// Reads all of a segment. Answers how many terms, documents and positions.
fn read(files: &Files) -> Result<[u64; 3]> {
    let memory = Memory::default();
    for (part, bytes) in Part::ALL.into_iter().zip(files) {
        memory.put(&Path::new(FOLDER).join(part_name(3, part)), bytes.clone());
    }
    let memory: Arc<dyn plimsoll::spill::files::Files> = Arc::new(memory);
    let (done, most) = most_allocated(|| walk(&memory));
    let file_bytes: usize = files.iter().map(Vec::len).sum();
    assert!(most <= BYTES_A_BYTE * file_bytes + BESIDE_BYTES, "{most} bytes allocated for {file_bytes}");
    if let Err(error) = &done {
        let Error::Corrupt { path, .. } = error else { panic!("{error}") };
        assert!(path.starts_with(FOLDER), "{error}");
    }
    done
}

fn walk(files: &Arc<dyn plimsoll::spill::files::Files>) -> Result<[u64; 3]> {
    let segment = Segment::open(Path::new(FOLDER), 3, &|path| Reader::new(Arc::clone(files), path))?;
    let (mut decoder, mut other) = (Decoder::new()?, Decoder::new()?);
    let mut postings = segment.postings();
    let mut counts = [0; 3];
    for field in segment.fields() {
        let mut terms = segment.terms(field);
        let mut before: Option<Vec<u8>> = None;
        while terms.advance(&mut decoder)? {
            assert!(before.as_deref().is_none_or(|before| before < terms.term()), "terms ascend");
            before = Some(terms.term().to_vec());
            counts[0] += 1;
            if counts[0] % 100 == 1 {
                segment.look_up(field, terms.term(), &mut other)?;
            }
            postings.start(&terms.info())?;
            let mut last = None;
            while let Some((document, frequency)) = postings.next_document()? {
                assert!(last < Some(document) && document < segment.documents(), "documents ascend and exist");
                last = Some(document);
                counts[1] += 1;
                let mut positions = 0;
                while postings.next_position()?.is_some() {
                    positions += 1;
                }
                assert_eq!(positions, frequency);
                counts[2] += u64::from(positions);
            }
        }
    }
    Ok(counts)
}

fn any_bytes(input: &mut Input<'_>) {
    let [one, two] = [input.short(), input.short()];
    let _ = read(&[input.take(one).to_vec(), input.take(two).to_vec(), input.0.to_vec()]);
}

/// A segment with two fields, compressed and stored blocks, inline, packed and tailed postings, and more than one page.
fn whole() -> &'static (Files, [u64; 3]) {
    static WHOLE: OnceLock<(Files, [u64; 3])> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut counts = [0; 3];
        let mut writer = SegmentWriter::create(folder.path(), 3).expect("created");
        for field in ["a", "b"] {
            writer.begin_field(field).expect("in order");
            for term in 0..300u32 {
                writer.begin_term(format!("term {term:05}").as_bytes()).expect("in order");
                counts[0] += 1;
                for document in (0..1_000).filter(|document| document % (term * term + 1) == 0) {
                    counts[1] += 1;
                    for position in 0..=(document + term) % 3 {
                        counts[2] += 1;
                        writer.occurrence(document, position * 7 + term).expect("in order");
                    }
                }
                writer.end_term().expect("written");
            }
            writer.begin_term(b"to the second page").expect("in order");
            for position in 0..40_000u32 {
                writer.occurrence(7, position * 256 - position % 200).expect("in order");
            }
            writer.end_term().expect("written");
            counts = [counts[0] + 1, counts[1] + 1, counts[2] + 40_000];
            writer.end_field(1_000).expect("written");
        }
        writer.finish(1_000).expect("written");
        let files = Part::ALL.map(|part| std::fs::read(folder.path().join(part_name(3, part))).expect("a file"));
        assert!(files[2].len() > PAGE_BYTES + FOOTER_BYTES, "more than one page");
        assert_eq!(read(&files).expect("as it was written"), counts);
        (files, counts)
    })
}

fn one_change(input: &mut Input<'_>) {
    let (files, counts) = whole();
    let mut changed = files.clone();
    let file = &mut changed[usize::from(input.byte() % 3)];
    let at = (input.short() | input.short() << 16) % file.len();
    let xor = input.byte();
    if input.byte().is_multiple_of(4) {
        file.truncate(at);
        read(&changed).expect_err("a file that is cut");
    } else {
        file[at] ^= xor;
        let done = read(&changed);
        assert_eq!(done.as_ref().ok(), (xor == 0).then_some(counts), "byte {at}, {xor:#x}: {done:?}");
    }
}

/// Changes with check-sums that fit them.
fn forged(input: &mut Input<'_>) {
    let mut files = whole().0.clone();
    if input.byte().is_multiple_of(4) {
        // a small one: the input's catalog and pages
        for file in &mut files {
            let most = input.short();
            let (header, footer) = (file[..HEADER_BYTES].to_vec(), file[file.len() - FOOTER_BYTES..].to_vec());
            let body = input.take(most / 2);
            let trailer = input.take(most % 512);
            *file = [&header, body, trailer, &footer].concat();
            let footer = file.len() - FOOTER_BYTES;
            file[footer..footer + 8].copy_from_slice(&((HEADER_BYTES + body.len()) as u64).to_le_bytes());
            file[footer + 8..footer + 16].copy_from_slice(&(trailer.len() as u64).to_le_bytes());
        }
    } else {
        while !input.is_empty() {
            let file = &mut files[usize::from(input.byte() % 3)];
            let near_the_end = input.byte().is_multiple_of(2);
            let at = input.short() % file.len().min(1 << 16);
            let at = if near_the_end { file.len() - 1 - at } else { at };
            file[at] = input.byte();
        }
    }
    for (at, file) in files.iter_mut().enumerate() {
        seal(file, at == 0);
    }
    let _ = read(&files);
}

/// Makes all check-sums fit.
fn seal(file: &mut [u8], is_terms: bool) {
    let footer = file.len() - FOOTER_BYTES;
    let number = |at: usize| u64::from_le_bytes(file[footer + at..footer + at + 8].try_into().expect("8 bytes"));
    let (from, bytes) = (number(0) as usize, number(8) as usize);
    if from.checked_add(bytes) == Some(footer) && from >= HEADER_BYTES {
        let (body, trailer) = file[HEADER_BYTES..footer].split_at_mut(from - HEADER_BYTES);
        if is_terms {
            seal_blocks(body, trailer);
        } else {
            for page in body.chunks_mut(PAGE_BYTES + 4).filter(|page| page.len() > 4) {
                let (payload, sum) = page.split_at_mut(page.len() - 4);
                sum.copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
            }
        }
        let sum = crc32c::crc32c(trailer);
        file[footer + 16..footer + 20].copy_from_slice(&sum.to_le_bytes());
    }
    for (from, covered) in [(0, 28), (footer, 28)] {
        let sum = crc32c::crc32c(&file[from..from + covered]);
        file[from + covered..from + covered + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The check-sums of dictionary blocks are in the catalog; they are made to fit as far as it can be followed.
fn seal_blocks(body: &[u8], catalog: &mut [u8]) {
    let (mut at, mut block) = (0usize, 0usize);
    let varint = |catalog: &[u8], at: &mut usize| -> Option<usize> {
        let mut value = 0usize;
        for shift in (0..63).step_by(7) {
            let byte = *catalog.get(*at)?;
            *at += 1;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    };
    let mut follow = || -> Option<()> {
        while at < catalog.len() {
            at = varint(catalog, &mut at)?.checked_add(at)?;
            loop {
                let head = varint(catalog, &mut at)?;
                if head == 0 {
                    break;
                }
                varint(catalog, &mut at)?;
                at = varint(catalog, &mut at)?.checked_add(at)?;
                let bytes = body.get(block..block.checked_add(head >> 1)?)?;
                block += head >> 1;
                catalog.get_mut(at..at + 4)?.copy_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
                at += 4;
            }
            for _ in 0..4 {
                varint(catalog, &mut at)?;
            }
        }
        Some(())
    };
    let _ = follow();
}
