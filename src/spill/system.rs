//! The operating system's calls, as safe functions: the only file of this folder that differs between platforms.

use super::files::{Entry, Files, Identity, OpenFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System;

fn boxed(file: File) -> Box<dyn OpenFile> {
    Box::new(file)
}

impl Files for System {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path).map(boxed)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        File::open(path).map(boxed)
    }

    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        OpenOptions::new().read(true).write(true).open(path).map(boxed)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn look(&self, path: &Path) -> io::Result<Entry> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Entry {
            is_folder: metadata.is_dir(),
            is_file: metadata.is_file(),
            bytes: metadata.len(),
            identity: identity(&metadata),
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    /// By handles of the folders, so that a name that becomes a link meanwhile is not followed.
    fn remove_tree(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir_all(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        exchange(one, other)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        sync_folder(folder)
    }

    fn in_memory(&self, folder: &Path) -> io::Result<bool> {
        in_memory(folder)
    }
}

fn identity(metadata: &fs::Metadata) -> Identity {
    let (device, node) = place(metadata);
    Identity { device, node, bytes: metadata.len(), modified: metadata.modified().ok() }
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|error| match error {
        // what kernels and file systems without it answer
        Errno::INVAL | Errno::NOSYS => io::ErrorKind::Unsupported.into(),
        error => error.into(),
    })
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all().map_err(|error| match error.raw_os_error() {
        // a file system that cannot sync folders says one of these, and never for want of trying
        Some(code) if code == rustix::io::Errno::INVAL.raw_os_error() => io::ErrorKind::Unsupported.into(),
        _ => error,
    })
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn in_memory(folder: &Path) -> io::Result<bool> {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58F6;
    let file_system = rustix::fs::statfs(folder)?;
    Ok([TMPFS, RAMFS].contains(&(file_system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn place(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn place(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

impl OpenFile for File {
    #[cfg(unix)]
    #[inline]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, bytes, offset)
    }

    /// Moves the handle's own position, which nobody here uses.
    #[cfg(windows)]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, bytes, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    /// Moves the handle's own position, which nobody here uses.
    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(self, bytes, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn identity(&self) -> io::Result<Identity> {
        self.metadata().map(|metadata| identity(&metadata))
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    #[cfg(target_os = "linux")]
    fn give_back(&self, offset: u64, bytes: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        use rustix::io::Errno;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(self, flags, offset, bytes).map_err(|error| match error {
            Errno::OPNOTSUPP | Errno::NOSYS => io::ErrorKind::Unsupported.into(),
            error => error.into(),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
