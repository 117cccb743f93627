//! The manifest of an index.
#![no_main]

use index_build::error::Error;
use index_build::manifest::{FileEntry, Kind, Manifest, SegmentEntry};
use index_build::segment::{Part, part_name};
use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::{Input, most_allocated};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() % 3 {
        0 => drop(read(input.0)),
        1 => one_change(&mut input),
        _ => forged(&mut input),
    }
});

const PATH: &str = "index/manifest.json";

/// A byte of text may become a value, in a list that doubles, the same again in another form, and that as text.
const BYTES_A_BYTE: usize = 256;

fn read(bytes: &[u8]) -> Result<Manifest, Error> {
    let (read, most) = most_allocated(|| Manifest::from_bytes(bytes, Path::new(PATH)));
    assert!(most <= BYTES_A_BYTE * bytes.len() + 4_096, "{most} bytes allocated for {}", bytes.len());
    match &read {
        Ok(manifest) => assert_eq!(manifest.to_bytes(), bytes, "what is read is what would be written"),
        Err(Error::Corrupt { path, offset, .. }) => {
            assert!(path == Path::new(PATH) && *offset <= bytes.len() as u64);
        }
        Err(error) => panic!("{error}"),
    }
    read
}

/// A manifest with values that fit together.
fn whole(input: &mut Input<'_>) -> Manifest {
    let mut documents = 0;
    let segments = (0..u32::from(input.byte() % 4)).map(|number| {
        let base = documents;
        let own = u32::from(input.byte());
        documents += u64::from(own);
        let files = Part::ALL.map(|part| FileEntry {
            name: part_name(number, part),
            bytes: u64::from(input.byte()),
            crc32c: u32::from(input.byte()),
        });
        SegmentEntry { number, document_base: base, documents: own, files: files.into() }
    });
    let segments = segments.collect();
    Manifest {
        kind: Kind::Text,
        fields: vec!["text".to_owned()],
        batch_bytes: 1,
        documents,
        skipped_documents: input.number(),
        tokens: u64::MAX,
        postings: input.number(),
        input_bytes: input.number(),
        input_sha256: "0123456789abcdef".repeat(4),
        segments,
    }
}

fn one_change(input: &mut Input<'_>) {
    let manifest = whole(input);
    let bytes = manifest.to_bytes();
    assert_eq!(read(&bytes).expect("as it was written"), manifest);
    let mut changed = bytes.clone();
    let (at, xor) = (input.short() % bytes.len(), input.byte());
    changed[at] ^= xor;
    assert_eq!(read(&changed).is_ok(), xor == 0, "byte {at}, {xor:#x}");
    read(&bytes[..input.short() % bytes.len()]).expect_err("a manifest that is cut");
}

/// Any values, with a check-sum that fits them.
fn forged(input: &mut Input<'_>) {
    let mut manifest = whole(input);
    for _ in 0..input.byte() % 8 {
        let entry = |manifest: &mut Manifest, at: u8| -> Option<usize> {
            (!manifest.segments.is_empty()).then(|| usize::from(at) % manifest.segments.len())
        };
        let text = |input: &mut Input<'_>| {
            let most = usize::from(input.byte());
            String::from_utf8_lossy(input.take(most)).into_owned()
        };
        match input.byte() % 12 {
            0 => manifest.kind = Kind::Jsonl,
            1 => manifest.fields.push(text(input)),
            2 => manifest.fields.clear(),
            3 => manifest.batch_bytes = input.number(),
            4 => manifest.documents = input.number(),
            5 => manifest.tokens = input.number(),
            6 => manifest.input_sha256 = text(input),
            change => {
                if let Some(at) = entry(&mut manifest, input.byte()) {
                    let segment = &mut manifest.segments[at];
                    match change {
                        7 => segment.number = input.number() as u32,
                        8 => segment.document_base = input.number(),
                        9 => segment.documents = input.number() as u32,
                        10 => segment.files.truncate(usize::from(input.byte() % 3)),
                        _ => {
                            for file in &mut segment.files {
                                (file.name, file.bytes) = (text(input), input.number());
                            }
                        }
                    }
                }
            }
        }
    }
    if let Ok(read) = read(&manifest.to_bytes()) {
        assert_eq!(read, manifest);
        // what is read can be relied on
        assert!(read.segments.iter().all(|segment| segment.files.len() == Part::ALL.len()));
        let documents: u64 = read.segments.iter().map(|segment| u64::from(segment.documents)).sum();
        assert_eq!(documents, read.documents);
        let _ = read.index_bytes();
    }
}
