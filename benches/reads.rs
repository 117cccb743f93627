//! What positioned reads cost: reads of 4 KiB and 64 KiB at random places of a file in the page cache, and one after the
//! other from its start to its end, against raw `pread`, and against opening the file for each read.
//!
//! `cargo bench --features spill --bench reads`, some thirty seconds; `-- --only 4` for some of the lines, `--rounds N`.
//! Processor time (in the kernel too: nothing waits for a disk), alternating rounds, medians with the least and the most.
//! Ratios are of the same round, "of opening" over `open`, `pread` and `close` for each read. Targets at 4 KiB: a reader at
//! least 0.97 of raw `pread`, and 1.8 times a reader that is made for each read.
//! That a read opens nothing is asserted.

mod common;

use common::alternate::calibrate;
use common::figures::Figures;
use common::options::Options;
use cpu_time::ThreadTime;
use plimsoll::spill::files::system;
use plimsoll::spill::read::{Descriptors, PageReader, Pages, Reader, Source, SourcedReader};
use plimsoll::spill::{SpillError, SpillResult, Uncounted};
use plimsoll::{KIB, MIB};
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Payload of the pages of the checked file.
const PAGE: usize = 4 * KIB;

/// How much is read and how often it is compared.
struct Size {
    file_bytes: usize,
    rounds: usize,
    slice: Duration,
}

type Read<'a> = Box<dyn FnMut(&mut [u8], u64) + 'a>;

/// One way to read.
struct Way<'a> {
    name: &'static str,
    read: Read<'a>,
    /// How often it has opened a file so far; none if each read opens one, and nobody counts.
    opens: Option<Box<dyn Fn() -> u64 + 'a>>,
}

impl<'a> Way<'a> {
    fn new<E: std::fmt::Debug>(
        name: &'static str,
        mut read: impl FnMut(&mut [u8], u64) -> Result<(), E> + 'a,
        opens: impl Fn() -> u64 + 'a,
    ) -> Way<'a> {
        let read = Box::new(move |bytes: &mut [u8], at| read(bytes, at).expect("the file is there"));
        Way { name, read, opens: Some(Box::new(opens)) }
    }

    fn opening<E: std::fmt::Debug>(
        name: &'static str,
        read: impl FnMut(&mut [u8], u64) -> Result<(), E> + 'a,
    ) -> Way<'a> {
        Way { opens: None, ..Way::new(name, read, || 0) }
    }

    fn opened(&self) -> u64 {
        self.opens.as_ref().map_or(0, |opens| opens())
    }
}

/// A source that is broken.
#[derive(Debug)]
struct Broken;

impl Source for Broken {
    fn read_exact_at(&self, bytes: &mut [u8], _: u64) -> SpillResult<()> {
        let failed = std::io::ErrorKind::PermissionDenied.into();
        Err(SpillError::io_of("reading", self.name(), bytes.len() as u64)(failed))
    }
    fn name(&self) -> &Path {
        Path::new("broken")
    }
}

/// A source with a wrong check-sum everywhere: it fails each request, and is asked again by the next.
#[derive(Debug)]
struct Damaged(Reader);

impl Source for Damaged {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
        self.0.read_exact_at(bytes, offset)?;
        Err(SpillError::corrupt(self.name(), offset, "page does not match its checksum"))
    }
    fn name(&self) -> &Path {
        self.0.path()
    }
}

/// The system's own call, as thin as it can be had.
#[cfg(unix)]
#[inline]
fn pread(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(not(unix))]
fn pread(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    plimsoll::spill::files::read_exact_at(file, bytes, at)
}

/// The plain file, and the same bytes in checked pages.
fn write_files(plain: &Path, paged: &Path, bytes: usize) -> std::io::Result<()> {
    let (mut plain, mut paged) = (File::create(plain)?, File::create(paged)?);
    let mut page = vec![0u8; PAGE];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..bytes / PAGE {
        for word in page.chunks_exact_mut(8) {
            state = random(state);
            word.copy_from_slice(&state.to_le_bytes());
        }
        plain.write_all(&page)?;
        paged.write_all(&[&page[..], &crc32c::crc32c(&page).to_le_bytes()].concat())?;
    }
    Ok(())
}

fn random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

fn main() {
    let options = Options::from_command_line();
    options.announce("cargo bench --features spill --bench reads --");
    let rounds = options.numbers("--rounds").map_or(41, |rounds| rounds[0]);
    let size = match options.test() {
        true => Size { file_bytes: MIB, rounds: 1, slice: Duration::from_micros(100) },
        false => Size { file_bytes: 256 * MIB, rounds, slice: Duration::from_millis(20) },
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (plain, paged) = (folder.path().join("plain"), folder.path().join("paged"));
    write_files(&plain, &paged, size.file_bytes).expect("the files are written");
    // nothing written back while it is measured
    File::open(&plain).and_then(|file| file.sync_all()).expect("synced");
    File::open(&paged).and_then(|file| file.sync_all()).expect("synced");
    for (name, bytes) in [("4 KiB", 4 * KIB), ("64 KiB", 64 * KIB)] {
        for scan in [false, true] {
            let order = if scan { "one after the other" } else { "at random places" };
            if options.wants("--only", &format!("{name} {order}")) {
                println!("\n{name} {order}, a file of {} MiB", size.file_bytes / MIB);
                compare(&plain, &paged, bytes, scan, &size);
            }
        }
    }
}

fn compare(plain: &Path, paged: &Path, bytes: usize, scan: bool, size: &Size) {
    let raw = File::open(plain).expect("opened");
    let again = File::open(plain).expect("opened");
    let reader = Reader::new(system(), plain);
    let descriptors = Descriptors::new(system(), 64);
    let lent = descriptors.reader(plain);
    let spare = Arc::new(Reader::new(system(), plain));
    let first = Arc::new(Reader::new(system(), plain));
    let sourced = SourcedReader::new(Arc::clone(&first)).or(Arc::clone(&spare));
    let after_error = SourcedReader::new(Broken).or(Arc::clone(&spare));
    let after_check = SourcedReader::new(Damaged(Reader::new(system(), plain))).or(Arc::clone(&spare));
    let paged = Reader::new(system(), paged);
    let pages = Pages::new(&paged, 0, size.file_bytes as u64, PAGE).expect("pages");
    let mut checked: PageReader<'_, &Reader> = pages.reader(Uncounted);
    let mut ways = [
        Way::new("raw pread", |bytes, at| pread(&raw, bytes, at), || 0),
        Way::new("raw pread, again", |bytes, at| pread(&again, bytes, at), || 0),
        Way::new("reader", |bytes, at| reader.read_exact_at(bytes, at), || reader.opens()),
        Way::new("reader, shared descriptors", |bytes, at| lent.read_exact_at(bytes, at), || lent.opens()),
        Way::new(
            "two sources, both well",
            |bytes, at| sourced.read_exact_at(bytes, at),
            || first.opens() + spare.opens(),
        ),
        Way::new(
            "two sources, errors of the first",
            |bytes, at| after_error.read_exact_at(bytes, at),
            || spare.opens(),
        ),
        Way::new("two, wrong sums in the first", |bytes, at| after_check.read_exact_at(bytes, at), || spare.opens()),
        Way::new("checked pages of 4 KiB", |bytes, at| checked.read_exact_at(bytes, at), || paged.opens()),
        Way::opening("opened for each read", |bytes, at| Reader::new(system(), plain).read_exact_at(bytes, at)),
        Way::opening("opened for each raw pread", |bytes, at| pread(&File::open(plain)?, bytes, at)),
    ];
    let places = (size.file_bytes / bytes) as u64;
    let mut buffer = vec![0; bytes];
    let mut state = 0x2545_f491_4f6c_dd1d;
    let mut go = |way: &mut Way<'_>, times: u64| {
        for time in 0..times {
            state = random(state);
            let at = if scan { time % places } else { state % places };
            (way.read)(&mut buffer, at * bytes as u64);
            black_box(&mut buffer);
        }
    };
    // each way once over the file: everything is open and in the page cache
    ways.iter_mut().for_each(|way| go(way, places.min(1_000)));
    let times: Vec<u64> = ways.iter_mut().map(|way| calibrate(&mut |times| go(way, times), size.slice)).collect();
    let before: Vec<u64> = ways.iter().map(Way::opened).collect();
    let mut rates: Vec<Figures> = ways.iter().map(|_| Figures::default()).collect();
    let mut over_raw: Vec<Figures> = ways.iter().map(|_| Figures::default()).collect();
    let mut over_reopened: Vec<Figures> = ways.iter().map(|_| Figures::default()).collect();
    let reopened = ways.len() - 1;
    let mut round = vec![0.0; ways.len()];
    for number in 0..size.rounds {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let start = ThreadTime::now();
            go(&mut ways[index], times[index]);
            round[index] = times[index] as f64 / start.elapsed().as_secs_f64();
        }
        for (index, rate) in round.iter().enumerate() {
            rates[index].push(*rate);
            over_raw[index].push(rate / round[0]);
            over_reopened[index].push(rate / round[reopened]);
        }
    }
    println!("{:37} {:>32} {:>24} {:>10} {:>14}", "", "reads a second", "of raw pread", "of opening", "opens a read");
    for (index, way) in ways.iter().enumerate() {
        let opened = way.opened() - before[index];
        assert_eq!(opened, 0, "{} opened files", way.name);
        let ratio = |ratio: f64| format!("{ratio:.3}");
        println!(
            "{:37} {:>32} {:>24} {:>10} {:>14}",
            way.name,
            rates[index].text(|rate| format!("{:.0}", rate)),
            over_raw[index].text(ratio),
            format!("{:.2}", over_reopened[index].median()),
            u8::from(way.opens.is_none())
        );
    }
}
