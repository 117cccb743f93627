//! What an index folder holds, in figures. Reads the catalogs, and the dictionaries to count distinct terms; no postings.
use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::explained::Explained;
use crate::manifest::Kind;
use crate::query::Index;
use crate::segment::{FORMAT_VERSION, FieldStats, Part};

/// An index in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspected {
    pub format_version: u32,
    pub kind: Kind,
    pub segments: u64,
    pub documents: u64,
    pub skipped_documents: u64,
    /// Distinct over the index, summed over fields.
    pub terms: u64,
    /// Terms of all dictionaries: a term counts once in each segment that has it.
    pub dictionary_entries: u64,
    pub tokens: u64,
    pub postings: u64,
    pub batch_bytes: u64,
    pub input_bytes: u64,
    pub input_sha256: String,
    pub bytes: PartBytes,
    pub fields: Vec<InspectedField>,
    /// If the build was asked for it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explained>,
}

/// Bytes of an index by part: of the files that belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartBytes {
    /// Dictionaries, and postings small enough to lie in them.
    pub terms: u64,
    pub postings: u64,
    pub positions: u64,
    pub manifest: u64,
    pub total: u64,
}

/// One field over all segments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InspectedField {
    pub name: String,
    pub dictionary_entries: u64,
    pub tokens: u64,
    pub postings: u64,
    pub documents_with_tokens: u64,
}

/// Inspects the index in `dir`.
///
/// # Errors
/// As [`Index::open`] and [`Explained::read`], and if a dictionary is damaged.
pub fn inspect(dir: &Path) -> Result<Inspected> {
    let index = Index::open(dir)?;
    let manifest = index.manifest();
    let part = |part| index.segments().iter().map(|segment| segment.part_bytes(part)).sum::<u64>();
    let total = manifest.index_bytes();
    let (terms, postings, positions) = (part(Part::Terms), part(Part::Postings), part(Part::Positions));
    let bytes = PartBytes { terms, postings, positions, manifest: total - terms - postings - positions, total };
    let fields: Vec<_> = manifest.fields.iter().map(|name| field(&index, name)).collect();
    Ok(Inspected {
        format_version: FORMAT_VERSION,
        kind: manifest.kind,
        segments: manifest.segments.len() as u64,
        documents: manifest.documents,
        skipped_documents: manifest.skipped_documents,
        terms: index.distinct_terms(|_| {})?,
        dictionary_entries: fields.iter().fold(0, |sum, field| field.dictionary_entries.saturating_add(sum)),
        tokens: manifest.tokens,
        postings: manifest.postings,
        batch_bytes: manifest.batch_bytes,
        input_bytes: manifest.input_bytes,
        input_sha256: manifest.input_sha256.clone(),
        bytes,
        fields,
        explain: Explained::read(dir)?,
    })
}

fn field(index: &Index, name: &str) -> InspectedField {
    let mut sum = InspectedField { name: name.to_owned(), ..InspectedField::default() };
    for field in index.segments().iter().filter_map(|segment| segment.field(name)) {
        let FieldStats { terms, postings, tokens, documents_with_tokens } = field.stats;
        sum.dictionary_entries = sum.dictionary_entries.saturating_add(terms);
        sum.tokens = sum.tokens.saturating_add(tokens);
        sum.postings = sum.postings.saturating_add(postings);
        sum.documents_with_tokens += u64::from(documents_with_tokens);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::testing::text_index;

    #[test]
    fn the_figures_are_those_of_the_files() {
        let dir = text_index(&["a b", "", "b b c"], 2);
        let inspected = inspect(dir.path()).unwrap();
        let on_disk = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        assert_eq!(inspected.bytes.total, on_disk.sum::<u64>());
        let PartBytes { terms, postings, positions, manifest, total } = inspected.bytes;
        assert_eq!(terms + postings + positions + manifest, total);
        assert_eq!((inspected.segments, inspected.documents, inspected.terms), (2, 3, 3));
        assert_eq!((inspected.dictionary_entries, inspected.tokens, inspected.postings), (4, 5, 4));
        let [text] = inspected.fields.as_slice() else { panic!("one field") };
        assert_eq!((text.name.as_str(), text.tokens, text.documents_with_tokens), ("text", 5, 2));
    }
}
