//! Runs and their merge, against a plain map.
use super::*;
use crate::accounting::{Account, Off};
use crate::error::{Error, Result};
use crate::run::format::{BLOCK_HEADER_BYTES, HEADER_BYTES};
use crate::token::Term;
use crate::writer::{Decoder, Writer};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

type Plain = BTreeMap<Vec<u8>, Vec<(u32, u32)>>;

/// Counts what is charged.
#[derive(Debug, Default)]
struct Count {
    held: usize,
    peak: usize,
    terms: i64,
}

impl Account for Count {
    fn charge(&mut self, bytes: usize) {
        self.held += bytes;
        self.peak = self.peak.max(self.held);
    }
    fn release(&mut self, bytes: usize) {
        self.held = self.held.checked_sub(bytes).expect("no more is released than was charged");
    }
    fn term_begins(&mut self) {
        self.terms += 1;
    }
    fn term_ends(&mut self) {
        self.terms -= 1;
    }
}

/// Decodes what it is given.
#[derive(Default)]
struct Collect {
    plain: Plain,
    term: Vec<u8>,
    decoder: Decoder,
}

impl<A: Account> Target<A> for Collect {
    fn begin_term(&mut self, term: &[u8], _: &mut A) -> Result<()> {
        assert!(self.term.as_slice() < term, "terms ascend");
        self.term = term.to_vec();
        Ok(())
    }
    fn piece(&mut self, bytes: &[u8], last: bool, _: &mut A) -> Result<()> {
        let occurrences = self.plain.entry(self.term.clone()).or_default();
        self.decoder.feed::<Error>(bytes, |document, position| {
            occurrences.push((document, position));
            Ok(())
        })?;
        if last {
            self.decoder.end()?;
        }
        Ok(())
    }
    fn end_term(&mut self, _: &mut A) -> Result<()> {
        Ok(())
    }
}

fn go_on() -> Result<()> {
    Ok(())
}

/// Terms, one document after the other, and where the writer is spilled: (document, tokens).
type Input = Vec<(Vec<String>, bool)>;

/// Builds with spills where the input says so, and merges runs and remainder.
fn build(input: &Input, block_bytes: usize, limits: Limits, folder: &Path) -> Result<(Plain, Count, u64)> {
    let (mut writer, mut count) = (Writer::new(block_bytes), Count::default());
    let mut spills = Spills::new(folder.to_owned(), "b000000-f0000".to_owned());
    for (document, (terms, spill_after)) in input.iter().enumerate() {
        for (position, term) in terms.iter().enumerate() {
            writer.add(&mut Off, Term::of(term.as_bytes()), document as u32, position as u32);
            if position == 3 && *spill_after {
                // in the middle of a document
                let path = spills.next_path();
                spills.push(spill(&writer, &path, limits.block_bytes, &mut count, &mut go_on)?);
                writer.clear();
            }
        }
        if *spill_after && !writer.is_empty() {
            let path = spills.next_path();
            spills.push(spill(&writer, &path, limits.block_bytes, &mut count, &mut go_on)?);
            writer.clear();
        }
    }
    let mut passes = reduce(&mut spills, 1, limits, &mut count, &mut go_on, &mut |_, _| ())?;
    let mut sources = Spills::open(spills.runs(), &mut count)?;
    passes += u64::from(!sources.is_empty());
    let order = writer.order(&mut count);
    sources.push(Source::memory(&writer, order));
    let mut collect = Collect::default();
    merge(&mut sources, &mut collect, &mut count, &mut go_on)?;
    release_all(sources, &mut count);
    spills.clear()?;
    Ok((collect.plain, count, passes))
}

fn plainly(input: &Input) -> Plain {
    let mut plain = Plain::new();
    for (document, (terms, _)) in input.iter().enumerate() {
        for (position, term) in terms.iter().enumerate() {
            plain.entry(term.clone().into_bytes()).or_default().push((document as u32, position as u32));
        }
    }
    plain
}

const LIMITS: Limits = Limits { block_bytes: 256, fan_in: 3 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn merging_any_split_of_the_input_gives_what_no_split_gives(
        input in proptest::collection::vec(
            (proptest::collection::vec("[a-c]{1,2}|[ab]{8,9}|x{300}[yz]|\u{e9}{20}", 0..9), any::<bool>()), 1..30),
        fan_in in 2usize..5
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (merged, count, _) = build(&input, 1024, Limits { fan_in, ..LIMITS }, folder.path()).unwrap();
        prop_assert_eq!(merged, plainly(&input));
        prop_assert_eq!((count.held, count.terms), (0, 0), "everything is released");
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "merged runs are removed");
    }
}

/// Documents of terms that make several blocks.
fn numbers(documents: u32, spill_every: u32) -> Input {
    (0..documents)
        .map(|number| {
            let terms =
                vec!["same".to_owned(), format!("{:x}", number.wrapping_mul(0x9E37_79B9)), format!("n{}", number % 10)];
            (terms, number % spill_every == spill_every - 1)
        })
        .collect()
}

#[test]
fn nine_hundred_runs_are_merged_in_three_passes_of_sixteen() {
    let folder = tempfile::tempdir().unwrap();
    let input = numbers(900, 1);
    let limits = Limits { block_bytes: 4096, fan_in: 16 };
    let (merged, count, passes) = build(&input, 1024, limits, folder.path()).unwrap();
    assert_eq!(merged, plainly(&input));
    assert_eq!(passes, 3, "900, 57, 4, 1");
    assert!(count.peak < 20 * (4096 + 1024), "a merge holds a block a source: {}", count.peak);
}

fn one_run(folder: &Path) -> Run {
    let mut writer = Writer::new(1024);
    for (document, (terms, _)) in numbers(60, 1000).iter().enumerate() {
        for (position, term) in terms.iter().enumerate() {
            writer.add(&mut Off, Term::of(term.as_bytes()), document as u32, position as u32);
        }
    }
    spill(&writer, &folder.join("a.run"), 256, &mut Off, &mut go_on).unwrap()
}

fn read(path: &Path) -> Result<Plain> {
    let mut count = Count::default();
    let mut collect = Collect::default();
    let mut sources = vec![Source::run(RunReader::open(path, &mut count)?)];
    let merged = merge(&mut sources, &mut collect, &mut count, &mut go_on);
    release_all(sources, &mut count);
    assert_eq!(count.held, 0);
    merged.map(|()| collect.plain)
}

#[test]
fn a_run_with_any_byte_changed_is_an_error_that_names_file_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    let run = one_run(folder.path());
    let bytes = std::fs::read(&run.path).unwrap();
    assert_eq!(bytes.len() as u64, run.bytes);
    assert!(bytes.len() > 4 * 256, "several blocks");
    let whole = read(&run.path).unwrap();
    for at in 0..bytes.len() {
        for flip in [1u8, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            std::fs::write(&run.path, &changed).unwrap();
            let error = read(&run.path).unwrap_err();
            let Error::Corrupt { path, offset, .. } = &error else { panic!("{error}") };
            assert_eq!(path, &run.path);
            assert!(*offset <= at as u64 || at < HEADER_BYTES, "byte {at}: {error}");
            assert!(*offset + 256 + BLOCK_HEADER_BYTES as u64 + 24 > at as u64, "byte {at}: {error}");
        }
    }
    std::fs::write(&run.path, &bytes).unwrap();
    assert_eq!(read(&run.path).unwrap(), whole);
}

#[test]
fn a_run_that_is_cut_or_goes_on_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = one_run(folder.path());
    let bytes = std::fs::read(&run.path).unwrap();
    for length in 0..bytes.len() {
        std::fs::write(&run.path, &bytes[..length]).unwrap();
        assert!(matches!(read(&run.path), Err(Error::Corrupt { .. })), "{length} bytes");
    }
    std::fs::write(&run.path, [bytes.as_slice(), b"x"].concat()).unwrap();
    assert!(matches!(read(&run.path), Err(Error::Corrupt { offset, .. }) if offset == run.bytes));
}

/// Blocks with right check-sums around any payload.
fn forged(payload: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut bytes = format::MAGIC.to_vec();
    for number in [format::VERSION, format::BYTE_ORDER, block_bytes as u32] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    for (number, block) in payload.chunks(block_bytes).enumerate() {
        bytes.extend_from_slice(&(block.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&format::checksum(number as u64, block.len() as u32, block).to_le_bytes());
        bytes.extend_from_slice(block);
    }
    bytes
}

proptest! {
    #[test]
    fn no_payload_makes_a_reader_panic_or_allocate_more_than_the_file(
        payload in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4, Just(0xFFu8)], 1..900)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forged.run");
        std::fs::write(&path, forged(&payload, 256)).unwrap();
        let mut count = Count::default();
        let mut reader = RunReader::open(&path, &mut count).unwrap();
        let failed = loop {
            match reader.advance(&mut count) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(_) => break true,
            }
        };
        prop_assert!(failed, "there is no seal");
        prop_assert!(count.peak <= 4096 + size_of::<RunReader>(), "{}", count.peak);
        reader.release(&mut count);
        prop_assert_eq!(count.held, 0);
    }
}

#[test]
fn terms_that_do_not_ascend_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged.run");
    for payload in [&b"\0\x01b\0\0\x01a\0"[..], b"\0\x02ab\0\x01\x01b\0", b"\0\x01a\0\x01\0\0"] {
        std::fs::write(&path, forged(payload, 256)).unwrap();
        let mut reader = RunReader::open(&path, &mut Off).unwrap();
        assert!(reader.advance(&mut Off).unwrap());
        assert!(reader.advance(&mut Off).is_err());
    }
}

/// B46: what could not be sealed is gone, and the writer still has everything.
#[test]
fn a_spill_that_fails_leaves_no_file_and_keeps_the_terms() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(1024);
    for number in 0..5000u32 {
        writer.add(&mut Off, Term::of(format!("{number}").as_bytes()), number, 0);
    }
    let (mut count, path) = (Count::default(), folder.path().join("a.run"));
    let mut polls = 0;
    let mut poll = || {
        polls += 1;
        if polls == 3 { Err(Error::Interrupted { signal: 2 }) } else { Ok(()) }
    };
    assert!(matches!(spill(&writer, &path, 256, &mut count, &mut poll), Err(Error::Interrupted { .. })));
    assert!(!path.exists() && count.held == 0 && writer.terms() == 5000);
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(spill(&writer, &path, 256, &mut count, &mut go_on), Err(Error::Io { .. })));
    assert_eq!(count.held, 0);
}
