//! Compares an index with a truth file: what somebody else counted on the same input. Everything that the file says of
//! this kind of index is compared, nothing is taken from the builder; the digests go through all terms and postings of
//! all segments in one merge, so that the index is read as a whole and never held.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::manifest::{Kind, hex};
use crate::query::{Index, TermMerge};

/// What a comparison came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Figures, digests, terms and phrases that were compared.
    pub checked: u64,
    /// What was not as the truth says, a line each.
    pub differences: Vec<String>,
    /// Parts of the truth that do not apply to this index.
    pub skipped: Vec<String>,
    /// Whether any part of the truth was about this kind of index; the input's size and digest alone prove nothing.
    #[serde(skip)]
    compared: bool,
}

impl Verified {
    /// Whether the command may end with exit code 0: something was compared, and nothing differs.
    pub fn passed(&self) -> bool {
        self.compared && self.differences.is_empty()
    }

    fn check<T: PartialEq + std::fmt::Debug>(&mut self, what: impl FnOnce() -> String, has: T, truth: T) {
        self.checked += 1;
        if has != truth {
            self.differences.push(format!("{}: {has:?}, the truth is {truth:?}", what()));
        }
    }
}

#[derive(Deserialize)]
struct Truth {
    sha256: String,
    bytes: u64,
    raw: Option<Section>,
    fields: Option<BTreeMap<String, Section>>,
}

#[derive(Deserialize)]
struct Section {
    documents: u64,
    documents_with_tokens: u64,
    tokens: u64,
    distinct_terms: u64,
    postings: u64,
    dictionary_sha256: String,
    postings_sha256: String,
    terms: Vec<TermTruth>,
    phrases: Vec<PhraseTruth>,
}

#[derive(Deserialize)]
struct TermTruth {
    term: String,
    df: u64,
    occurrences: u64,
}

#[derive(Deserialize)]
struct PhraseTruth {
    words: Vec<String>,
    df: u64,
    occurrences: u64,
}

/// Compares the index in `dir` with the truth file: its section `raw` for a text index, `fields` for one of JSON lines. A
/// field of the truth that the index does not have is a difference; a field that the truth does not have is skipped.
///
/// # Errors
/// If the truth or the index cannot be read or is damaged. That they differ is no error but a result.
pub fn verify(dir: &Path, truth: &Path) -> Result<Verified> {
    let index = Index::open(dir)?;
    let truth = read_truth(truth)?;
    let mut verified = Verified::default();
    let manifest = index.manifest();
    verified.check(|| "input bytes".into(), manifest.input_bytes, truth.bytes);
    verified.check(|| "input sha256".into(), manifest.input_sha256.as_str(), &truth.sha256);
    check_files(&index)?;
    match manifest.kind {
        Kind::Text => {
            if truth.fields.is_some() {
                verified.skipped.push("fields: the index is of text".into());
            }
            match &truth.raw {
                Some(section) => compare(&index, "text", section, &mut verified)?,
                None => verified.skipped.push("raw: the truth has no such section".into()),
            }
        }
        Kind::Jsonl => {
            if truth.raw.is_some() {
                verified.skipped.push("raw: the index is of JSON lines".into());
            }
            let Some(fields) = &truth.fields else {
                verified.skipped.push("fields: the truth has no such section".into());
                return Ok(verified);
            };
            for (field, section) in fields {
                if manifest.fields.contains(field) {
                    compare(&index, field, section, &mut verified)?;
                } else {
                    verified.checked += 1;
                    verified.differences.push(format!("field {field:?}: not in the index"));
                }
            }
            for field in manifest.fields.iter().filter(|&field| !fields.contains_key(field)) {
                verified.skipped.push(format!("field {field:?}: not in the truth"));
            }
        }
    }
    Ok(verified)
}

fn read_truth(path: &Path) -> Result<Truth> {
    let bytes = std::fs::read(path).map_err(Error::io("reading", path))?;
    serde_json::from_slice(&bytes).map_err(|e| Error::Input {
        path: path.to_owned(),
        line: e.line() as u64,
        why: format!("not a truth file: {e}"),
    })
}

fn compare(index: &Index, field: &str, truth: &Section, verified: &mut Verified) -> Result<()> {
    verified.compared = true;
    let name = |what: &str| format!("field {field:?}, {what}");
    let counted = Counted::of(index, field)?;
    verified.check(|| name("documents"), index.manifest().documents, truth.documents);
    verified.check(|| name("documents with tokens"), counted.documents_with_tokens, truth.documents_with_tokens);
    verified.check(|| name("tokens"), counted.tokens, truth.tokens);
    verified.check(|| name("distinct terms"), counted.terms, truth.distinct_terms);
    verified.check(|| name("postings"), counted.postings, truth.postings);
    verified.check(|| name("dictionary sha256"), &counted.dictionary_sha256, &truth.dictionary_sha256);
    verified.check(|| name("postings sha256"), &counted.postings_sha256, &truth.postings_sha256);
    for term in &truth.terms {
        let answer = index.phrase(field, &[term.term.as_bytes().to_vec()], 0)?;
        let has = (answer.df, answer.occurrences.unwrap_or(0));
        let what = || name(&format!("term {:?}, documents and occurrences", term.term));
        verified.check(what, has, (term.df, term.occurrences));
    }
    for phrase in &truth.phrases {
        let words: Vec<_> = phrase.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let answer = index.phrase(field, &words, 0)?;
        let has = (answer.df, answer.occurrences.unwrap_or(0));
        let what = || name(&format!("phrase {:?}, documents and occurrences", phrase.words.join(" ")));
        verified.check(what, has, (phrase.df, phrase.occurrences));
    }
    Ok(())
}

/// What one field holds, counted from its terms and postings.
struct Counted {
    documents_with_tokens: u64,
    tokens: u64,
    terms: u64,
    postings: u64,
    dictionary_sha256: String,
    postings_sha256: String,
}

impl Counted {
    fn of(index: &Index, field: &str) -> Result<Counted> {
        let mut merge = TermMerge::new(index.segments(), field)?;
        let bases: Vec<u64> = index.based_segments().map(|(base, _)| base).collect();
        let mut readers: Vec<_> = index.segments().iter().map(|segment| segment.postings()).collect();
        let (mut dictionary, mut lists) = (Digesting::default(), Digesting::default());
        let (mut terms, mut tokens, mut postings) = (0, 0u64, 0u64);
        while merge.next_term()? {
            let (mut df, mut occurrences) = (0u64, 0u64);
            lists.text(merge.term());
            let mut separator = b'\t';
            for (segment, info) in merge.holders() {
                let reader = &mut readers[segment];
                reader.start(&info)?;
                while let Some((doc, frequency)) = reader.next_document()? {
                    df += 1;
                    occurrences += u64::from(frequency);
                    lists.text(&[separator]);
                    lists.number(bases[segment] + u64::from(doc));
                    lists.text(b":");
                    lists.number(u64::from(frequency));
                    separator = b' ';
                }
            }
            lists.text(b"\n");
            dictionary.text(merge.term());
            dictionary.text(b"\t");
            dictionary.number(df);
            dictionary.text(b"\t");
            dictionary.number(occurrences);
            dictionary.text(b"\n");
            terms += 1;
            tokens += occurrences;
            postings += df;
        }
        let stats = index.segments().iter().filter_map(|segment| segment.field(field)).map(|field| field.stats);
        Ok(Counted {
            documents_with_tokens: stats.map(|stats| u64::from(stats.documents_with_tokens)).sum(),
            tokens,
            terms,
            postings,
            dictionary_sha256: dictionary.finish(),
            postings_sha256: lists.finish(),
        })
    }
}

/// A digest that takes many small pieces.
#[derive(Default)]
struct Digesting {
    digest: Sha256,
    buffer: Vec<u8>,
}

impl Digesting {
    fn text(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > 16 << 10 {
            self.digest.update(&self.buffer);
            self.buffer.clear();
            if bytes.len() > 16 << 10 {
                self.digest.update(bytes);
                return;
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.text(&digits[at..]);
            }
        }
    }

    fn finish(mut self) -> String {
        self.digest.update(&self.buffer);
        hex(&self.digest.finalize())
    }
}

/// Every file that the manifest names, as a whole, against its checksum there.
fn check_files(index: &Index) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    for entry in index.manifest().segments.iter().flat_map(|segment| &segment.files) {
        let path = index.dir().join(&entry.name);
        let mut file = File::open(&path).map_err(Error::io("opening", &path))?;
        let mut crc = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => crc = crc32c::crc32c_append(crc, &buffer[..read]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("reading", &path)(e)),
            }
        }
        if crc != entry.crc32c {
            let why = "the file does not match its checksum in the manifest".into();
            return Err(Error::Corrupt { path, offset: 0, why });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::query::testing::{build, json_documents, shared, text_documents, text_index};

    const LINES: [&str; 4] = ["a b a", "", "b c", "a"];

    /// What is true of [`LINES`], as a truth file says it.
    fn truth() -> serde_json::Value {
        let sha = |text: &str| hex(&Sha256::digest(text.as_bytes()));
        serde_json::json!({
            "corpus": "made/up", "sha256": sha("a b a\n\nb c\na\n"), "bytes": 13,
            "raw": {
                "documents": 4, "documents_with_tokens": 3, "tokens": 6, "distinct_terms": 3, "postings": 5,
                "dictionary_sha256": sha("a\t2\t3\nb\t2\t2\nc\t1\t1\n"),
                "postings_sha256": sha("a\t0:2 3:1\nb\t0:1 2:1\nc\t2:1\n"),
                "terms": [{"term": "a", "class": "frequent", "df": 2, "occurrences": 3},
                          {"term": "A", "class": "absent", "df": 0, "occurrences": 0}],
                "phrases": [{"words": ["b", "a"], "class": "rare", "df": 1, "occurrences": 1}],
            },
        })
    }

    fn verify_value(dir: &Path, truth: &serde_json::Value) -> Result<Verified> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), serde_json::to_vec(truth).unwrap()).unwrap();
        verify(dir, file.path())
    }

    #[test]
    fn a_true_index_passes_and_says_how_much_was_checked() {
        for per_segment in [1, 2, 9] {
            let verified = verify_value(text_index(&LINES, per_segment).path(), &truth()).unwrap();
            let expected = Verified { checked: 12, compared: true, ..Verified::default() };
            assert_eq!(verified, expected);
            assert!(verified.passed());
        }
    }

    #[test]
    fn each_figure_that_differs_is_named() {
        let dir = text_index(&LINES, 2);
        let changes = [
            ("/bytes", "input bytes"),
            ("/sha256", "input sha256"),
            ("/raw/documents", "documents"),
            ("/raw/documents_with_tokens", "documents with tokens"),
            ("/raw/tokens", "tokens"),
            ("/raw/distinct_terms", "distinct terms"),
            ("/raw/postings", "postings"),
            ("/raw/dictionary_sha256", "dictionary sha256"),
            ("/raw/postings_sha256", "postings sha256"),
            ("/raw/terms/0/df", "term \"a\""),
            ("/raw/terms/1/occurrences", "term \"A\""),
            ("/raw/phrases/0/occurrences", "phrase \"b a\""),
        ];
        for (pointer, text) in changes {
            let mut truth = truth();
            let value = truth.pointer_mut(pointer).unwrap();
            *value = if value.is_string() { "0".repeat(64).into() } else { 99.into() };
            let verified = verify_value(dir.path(), &truth).unwrap();
            assert!(!verified.passed());
            assert_eq!(verified.differences.len(), 1, "{pointer}: {:?}", verified.differences);
            assert!(verified.differences[0].contains(text), "{:?}", verified.differences);
        }
    }

    #[test]
    fn the_section_that_does_not_apply_is_skipped_and_nothing_compared_is_no_success() {
        let mut truth = truth();
        let raw = truth["raw"].clone();
        truth["fields"] = serde_json::json!({ "text": raw });
        let text = verify_value(text_index(&LINES, 2).path(), &truth).unwrap();
        assert!(text.passed() && text.skipped.len() == 1 && text.skipped[0].starts_with("fields"), "{text:?}");

        let documents = text_documents(b"a b a\n\nb c\na\n");
        let dir = tempfile::tempdir().unwrap();
        build(dir.path(), Kind::Jsonl, &documents, 2, b"a b a\n\nb c\na\n");
        let json = verify_value(dir.path(), &truth).unwrap();
        assert!(json.passed() && json.skipped.len() == 1 && json.skipped[0].starts_with("raw"), "{json:?}");

        truth["fields"] = serde_json::json!({});
        let none = verify_value(dir.path(), &truth).unwrap();
        assert!(!none.passed() && none.differences.is_empty(), "{none:?}");
        truth.as_object_mut().unwrap().remove("fields");
        let none = verify_value(dir.path(), &truth).unwrap();
        assert!(!none.passed() && none.skipped.len() == 2, "{none:?}");

        truth["fields"] = serde_json::json!({ "lost": truth["raw"].clone() });
        let lost = verify_value(dir.path(), &truth).unwrap();
        assert!(lost.differences[0].contains("\"lost\": not in the index"), "{lost:?}");
    }

    #[test]
    fn a_truth_that_cannot_be_read_is_an_error_with_its_line() {
        let dir = text_index(&LINES, 2);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"{\"sha256\": \"\",\n \"bytes\": -1}").unwrap();
        let error = verify(dir.path(), file.path()).unwrap_err();
        assert!(matches!(error, Error::Input { line: 2, .. }), "{error}");
        assert!(matches!(verify(dir.path(), Path::new("/nowhere/truth")), Err(Error::Io { .. })));
    }

    #[test]
    fn a_file_changed_where_no_question_looks_is_still_found() {
        let dir = text_index(&["a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b"], 1);
        let path = dir.path().join("seg-000000.pos");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[34] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = verify_value(dir.path(), &truth()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }

    #[test]
    fn the_shared_truths_verify() {
        let Some(shared) = shared() else {
            let note = "SKIPPED the_shared_truths_verify: no ../shared/data and no PLIMSOLL_SHARED";
            writeln!(std::io::stderr(), "{note}").unwrap();
            return;
        };
        for name in [
            "hashes/md5sums_tango.txt",
            "jsonl/access_10fields.jsonl",
            "jsonl/advisories_10fields.jsonl",
            "logs/Apache.log",
            "logs/HDFS.log",
            "mixed/access_with_blobs.log",
            "prose/ontboezemingen_latin1.txt",
            "prose/tldr_multiscript.txt",
        ] {
            let input = std::fs::read(shared.join("data").join(name)).unwrap();
            let truth = shared.join("data/truth").join(format!("{}.json", name.replace('/', "__")));
            let (kind, documents) = if name.ends_with(".jsonl") {
                (Kind::Jsonl, json_documents(&input))
            } else {
                (Kind::Text, text_documents(&input))
            };
            for per_segment in [700, 100_000] {
                let dir = tempfile::tempdir().unwrap();
                build(dir.path(), kind, &documents, per_segment, &input);
                let verified = verify(dir.path(), &truth).unwrap();
                assert!(verified.passed() && verified.checked >= 60, "{name}: {verified:#?}");
            }
        }
    }
}
