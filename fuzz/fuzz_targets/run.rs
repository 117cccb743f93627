//! A spool file and what is said of a run in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll::ReserveError;
use plimsoll::spill::files::Files;
use plimsoll::spill::run::{LEAST_BLOCK_BYTES, RunFile};
use plimsoll::spill::{Charge, Run, RunReader, SpillError, SpillFolder, SpillResult, Spool, Uncounted};
use plimsoll_fuzz::{Input, Memory, most_allocated};
use std::path::Path;
use std::sync::{Arc, OnceLock};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() % 3 {
        0 => any_bytes(&mut input),
        1 => one_change(&mut input),
        _ => forged(&mut input),
    }
});

/// A [`Charge`] that records, and refuses nothing.
#[derive(Default)]
struct Recorded {
    held: usize,
    most: usize,
}

impl Charge for Recorded {
    fn charge(&mut self, bytes: usize) {
        self.held += bytes;
        self.most = self.most.max(self.held);
    }
    fn release(&mut self, bytes: usize) {
        self.held -= bytes;
    }
    fn try_charge(&mut self, bytes: usize) -> Result<(), ReserveError> {
        self.charge(bytes);
        Ok(())
    }
}

/// The text of an error, and the handles.
const BESIDE_BYTES: usize = 1_024;

const PATH: &str = "spool";

/// Reads all of the run, and checks what the reader takes meanwhile. Answers its records.
fn read(bytes: Vec<u8>, run: &Run) -> SpillResult<u64> {
    let (memory, file_bytes) = (Memory::default(), bytes.len());
    memory.put(Path::new(PATH), bytes);
    let mut account = Recorded::default();
    let (done, most) = most_allocated(|| {
        let file = RunFile::open(&memory, Path::new(PATH))?;
        let mut reader = RunReader::open(&file, run, &mut account)?;
        let done = records(&mut reader);
        reader.release(&mut account);
        done
    });
    assert_eq!(account.held, 0, "everything is given back");
    assert!(most <= account.most + BESIDE_BYTES, "{most} bytes allocated, {} charged", account.most);
    assert!(account.most <= 2 * file_bytes + BESIDE_BYTES, "{} bytes charged, {file_bytes} in the file", account.most);
    if let Err(error) = &done {
        // with the name of the file
        assert!(matches!(error, SpillError::Corrupt { path, .. } if path == Path::new(PATH)), "{error}");
    }
    done
}

fn records(reader: &mut RunReader) -> SpillResult<u64> {
    let (mut records, mut before) = (0, Vec::new());
    while reader.advance()? {
        assert!(records == 0 || before.as_slice() < reader.key(), "keys ascend");
        before.clear();
        before.extend_from_slice(reader.key());
        records += 1;
        // every second one is skipped
        while records % 2 == 0 && reader.piece()?.is_some() {}
    }
    assert!(!reader.advance()?, "an end is an end");
    Ok(records)
}

fn any_bytes(input: &mut Input<'_>) {
    let [serial, offset, bytes, records] = [(); 4].map(|()| input.number());
    let (longest, block_bytes) = (input.number() as usize, input.number() as u32);
    let run = Run::at(serial, offset, bytes, records, longest, block_bytes);
    let _ = read(input.0.to_vec(), &run);
}

/// A spool file with three runs, the middle one of several blocks, and that run.
fn whole() -> &'static (Vec<u8>, Run) {
    static WHOLE: OnceLock<(Vec<u8>, Run)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let memory = Memory::default();
        memory.create_folder(Path::new("parent")).expect("memory");
        let files: Arc<dyn Files> = Arc::new(memory.clone());
        let folder = SpillFolder::builder("parent").files(files).create().expect("memory");
        let mut spool = Spool::new(&folder, "fuzz");
        for keys in [3, 90, 2] {
            let mut run = spool.begin(LEAST_BLOCK_BYTES, 64, &mut Uncounted).expect("memory");
            for key in 0..keys {
                run.begin_record(format!("key {key:04}").as_bytes(), &mut Uncounted).expect("in order");
                run.piece(&vec![key as u8; key % 50], key % 3 == 0).expect("memory");
                run.piece(b"last", true).expect("memory");
                run.end_record().expect("memory");
            }
            run.finish(&mut Uncounted).expect("memory");
        }
        let run = *spool.runs().nth(1).expect("three runs");
        let [path] = <[_; 1]>::try_from(memory.list(folder.path()).expect("memory")).expect("one file");
        (memory.bytes(&path), run)
    })
}

fn one_change(input: &mut Input<'_>) {
    let (bytes, run) = whole();
    let (from, length) = (run.offset() as usize, run.bytes() as usize);
    let mut changed = bytes.clone();
    let (at, xor) = (input.short() % length, input.byte());
    changed[from + at] ^= xor;
    let done = read(changed, run);
    assert_eq!(done.is_ok(), xor == 0, "byte {at} of the run, {xor:#x}: {done:?}");
    // cut anywhere
    let cut = input.short() % (from + length);
    read(bytes[..cut].to_vec(), run).expect_err("a file that is cut");
}

/// A run whose payloads are the input's, whatever they say.
fn forged(input: &mut Input<'_>) {
    let (identity, serial) = (7u64, input.number());
    let block_bytes = LEAST_BLOCK_BYTES as u32 + u32::from(input.byte()) * 255;
    let (records, longest) = (u64::from(input.byte()), usize::from(input.byte()));
    let mut file = b"plimspl\n".to_vec();
    file.extend_from_slice(&1u32.to_le_bytes());
    file.extend_from_slice(&0x0102_0304u32.to_le_bytes());
    file.extend_from_slice(&identity.to_le_bytes());
    file.extend_from_slice(&crc32c::crc32c(&file).to_le_bytes());
    let offset = file.len();
    let seed = crc32c::crc32c_append(crc32c::crc32c(&identity.to_le_bytes()), &serial.to_le_bytes());
    file.extend_from_slice(&serial.to_le_bytes());
    file.extend_from_slice(&block_bytes.to_le_bytes());
    file.extend_from_slice(&crc32c::crc32c_append(seed, &block_bytes.to_le_bytes()).to_le_bytes());
    let mut block = |number: u64, length: u32, bytes: &[u8]| {
        let sum = crc32c::crc32c_append(crc32c::crc32c_append(seed, &number.to_le_bytes()), &length.to_le_bytes());
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&crc32c::crc32c_append(sum, bytes).to_le_bytes());
        file.extend_from_slice(bytes);
    };
    let (mut blocks, mut payload_bytes) = (0u64, 0u64);
    while !input.is_empty() {
        let most = usize::from(input.byte()) + 1;
        let payload = input.take(most);
        if !payload.is_empty() {
            block(blocks, payload.len() as u32, payload);
            blocks += 1;
            payload_bytes += payload.len() as u64;
        }
    }
    let seal: Vec<u8> = [records, payload_bytes, blocks].iter().flat_map(|count| count.to_le_bytes()).collect();
    block(blocks, 0, &seal);
    let bytes = (file.len() - offset) as u64;
    if let Ok(read) = read(file, &Run::at(serial, offset as u64, bytes, records, longest, block_bytes)) {
        assert_eq!(read, records);
    }
}
