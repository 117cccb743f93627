//! What looks like a leftover and is none is left alone.

use super::{magic, names, orphan};
use plimsoll::spill::files::system;
use plimsoll::spill::{OwnedFolder, Swept};
use std::fs;
use std::path::Path;

fn sweep(parent: &Path) -> Swept {
    let folder = OwnedFolder::create(system(), parent, "next", "spill").unwrap();
    let swept = folder.swept();
    folder.remove().unwrap();
    swept
}

#[test]
fn names_of_another_shape_are_left_alone_whatever_is_in_the_file() {
    let parent = tempfile::tempdir().unwrap();
    for name in [".git", "index", ".a.spill-1", ".-1-2"] {
        fs::create_dir(parent.path().join(name)).unwrap();
        fs::write(parent.path().join(name).join("precious"), "p").unwrap();
        fs::write(parent.path().join(format!("{name}.owner")), magic()).unwrap();
    }
    let before = names(parent.path());
    assert_eq!(sweep(parent.path()), Swept::default());
    assert_eq!(names(parent.path()), before);
}

#[test]
fn an_owner_file_with_other_content_is_left_alone_with_its_folder() {
    let parent = tempfile::tempdir().unwrap();
    let longer = [magic(), b"x".to_vec()].concat();
    let other = vec![0; magic().len()];
    for (number, content) in [longer, other, b"p".repeat(3)].iter().enumerate() {
        fs::create_dir(parent.path().join(format!(".a.spill-1-{number}"))).unwrap();
        fs::write(parent.path().join(format!(".a.spill-1-{number}.owner")), content).unwrap();
    }
    assert_eq!(sweep(parent.path()), Swept::default());
    assert_eq!(names(parent.path()).len(), 6);
}

#[test]
fn a_folder_or_file_where_the_other_should_be_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir(parent.path().join(".a.spill-1-1.owner")).unwrap();
    fs::write(parent.path().join(".a.spill-1-2"), "precious").unwrap();
    fs::write(parent.path().join(".a.spill-1-2.owner"), magic()).unwrap();
    assert_eq!(sweep(parent.path()), Swept::default());
    assert_eq!(names(parent.path()), [".a.spill-1-1.owner", ".a.spill-1-2"]);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_neither_followed_nor_waited_for() {
    let parent = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("owner"), magic()).unwrap();
    fs::create_dir(outside.path().join("folder")).unwrap();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(outside.path().join(to), parent.path().join(name)).unwrap();
    };
    // an owner file that is a link, beside a folder
    link("owner", ".a.spill-1-1.owner");
    fs::create_dir(parent.path().join(".a.spill-1-1")).unwrap();
    // a folder that is a link, beside an owner file
    fs::write(parent.path().join(".a.spill-1-2.owner"), magic()).unwrap();
    link("folder", ".a.spill-1-2");
    let made = std::process::Command::new("mkfifo").arg(parent.path().join(".a.spill-1-3.owner")).status();
    let pipes = usize::from(made.is_ok_and(|status| status.success()));
    assert_eq!(sweep(parent.path()), Swept::default());
    assert_eq!(names(outside.path()), ["folder", "owner"]);
    assert_eq!(names(parent.path()).len(), 3 + pipes, "only the owner file beside the link went");
    assert!(!parent.path().join(".a.spill-1-2.owner").exists());
}

#[test]
fn a_deep_leftover_is_removed_without_recursion() {
    let parent = tempfile::tempdir().unwrap();
    let folder = orphan(parent.path(), &[("run", 5)]);
    let deep = (0..400).fold(folder.clone(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("run"), "xyz").unwrap();
    let swept = sweep(parent.path());
    assert_eq!((swept.folders, swept.bytes, swept.failed), (1, 8, 0));
    assert_eq!(names(parent.path()), [""; 0]);
}
