//! What positioned reads cost: reads of 4 KiB and 64 KiB at random places of a file in the page cache, and one after the
//! other from its start to its end, against raw `pread`, and against opening the file for each read.
//!
//! `cargo bench --features spill --bench reads`, some thirty seconds; `-- --only 4` for some of the lines, `--rounds N`.
//! Processor time (in the kernel too: nothing waits for a disk), alternating rounds, medians with the least and the most.
//! Ratios are of the same round. Targets at 4 KiB: a reader at least 0.97 of raw `pread`, and 1.8 times opening per read.
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

/// One way to read.
struct Way<'a> {
    name: &'static str,
    read: Box<dyn FnMut(&mut [u8], u64) + 'a>,
    /// How often it has opened a file so far.
    opens: Box<dyn Fn() -> u64 + 'a>,
    /// Whether each read opens one.
    reopens: bool,
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
    let none = || Box::new(|| 0u64) as Box<dyn Fn() -> u64>;
    let ok = "the file is there";
    let mut ways = [
        Way {
            name: "raw pread",
            read: Box::new(|bytes, at| pread(&raw, bytes, at).expect(ok)),
            opens: none(),
            reopens: false,
        },
        Way {
            name: "raw pread, again",
            read: Box::new(|bytes, at| pread(&again, bytes, at).expect(ok)),
            opens: none(),
            reopens: false,
        },
        Way {
            name: "reader",
            read: Box::new(|bytes, at| reader.read_exact_at(bytes, at).expect(ok)),
            opens: Box::new(|| reader.opens()),
            reopens: false,
        },
        Way {
            name: "reader, shared descriptors",
            read: Box::new(|bytes, at| lent.read_exact_at(bytes, at).expect(ok)),
            opens: Box::new(|| lent.opens()),
            reopens: false,
        },
        Way {
            name: "two sources, both well",
            read: Box::new(|bytes, at| sourced.read_exact_at(bytes, at).expect(ok)),
            opens: Box::new(|| first.opens() + spare.opens()),
            reopens: false,
        },
        Way {
            name: "two sources, errors of the first",
            read: Box::new(|bytes, at| after_error.read_exact_at(bytes, at).expect(ok)),
            opens: Box::new(|| spare.opens()),
            reopens: false,
        },
        Way {
            name: "two sources, wrong sums in the first",
            read: Box::new(|bytes, at| after_check.read_exact_at(bytes, at).expect(ok)),
            opens: Box::new(|| spare.opens()),
            reopens: false,
        },
        Way {
            name: "checked pages of 4 KiB",
            read: Box::new(|bytes, at| checked.read_exact_at(bytes, at).expect(ok)),
            opens: Box::new(|| paged.opens()),
            reopens: false,
        },
        Way {
            name: "opened for each read",
            read: Box::new(|bytes, at| Reader::new(system(), plain).read_exact_at(bytes, at).expect(ok)),
            opens: none(),
            reopens: true,
        },
        Way {
            name: "opened for each raw pread",
            read: Box::new(|bytes, at| {
                File::open(plain).and_then(|file| pread(&file, bytes, at)).expect(ok);
            }),
            opens: none(),
            reopens: true,
        },
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
    let before: Vec<u64> = ways.iter().map(|way| (way.opens)()).collect();
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
        let opened = (way.opens)() - before[index];
        assert!(way.reopens || opened == 0, "{}: {opened} opens", way.name);
        let ratio = |ratio: f64| format!("{ratio:.3}");
        println!(
            "{:37} {:>32} {:>24} {:>10} {:>14}",
            way.name,
            rates[index].text(|rate| format!("{:.0}", rate)),
            over_raw[index].text(ratio),
            format!("{:.2}", over_reopened[index].median()),
            u8::from(way.reopens)
        );
    }
}
