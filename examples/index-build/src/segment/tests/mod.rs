//! Round trips of whole segments against a plain sorted map, and what becomes of damaged ones.
mod damage;
mod round_trip;

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll::spill::files::system;
use plimsoll::spill::read::Reader;

use super::*;
use crate::error::Result;

/// field -> term -> document -> positions
pub(super) type Model = BTreeMap<String, BTreeMap<Vec<u8>, BTreeMap<u32, Vec<u32>>>>;

fn one_field(terms: impl IntoIterator<Item = (Vec<u8>, Vec<(u32, Vec<u32>)>)>) -> Model {
    let terms = terms.into_iter().map(|(term, docs)| (term, docs.into_iter().collect())).collect();
    [("text".to_owned(), terms)].into()
}

fn write(dir: &Path, number: u32, model: &Model, documents: u32) -> Result<Vec<SegmentFile>> {
    let mut writer = SegmentWriter::create(dir, number)?;
    for (field, terms) in model {
        writer.begin_field(field)?;
        let mut with_tokens = std::collections::BTreeSet::new();
        let mut expected = FieldStats::default();
        for (term, docs) in terms {
            writer.begin_term(term)?;
            for (&doc, positions) in docs {
                with_tokens.insert(doc);
                for &position in positions {
                    writer.occurrence(doc, position)?;
                }
                expected.tokens += positions.len() as u64;
            }
            writer.end_term()?;
            expected.terms += 1;
            expected.postings += docs.len() as u64;
        }
        expected.documents_with_tokens = with_tokens.len() as u32;
        assert_eq!(writer.end_field(expected.documents_with_tokens)?, expected);
    }
    writer.finish(documents)
}

fn open(dir: &Path, number: u32) -> Result<Segment> {
    Segment::open(dir, number, &|path| Reader::new(system(), path))
}

/// Everything the segment says, read the long way round.
fn read(dir: &Path, number: u32) -> Result<Model> {
    let segment = open(dir, number)?;
    let mut decoder = Decoder::new()?;
    let mut model = Model::new();
    for field in segment.fields() {
        let mut out = BTreeMap::new();
        let mut terms = segment.terms(field);
        let mut postings = segment.postings();
        while terms.advance(&mut decoder)? {
            postings.start(&terms.info())?;
            let mut docs = BTreeMap::new();
            while let Some((doc, frequency)) = postings.next_document()? {
                let mut positions = Vec::new();
                while let Some(position) = postings.next_position()? {
                    positions.push(position);
                }
                assert_eq!(positions.len(), frequency as usize);
                docs.insert(doc, positions);
            }
            assert_eq!(terms.info().df as usize, docs.len());
            assert_eq!(terms.info().occurrences, docs.values().map(|p| p.len() as u64).sum::<u64>());
            out.insert(terms.term().to_vec(), docs);
        }
        model.insert(field.name.clone(), out);
    }
    Ok(model)
}

fn round_trip(model: &Model, documents: u32) {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), 7, model, documents).unwrap();
    for (file, part) in files.iter().zip(Part::ALL) {
        assert_eq!(file.name, part_name(7, part));
        let bytes = std::fs::read(dir.path().join(&file.name)).unwrap();
        assert_eq!((file.bytes, file.crc32c), (bytes.len() as u64, crc32c::crc32c(&bytes)));
    }
    assert_eq!(&read(dir.path(), 7).unwrap(), model);

    // look-ups find each term and nothing near it
    let segment = open(dir.path(), 7).unwrap();
    let mut decoder = Decoder::new().unwrap();
    for (name, terms) in model {
        let field = segment.field(name).unwrap();
        let mut find = |term: &[u8]| segment.look_up(field, term, &mut decoder).unwrap().map(|info| info.df as usize);
        for (term, docs) in terms {
            assert_eq!(find(term), Some(docs.len()));
            let longer = [term.as_slice(), b"\0"].concat();
            let shorter = &term[..term.len().saturating_sub(1)];
            assert_eq!(find(&longer), terms.get(&longer).map(BTreeMap::len));
            assert_eq!(find(shorter), terms.get(shorter).map(BTreeMap::len));
        }
        assert_eq!(find(&[0xff; 3]), terms.get(&[0xff; 3][..]).map(BTreeMap::len));
    }

    // documents alone, positions skipped
    let mut postings = segment.postings();
    for (name, terms) in model {
        let mut reader = segment.terms(segment.field(name).unwrap());
        for docs in terms.values() {
            assert!(reader.advance(&mut decoder).unwrap());
            postings.start(&reader.info()).unwrap();
            for (i, (&doc, positions)) in docs.iter().enumerate() {
                assert_eq!(postings.next_document().unwrap(), Some((doc, positions.len() as u32)));
                if i % 3 == 2 {
                    assert_eq!(postings.next_position().unwrap(), Some(positions[0]));
                }
            }
            assert_eq!(postings.next_document().unwrap(), None);
            assert_eq!(postings.next_document().unwrap(), None);
        }
        assert!(!reader.advance(&mut decoder).unwrap());
    }
}
