//! Who is let in, who waits and who goes on, under a hard limit.
//!
//! # Why nobody waits for ever
//!
//! A batch waits only between documents, between two fields of its merge, and when its segment's catalogue grows. Before
//! it waits between documents or fields it spills all its arenas and gives back what is leased, so it holds its **fixed
//! part**, and all fixed parts together are at most half of the limit. What it waits for is within what the limit leaves
//! one batch beside the fixed parts of all others; else it is an error at once.
//!
//! - Long lines are the exception: their buffer grows while they are read, and is held until the document is done. So a
//!   batch takes the **first turn** before it holds more than its fixed part, and gives it back when it no longer does.
//!   One batch has it at a time; who wants it waits as above.
//! - While one batch works, its memory comes back: at its next refusal, or when it ends. So all others may wait.
//! - When all wait, each asks once more. The one with the first turn finds all that the others' fixed parts leave, which is
//!   enough; if there is none, so does whoever asks. It goes on, and the document that it adds is progress.
//! - A catalogue that grows waits with what its merge holds, and needs little. Should everybody be refused then, and the
//!   state be the same for each, this is seen: the batch that sees it ends the build with an error that names the holders.
//! - Who is not let in holds nothing. With no batch inside, the next one is let in.
//!
//! All attempts of those who wait are made under one lock, so that what each was refused is one and the same state.
use crate::build::hard::Hard;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A wait looks again after this, also if nobody has said that anything changed.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Nobody waits longer than this while nothing moves anywhere.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
struct Now {
    /// batches that were let in
    inside: usize,
    fixed_bytes: usize,
    expected_bytes: usize,
    /// of those inside: they wait
    waiting: usize,
    /// of those waiting: they have been refused since anything changed
    refused: usize,
    /// goes up with each change
    version: u64,
    /// a batch has the first turn
    first: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Turns {
    hard: Option<Hard>,
    patience: Duration,
    now: Mutex<Now>,
    changed: Condvar,
    /// blocks read, terms merged; Relaxed: only that it goes up is looked at
    moves: AtomicU64,
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Granted,
    /// Everybody waits, and everybody is refused.
    InVain,
}

/// A batch that was let in. Dropped, it makes room.
#[derive(Debug)]
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    pub(super) hard: &'t Hard,
    pub(super) fixed_bytes: usize,
    expected_bytes: usize,
    pub(super) first: bool,
}

impl Turns {
    pub(super) fn new(hard: Option<Hard>) -> Turns {
        Turns { hard, patience: PATIENCE, now: Mutex::default(), changed: Condvar::new(), moves: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, now: MutexGuard<'g, Now>) -> MutexGuard<'g, Now> {
        self.changed.wait_timeout(now, LOOK_AGAIN).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Something moved: waits are worth while.
    #[inline]
    pub(super) fn moved(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// Memory was given back: who waits may ask again.
    pub(super) fn freed(&self) {
        let mut now = self.lock();
        if now.waiting > 0 {
            self.change(&mut now);
        }
    }

    fn change(&self, now: &mut Now) {
        now.version += 1;
        now.refused = 0;
        self.changed.notify_all();
    }

    /// Lets a batch of so many fields in, as soon as there is room for its fixed part. While fields are not known, one
    /// batch at a time.
    pub(super) fn enter(&self, fields: impl Fn() -> usize, go_on: impl Fn() -> Result<()>) -> Result<Option<Turn<'_>>> {
        let Some(hard) = &self.hard else { return Ok(None) };
        let mut now = self.lock();
        loop {
            let fields = fields();
            let fits = fields > 0 && hard.fits(now.fixed_bytes, now.expected_bytes, fields);
            // who needs much is not overtaken for ever
            if now.inside == 0 || fits && now.waiting == 0 {
                let (fixed_bytes, expected_bytes) = (hard.fixed_bytes(fields), hard.expected_bytes(fields));
                now.inside += 1;
                now.fixed_bytes += fixed_bytes;
                now.expected_bytes += expected_bytes;
                return Ok(Some(Turn { turns: self, hard, fixed_bytes, expected_bytes, first: false }));
            }
            go_on()?;
            now = self.wait(now);
        }
    }
}

/// Counts as waiting.
struct Waiting<'t, 'g> {
    turns: &'t Turns,
    now: Option<MutexGuard<'g, Now>>,
}

impl Drop for Waiting<'_, '_> {
    fn drop(&mut self) {
        let mut now = self.now.take().unwrap_or_else(|| self.turns.lock());
        now.waiting -= 1;
        self.turns.change(&mut now);
    }
}

impl Turn<'_> {
    /// The batch has more fields than it was let in with: its fixed part becomes `bytes`, if there is room for that.
    pub(super) fn raise(&mut self, bytes: usize) {
        let mut now = self.turns.lock();
        let more = bytes.saturating_sub(self.fixed_bytes);
        if now.inside == 1 || now.fixed_bytes + more <= self.hard.limit_bytes / 2 {
            now.fixed_bytes += more;
            self.fixed_bytes += more;
        }
    }

    /// Takes the first turn if it is free.
    pub(super) fn take_first(&mut self) -> bool {
        if !self.first {
            let mut now = self.turns.lock();
            self.first = !std::mem::replace(&mut now.first, true);
        }
        self.first
    }

    /// Gives the first turn back.
    pub(super) fn leave_first(&mut self) {
        if std::mem::take(&mut self.first) {
            let mut now = self.turns.lock();
            now.first = false;
            self.turns.change(&mut now);
        }
    }

    /// Waits until `attempt` is granted, and, with `first`, until the first turn is free as well. While others work, it asks
    /// only when it is `comfortable`, so that it does not take what the next one needs a moment later.
    pub(super) fn wait(
        &mut self,
        first: bool,
        mut attempt: impl FnMut() -> bool,
        comfortable: impl Fn() -> bool,
        go_on: impl Fn() -> Result<()>,
        what: impl Fn() -> String,
    ) -> Result<Waited> {
        let turns = self.turns;
        let mut now = turns.lock();
        now.waiting += 1;
        turns.change(&mut now);
        let mut waiting = Waiting { turns, now: Some(now) };
        let mut seen = u64::MAX;
        let (mut since, mut moves) = (Instant::now(), turns.moves.load(Ordering::Relaxed));
        loop {
            let mut now = waiting.now.take().unwrap_or_else(|| turns.lock());
            let all = now.waiting == now.inside;
            let mine = !first || self.first || !now.first;
            if mine && (all || comfortable()) && attempt() {
                if first {
                    now.first = true;
                    self.first = true;
                }
                waiting.now = Some(now);
                return Ok(Waited::Granted);
            }
            if all && seen != now.version {
                seen = now.version;
                now.refused += 1;
            }
            if all && now.refused == now.inside {
                waiting.now = Some(now);
                return Ok(Waited::InVain);
            }
            let now = turns.wait(now);
            waiting.now = Some(now);
            go_on()?;
            let moved = turns.moves.load(Ordering::Relaxed);
            if moved != moves {
                (since, moves) = (Instant::now(), moved);
            } else if since.elapsed() > turns.patience {
                drop(waiting);
                let seconds = turns.patience.as_secs();
                return Err(Error::Failed(format!("{} was waited for, and nothing moved for {seconds} s", what())));
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut now = self.turns.lock();
        now.inside -= 1;
        now.fixed_bytes -= self.fixed_bytes;
        now.expected_bytes -= self.expected_bytes;
        if self.first {
            now.first = false;
        }
        self.turns.change(&mut now);
    }
}
