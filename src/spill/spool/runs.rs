//! The spool itself.

use super::file::{Place, SpoolFile};
use crate::spill::charge::Charge;
use crate::spill::error::{SpillError, SpillResult};
use crate::spill::folder::SpillFolder;
use crate::spill::run::{Run, RunFile, RunList, RunReader, RunWriter};
use std::path::Path;
use std::sync::Arc;

/// Steps in which a list of readers grows.
const READERS: usize = 16;

/// The runs of one writer, oldest first, in one file of a [`SpillFolder`] that is only appended to.
///
/// A run exists once [`RunWriter::finish`] has said so. What fails before is cut off the file again, and the next run goes
/// where it was; a file that cannot be cut takes no more runs, and the next one begins another. Every byte is taken from the
/// folder's quota before it is written and given back when it is gone; the list of runs is charged to whoever begins one.
/// No handle is kept: a spool that nobody writes or reads has no descriptor, and a merge opens the file once, however many
/// runs are in it.
///
/// Everything that is charged is given back by [`Spool::clear`]. A spool that is dropped removes its files, and says
/// nothing if that fails; what it had charged is for the owner of the account to settle.
#[derive(Debug)]
pub struct Spool {
    folder: SpillFolder,
    name: String,
    /// one, but for files that could not be cut or removed
    files: Vec<SpoolFile>,
    /// files and runs that there have been
    made: u32,
    serial: u64,
    runs: RunList,
    /// what the runs of a pass have become, older than all that are still in the list
    merged: RunList,
    in_pass: bool,
    /// the file system takes back parts of a file
    gives_back: bool,
    /// what is charged for lists and names
    charged: usize,
}

impl Spool {
    /// A spool without runs; its files will have names that start with `name`.
    pub fn new(folder: &SpillFolder, name: &str) -> Spool {
        Spool {
            folder: folder.clone(),
            name: name.to_owned(),
            files: Vec::new(),
            made: 0,
            serial: 0,
            runs: RunList::default(),
            merged: RunList::default(),
            in_pass: false,
            gives_back: true,
            charged: 0,
        }
    }

    /// The runs, oldest first.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.merged.iter().chain(self.runs.iter())
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.merged.len() + self.runs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is taken from the quota for this spool: its runs, and what of consumed ones could not be given back yet.
    pub fn disk_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.disk_bytes).sum()
    }

    /// What the lists of runs and files take in bytes: what is charged.
    pub fn allocated_bytes(&self) -> usize {
        let names: usize = self.files.iter().map(|file| file.path.as_os_str().len()).sum();
        self.runs.allocated_bytes()
            + self.merged.allocated_bytes()
            + self.files.capacity() * size_of::<SpoolFile>()
            + names
    }

    /// What that grows by with the next run at most, in bytes.
    pub fn growth_bytes(&self) -> usize {
        let list = if self.list().is_full() { RunList::PIECE_BYTES } else { 0 };
        list + if self.appends() { 0 } else { self.file_bytes() }
    }

    /// What that grows by at most while runs are merged in passes, in bytes.
    pub fn pass_growth_bytes(&self) -> usize {
        RunList::PIECE_BYTES + self.file_bytes()
    }

    /// The same for any spool in `folder` of a name of so many bytes.
    pub fn most_growth_bytes(folder: &SpillFolder, name_bytes: usize) -> usize {
        RunList::PIECE_BYTES + file_bytes(folder, name_bytes)
    }

    pub(in crate::spill) fn folder(&self) -> &SpillFolder {
        &self.folder
    }

    fn file_bytes(&self) -> usize {
        file_bytes(&self.folder, self.name.len())
    }

    fn list(&self) -> &RunList {
        if self.in_pass { &self.merged } else { &self.runs }
    }

    fn list_mut(&mut self) -> &mut RunList {
        if self.in_pass { &mut self.merged } else { &mut self.runs }
    }

    /// Whether the next run goes into a file that is there.
    fn appends(&self) -> bool {
        self.files.last().is_some_and(|file| !file.closed)
    }

    /// Begins the next run, newer than all there are. `longest_key_bytes` is the longest key as far as it is known; blocks
    /// have a payload of `block_bytes`, from [`LEAST_BLOCK_BYTES`](crate::spill::run::LEAST_BLOCK_BYTES) to
    /// [`MOST_BLOCK_BYTES`](crate::spill::run::MOST_BLOCK_BYTES). The buffers, and what the lists grow by, are charged before.
    ///
    /// # Errors
    /// [`SpillError::Memory`] if that is refused; an error of the file if it cannot be opened or created. Nothing has changed
    /// then.
    pub fn begin<'a>(
        &'a mut self,
        block_bytes: usize,
        longest_key_bytes: usize,
        account: &mut impl Charge,
    ) -> SpillResult<RunWriter<'a>> {
        let growth = self.growth_bytes();
        let buffers = RunWriter::most_bytes(block_bytes, longest_key_bytes);
        account.try_charge(growth + buffers)?;
        self.charged += growth;
        self.list_mut().reserve();
        let opened = self.open_to_append();
        self.settle_lists(account);
        match opened {
            Ok((file, place)) => Ok(RunWriter::new(self, file, place, block_bytes, longest_key_bytes)),
            Err(error) => {
                account.release(buffers);
                self.settle(account);
                Err(error)
            }
        }
    }

    fn open_to_append(&mut self) -> SpillResult<(RunFile, Place)> {
        let files = Arc::clone(self.folder.files());
        self.serial += 1;
        let opened = match self.files.last_mut().filter(|file| !file.closed) {
            Some(file) => file.open(&*files, self.in_pass)?,
            None => {
                self.made += 1;
                let name = format!("{}-{:04}.spool", self.name, self.made);
                let path: Arc<Path> = self.folder.path().join(name).into();
                let (mut file, opened) = SpoolFile::create(&*files, path, self.made)?;
                if self.in_pass {
                    file.open(&*files, true)?;
                }
                self.files.reserve_exact(1);
                self.files.push(file);
                opened
            }
        };
        let (file, start) = self.files.last().map_or((0, 0), |file| (file.number, file.end));
        Ok((opened, Place { file, serial: self.serial, start }))
    }

    /// A run is whole.
    pub(in crate::spill) fn sealed(&mut self, run: Run, taken: u64) {
        if let Some(file) = self.files.iter_mut().find(|file| file.number == run.file) {
            file.end = run.offset + run.bytes;
            file.disk_bytes += taken;
            file.live += 1;
        }
        self.list_mut().push(run);
    }

    /// A run is given up: its file ends where it did, or goes if nothing else is in it.
    pub(in crate::spill) fn cut_off(&mut self, opened: &RunFile, place: Place, taken: u64) {
        let Some(index) = self.files.iter().position(|file| file.number == place.file) else { return };
        let file = &mut self.files[index];
        if place.start > 0 {
            file.cut_off(opened, taken, &self.folder);
            return;
        }
        file.disk_bytes += taken;
        if self.remove(index).is_err()
            && let Some(file) = self.files.iter_mut().find(|file| file.number == place.file)
        {
            // at least its bytes go
            file.closed = true;
            file.disk_bytes -= taken;
            file.cut_off(opened, taken, &self.folder);
        }
    }

    /// Removes a file; its place in the list goes if it is gone.
    fn remove(&mut self, index: usize) -> SpillResult<()> {
        let (gone, removed) = self.files[index].remove(&self.folder);
        if gone {
            self.files.remove(index);
            self.files.shrink_to_fit();
        }
        removed
    }

    /// Lists are as long as they have to be, and no more is charged than they take.
    pub(in crate::spill) fn settle(&mut self, account: &mut impl Charge) {
        self.runs.trim();
        self.merged.trim();
        self.settle_lists(account);
    }

    fn settle_lists(&mut self, account: &mut impl Charge) {
        let allocated = self.allocated_bytes();
        account.release(self.charged.saturating_sub(allocated));
        self.charged = self.charged.min(allocated);
    }

    /// Opens the oldest runs, at most so many, each charged. What could be opened, and why not more.
    pub(in crate::spill) fn open_some(
        &mut self,
        most: usize,
        account: &mut impl Charge,
    ) -> (Vec<RunReader>, SpillResult<()>) {
        let files = Arc::clone(self.folder.files());
        let most = most.min(self.runs.len());
        let mut readers = Vec::new();
        let mut opened: Option<(u32, RunFile)> = None;
        // outside of a pass these are all runs
        for run in self.runs.iter().take(most) {
            let reader = (|| {
                let file = match opened.take() {
                    Some((number, file)) if number == run.file => file,
                    _ => match self.files.iter_mut().find(|file| file.number == run.file) {
                        Some(file) => file.open(&*files, self.in_pass)?,
                        None => {
                            return Err(SpillError::corrupt(self.folder.path(), 0, "the file of a run is not known"));
                        }
                    },
                };
                let reader = RunReader::open(&file, run, account);
                opened = Some((run.file, file));
                reader
            })();
            match reader {
                Ok(reader) => {
                    if readers.len() == readers.capacity() {
                        // the list is charged with its readers: it has little more room than for these
                        readers.reserve_exact(READERS.min(most - readers.len()));
                    }
                    readers.push(reader);
                }
                Err(error) => return (readers, Err(error)),
            }
        }
        (readers, Ok(()))
    }

    /// Opens readers for all runs, oldest first, each charged with [`RunReader::bytes_for`]. They share one handle a file.
    /// The runs stay: [`Spool::clear`] removes them.
    ///
    /// # Errors
    /// What opening a file or a run says, or a charge that is refused; everything that was opened is released.
    pub fn open(&mut self, account: &mut impl Charge) -> SpillResult<Vec<RunReader>> {
        let (readers, opened) = self.open_some(usize::MAX, account);
        match opened {
            Ok(()) => Ok(readers),
            Err(error) => {
                release_all(readers, account);
                Err(error)
            }
        }
    }

    /// A pass begins: what its runs become is kept apart.
    pub(in crate::spill) fn begin_pass(&mut self) {
        self.in_pass = true;
        if !self.gives_back
            && let Some(file) = self.files.last_mut()
        {
            // what is consumed goes with its file
            file.closed = true;
        }
    }

    /// Runs that the pass has not merged yet.
    pub(in crate::spill) fn left(&self) -> usize {
        self.runs.len()
    }

    /// The runs that the pass has not merged yet, oldest first.
    pub(in crate::spill) fn left_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// A pass ends, here, at an error or at a panic: all runs are one list again, in their order.
    pub(in crate::spill) fn end_pass(&mut self) {
        let mut newer = std::mem::take(&mut self.runs);
        self.merged.append(&mut newer);
        std::mem::swap(&mut self.runs, &mut self.merged);
        self.in_pass = false;
    }

    /// Handles may be closed.
    pub(in crate::spill) fn rest(&mut self) {
        self.files.iter_mut().for_each(SpoolFile::rest);
    }

    /// The oldest runs have become another one: their room goes back.
    pub(in crate::spill) fn consume(&mut self, count: usize, account: &mut impl Charge) {
        for _ in 0..count {
            let Some(run) = self.runs.pop_oldest() else { break };
            if let Some(file) = self.files.iter_mut().find(|file| file.number == run.file) {
                self.gives_back &= file.consumed(&run, &self.folder);
            }
        }
        let last = self.files.len().saturating_sub(1);
        for index in (0..self.files.len()).rev() {
            let file = &mut self.files[index];
            if file.live == 0 && (index < last || file.closed) {
                // an error comes again, and is told, when all is removed
                let _ = self.remove(index);
            } else if self.gives_back {
                self.gives_back = file.give_back(&self.folder);
            }
        }
        self.settle(account);
    }

    /// Removes all runs and files and gives back what is charged for them, after a merge. Returns the bytes that went back
    /// to the file system and the quota. Blocks on the file system.
    ///
    /// # Errors
    /// The first file that cannot be removed. The others are removed all the same, and the runs are gone; a file that is
    /// still there stays counted, and its removal is tried again by the next `clear`, and when the spool is dropped.
    pub fn clear(&mut self, account: &mut impl Charge) -> SpillResult<u64> {
        let before = self.disk_bytes();
        self.runs.clear();
        self.merged.clear();
        let (mut first, mut index) = (Ok(()), 0);
        while index < self.files.len() {
            let files = self.files.len();
            let file = &mut self.files[index];
            (file.live, file.closed) = (0, true);
            file.rest();
            first = first.and(self.remove(index));
            index += usize::from(self.files.len() == files);
        }
        self.settle(account);
        first.map(|()| before - self.disk_bytes())
    }
}

/// What a file takes in a spool's lists at most.
fn file_bytes(folder: &SpillFolder, name_bytes: usize) -> usize {
    // a separator, two numbers, the ending
    size_of::<SpoolFile>() + folder.path().as_os_str().len() + name_bytes + 24
}

/// Releases every reader.
pub(in crate::spill) fn release_all(readers: Vec<RunReader>, account: &mut impl Charge) {
    for reader in readers {
        reader.release(account);
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        for file in &mut self.files {
            let _ = file.remove(&self.folder);
        }
    }
}
