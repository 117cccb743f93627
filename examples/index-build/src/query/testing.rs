//! For tests: a plain builder that holds everything in sorted maps and shares only the tokenizer and the segment writer
//! with the real one.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::words::words;
use crate::manifest::{self, Kind, Manifest, SegmentEntry, hex};
use crate::segment::SegmentWriter;

/// A document: field and text. A field with an empty text is a field without tokens.
pub(crate) type Document = Vec<(String, String)>;

/// Term -> document and position of each occurrence.
type Terms = BTreeMap<Vec<u8>, Vec<(u32, u32)>>;

/// Lines of text as documents with the one field `text`.
pub(crate) fn text_documents(input: &[u8]) -> Vec<Document> {
    let mut lines: Vec<_> = input.split(|&b| b == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.into_iter().map(|line| vec![("text".into(), String::from_utf8_lossy(line).into_owned())]).collect()
}

/// Lines of JSON objects as documents of their string values.
pub(crate) fn json_documents(input: &[u8]) -> Vec<Document> {
    let lines = input.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let values = lines.map(|line| serde_json::from_slice::<BTreeMap<String, serde_json::Value>>(line).unwrap());
    let strings = |value: BTreeMap<String, serde_json::Value>| {
        value.into_iter().filter_map(|(field, value)| Some((field, value.as_str()?.to_owned()))).collect()
    };
    values.map(strings).collect()
}

/// Writes an index of these documents, `per_segment` in each segment.
pub(crate) fn build(dir: &Path, kind: Kind, documents: &[Document], per_segment: usize, input: &[u8]) -> Manifest {
    let mut fields: Vec<String> = documents.iter().flatten().map(|(field, _)| field.clone()).collect();
    if kind == Kind::Text {
        fields.push("text".into());
    }
    fields.sort();
    fields.dedup();
    let mut manifest = Manifest {
        kind,
        fields,
        batch_bytes: 1,
        documents: documents.len() as u64,
        skipped_documents: 0,
        tokens: 0,
        postings: 0,
        input_bytes: input.len() as u64,
        input_sha256: hex(&Sha256::digest(input)),
        segments: Vec::new(),
    };
    for (number, documents) in (0..).zip(documents.chunks(per_segment)) {
        let mut model: BTreeMap<&str, (u32, Terms)> = BTreeMap::new();
        for (doc, document) in (0..).zip(documents) {
            for (field, text) in document {
                let (with_tokens, terms) = model.entry(field).or_default();
                let words = words(text).unwrap();
                *with_tokens += u32::from(!words.is_empty());
                for (position, word) in (0..).zip(words) {
                    terms.entry(word).or_default().push((doc, position));
                }
            }
        }
        let mut writer = SegmentWriter::create(dir, number).unwrap();
        for (field, (with_tokens, terms)) in model {
            writer.begin_field(field).unwrap();
            for (term, occurrences) in terms {
                writer.begin_term(&term).unwrap();
                for (doc, position) in occurrences {
                    writer.occurrence(doc, position).unwrap();
                }
                writer.end_term().unwrap();
            }
            let stats = writer.end_field(with_tokens).unwrap();
            manifest.tokens += stats.tokens;
            manifest.postings += stats.postings;
        }
        let files = writer.finish(documents.len() as u32).unwrap();
        manifest.segments.push(SegmentEntry {
            number,
            document_base: u64::from(number) * per_segment as u64,
            documents: documents.len() as u32,
            files: files.iter().map(Into::into).collect(),
        });
    }
    std::fs::write(dir.join(manifest::FILE_NAME), manifest.to_bytes()).unwrap();
    manifest
}

/// A text index of these lines.
pub(crate) fn text_index(lines: &[&str], per_segment: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let input = lines.iter().flat_map(|line| [line, "\n"]).collect::<String>().into_bytes();
    build(dir.path(), Kind::Text, &text_documents(&input), per_segment, &input);
    dir
}

/// The shared sample data, if it is there: `PLIMSOLL_SHARED`, or `../shared` beside the workspace.
pub(crate) fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    shared.join("data/truth").is_dir().then_some(shared)
}
