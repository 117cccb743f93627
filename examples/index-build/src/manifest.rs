//! What an index folder holds: `manifest.json`, the one file that says which segments belong together and what they were
//! made from. It depends on input, format, fields and batch size alone, so its bytes are the same for every build of them.
//! `build` writes it last; the read side takes nothing in it on trust: it is read back only if it is, byte for byte, what
//! this program writes for the same values, and if its values fit together.
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::segment::{FORMAT_VERSION, Part, SegmentFile, part_name};

/// The manifest's name in the index folder.
pub const FILE_NAME: &str = "manifest.json";
const FORMAT: &str = "plimsoll index-build";
const BYTE_ORDER: &str = "little-endian";

/// What the input's lines were read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Text,
    Jsonl,
}

/// The manifest of an index. All of it is public; [`Manifest::read`] checks what it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub kind: Kind,
    /// Every field of the index, in byte order; a text index has the one field `text`.
    pub fields: Vec<String>,
    pub batch_bytes: u64,
    pub documents: u64,
    pub skipped_documents: u64,
    /// Summed over fields and segments.
    pub tokens: u64,
    /// The sum of all document frequencies over fields and segments.
    pub postings: u64,
    pub input_bytes: u64,
    /// SHA-256 of all input bytes, concatenated in input order; 64 lower-case hexadecimal digits.
    pub input_sha256: String,
    pub segments: Vec<SegmentEntry>,
}

/// One segment, in the order of the documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Ascending; the names of the files follow from it.
    pub number: u32,
    /// Documents in all segments before this one.
    pub document_base: u64,
    pub documents: u32,
    /// The three files, in the order in which [`SegmentWriter::finish`](crate::segment::SegmentWriter::finish) gives them.
    pub files: Vec<FileEntry>,
}

/// One file of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub bytes: u64,
    /// Of the whole file.
    pub crc32c: u32,
}

impl From<&SegmentFile> for FileEntry {
    fn from(file: &SegmentFile) -> FileEntry {
        FileEntry { name: file.name.clone(), bytes: file.bytes, crc32c: file.crc32c }
    }
}

/// The file as it is written: what it is, and a checksum over the part that varies.
#[derive(Serialize, Deserialize)]
struct Stored<M> {
    format: String,
    version: u32,
    byte_order: String,
    crc32c: u32,
    index: M,
}

impl Manifest {
    /// The bytes of `manifest.json`; the same values always give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let index = serde_json::to_vec(self).expect("a manifest holds only numbers, strings and lists of them");
        let stored = Stored {
            format: FORMAT.to_owned(),
            version: FORMAT_VERSION,
            byte_order: BYTE_ORDER.to_owned(),
            crc32c: crc32c::crc32c(&index),
            index: self,
        };
        let mut bytes = serde_json::to_vec_pretty(&stored).expect("a manifest holds only numbers, strings and lists");
        bytes.push(b'\n');
        bytes
    }

    /// Reads and checks the manifest of the index in `dir`.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Corrupt`] if it is damaged, of another version, or says what cannot be.
    pub fn read(dir: &Path) -> Result<Manifest> {
        let path = dir.join(FILE_NAME);
        let bytes = std::fs::read(&path).map_err(Error::io("reading", &path))?;
        Manifest::from_bytes(&bytes, &path)
    }

    /// Bytes that all files of the index take, the manifest with them.
    pub fn index_bytes(&self) -> u64 {
        let files = self.segments.iter().flat_map(|segment| &segment.files).map(|file| file.bytes);
        files.sum::<u64>() + self.to_bytes().len() as u64
    }

    /// As [`read`](Self::read), for bytes at hand; `path` is only named.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Manifest> {
        let corrupt = |offset, why: String| Error::Corrupt { path: path.to_owned(), offset, why };
        let stored: Stored<serde_json::Value> = serde_json::from_slice(bytes)
            .map_err(|e| corrupt(offset_of(bytes, e.line(), e.column()), format!("not a manifest: {e}")))?;
        if stored.format != FORMAT {
            return Err(corrupt(0, format!("format {:?}, expected {FORMAT:?}", stored.format)));
        }
        if stored.version != FORMAT_VERSION {
            return Err(corrupt(0, format!("format version {}, this program reads {FORMAT_VERSION}", stored.version)));
        }
        if stored.byte_order != BYTE_ORDER {
            return Err(corrupt(0, format!("byte order {:?}, expected {BYTE_ORDER:?}", stored.byte_order)));
        }
        let manifest: Manifest =
            serde_json::from_value(stored.index).map_err(|e| corrupt(0, format!("not a manifest: {e}")))?;
        let written = manifest.to_bytes();
        if written != bytes {
            let same = written.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            return Err(corrupt(same as u64, "the manifest is damaged: its checksum does not fit its values".into()));
        }
        manifest.check().map_err(|why| corrupt(0, why))?;
        Ok(manifest)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if self.fields.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("the fields are not in byte order, each once".into());
        }
        if self.kind == Kind::Text && self.fields != ["text"] {
            return Err("a text index has the one field \"text\"".into());
        }
        let digits = self.input_sha256.bytes().filter(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).count();
        if digits != 64 || self.input_sha256.len() != 64 {
            return Err("the input's SHA-256 is not 64 lower-case hexadecimal digits".into());
        }
        if self.batch_bytes == 0 {
            return Err("a batch of 0 bytes".into());
        }
        if self.postings > self.tokens {
            return Err("more postings than tokens".into());
        }
        let mut documents = 0u64;
        let mut last = None;
        let mut total = 0u64;
        for segment in &self.segments {
            if last.is_some_and(|last| last >= segment.number) {
                return Err(format!("segment {} is out of order", segment.number));
            }
            last = Some(segment.number);
            if segment.document_base != documents {
                let base = segment.document_base;
                return Err(format!("segment {} begins at document {base}, expected {documents}", segment.number));
            }
            documents += u64::from(segment.documents);
            let names = Part::ALL.map(|part| part_name(segment.number, part));
            if !segment.files.iter().map(|file| &file.name).eq(&names) {
                return Err(format!("the files of segment {} are not {}", segment.number, names.join(", ")));
            }
            for file in &segment.files {
                total = total.checked_add(file.bytes).ok_or("the sizes of the files do not fit 64 bits")?;
            }
        }
        if documents != self.documents {
            return Err(format!("{} documents, but the segments hold {documents}", self.documents));
        }
        Ok(())
    }
}

/// SHA-256 over the files named in the manifest in that order, each as name, 0x00, length as u64 little-endian, bytes; then
/// the manifest likewise. 64 lower-case hexadecimal digits.
///
/// # Errors
/// As [`Manifest::read`]; [`Error::Corrupt`] too if a file is not as long as the manifest says.
pub fn index_sha256(dir: &Path) -> Result<String> {
    let manifest = Manifest::read(dir)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    for file in manifest.segments.iter().flat_map(|segment| &segment.files) {
        let path = dir.join(&file.name);
        let mut source = File::open(&path).map_err(Error::io("opening", &path))?;
        begin_file(&mut digest, &file.name, file.bytes);
        let mut left = file.bytes;
        loop {
            let read = match source.read(&mut buffer) {
                Ok(read) => read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::io("reading", &path)(e)),
            };
            let Some(rest) = left.checked_sub(read as u64).filter(|&rest| read > 0 || rest == 0) else {
                let why = format!("the manifest says {} bytes, the file has another size", file.bytes);
                return Err(Error::Corrupt { path, offset: file.bytes - left, why });
            };
            if read == 0 {
                break;
            }
            digest.update(&buffer[..read]);
            left = rest;
        }
    }
    let bytes = manifest.to_bytes();
    begin_file(&mut digest, FILE_NAME, bytes.len() as u64);
    digest.update(&bytes);
    Ok(hex(&digest.finalize()))
}

fn begin_file(digest: &mut Sha256, name: &str, bytes: u64) {
    digest.update(name.as_bytes());
    digest.update([0]);
    digest.update(bytes.to_le_bytes());
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).map(char::from).collect()
}

/// Where a line and column (both from 1) of the JSON reader lie.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> u64 {
    let before = bytes.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum::<usize>();
    (before + column.saturating_sub(1)).min(bytes.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let segment = |number: u32, document_base, documents| SegmentEntry {
            number,
            document_base,
            documents,
            files: Part::ALL
                .map(|part| FileEntry { name: part_name(number, part), bytes: 100 + u64::from(number), crc32c: 7 })
                .into(),
        };
        Manifest {
            kind: Kind::Jsonl,
            fields: vec!["".into(), "a/../\"b\n".into(), "ü".into()],
            batch_bytes: 16 << 20,
            documents: 12,
            skipped_documents: 3,
            tokens: 40,
            postings: 30,
            input_bytes: 1234,
            input_sha256: "0123456789abcdef".repeat(4),
            segments: vec![segment(0, 0, 5), segment(1, 5, 7)],
        }
    }

    fn read(bytes: &[u8]) -> Result<Manifest> {
        Manifest::from_bytes(bytes, Path::new("index/manifest.json"))
    }

    #[test]
    fn a_manifest_reads_back_as_it_was_written() {
        assert_eq!(read(&sample().to_bytes()).unwrap(), sample());
        assert_eq!(sample().to_bytes(), sample().to_bytes());
    }

    // B54: a torn, empty or NUL-filled manifest is an error that names the file.
    #[test]
    fn every_damaged_manifest_is_an_error_that_names_the_file() {
        let good = sample().to_bytes();
        let mut damaged: Vec<Vec<u8>> = (0..good.len()).map(|n| good[..n].to_vec()).collect();
        damaged.push(vec![0; good.len()]);
        for at in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            damaged.push(bytes);
        }
        for bytes in damaged {
            match read(&bytes) {
                Err(Error::Corrupt { path, .. }) => assert!(path.ends_with("manifest.json")),
                other => panic!("{other:?} from {:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_together_are_refused() {
        type Change = fn(&mut Manifest);
        let changes: [(&str, Change); 10] = [
            ("byte order", |m| m.fields.swap(0, 1)),
            ("field \"text\"", |m| m.kind = Kind::Text),
            ("hexadecimal", |m| m.input_sha256.make_ascii_uppercase()),
            ("hexadecimal", |m| m.input_sha256.push('0')),
            ("batch of 0", |m| m.batch_bytes = 0),
            ("more postings", |m| m.postings = 41),
            ("out of order", |m| m.segments[1].number = 0),
            ("begins at document 6", |m| m.segments[1].document_base = 6),
            ("are not seg-000001.terms", |m| m.segments[1].files[1].name = "../../x.post".into()),
            ("segments hold 13", |m| m.segments[1].documents = 8),
        ];
        for (text, change) in changes {
            let mut manifest = sample();
            change(&mut manifest);
            let error = read(&manifest.to_bytes()).unwrap_err().to_string();
            assert!(error.contains(text), "{error:?} should say {text:?}");
        }
    }

    #[test]
    fn the_index_digest_takes_names_lengths_and_bytes_in_the_manifests_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut manifest = sample();
        manifest.segments.truncate(1);
        manifest.documents = 5;
        let mut expected = Sha256::new();
        for (i, file) in manifest.segments[0].files.iter_mut().enumerate() {
            let content = vec![i as u8; 70_000 * i];
            std::fs::write(dir.path().join(&file.name), &content).unwrap();
            file.bytes = content.len() as u64;
            expected.update([file.name.as_bytes(), &[0], &file.bytes.to_le_bytes(), &content].concat());
        }
        let bytes = manifest.to_bytes();
        std::fs::write(dir.path().join(FILE_NAME), &bytes).unwrap();
        expected.update([FILE_NAME.as_bytes(), &[0], &(bytes.len() as u64).to_le_bytes(), &bytes].concat());
        assert_eq!(index_sha256(dir.path()).unwrap(), hex(&expected.finalize()));

        for size in [69_999, 70_001] {
            std::fs::write(dir.path().join("seg-000000.post"), vec![1; size]).unwrap();
            let error = index_sha256(dir.path()).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }
}
