//! What temporary things beside a place are called.

use crate::spill::folder::next_number;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a name that temporary names begin with: with what follows them they stay below any system's limit.
const MOST_BYTES: usize = 96;

/// A place: its parent, and its name there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) parent: PathBuf,
    name: OsString,
}

impl Place {
    /// A path that ends in a name.
    pub(super) fn of(path: &Path) -> io::Result<Place> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in a name"));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Place { path: parent.join(name), parent, name: name.to_owned() })
    }

    /// How the names of its temporary things begin.
    fn prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(shortened(&self.name));
        prefix.push(".tmp-");
        prefix
    }

    /// Whether a path beside it has one of its temporary names: numbers of a process and within it.
    pub(super) fn owns(&self, path: &Path) -> bool {
        let name = path.file_name().map(OsStr::as_encoded_bytes);
        let numbers = name.and_then(|name| name.strip_prefix(self.prefix().as_encoded_bytes()));
        let number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        numbers.is_some_and(|numbers| {
            let mut parts = numbers.splitn(2, |&byte| byte == b'-');
            parts.next().is_some_and(number) && parts.next().is_some_and(number)
        })
    }

    /// A temporary name that nobody in this process has had.
    pub(super) fn temporary(&self) -> PathBuf {
        let mut name = self.prefix();
        name.push(format!("{}-{}", std::process::id(), next_number()));
        self.parent.join(name)
    }

    /// The third name, always the same: where what is replaced waits if names cannot be exchanged.
    pub(super) fn aside(&self) -> PathBuf {
        let mut name = self.prefix();
        name.push("old");
        self.parent.join(name)
    }
}

/// The name, or of a long one the beginning and its check-sum.
fn shortened(name: &OsStr) -> OsString {
    if name.len() <= MOST_BYTES {
        return name.to_owned();
    }
    let text = name.to_string_lossy();
    let mut end = MOST_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{:08x}", &text[..end], crc32c::crc32c(name.as_encoded_bytes())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hidden_differ_and_fit_however_long_the_places_name_is() {
        for name in ["index".to_owned(), "n".repeat(255), "\u{E9}".repeat(127), format!("{}\u{E9}", "n".repeat(95))] {
            let place = Place::of(&Path::new("a/b").join(&name)).unwrap();
            let (one, other, aside) = (place.temporary(), place.temporary(), place.aside());
            assert!(one != other && one != aside && other != aside);
            for path in [&one, &other, &aside] {
                let file = path.file_name().unwrap().to_str().unwrap();
                assert!(file.starts_with('.') && file.len() < 160 && path.starts_with("a/b"), "{file}");
            }
            assert!(place.owns(&one) && place.owns(&other) && !place.owns(&aside) && !place.owns(&place.path));
            assert_eq!(aside, Place::of(&Path::new("a/b").join(&name)).unwrap().aside());
        }
        let (one, other) = (format!("{}1", "n".repeat(200)), format!("{}2", "n".repeat(200)));
        assert_ne!(Place::of(Path::new(&one)).unwrap().aside(), Place::of(Path::new(&other)).unwrap().aside());
    }

    #[test]
    fn what_somebody_else_has_named_is_not_ours() {
        let place = Place::of(Path::new("a/index")).unwrap();
        assert!(place.owns(Path::new("a/.index.tmp-12-3")));
        for name in
            ["index", ".index", ".index.tmp-", ".index.tmp-1", ".index.tmp-1-", ".index.tmp--1", ".index.tmp-1-2x"]
        {
            assert!(!place.owns(&Path::new("a").join(name)), "{name}");
        }
        assert!(!place.owns(Path::new("a/.index.tmp-my-2")) && !place.owns(Path::new("a/.indexes.tmp-1-2")));
    }

    #[test]
    fn a_place_has_a_name() {
        assert_eq!(Place::of(Path::new("index")).unwrap().parent, Path::new("."));
        for path in ["", "/", "..", "a/.."] {
            assert_eq!(Place::of(Path::new(path)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }
}
