//! Where a build writes: the index folder and its rules, and the temporary folders beside it, which go in every case: at
//! the end of the build, or when it was killed, at the start of the next one beside it.
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::options::SpillOnRam;
use plimsoll::spill::files::system;
use plimsoll::spill::{OnRam, OwnedFolder, SpillError, SpillFolder};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The index folder of a build.
#[derive(Debug)]
pub(super) struct Target {
    /// Its real parent.
    pub(super) parent: PathBuf,
    name: OsString,
    /// There is an index of ours that the new one replaces.
    pub(super) replaces: bool,
    /// The uppermost folder that had to be created for it.
    created: Option<PathBuf>,
    published: bool,
}

impl Target {
    /// Checks the rules: absent, empty, or with `force` an index of ours. A missing parent is created.
    pub(super) fn check(index: &Path, force: bool) -> Result<Target> {
        let shown = index.display();
        let (real, replaces) = match fs::metadata(index) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(Error::Usage(format!("--index {shown} is not a folder")));
            }
            Ok(_) => {
                let mut entries = fs::read_dir(index).map_err(Error::io("reading", index))?;
                let replaces = entries.next().is_some();
                if replaces && !force {
                    return Err(Error::Usage(format!(
                        "--index {shown} is not empty: choose another folder or give --force"
                    )));
                }
                if replaces && let Err(error) = Manifest::read(index) {
                    let why = match error {
                        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                            "it has no manifest".into()
                        }
                        error => error.to_string(),
                    };
                    return Err(Error::Usage(format!(
                        "--index {shown} is not an index that --force could replace: {why}"
                    )));
                }
                (fs::canonicalize(index).map_err(Error::io("reading", index))?, replaces)
            }
            // the new index cannot take the name of a link
            Err(_) if fs::read_link(index).is_ok() => {
                return Err(Error::Usage(format!("--index {shown} is a link that leads nowhere")));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (index.to_owned(), false),
            Err(error) => return Err(Error::io("reading", index)(error)),
        };
        let Some(name) = real.file_name().map(OsString::from) else {
            return Err(Error::Usage(format!("--index {shown} has no name of its own")));
        };
        let parent = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let created = parent.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).last();
        let created = created.map(Path::to_owned);
        // before they are created: some may be when one cannot be
        let target = Target { parent, name, replaces, created, published: false };
        fs::create_dir_all(&target.parent).map_err(Error::io("creating", &target.parent))?;
        Ok(target)
    }

    /// The index folder itself.
    pub(super) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder in which the new index is made, beside the place where it will be.
    pub(super) fn temporary(&self) -> Result<OwnedFolder> {
        Ok(OwnedFolder::create(system(), &self.parent, &self.name, "tmp")?)
    }

    /// The folder of spilled runs, in `folder` or beside the index.
    pub(super) fn spill(&self, folder: Option<&Path>) -> Result<SpillFolder> {
        let parent = folder.unwrap_or(&self.parent);
        if !parent.is_dir() {
            return Err(Error::Usage(format!("--spill-dir {} is not a folder", parent.display())));
        }
        // this program says itself what memory means, with its options
        let builder = SpillFolder::builder(parent).label(&self.name).on_ram(OnRam::Allow);
        builder.create().map_err(|error| match error {
            SpillError::Folder { .. } if folder.is_some() => Error::Usage(format!("--spill-dir {error}")),
            error => error.into(),
        })
    }

    /// The index is there: what was created for it stays.
    pub(super) fn published(&mut self) {
        self.published = true;
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(created) = &self.created
            && !self.published
        {
            // folders that were created for nothing; only empty ones go
            let mut folder = Some(self.parent.as_path());
            while let Some(path) = folder.filter(|path| path.starts_with(created)) {
                if fs::remove_dir(path).is_err() && path.exists() {
                    break;
                }
                folder = path.parent();
            }
        }
    }
}

/// Whether spills into `folder` would be kept in memory, by what was asked for such folders.
pub(super) fn in_memory(folder: &SpillFolder, asked: SpillOnRam) -> Result<bool> {
    if folder.in_memory() && asked == SpillOnRam::Refuse {
        return Err(Error::Usage(format!(
            "{} is on a file system in memory: name another folder with --spill-dir, or give --spill-on-ram warn",
            folder.path().display()
        )));
    }
    Ok(folder.in_memory())
}
