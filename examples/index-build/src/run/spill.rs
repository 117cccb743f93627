//! A writer's terms become a run; and what goes on beside that, and beside any merge: the encoder's reservation of each
//! term, and whether the build goes on.
use crate::accounting::Account;
use crate::error::{Error, Result};
use crate::run::source::Source;
use crate::writer::Writer;
use plimsoll::spill::merge::{Watch, merge};
use plimsoll::spill::{Run, Spool};

/// Asks `go_on` now and then, and tells `merged` of each group of runs that became one: its bytes, and what the spool has
/// on disk then.
#[derive(Debug)]
pub struct Beside<G, F> {
    go_on: G,
    merged: F,
}

impl<G: FnMut() -> Result<()>, F: FnMut(u64, u64)> Beside<G, F> {
    /// Asks and tells these.
    pub fn new(go_on: G, merged: F) -> Beside<G, F> {
        Beside { go_on, merged }
    }
}

impl<A: Account, G: FnMut() -> Result<()>, F: FnMut(u64, u64)> Watch<A> for Beside<G, F> {
    type Error = Error;

    #[inline]
    fn go_on(&mut self) -> Result<()> {
        (self.go_on)()
    }

    #[inline]
    fn record_begins(&mut self, account: &mut A) {
        account.term_begins();
    }

    #[inline]
    fn record_ends(&mut self, account: &mut A) {
        account.term_ends();
    }

    fn merged(&mut self, written_bytes: u64, disk_bytes: u64) {
        (self.merged)(written_bytes, disk_bytes);
    }
}

/// Spills a writer's terms into a new run. The writer is cleared by the caller, once the run is sealed.
pub fn spill<A: Account>(
    writer: &Writer,
    spool: &mut Spool,
    block_bytes: usize,
    account: &mut A,
    go_on: impl FnMut() -> Result<()>,
) -> Result<Run> {
    let mut run = spool.begin(block_bytes, writer.longest(), account)?;
    let order = writer.order(account);
    let mut sources = [Source::memory(writer, order)];
    let merged = merge(&mut sources, &mut run, account, &mut Beside::new(go_on, |_, _| ()));
    for source in sources {
        source.release(account);
    }
    match merged {
        Ok(()) => Ok(run.finish(account)?),
        Err(error) => {
            run.abandon(account);
            Err(error)
        }
    }
}
