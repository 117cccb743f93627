//! One file of a spool.
//!
//! ```text
//! 0                                     live runs                     end
//! | header |  consumed, given back  | consumed |  sealed runs  ...    |  (a run that is being written)
//! ```
//!
//! Consumed runs go back to the file system in whole pages while the file is used, and the rest with the file.

use crate::spill::error::{SpillError, SpillResult};
use crate::spill::files::{Files, OpenFile, uninterrupted};
use crate::spill::folder::SpillFolder;
use crate::spill::run::{Run, RunFile};
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};

/// File systems give room back in whole blocks; this is the usual one in bytes. Where blocks are larger, or files are
/// compressed, less goes back before the file does.
const PAGE_BYTES: u64 = 4096;

/// Where a run will be.
#[derive(Debug, Clone, Copy)]
pub(in crate::spill) struct Place {
    /// the file's number
    pub(in crate::spill) file: u32,
    pub(in crate::spill) serial: u64,
    /// where the file ends before the run
    pub(in crate::spill) start: u64,
}

#[derive(Debug)]
pub(super) struct SpoolFile {
    pub(super) number: u32,
    pub(super) path: Arc<Path>,
    identity: u64,
    /// the handle, if a reader or a writer has it
    shared: Weak<dyn OpenFile>,
    /// the handle while a merge has several things to do with it
    kept: Option<RunFile>,
    /// behind the last sealed run
    pub(super) end: u64,
    /// what of the quota is taken for it
    pub(super) disk_bytes: u64,
    /// runs that have not been consumed
    pub(super) live: u64,
    /// nothing is appended any more
    pub(super) closed: bool,
    /// a part that was consumed: what of it went back, and its end
    given_back_to: u64,
    consumed_to: u64,
}

impl SpoolFile {
    pub(super) fn create(files: &dyn Files, path: Arc<Path>, number: u32) -> SpillResult<(SpoolFile, RunFile)> {
        let opened = RunFile::create(files, &path)?;
        let file = SpoolFile {
            number,
            path,
            identity: opened.identity,
            shared: Arc::downgrade(&opened.handle),
            kept: None,
            end: 0,
            disk_bytes: 0,
            live: 0,
            closed: false,
            given_back_to: 0,
            consumed_to: 0,
        };
        Ok((file, opened))
    }

    /// The open file, with the length that its sealed runs come to.
    pub(super) fn open(&mut self, files: &dyn Files, keep: bool) -> SpillResult<RunFile> {
        let shared = self.shared.upgrade();
        let opened = match shared {
            Some(handle) => {
                let (path, identity) = (Arc::clone(&self.path), self.identity);
                RunFile { handle, path, identity, bytes: self.end }
            }
            None => {
                let opened = RunFile::open_for_writing(files, &self.path)?;
                if opened.identity != self.identity {
                    return Err(SpillError::corrupt(&self.path, 16, "another file is in the place of this one"));
                }
                if opened.bytes < self.end {
                    let why = format!("the file ends within the {} bytes that were written", self.end);
                    return Err(SpillError::corrupt(&self.path, opened.bytes, why));
                }
                self.shared = Arc::downgrade(&opened.handle);
                RunFile { bytes: self.end, ..opened }
            }
        };
        if keep && self.kept.is_none() {
            self.kept = Some(opened.clone());
        }
        Ok(opened)
    }

    /// The handle may be closed when nobody else has it.
    pub(super) fn rest(&mut self) {
        self.kept = None;
    }

    /// Cuts what is behind the last sealed run. If that fails, nothing is appended any more, and what is there stays counted.
    pub(super) fn cut_off(&mut self, opened: &RunFile, taken: u64, folder: &SpillFolder) {
        if taken == 0 {
            return;
        }
        let left = match uninterrupted(|| opened.handle.cut(self.end)) {
            Ok(()) => 0,
            Err(_) => {
                self.closed = true;
                match uninterrupted(|| opened.handle.bytes()) {
                    Ok(bytes) => taken.min(bytes.saturating_sub(self.end)),
                    Err(_) => taken,
                }
            }
        };
        self.disk_bytes += left;
        folder.give_back(taken - left);
    }

    /// A run has been consumed. False if room could not be given back: that waits for the end of the file.
    pub(super) fn consumed(&mut self, run: &Run, folder: &SpillFolder) -> bool {
        self.live -= 1;
        let mut gone = true;
        if run.offset != self.consumed_to {
            gone = self.give_back(folder);
            self.given_back_to = run.offset.next_multiple_of(PAGE_BYTES);
        }
        self.consumed_to = run.offset + run.bytes;
        gone
    }

    /// Gives the whole pages of consumed runs back to the file system. False if that cannot be done.
    pub(super) fn give_back(&mut self, folder: &SpillFolder) -> bool {
        let (from, to) = (self.given_back_to, self.consumed_to / PAGE_BYTES * PAGE_BYTES);
        let Some(handle) = self.shared.upgrade() else { return true };
        if to <= from {
            return true;
        }
        if uninterrupted(|| handle.give_back(from, to - from)).is_err() {
            return false;
        }
        self.given_back_to = to;
        self.disk_bytes -= to - from;
        folder.give_back(to - from);
        true
    }

    /// Removes the file and gives back its room. False if it is still there.
    pub(super) fn remove(&mut self, folder: &SpillFolder) -> (bool, SpillResult<()>) {
        let removed = uninterrupted(|| folder.files().remove_file(&self.path));
        let gone = removed.as_ref().err().is_none_or(|error| error.kind() == io::ErrorKind::NotFound);
        if gone {
            folder.give_back(std::mem::take(&mut self.disk_bytes));
        }
        (gone, removed.map_err(SpillError::io("removing", &self.path)))
    }
}
