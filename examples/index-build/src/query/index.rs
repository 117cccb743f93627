//! An index folder: the manifest and the segments that it names, opened together and checked against each other.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll::spill::files::system;
use plimsoll::spill::read::{Descriptors, Reader};

use crate::error::{Error, Result};
use crate::manifest::{self, Manifest};
use crate::segment::{Part, Segment};
use plimsoll::spill::merge::most_open_files;
use plimsoll::spill::publish;

/// So many files of an index are open at once, fewer where few may be. An index within that keeps its files open; the files
/// of a larger one take turns, so that an index of any number of segments can be read under any limit.
const MOST_OPEN: usize = 512;
/// Of the limit, what is left to everything else.
const OTHER_FILES: usize = 32;

/// An open index.
#[derive(Debug)]
pub struct Index {
    dir: PathBuf,
    manifest: Manifest,
    segments: Vec<Segment>,
}

impl Index {
    /// Opens the index in `dir`, or the one that is being replaced there at the moment.
    ///
    /// # Errors
    /// [`Error::Io`] if a file that the manifest names cannot be read; [`Error::Corrupt`] if a file is damaged, or not what
    /// the manifest says.
    pub fn open(dir: &Path) -> Result<Index> {
        Index::open_with(dir, most_open_files().saturating_sub(OTHER_FILES).clamp(1, MOST_OPEN))
    }

    /// The same with at most so many files open at once.
    pub(crate) fn open_with(dir: &Path, most_open: usize) -> Result<Index> {
        let dir = &publish::present(&*system(), dir)?;
        let manifest = Manifest::read(dir)?;
        let files = system();
        let descriptors = Descriptors::new(Arc::clone(&files), most_open);
        let keep_open = manifest.segments.len() <= most_open / Part::ALL.len();
        let reader = |path: PathBuf| match keep_open {
            true => Reader::new(Arc::clone(&files), path),
            false => descriptors.reader(path),
        };
        let mut segments = Vec::with_capacity(manifest.segments.len());
        let (mut tokens, mut postings) = (0u64, 0u64);
        for entry in &manifest.segments {
            let segment = Segment::open(dir, entry.number, &reader)?;
            let corrupt = |why: String| Error::Corrupt { path: segment.path().to_owned(), offset: 0, why };
            for (part, file) in Part::ALL.into_iter().zip(&entry.files) {
                let bytes = segment.part_bytes(part);
                if bytes != file.bytes {
                    let why = format!("{bytes} bytes, the manifest says {}", file.bytes);
                    return Err(Error::Corrupt { path: dir.join(&file.name), offset: 0, why });
                }
            }
            if segment.documents() != entry.documents {
                let (has, says) = (segment.documents(), entry.documents);
                return Err(corrupt(format!("{has} documents, the manifest says {says}")));
            }
            for field in segment.fields() {
                if manifest.fields.binary_search(&field.name).is_err() {
                    return Err(corrupt(format!("field {:?} is not in the manifest", field.name)));
                }
                tokens = tokens.saturating_add(field.stats.tokens);
                postings = postings.saturating_add(field.stats.postings);
            }
            segments.push(segment);
        }
        if (tokens, postings) != (manifest.tokens, manifest.postings) {
            let (said, path) = ((manifest.tokens, manifest.postings), dir.join(manifest::FILE_NAME));
            let why =
                format!("{} tokens and {} postings, but the segments hold {tokens} and {postings}", said.0, said.1);
            return Err(Error::Corrupt { path, offset: 0, why });
        }
        Ok(Index { dir: dir.to_owned(), manifest, segments })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The segments in the order of their documents.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// How often files of the segments were opened: once each, unless there are too many to keep them open.
    pub fn opens(&self) -> u64 {
        self.segments.iter().map(Segment::opens).sum()
    }

    /// The catalogs of all segments, by capacity; the manifest (some hundred bytes a segment) is not counted.
    pub fn allocated_bytes(&self) -> usize {
        let segments = self.segments.iter().map(Segment::allocated_bytes).sum::<usize>();
        segments + self.segments.capacity() * size_of::<Segment>()
    }

    /// Each segment with the id of its first document.
    pub(crate) fn based_segments(&self) -> impl Iterator<Item = (u64, &Segment)> {
        self.manifest.segments.iter().map(|entry| entry.document_base).zip(&self.segments)
    }

    /// The field that a question is about: the one that was asked for, or the only one there is. An index without any
    /// field (nothing was indexed) answers questions that name none; that is `None`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the index has no such field, or several and none was asked for; it lists them.
    pub fn field<'a>(&'a self, asked: Option<&str>) -> Result<Option<&'a str>> {
        let fields = &self.manifest.fields;
        match asked {
            Some(name) => match fields.binary_search_by(|field| field.as_str().cmp(name)) {
                Ok(at) => Ok(Some(&fields[at])),
                Err(_) => Err(Error::Usage(format!("the index has no field {name:?}; {}", self.field_list()))),
            },
            None if fields.len() > 1 => Err(Error::Usage(format!(
                "the index has several fields, choose one with --field; {}",
                self.field_list()
            ))),
            None => Ok(fields.first().map(String::as_str)),
        }
    }

    fn field_list(&self) -> String {
        const SHOWN: usize = 40;
        let fields = &self.manifest.fields;
        if fields.is_empty() {
            return "it has none".to_owned();
        }
        let mut list = fields.iter().take(SHOWN).map(|field| format!("{field:?}")).collect::<Vec<_>>().join(", ");
        if fields.len() > SHOWN {
            list.push_str(&format!(" and {} more", fields.len() - SHOWN));
        }
        format!("its fields: {list}")
    }
}
