//! Runs and their merge, against a plain map.
use super::*;
use crate::accounting::{Account, Charge, Off};
use crate::error::{Error, Result};
use crate::token::Term;
use crate::writer::{Decoder, Writer};
use plimsoll::spill::files::system;
use plimsoll::spill::merge::{MergeLimits, Target, merge, open_reduced};
use plimsoll::spill::{DiskQuota, SpillError, SpillFolder, Spool};
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

impl Charge for Count {
    fn charge(&mut self, bytes: usize) {
        self.held += bytes;
        self.peak = self.peak.max(self.held);
    }
    fn release(&mut self, bytes: usize) {
        self.held = self.held.checked_sub(bytes).expect("no more is released than was charged");
    }
}

impl Account for Count {
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
    type Error = Error;
    fn begin(&mut self, term: &[u8], _: &mut A) -> Result<()> {
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
    fn end(&mut self, _: &mut A) -> Result<()> {
        Ok(())
    }
}

fn go_on() -> Result<()> {
    Ok(())
}

/// Terms, one document after the other, and where the writer is spilled: (document, tokens).
type Input = Vec<(Vec<String>, bool)>;

fn folder_in(parent: &Path) -> SpillFolder {
    SpillFolder::create(system(), parent, "runs", DiskQuota::unlimited()).unwrap()
}

/// Builds with spills where the input says so, and merges runs and remainder.
fn build(input: &Input, block_bytes: usize, limits: MergeLimits, parent: &Path) -> Result<(Plain, Count, u64)> {
    let (mut writer, mut count) = (Writer::new(block_bytes), Count::default());
    let mut spool = Spool::new(&folder_in(parent), "b000000-f0000");
    for (document, (terms, spill_after)) in input.iter().enumerate() {
        for (position, term) in terms.iter().enumerate() {
            writer.add(&mut Off, Term::of(term.as_bytes()), document as u32, position as u32);
            if position == 3 && *spill_after {
                // in the middle of a document
                spill(&writer, &mut spool, limits.block_bytes, &mut count, go_on)?;
                writer.clear();
            }
        }
        if *spill_after && !writer.is_empty() {
            spill(&writer, &mut spool, limits.block_bytes, &mut count, go_on)?;
            writer.clear();
        }
    }
    let mut beside = Beside::new(go_on, |_, _| ());
    let (readers, passes) = open_reduced(&mut spool, 1, limits, &mut count, &mut beside)?;
    let mut sources: Vec<_> = readers.into_iter().map(Source::run).collect();
    let order = writer.order(&mut count);
    sources.push(Source::memory(&writer, order));
    let mut collect = Collect::default();
    merge(&mut sources, &mut collect, &mut count, &mut beside)?;
    release_all(sources, &mut count);
    spool.clear(&mut count)?;
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

const LIMITS: MergeLimits = MergeLimits { block_bytes: 256, fan_in: 3 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn merging_any_split_of_the_input_gives_what_no_split_gives(
        input in proptest::collection::vec(
            (proptest::collection::vec("[a-c]{1,2}|[ab]{8,9}|x{300}[yz]|\u{e9}{20}", 0..9), any::<bool>()), 1..30),
        fan_in in 2usize..5
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (merged, count, _) = build(&input, 1024, MergeLimits { fan_in, ..LIMITS }, folder.path()).unwrap();
        prop_assert_eq!(merged, plainly(&input));
        prop_assert_eq!((count.held, count.terms), (0, 0), "everything is released");
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "merged runs are removed, and their folder");
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
    let limits = MergeLimits { block_bytes: 4096, fan_in: 16 };
    let (merged, count, passes) = build(&input, 1024, limits, folder.path()).unwrap();
    assert_eq!(merged, plainly(&input));
    assert_eq!(passes, 3, "900, 57, 4, 1");
    assert!(count.peak < 20 * (4096 + 1024), "a merge holds a block a source: {}", count.peak);
}

/// B46: what could not be sealed is gone, and the writer still has everything.
#[test]
fn a_spill_that_fails_leaves_no_file_and_keeps_the_terms() {
    let mut writer = Writer::new(1024);
    for number in 0..5000u32 {
        writer.add(&mut Off, Term::of(format!("{number}").as_bytes()), number, 0);
    }
    let (parent, mut count) = (tempfile::tempdir().unwrap(), Count::default());
    let spool_folder = folder_in(parent.path());
    let mut spool = Spool::new(&spool_folder, "a");
    let files = || std::fs::read_dir(spool_folder.path()).unwrap().count();
    let mut polls = 0;
    let poll = || {
        polls += 1;
        if polls == 3 { Err(Error::Interrupted { signal: 2 }) } else { Ok(()) }
    };
    assert!(matches!(spill(&writer, &mut spool, 256, &mut count, poll), Err(Error::Interrupted { .. })));
    assert!(files() == 0 && count.held == 0 && writer.terms() == 5000);
    let taken = spool_folder.path().join("a-0002.spool");
    std::fs::create_dir(&taken).unwrap();
    let error = spill(&writer, &mut spool, 256, &mut count, go_on).unwrap_err();
    assert!(error.to_string().starts_with("creating ") && error.exit_code() == 1, "{error}");
    assert_eq!(count.held, 0);
    std::fs::remove_dir(&taken).unwrap();
    let run = spill(&writer, &mut spool, 256, &mut count, go_on).unwrap();
    assert_eq!((run.records(), files()), (5000, 1));
}

/// What is wrong with a span is told with the file that it came from.
#[test]
fn a_target_that_cannot_decode_a_run_names_the_file() {
    struct Refusing;
    impl<A: Account> Target<A> for Refusing {
        type Error = Error;
        fn begin(&mut self, _: &[u8], _: &mut A) -> Result<()> {
            Ok(())
        }
        fn piece(&mut self, _: &[u8], _: bool, _: &mut A) -> Result<()> {
            Err(Error::Failed("not a span".to_owned()))
        }
        fn end(&mut self, _: &mut A) -> Result<()> {
            Ok(())
        }
        fn blame(error: Error, corrupt: impl FnOnce(String) -> SpillError) -> Error {
            corrupt(error.to_string()).into()
        }
    }
    let parent = tempfile::tempdir().unwrap();
    let mut spool = Spool::new(&folder_in(parent.path()), "a");
    let mut writer = Writer::new(1024);
    writer.add(&mut Off, Term::of(b"term"), 0, 0);
    spill(&writer, &mut spool, 256, &mut Off, go_on).unwrap();
    let mut sources: Vec<_> = spool.open(&mut Off).unwrap().into_iter().map(Source::run).collect();
    let error = merge(&mut sources, &mut Refusing, &mut Off, &mut Beside::new(go_on, |_, _| ())).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { why, offset: 44, .. } if why == "not a span"), "{error}");
}
