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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::hard::Given;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::thread;

    fn turns(limit: usize, threads: usize) -> Turns {
        let given = Given { threads, block_bytes: 32 << 10, jsonl: false, budget_bytes: None, lists_bytes: 0 };
        Turns::new(Some(Hard::of(given, limit)))
    }

    fn enter(turns: &Turns) -> Option<Turn<'_>> {
        // stops where it would have to wait
        turns.enter(|| 1, || Err(Error::Interrupted { signal: 2 })).unwrap_or_default()
    }

    fn wait(turn: &mut Turn<'_>, first: bool, attempt: impl FnMut() -> bool) -> Result<Waited> {
        turn.wait(first, attempt, || true, || Ok(()), || "room".to_owned())
    }

    #[test]
    fn batches_are_let_in_while_their_fixed_parts_are_half_of_the_limit_and_one_always_is() {
        let small = turns(1 << 20, 30);
        let one = enter(&small).unwrap();
        assert!(enter(&small).is_none(), "half a MiB is not enough for two");
        drop(one);
        let large = turns(64 << 20, 30);
        let inside: Vec<_> = std::iter::from_fn(|| enter(&large)).take(100).collect();
        let fixed: usize = inside.iter().map(|turn| turn.fixed_bytes).sum();
        assert!(inside.len() > 20 && fixed <= 32 << 20, "{} of {fixed} bytes", inside.len());
        assert!(Turns::new(None).enter(|| 1, || Ok(())).unwrap().is_none(), "without a limit there are no turns");
    }

    #[test]
    fn while_fields_are_not_known_there_is_one_batch() {
        let turns = turns(1 << 30, 30);
        let unknown = || turns.enter(|| 0, || Err(Error::Interrupted { signal: 2 })).unwrap_or_default();
        let _one = unknown().unwrap();
        assert!(unknown().is_none());
        assert!(enter(&turns).is_some(), "now they are");
    }

    #[test]
    fn who_waits_alone_is_told_at_once_that_it_is_in_vain() {
        let turns = turns(64 << 20, 4);
        let mut turn = enter(&turns).unwrap();
        let mut asked = 0;
        let waited = wait(&mut turn, false, || {
            asked += 1;
            false
        });
        assert_eq!((waited.unwrap(), asked), (Waited::InVain, 1));
        assert_eq!(wait(&mut turn, true, || true).unwrap(), Waited::Granted);
        assert!(turn.first);
    }

    /// Ten batches that each need all there is: they go on one after the other, and nobody is told that it is in vain.
    #[test]
    fn whoever_waits_goes_on_when_somebody_gives_back() {
        let turns = turns(64 << 20, 10);
        let (free, done) = (AtomicBool::new(true), AtomicUsize::new(0));
        let take = || free.compare_exchange(true, false, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        thread::scope(|scope| {
            for number in 0..10 {
                let (turns, free, done) = (&turns, &free, &done);
                scope.spawn(move || {
                    let mut turn = turns.enter(|| 1, || Ok(())).unwrap().unwrap();
                    for round in 0..50 {
                        if !take() {
                            assert_eq!(wait(&mut turn, (number + round) % 3 == 0, take).unwrap(), Waited::Granted);
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                        free.store(true, Ordering::SeqCst);
                        turns.freed();
                        turn.leave_first();
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 500);
    }

    #[test]
    fn when_everybody_is_refused_each_is_told() {
        let turns = turns(64 << 20, 10);
        let vain: Vec<_> = thread::scope(|scope| {
            let inside: Vec<_> = std::iter::from_fn(|| enter(&turns)).take(3).collect();
            let waiting: Vec<_> = inside
                .into_iter()
                .map(|mut turn| scope.spawn(move || wait(&mut turn, false, || false).unwrap()))
                .collect();
            waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(vain, [Waited::InVain, Waited::InVain, Waited::InVain]);
    }

    #[test]
    fn a_wait_ends_when_nothing_moves_and_goes_on_while_something_does() {
        let turns = Turns { patience: Duration::from_millis(60), ..turns(64 << 20, 4) };
        let (_working, mut turn) = (enter(&turns).unwrap(), enter(&turns).unwrap());
        let (start, looks) = (Instant::now(), AtomicUsize::new(0));
        let go_on = || {
            if looks.fetch_add(1, Ordering::Relaxed) < 30 {
                turns.moved();
            }
            Ok(())
        };
        let ended = turn.wait(false, || false, || true, go_on, || "room for a document".to_owned());
        assert!(start.elapsed() > Duration::from_millis(100));
        let text = ended.unwrap_err().to_string();
        assert_eq!(text, "room for a document was waited for, and nothing moved for 0 s");
    }
}
