//! The system calls of this folder, behind a trait: one implementation is the operating system, others make calls fail in
//! tests. Whoever calls handles short and interrupted calls with the functions at the end, so an implementation need not.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What names files: a directory tree, as the operating system or a test sees it. Every call may block.
pub trait Files: Debug + Send + Sync {
    /// Creates a file for reading and writing. [`io::ErrorKind::AlreadyExists`] if there is one of that name.
    ///
    /// # Errors
    /// What the system says.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file for reading; where folders can be opened like files, a folder too, for its lock.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file that is there for reading and writing.
    ///
    /// # Errors
    /// What the system says.
    fn open_for_writing(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Creates one folder. [`io::ErrorKind::AlreadyExists`] if the name is taken.
    ///
    /// # Errors
    /// What the system says.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// The paths of what is in a folder, in no order.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// What is there under a name; links are not followed.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if nothing is; else what the system says.
    fn look(&self, path: &Path) -> io::Result<Entry>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// What the system says.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder with all that is in it; links are removed and not followed. What cannot be removed stays, and what
    /// contains it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such folder; else the first thing that the system says.
    fn remove_tree(&self, folder: &Path) -> io::Result<()> {
        let mut folders = vec![folder.to_owned()];
        let mut first = None;
        let mut tell = |done: io::Result<()>| match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => drop(first.get_or_insert(error)),
            _ => {}
        };
        let mut listed = 0;
        while let Some(folder) = folders.get(listed).cloned() {
            let paths = match uninterrupted(|| self.list(&folder)) {
                Err(error) if listed == 0 => return Err(error),
                paths => paths,
            };
            listed += 1;
            for path in paths.unwrap_or_else(|error| {
                tell(Err(error));
                Vec::new()
            }) {
                match uninterrupted(|| self.look(&path)) {
                    Ok(entry) if entry.is_folder => folders.push(path),
                    Ok(_) => tell(uninterrupted(|| self.remove_file(&path))),
                    Err(error) => tell(Err(error)),
                }
            }
        }
        // a folder was listed after the one that contains it
        for folder in folders.iter().rev() {
            tell(uninterrupted(|| self.remove_folder(folder)));
        }
        first.map_or(Ok(()), Err)
    }

    /// Gives what is at `from` the name `to`, in one step; a file there is replaced.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Exchanges two names in one step.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the system or the file system cannot; else what the system says.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where folders cannot be synced; else what the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Whether what is written into a folder stays in memory (tmpfs, ramfs). False where that cannot be told.
    ///
    /// # Errors
    /// What the system says.
    fn in_memory(&self, folder: &Path) -> io::Result<bool>;
}

/// What is under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// A folder, and not a link to one.
    pub is_folder: bool,
    /// A file, and not a link to one, a pipe or a device.
    pub is_file: bool,
    /// Length of a file.
    pub bytes: u64,
    /// Which file or folder it is.
    pub identity: Identity,
}

/// Which file a handle is of: two handles with the same identity are of the same file, and nobody wrote to it between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device that it is on; 0 where that cannot be told.
    pub device: u64,
    /// Its number there; 0 where that cannot be told.
    pub node: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When it was last written to, where that can be told.
    pub modified: Option<SystemTime>,
}

impl Identity {
    /// Whether both are of the same file, whatever was written to it meanwhile: as long as one is open, no other has its
    /// number. True where that cannot be told.
    pub fn is_same_file(&self, other: &Identity) -> bool {
        self.node == 0 || other.node == 0 || (self.device, self.node) == (other.device, other.node)
    }
}

/// An open file. It has no position: every read and write says where, so any number of threads may share it. Closed when
/// dropped. Every call may block.
pub trait OpenFile: Debug + Send + Sync {
    /// Reads into the start of `bytes`; answers how many bytes, 0 at the end of the file.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::Interrupted`] is for the caller to repeat.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes the start of `bytes`; answers how many.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::Interrupted`] is for the caller to repeat.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Its length.
    ///
    /// # Errors
    /// What the system says.
    fn bytes(&self) -> io::Result<u64>;

    /// Which file it is. Without an implementation of its own, the length has to do.
    ///
    /// # Errors
    /// What the system says.
    fn identity(&self) -> io::Result<Identity> {
        self.bytes().map(|bytes| Identity { device: 0, node: 0, bytes, modified: None })
    }

    /// Cuts it to `bytes`.
    ///
    /// # Errors
    /// What the system says.
    fn cut(&self, bytes: u64) -> io::Result<()>;

    /// Gives the room of a part back to the file system, without changing the file's length.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where that cannot be done; else what the system says.
    fn give_back(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Makes content and length durable. What this said once stands: after an error the kernel may have dropped what was
    /// not written, and a second call says that all is well.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;

    /// Takes the file's lock, which goes with the last handle of the process; false if another handle has it.
    ///
    /// # Errors
    /// What the system says.
    fn try_lock(&self) -> io::Result<bool>;
}

/// The operating system.
pub fn system() -> Arc<dyn Files> {
    Arc::new(super::system::System)
}

/// Repeats a call that was interrupted.
///
/// # Errors
/// What the call says, [`io::ErrorKind::Interrupted`] aside.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Fills `bytes` from `offset` on; repeats short and interrupted reads.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before; else what the system says. `bytes` may hold anything then.
#[inline]
pub fn read_exact_at(file: &dyn OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        match file.read_at(&mut bytes[done..], at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` from `offset` on; repeats short and interrupted writes.
///
/// # Errors
/// [`io::ErrorKind::WriteZero`] if the system takes nothing; else what it says. A part may have been written then.
pub fn write_all_at(file: &dyn OpenFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        match file.write_at(&bytes[done..], at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
