//! The input's files: as they are given, and a folder's in byte order of relative path.
//!
//! Symbolic links are followed; a folder that contains itself through one is an error. What is neither a regular file nor
//! a folder is an error that names it, also inside a folder: nothing of the input is left out without a word.
use crate::error::{Error, Result};
use crate::options::Format;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// How the lines of an input are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A document a line, one field.
    Text,
    /// A JSON object a line.
    Jsonl,
}

impl Kind {
    /// As the manifest has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Jsonl => "jsonl",
        }
    }
}

/// A file, and the length that it has to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    pub path: PathBuf,
    pub bytes: u64,
}

/// All input, in order.
#[derive(Debug)]
pub struct Inputs {
    pub files: Vec<InputFile>,
    pub kind: Kind,
    /// Sum of the files' lengths.
    pub bytes: u64,
}

impl Inputs {
    /// What the list takes.
    pub fn allocated_bytes(&self) -> usize {
        let paths: usize = self.files.iter().map(|file| file.path.capacity()).sum();
        paths + self.files.capacity() * size_of::<InputFile>()
    }
}

/// Lists the files of `paths` and decides their format.
pub fn list(paths: &[PathBuf], format: Format) -> Result<Inputs> {
    if paths.is_empty() {
        return Err(Error::Usage("no input was given: name files or folders with --input".to_owned()));
    }
    let mut files = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(Error::io("reading", path))?;
        if metadata.is_dir() {
            let from = files.len();
            walk(path, &mut vec![real(path)?], &mut files)?;
            files[from..].sort_by_cached_key(|file: &InputFile| relative(path, &file.path));
        } else if metadata.is_file() {
            files.push(InputFile { path: path.clone(), bytes: metadata.len() });
        } else {
            return Err(neither(path));
        }
    }
    let kind = match format {
        Format::Text => Kind::Text,
        Format::Jsonl => Kind::Jsonl,
        Format::Auto => kind_of(&files)?,
    };
    let mut bytes = 0u64;
    for file in &files {
        bytes = bytes
            .checked_add(file.bytes)
            .ok_or_else(|| Error::Failed("the input is longer than 2^64 bytes".to_owned()))?;
    }
    Ok(Inputs { files, kind, bytes })
}

fn neither(path: &Path) -> Error {
    Error::Failed(format!("{}: neither a regular file nor a folder", path.display()))
}

fn real(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(Error::io("reading", path))
}

/// `above` holds the real paths of the folders that lead to `folder`, itself included.
fn walk(folder: &Path, above: &mut Vec<PathBuf>, files: &mut Vec<InputFile>) -> Result<()> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("reading", folder))? {
        let path = entry.map_err(Error::io("reading", folder))?.path();
        let metadata = fs::metadata(&path).map_err(Error::io("reading", &path))?;
        if metadata.is_dir() {
            folders.push(path);
        } else if metadata.is_file() {
            files.push(InputFile { path, bytes: metadata.len() });
        } else {
            return Err(neither(&path));
        }
    }
    for path in folders {
        let real = real(&path)?;
        if above.contains(&real) {
            return Err(Error::Failed(format!("{}: a folder that contains itself", path.display())));
        }
        above.push(real);
        walk(&path, above, files)?;
        above.pop();
    }
    Ok(())
}

/// The path below `folder`, as bytes with `/` between its parts.
fn relative(folder: &Path, path: &Path) -> Vec<u8> {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let mut bytes = Vec::new();
    for part in below.components() {
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(part.as_os_str().as_encoded_bytes());
    }
    bytes
}

fn is_json_lines(path: &Path) -> bool {
    let is = |extension: &OsStr| extension.eq_ignore_ascii_case("jsonl") || extension.eq_ignore_ascii_case("ndjson");
    path.extension().is_some_and(is)
}

fn kind_of(files: &[InputFile]) -> Result<Kind> {
    let json = files.iter().find(|file| is_json_lines(&file.path));
    let text = files.iter().find(|file| !is_json_lines(&file.path));
    match (json, text) {
        (Some(json), Some(text)) => Err(Error::Usage(format!(
            "{} is JSON lines and {} is text: give --format text or --format jsonl for all of them",
            json.path.display(),
            text.path.display()
        ))),
        (Some(_), None) => Ok(Kind::Jsonl),
        _ => Ok(Kind::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inputs: &Inputs, folder: &Path) -> Vec<String> {
        inputs.files.iter().map(|file| String::from_utf8(relative(folder, &file.path)).unwrap()).collect()
    }

    #[test]
    fn a_folder_is_walked_in_byte_order_of_relative_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a/x", "a-b/x", "a.txt", "a/b/c", "B"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let inputs = list(&[folder.path().join("b"), folder.path().to_owned()], Format::Auto).unwrap();
        assert_eq!(names(&inputs, folder.path()), ["b", "B", "a-b/x", "a.txt", "a/b/c", "a/x", "b"]);
        assert_eq!((inputs.bytes, inputs.kind), (1 + 1 + 5 + 5 + 5 + 3 + 1, Kind::Text));
        assert!(inputs.allocated_bytes() > 7 * folder.path().as_os_str().len());
    }

    #[test]
    fn json_lines_and_text_in_one_build_need_a_format() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "b.NDJSON", "c.log"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let [a, b, c] = ["a.jsonl", "b.NDJSON", "c.log"].map(|name| folder.path().join(name));
        assert_eq!(list(&[a.clone(), b.clone()], Format::Auto).unwrap().kind, Kind::Jsonl);
        let error = list(&[a.clone(), c.clone()], Format::Auto).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("c.log"), "{error}");
        assert_eq!(list(&[a, c], Format::Text).unwrap().kind, Kind::Text);
        assert_eq!(list(&[b], Format::Text).unwrap().kind, Kind::Text);
    }

    #[test]
    fn what_is_absent_or_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        assert!(list(&[absent], Format::Auto).unwrap_err().to_string().contains("absent"));
        assert_eq!(list(&[], Format::Auto).unwrap_err().exit_code(), 2);
        #[cfg(unix)]
        {
            let error = list(&[PathBuf::from("/dev/null")], Format::Auto).unwrap_err();
            assert!(error.to_string().contains("/dev/null") && error.exit_code() == 1, "{error}");
            fs::create_dir(folder.path().join("in")).unwrap();
            std::os::unix::fs::symlink(folder.path(), folder.path().join("in/again")).unwrap();
            let error = list(&[folder.path().join("in")], Format::Auto).unwrap_err();
            assert!(error.to_string().contains("contains itself"), "{error}");
        }
    }
}
