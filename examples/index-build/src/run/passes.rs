//! Many runs become few: while a writer has more sources than may be merged at once, contiguous groups of its runs are
//! merged into bigger runs, oldest first, so that the order of the sources stays the order of the documents.
use crate::accounting::Account;
use crate::error::{Error, Result};
use crate::run::merge::merge;
use crate::run::read::RunReader;
use crate::run::source::Source;
use crate::run::write::{Run, RunWriter};
use std::path::PathBuf;

/// How runs are written and merged.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Payload of a run's blocks, which is what a reader or a writer of runs holds.
    pub block_bytes: usize,
    /// Sources that are merged at once; at least 2.
    pub fan_in: usize,
}

/// The runs of one writer: where they are, how many there have been.
#[derive(Debug)]
pub struct Spills {
    folder: PathBuf,
    name: String,
    made: u64,
    runs: Vec<Run>,
}

impl Spills {
    /// No runs yet; files will be in `folder` with names that start with `name`.
    pub fn new(folder: PathBuf, name: String) -> Spills {
        Spills { folder, name, made: 0, runs: Vec::new() }
    }

    /// The path of the next run.
    pub fn next_path(&mut self) -> PathBuf {
        self.made += 1;
        self.folder.join(format!("{}-{:06}.run", self.name, self.made))
    }

    /// A sealed run, newer than all before.
    pub fn push(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// The runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// What the list takes, paths included, about.
    pub fn allocated_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.runs.iter().map(|run| run.path.as_os_str().len()).sum::<usize>()
    }

    /// What that grows by with the next run at most.
    pub fn growth_bytes(&self) -> usize {
        let list = if self.runs.len() == self.runs.capacity() { self.runs.capacity().max(4) } else { 0 };
        // separators and numbers
        list * size_of::<Run>() + self.folder.as_os_str().len() + self.name.len() + 32
    }

    /// Removes the files of `count` runs from the start of the list; returns their bytes.
    fn remove(&mut self, count: usize) -> Result<u64> {
        let mut bytes = 0;
        for run in self.runs.drain(..count) {
            std::fs::remove_file(&run.path).map_err(Error::io("removing", &run.path))?;
            bytes += run.bytes;
        }
        Ok(bytes)
    }

    /// Removes all runs, after their merge; returns their bytes.
    pub fn clear(&mut self) -> Result<u64> {
        let count = self.runs.len();
        self.remove(count)
    }

    /// Opens readers for all runs as sources, oldest first. What was opened is released if one cannot be.
    pub fn open<'a, A: Account>(runs: &[Run], account: &mut A) -> Result<Vec<Source<'a>>> {
        let mut sources = Vec::with_capacity(runs.len() + 1);
        for run in runs {
            match RunReader::open(&run.path, account) {
                Ok(reader) => sources.push(Source::run(reader)),
                Err(error) => {
                    release_all(sources, account);
                    return Err(error);
                }
            }
        }
        Ok(sources)
    }
}

/// Releases every source.
pub fn release_all<A: Account>(sources: Vec<Source<'_>>, account: &mut A) {
    for source in sources {
        source.release(account);
    }
}

/// Merges groups of runs until they and `other` further sources can be merged at once. Returns the passes it took.
/// `changed` hears of bytes written to and removed from the spill folder.
pub fn reduce<A: Account>(
    spills: &mut Spills,
    other: usize,
    limits: Limits,
    account: &mut A,
    poll: &mut impl FnMut() -> Result<()>,
    changed: &mut impl FnMut(u64, u64),
) -> Result<u64> {
    let fan_in = limits.fan_in.max(2);
    let mut passes = 0;
    while spills.runs.len() > 1 && spills.runs.len() + other > fan_in {
        passes += 1;
        let mut left = spills.runs.len();
        while left > 0 {
            let group = left.min(fan_in);
            left -= group;
            if group == 1 {
                // a pass leaves it as it is, in its place
                let run = spills.runs.remove(0);
                spills.runs.push(run);
                continue;
            }
            let path = spills.next_path();
            let mut run = RunWriter::create(&path, limits.block_bytes, account)?;
            let merged = Spills::open(&spills.runs[..group], account).and_then(|mut sources| {
                let merged = merge(&mut sources, &mut run, account, poll);
                release_all(sources, account);
                merged
            });
            let run = match merged {
                Ok(()) => run.finish(account)?,
                Err(error) => {
                    run.abandon(account);
                    return Err(error);
                }
            };
            let written = run.bytes;
            let removed = spills.remove(group)?;
            spills.push(run);
            changed(written, removed);
        }
    }
    Ok(passes)
}
