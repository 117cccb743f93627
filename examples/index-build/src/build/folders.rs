//! Where a build writes: the index folder and its rules, and the folder of spilled runs, which goes in every case: at the end
//! of the build, or when it was killed, at the start of the next one beside it.
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::options::{SpillOnRam, Sync};
use plimsoll::spill::files::system;
use plimsoll::spill::publish::{self, Publication, SyncPolicy};
use plimsoll::spill::{DiskQuota, OnRam, SpillError, SpillFolder};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The index folder of a build.
#[derive(Debug)]
pub(super) struct Target {
    /// Its real parent.
    pub(super) parent: PathBuf,
    name: OsString,
    /// There is an index of ours that the new one replaces.
    replaces: bool,
}

impl Target {
    /// Checks the rules: absent, empty, or with `force` an index of ours. One that a killed build has left aside while it
    /// was replaced is put back before.
    pub(super) fn check(index: &Path, force: bool) -> Result<Target> {
        let shown = index.display();
        if index.file_name().is_some() {
            publish::recover(&*system(), index)?;
        }
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
                        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => "it has no manifest".into(),
                        // it may be one, and cannot be looked at now
                        Error::Io { ref source, .. } if source.kind() != ErrorKind::IsADirectory => return Err(error),
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
            Err(error) if error.kind() == ErrorKind::NotFound => (index.to_owned(), false),
            Err(error) => return Err(Error::io("reading", index)(error)),
        };
        let Some(name) = real.file_name().map(OsString::from) else {
            return Err(Error::Usage(format!("--index {shown} has no name of its own")));
        };
        let parent = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Target { parent, name, replaces })
    }

    /// The index folder itself.
    pub(super) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder in which the new index is made, beside the place where it will be. Parents that are missing are created.
    pub(super) fn publication(&self, sync: Sync) -> Result<Publication> {
        let policy = match sync {
            Sync::Final => SyncPolicy::Final,
            Sync::None => SyncPolicy::None,
        };
        Ok(Publication::begin(system(), &self.path(), policy)?.replacing(self.replaces))
    }

    /// The folder of spilled runs, in `folder` or beside the index, for at most `quota_bytes` of them at any time.
    pub(super) fn spill(&self, folder: Option<&Path>, quota_bytes: Option<u64>) -> Result<SpillFolder> {
        let parent = folder.unwrap_or(&self.parent);
        if !parent.is_dir() {
            return Err(Error::Usage(format!("--spill-dir {} is not a folder", parent.display())));
        }
        // this program says itself what memory means, with its options
        let quota = quota_bytes.map_or_else(DiskQuota::unlimited, DiskQuota::new);
        let builder = SpillFolder::builder(parent).label(&self.name).quota(quota).on_ram(OnRam::Allow);
        builder.create().map_err(|error| match error {
            SpillError::Folder { .. } if folder.is_some() => Error::Usage(format!("--spill-dir {error}")),
            error => error.into(),
        })
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
