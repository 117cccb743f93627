//! Credit: what a window reserves ahead, the limits that bound it, and how it is called back.
//!
//! What a cell may add without asking is reserved before ([`Ledger`](super::ledger::Ledger)). Near the **line** (the soft
//! budget, and what is in flight) windows shrink with what is left: each takes at most the part of one of twice as many
//! writers as there are. Below a least window a writer that charges gets that least window all the same, past the line and
//! never past the hard limit; by then every block is published, and idle windows are called back, so that a decision comes
//! at most a least window for each running writer late.
//!
//! At the **hard limit** nothing is granted that is not reserved. Who finds nothing to reserve calls back what others have
//! and do not use, looks once more, and is refused only then. While it does so, and until there is room again, the windows
//! are **tight**: nobody takes ahead, and every release is given back at once. When all windows are closed, nobody has
//! anything to call back, and a refusal looks at the sum once more and walks nothing.

use super::cell::{Cell, Form, MAX_BYTES};
use super::core::Core;
use super::settings::{LEAST_QUANTUM_BYTES, NONE};
use super::window::{Settled, Window, close};
use crate::error::Refusal;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, fence, mutant, own_load};

/// How much a settled cell takes ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// It has charged: a window, past the line if need be.
    Full,
    /// What the line leaves for one.
    Share,
    /// Its window closes.
    Nothing,
}

/// Nobody calls back, and windows are open.
const LOOSE: usize = 0;
/// Windows are closed until there is room.
const TIGHT: usize = 1;
/// Credit is being called back: it does not end before the one who needs it has looked.
const CALLING: usize = 2;

/// Whether credit is short, and who calls it back.
#[derive(Debug)]
pub(crate) struct Credit {
    /// Relaxed: stored before every cell's lock is taken, and so seen by whoever takes one afterwards.
    state: AtomicUsize,
    /// Idle windows were called back since the line left too little. Relaxed: a hint, a second time is harmless.
    called: AtomicBool,
    /// Held by the one who calls back. Never taken while a cell is locked.
    calling: Mutex<()>,
}

impl Credit {
    pub(crate) fn new() -> Self {
        Credit { state: AtomicUsize::new(LOOSE), called: AtomicBool::new(false), calling: Mutex::new(()) }
    }

    fn is_short(&self) -> bool {
        self.state.load(Ordering::Relaxed) != LOOSE && !mutant("never_tight")
    }
}

/// What came of asking once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Granted,
    /// By the writer's own cap.
    Refused,
    /// There was nothing to reserve.
    Short,
}

/// One attempt, and what its settling brings about.
struct Attempt {
    answer: Answer,
    settled: Settled,
}

impl Core {
    /// Whether no window may be open: credit is short, or idle credit could not be called back.
    pub(crate) fn closes_windows(&self) -> bool {
        self.credit.is_short() || (!self.barrier && self.settings.hard_limit_bytes() != NONE)
    }

    /// What a cell may reserve up to: the hard limit; for writers that can spill, less what of the reserve is not used.
    pub(crate) fn top_bytes(&self, cell: &Cell) -> usize {
        if cell.has_arena() { self.least_top_bytes() } else { self.settings.hard_limit_bytes() }
    }

    /// What all may reserve before writers that can spill are in the way of those that cannot.
    fn least_top_bytes(&self) -> usize {
        match self.settings.hard_limit_bytes() {
            NONE => NONE,
            hard => hard - self.unused_reserve_bytes().min(hard),
        }
    }

    /// What of the reserve is not used by those for whom it is.
    pub(crate) fn unused_reserve_bytes(&self) -> usize {
        match self.settings.reserve_bytes() {
            0 => 0,
            reserve => reserve.saturating_sub(self.ledger.apart_bytes()),
        }
    }

    /// What is left below the line, and below the limit of `cell`.
    fn left_bytes(&self, top: usize) -> usize {
        let line = self.decider.line_bytes().saturating_sub(self.unused_reserve_bytes());
        line.min(top).saturating_sub(self.ledger.reserved_bytes())
    }

    /// The window that a writer gets in any case, unless windows are closed.
    fn least_window_bytes(&self) -> usize {
        self.deal.room(&self.settings).min(LEAST_QUANTUM_BYTES - 1)
    }

    /// What `cell` may use ahead, of at most `room`; `unused` of it is reserved already. Second: the line leaves too little.
    pub(crate) fn take_ahead(&self, cell: &Cell, room: usize, unused: usize, ahead: Ahead) -> (usize, bool) {
        if room == 0 {
            return (0, false);
        }
        let top = self.top_bytes(cell);
        let mut short = false;
        let wanted = match self.settings.fixes_quantum() {
            true => room,
            false => {
                let share = self.left_bytes(top).saturating_add(unused) / (2 * self.deal.seats());
                let least = self.least_window_bytes();
                short = ahead == Ahead::Full && share < least;
                if ahead == Ahead::Full && !short && self.credit.called.load(Ordering::Relaxed) {
                    self.credit.called.store(false, Ordering::Relaxed);
                }
                if short { least.min(room) } else { share.min(room) }
            }
        };
        // A limit that was lowered below what is reserved: what is not used goes back.
        let wanted = wanted.min(top.saturating_add(unused).saturating_sub(self.ledger.reserved_bytes()));
        let more = wanted.saturating_sub(unused);
        if more == 0 || self.try_reserve(cell, more) { (wanted, short) } else { (unused.min(wanted), short) }
    }

    /// After a window has shrunk: what it does not need any more.
    pub(crate) fn give_credit_back(&self, bytes: usize) {
        self.ledger.give_back(bytes);
        if self.credit.state.load(Ordering::Relaxed) == TIGHT {
            self.loosen();
        }
    }

    /// Windows may be open again when two for everybody fit below the limit (of writers that can spill: the lower one), or
    /// a quarter of it is free.
    pub(crate) fn loosen(&self) {
        let window = match self.settings.fixes_quantum() {
            true => self.deal.room(&self.settings).saturating_add(1),
            false => LEAST_QUANTUM_BYTES,
        };
        let (hard, top) = (self.settings.hard_limit_bytes(), self.least_top_bytes());
        let enough = window.saturating_mul(2 * self.deal.seats()).min(hard / 4);
        if top.checked_sub(self.ledger.reserved_bytes()).is_some_and(|left| left >= enough) {
            // Not while somebody calls back. Relaxed: a window that stays closed a moment longer is right too.
            let _was = self.credit.state.compare_exchange(TIGHT, LOOSE, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Owner: a `try_` charge that the window does not cover. Nothing is stored before it is sure.
    pub(crate) fn try_charge_outside(&self, cell: &Cell, bytes: usize) -> Result<(), Refusal> {
        let first = self.attempt_owned(cell, bytes);
        self.conclude(cell, bytes, first)
    }

    /// Owner: a `try_` charge that was stored within a window which was moved meanwhile.
    pub(crate) fn try_charge_stored(&self, cell: &Cell, bytes: usize) -> Result<(), Refusal> {
        let first = {
            let mut window = cell.window.lock();
            let surplus = self.fold(cell, &mut window);
            let held = own_load(&cell.hot.held);
            let need = window.need(held);
            let granted = need == 0 || self.try_reserve_for(cell, &mut window, need);
            if !granted && !mutant("stored_stays") {
                cell.hot.held.store(held.wrapping_sub(bytes), Ordering::Release);
            }
            self.attempted(cell, &mut window, if granted { Answer::Granted } else { Answer::Short }, surplus)
        };
        self.conclude(cell, bytes, first)
    }

    /// Anybody, shared form: a `try_` charge that the window does not cover.
    pub(crate) fn try_charge_shared_outside(&self, cell: &Cell, bytes: usize) -> Result<(), Refusal> {
        let first = self.attempt_shared(cell, bytes);
        self.conclude(cell, bytes, first)
    }

    /// Anybody, shared form: one that was stored within a window which was moved meanwhile. Others may have stored theirs
    /// too, and wait for the lock: only what this one lacks is reserved.
    pub(crate) fn try_charge_shared_stored(&self, cell: &Cell, bytes: usize) -> Result<(), Refusal> {
        let first = {
            let mut window = cell.window.lock();
            let need = window.need(cell.hot.held.fetch_add(0, Ordering::Relaxed)).min(bytes);
            let granted = need == 0 || self.try_reserve_for(cell, &mut window, need);
            if !granted {
                cell.hot.held.fetch_sub(bytes, Ordering::Release);
            }
            self.attempted(cell, &mut window, if granted { Answer::Granted } else { Answer::Short }, None)
        };
        self.conclude(cell, bytes, first)
    }

    fn attempt_owned(&self, cell: &Cell, bytes: usize) -> Attempt {
        let mut window = cell.window.lock();
        let surplus = self.fold(cell, &mut window);
        let held = own_load(&cell.hot.held);
        let answer = match held.checked_add(bytes) {
            Some(new) if new <= cell.most_bytes() => {
                let need = window.need(new);
                if need == 0 || self.try_reserve_for(cell, &mut window, need) {
                    // Relaxed: as every charge.
                    cell.hot.held.store(new, Ordering::Relaxed);
                    Answer::Granted
                } else {
                    Answer::Short
                }
            }
            _ => Answer::Refused,
        };
        self.attempted(cell, &mut window, answer, surplus)
    }

    fn attempt_shared(&self, cell: &Cell, bytes: usize) -> Attempt {
        let mut window = cell.window.lock();
        // Only who holds the lock raises it by an attempt now; charges and releases go on.
        close(cell);
        fence(Ordering::SeqCst);
        let mut held = cell.hot.held.fetch_add(0, Ordering::Relaxed);
        let answer = loop {
            let new = match held.checked_add(bytes) {
                Some(new) if new <= cell.most_bytes() => new,
                _ => break Answer::Refused,
            };
            let need = window.need(new).min(bytes);
            if need > 0 && !self.try_reserve_for(cell, &mut window, need) {
                break Answer::Short;
            }
            match cell.hot.held.compare_exchange(held, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break Answer::Granted,
                // What was reserved for nothing goes back when the window is settled.
                Err(seen) => held = seen,
            }
        };
        self.attempted(cell, &mut window, answer, None)
    }

    /// The end of an attempt, also of one that was refused: a fold may have moved the window.
    fn attempted(&self, cell: &Cell, window: &mut Window, answer: Answer, surplus: Option<usize>) -> Attempt {
        let ahead = match answer {
            Answer::Granted => Ahead::Full,
            Answer::Refused => Ahead::Share,
            // Nothing is taken ahead of what somebody else may need.
            Answer::Short => Ahead::Nothing,
        };
        let settled = self.publish(cell, window, ahead, 0);
        Attempt { answer, settled: Settled { surplus, ..settled } }
    }

    /// Reserves `bytes` for `cell`, unless that passes what it may reserve up to.
    fn try_reserve(&self, cell: &Cell, bytes: usize) -> bool {
        let Some(sum) = self.ledger.try_reserve(bytes, self.top_bytes(cell)) else { return false };
        // The top falls when others use less of the reserve, and they say so before they give back: a sum that lacks their
        // bytes has to be looked at with the top that lacks them too.
        if cell.has_arena() && sum > self.top_bytes(cell) && !mutant("reserve_checked_before_only") {
            self.ledger.give_back(bytes);
            return false;
        }
        true
    }

    /// Reserves what `cell` needs, and lets its reach say so.
    fn try_reserve_for(&self, cell: &Cell, window: &mut Window, need: usize) -> bool {
        let granted = self.try_reserve(cell, need) || mutant("over_the_limit");
        if granted {
            window.ahead = window.ahead.saturating_add(need);
        }
        granted
    }

    /// After a first attempt: the answer, or a second attempt once all idle credit is back. Under no lock.
    fn conclude(&self, cell: &Cell, bytes: usize, first: Attempt) -> Result<(), Refusal> {
        let Attempt { mut answer, mut settled } = first;
        if answer == Answer::Short {
            let again = || match cell.form {
                Form::Owned => self.attempt_owned(cell, bytes),
                Form::Shared => self.attempt_shared(cell, bytes),
            };
            let second = if !self.ledger.all_closed() {
                let (moved, second) = self.calling_back(again);
                settled.moved = settled.moved.wrapping_add(moved);
                Some(second)
            } else {
                // Closed since the first look, perhaps, and what was given back then is there now.
                (!mutant("no_second_look")).then(again)
            };
            if let Some(second) = second {
                (answer, settled) = (second.answer, settled.and(second.settled));
            }
        }
        let granted = if answer == Answer::Granted { bytes } else { 0 };
        self.taken_back_by_panic(cell, granted, || self.after_settling(cell, settled));
        match answer {
            Answer::Granted => Ok(()),
            Answer::Refused if bytes > MAX_BYTES || cell.cap().is_none() => Err(Refusal::Overflow),
            Answer::Refused => Err(Refusal::WriterCap),
            Answer::Short if self.keeps_reserve_from(cell, bytes) => Err(Refusal::Reserve),
            Answer::Short => Err(Refusal::HardLimit),
        }
    }

    /// The limit itself has room for `bytes`, and the reserve is why they were refused.
    fn keeps_reserve_from(&self, cell: &Cell, bytes: usize) -> bool {
        let hard = self.settings.hard_limit_bytes();
        self.top_bytes(cell) < hard && self.ledger.reserved_bytes().saturating_add(bytes) <= hard
    }

    /// Closes every window, and runs `then` while nobody takes ahead. Answers how the lagged sum moved, too: who called
    /// decides when no lock is held.
    fn calling_back<R>(&self, then: impl FnOnce() -> R) -> (isize, R) {
        let _calling = self.credit.calling.lock();
        self.credit.state.store(CALLING, Ordering::Relaxed);
        let (moved, _) = self.settle_list(Ahead::Nothing, |_| true);
        let answer = then();
        self.credit.state.store(TIGHT, Ordering::Relaxed);
        self.loosen();
        (moved, answer)
    }

    /// What exists was recorded beyond the limit of `cell`: idle credit is called back, and what is over the hard limit then
    /// is an overdraft.
    pub(crate) fn overdrawn(&self, cell: &Cell) {
        let over = self.call_all_back(|| self.ledger.reserved_bytes().saturating_sub(self.settings.hard_limit_bytes()));
        if over > 0 {
            self.ledger.overdrawn(over);
            self.telemetry.overdrawn(&cell.name, over);
        }
    }

    /// More is reserved than may be since a limit fell, or since bytes went to writers that can spill: idle credit is called
    /// back, or it could still be used: a writer would take again what it gives back within its window.
    pub(crate) fn call_back_if_over(&self) {
        if self.ledger.reserved_bytes() > self.least_top_bytes() {
            self.call_all_back(|| ());
        }
    }

    /// Every window closed, and none open until there is room; `then` runs while nobody takes ahead. Under no lock.
    fn call_all_back<R>(&self, then: impl FnOnce() -> R) -> R {
        if self.credit.is_short() && self.ledger.all_closed() {
            return then();
        }
        let (moved, answer) = self.calling_back(then);
        self.after_publish(moved);
        answer
    }

    /// The line leaves too little for a window: idle windows are called back, once for each time that this comes about, and
    /// again if much is ahead. The asker has its own already.
    pub(crate) fn call_idle_back(&self, asker: &Cell) {
        let ahead = self.ledger.reserved_bytes().saturating_sub(self.ledger.published_bytes());
        let much = ahead > self.least_window_bytes().saturating_mul(2 * self.deal.seats());
        if !self.barrier || (!much && self.credit.called.load(Ordering::Relaxed)) {
            return;
        }
        self.credit.called.store(true, Ordering::Relaxed);
        // One at a time: who comes meanwhile goes on with its least window.
        let Some(calling) = self.credit.calling.try_lock() else { return };
        let (moved, _) = self.settle_list(Ahead::Nothing, |cell| cell.id != asker.id);
        drop(calling);
        self.after_publish(moved);
    }
}

impl Cell {
    /// What the writer may hold at most.
    fn most_bytes(&self) -> usize {
        self.cap_bytes.load(Ordering::Relaxed).min(MAX_BYTES)
    }
}
