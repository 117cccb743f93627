//! Whole builds of any input, cut and spilled in any way, against a plain model of what an index holds.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it has to be")]
mod common;

use common::{fresh, options, run, write};
use index_build::options::{Accounting, BuildOptions, Format};
use index_build::query::Index;
use index_build::segment::Decoder;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Field and term -> documents and positions.
type Plain = BTreeMap<(String, String), Vec<(u64, u32)>>;

/// The tokens of a text, word for word as the definition has it.
fn tokens(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|character: char| !character.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(|part| part.chars().filter_map(|character| character.to_lowercase().next()).collect())
}

fn add(plain: &mut Plain, field: &str, document: u64, text: &str) {
    for (position, token) in tokens(text).enumerate() {
        plain.entry((field.to_owned(), token)).or_default().push((document, position as u32));
    }
}

/// Lines of a file by the definition: nothing follows a final line end.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

fn of_text(files: &[Vec<u8>]) -> (u64, Plain) {
    let (mut documents, mut plain) = (0, Plain::new());
    for line in files.iter().flat_map(|file| lines(file)) {
        add(&mut plain, "text", documents, &String::from_utf8_lossy(line));
        documents += 1;
    }
    (documents, plain)
}

fn of_json(files: &[Vec<u8>]) -> (u64, Plain) {
    let (mut documents, mut plain) = (0, Plain::new());
    for line in files.iter().flat_map(|file| lines(file)) {
        let text = String::from_utf8_lossy(line);
        let Ok(serde_json::Value::Object(object)) = serde_json::from_str(&text) else { continue };
        for (field, value) in &object {
            add(&mut plain, field, documents, value.as_str().unwrap_or_default());
        }
        documents += 1;
    }
    (documents, plain)
}

/// Everything that an index holds.
fn of_index(folder: &Path) -> (u64, Plain) {
    let index = Index::open(folder).unwrap();
    let (mut decoder, mut plain) = (Decoder::new().unwrap(), Plain::new());
    for (entry, segment) in index.manifest().segments.iter().zip(index.segments()) {
        for field in segment.fields() {
            let (mut terms, mut postings) = (segment.terms(field), segment.postings());
            while terms.advance(&mut decoder).unwrap() {
                let term = String::from_utf8(terms.term().to_vec()).unwrap();
                postings.start(&terms.info()).unwrap();
                while let Some((document, _)) = postings.next_document().unwrap() {
                    while let Some(position) = postings.next_position().unwrap() {
                        let occurrences = plain.entry((field.name.clone(), term.clone())).or_default();
                        occurrences.push((entry.document_base + u64::from(document), position));
                    }
                }
            }
        }
    }
    (index.manifest().documents, plain)
}

/// How a build is cut and spilled.
fn ways() -> impl Strategy<Value = BuildOptions> {
    let accounting = prop_oneof![Just(Accounting::Off), Just(Accounting::PerTerm), Just(Accounting::Batched)];
    (accounting, 1u64..400, prop_oneof![Just(512usize), Just(1000), Just(4096)], 1usize..5, 0usize..3, any::<bool>())
        .prop_map(|(accounting, batch_bytes, block_bytes, threads, spill, skip_bad)| {
            let budget = spill == 1 && accounting != Accounting::Off;
            BuildOptions {
                accounting,
                batch_bytes,
                block_bytes,
                threads,
                // 40 fields at most
                budget_bytes: budget.then_some(40 * 4096),
                floor_bytes: budget.then_some(512),
                writer_cap_bytes: (spill == 2).then_some(1),
                skip_bad,
                ..BuildOptions::default()
            }
        })
}

fn check(files: &[Vec<u8>], way: BuildOptions, format: Format, expected: (u64, Plain)) {
    let folder = tempfile::tempdir().unwrap();
    let inputs: Vec<_> =
        files.iter().enumerate().map(|(number, bytes)| write(folder.path(), &format!("in-{number}"), bytes)).collect();
    let index = fresh(folder.path());
    let sync = options(folder.path(), &inputs).sync;
    let report = run(&BuildOptions { index: index.clone(), inputs, format, sync, ..way }).unwrap();
    let (documents, plain) = &expected;
    assert_eq!(report.documents, *documents);
    assert_eq!(report.tokens as usize, plain.values().map(Vec::len).sum::<usize>());
    assert_eq!(report.distinct_terms as usize, plain.len());
    assert_eq!((report.held_at_end_bytes, report.accounting_errors), (0, 0));
    assert_eq!(of_index(&index), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_text_index_holds_every_occurrence_and_nothing_else(
        files in proptest::collection::vec(
            proptest::collection::vec("[a-cA ]{0,12}|[A-F0-9]{30,80}|(\u{e9}\u{130}|\u{661}| |x){0,9}", 0..12), 0..4),
        ends in any::<[bool; 4]>(),
        invalid in any::<bool>(),
        way in ways(),
    ) {
        let files: Vec<Vec<u8>> = files.iter().zip(ends).map(|(lines, end)| {
            let mut bytes = lines.join(if invalid { "\r\n" } else { "\n" }).into_bytes();
            if invalid {
                bytes.iter_mut().filter(|byte| **byte == b'c').for_each(|byte| *byte = 0xC3);
            }
            if end {
                bytes.push(b'\n');
            }
            bytes
        }).collect();
        if !files.is_empty() {
            check(&files, way, Format::Text, of_text(&files));
        }
    }

    #[test]
    fn a_json_lines_index_holds_every_occurrence_and_nothing_else(
        files in proptest::collection::vec(
            proptest::collection::vec(
                proptest::collection::vec(("[a-f]|k[0-9]", "[a-c\\\\\"\n\u{e9} ]{0,15}", 0u8..6), 0..5), 0..10), 1..3),
        way in ways(),
    ) {
        let files: Vec<Vec<u8>> = files.iter().map(|lines| {
            let mut bytes = Vec::new();
            for pairs in lines {
                let pairs: Vec<String> = pairs.iter().map(|(key, value, kind)| {
                    let value = serde_json::to_string(value).unwrap();
                    match kind {
                        0 => format!("\"{key}\":[{value},7]"),
                        1 => format!("\"{key}\":null"),
                        _ => format!(" \"{key}\" : {value}"),
                    }
                }).collect();
                bytes.extend_from_slice(format!("{{{}}}\n", pairs.join(",")).as_bytes());
                if way.skip_bad && pairs.len() == 2 {
                    bytes.extend_from_slice(b"{\"fresh\":\"fresh\n\n");
                }
            }
            bytes
        }).collect();
        check(&files, way, Format::Jsonl, of_json(&files));
    }
}
