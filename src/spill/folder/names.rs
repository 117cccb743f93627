//! What folders and owner files are called: `.LABEL.KIND-PROCESS-NUMBER`, and the same with `.owner`. A sweep removes
//! nothing of another shape, whatever an owner file says.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const OWNER: &str = ".owner";
/// As much of a label as leaves room for the rest in a name of 255 bytes.
const MOST_CHARACTERS: usize = 32;

/// A name of a folder of this process; of a long label it has the beginning.
pub(super) fn folder(label: &OsStr, kind: &str, number: u64) -> String {
    format!(".{}.{}-{}-{number}", plain(&label.to_string_lossy()), plain(kind), std::process::id())
}

/// Without what would be another folder, or no name.
fn plain(text: &str) -> String {
    let replaced = |c: char| if c.is_control() || std::path::is_separator(c) || c == ':' { '_' } else { c };
    text.chars().take(MOST_CHARACTERS).map(replaced).collect()
}

/// The owner file of a folder.
pub(super) fn owner_of(folder: &Path) -> PathBuf {
    let mut path = folder.as_os_str().to_owned();
    path.push(OWNER);
    path.into()
}

/// The folder of an owner file, if it is called like one.
pub(super) fn folder_of(owner: &Path) -> Option<PathBuf> {
    // what is not text in it is in the label, and shown as such
    let name = owner.file_name()?.to_string_lossy();
    let folder = name.strip_prefix('.')?.strip_suffix(OWNER)?;
    let mut parts = folder.rsplitn(3, '-');
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = number(parts.next()?) && number(parts.next()?) && !parts.next()?.is_empty();
    fits.then(|| owner.with_extension(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_file_and_its_folder_lead_to_each_other() {
        for label in ["index", "", "a-b.c", "..", "\u{e9}t\u{e9}", "x.owner"] {
            let folder = Path::new("parent").join(folder(OsStr::new(label), "spill", 7));
            assert_eq!(folder_of(&owner_of(&folder)), Some(folder.clone()), "{label}");
            assert_eq!(folder.parent(), Some(Path::new("parent")));
        }
    }

    #[test]
    fn a_label_never_leads_elsewhere_and_never_makes_a_name_too_long() {
        for label in ["../../etc", "a/b", "a\0b\n", &"n".repeat(255), &"\u{10ffff}".repeat(99)] {
            let name = folder(OsStr::new(label), "spill", u64::MAX);
            assert!(name.len() + OWNER.len() <= 255, "{name}");
            assert_eq!(Path::new(&name).components().count(), 1, "{name}");
            assert!(!name.contains('\0') && !name.contains('\n'));
        }
    }

    #[test]
    fn names_of_another_shape_are_nobodys() {
        for name in [
            ".owner",
            "..owner",
            ".git.owner",
            "a.spill-1-2.owner",
            ".a.spill-1-2",
            ".a.spill-1-2.owner.",
            ".-1-2.owner",
            ".a.spill-x-2.owner",
            ".a.spill-1-.owner",
            ".a.spill--2.owner",
            ".1-2.owner",
            ".a.spill-1-+2.owner",
        ] {
            assert_eq!(folder_of(&Path::new("parent").join(name)), None, "{name}");
        }
        assert_eq!(folder_of(Path::new("/")), None);
    }
}
