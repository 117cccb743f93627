//! A bounded number of open files for any number of readers.
//!
//! A reader's slot holds its open file, or nothing. To read, a thread pins the slot: a shared lock, which keeps the file
//! from being closed, and which nobody waits for. Who fills a slot finds nobody reading, and who would close its file only
//! tries whether it is pinned; so reads never hold up each other, nor an opening or closing, nor the other way round.
//!
//! To open, a thread needs a seat, of which there are as many as files may be open:
//!
//! 1. It takes the lock under which the slot is filled, and looks again: it may have been filled meanwhile.
//! 2. Under the lock of the seats it takes a free one, or empties one: the hand goes round, and passes over files that were
//!    read since it last came by, and over those that are pinned.
//! 3. The file of the emptied seat is closed before its own is opened.
//! 4. It fills the slot and pins it, and only then gives it the seat: its first read comes before anybody can close it.
//!
//! If all files are pinned, it waits: it says so in `waiting`, looks at all seats once more, and sleeps. Who lets go of a
//! pin looks at `waiting` afterwards. A fence on both sides stands between the store and the load, so one of them sees the
//! other: the sleeper the pin that is gone, or the reader the sleeper, which it then wakes under the lock that the sleeper
//! gave up by falling asleep. No wake-up is lost.

use super::reader::Reader;
use crate::spill::SpillResult;
use crate::spill::files::{Files, OpenFile};
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, RwLock, RwLockReadGuard, fence, mutant,
    rmw_fence,
};
use std::path::PathBuf;
use std::sync::Arc;

/// A bounded cache of open files, shared by the readers that it makes: at most so many are open at once. The one that was
/// not read for longest, roughly, is closed for the next, but none that is being read; a reader whose file was closed opens
/// it again at its next read. Clones are the same.
///
/// While all files are being read, a thread that needs another one waits for one of these reads to end.
#[derive(Debug, Clone)]
pub struct Descriptors(Arc<Cache>);

#[derive(Debug)]
struct Cache {
    files: Arc<dyn Files>,
    most: usize,
    seats: Mutex<Seats>,
    freed: Condvar,
    /// Threads that wait for a seat.
    waiting: AtomicUsize,
    /// Files closed for others.
    closed: AtomicU64,
}

#[derive(Debug, Default)]
struct Seats {
    taken: Vec<Arc<Slot>>,
    /// Seats of files that are being opened or closed.
    opening: usize,
    hand: usize,
}

/// An open file, or none.
type Place = Option<Box<dyn OpenFile>>;

/// Where a reader's open file is.
#[derive(Debug)]
struct Slot {
    file: RwLock<Place>,
    /// Held while the file is opened.
    opening: Mutex<()>,
    /// Read since the hand came by.
    used: AtomicBool,
    /// Its place among the taken seats; written under their lock.
    seat: AtomicUsize,
}

impl Descriptors {
    /// At most `most` open files, and at least one.
    pub fn new(files: Arc<dyn Files>, most: usize) -> Descriptors {
        Descriptors(Arc::new(Cache {
            files,
            most: most.max(1),
            seats: Mutex::new(Seats::default()),
            freed: Condvar::default(),
            waiting: AtomicUsize::new(0),
            closed: AtomicU64::new(0),
        }))
    }

    /// A reader of the file at `path`. Opens nothing yet.
    pub fn reader(&self, path: impl Into<PathBuf>) -> Reader {
        Reader::lent(self, path.into())
    }

    /// The system calls that files are opened with.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.0.files
    }

    /// How many files may be open at once.
    pub fn most(&self) -> usize {
        self.0.most
    }

    /// How many are open, being opened or being closed.
    pub fn open(&self) -> usize {
        let seats = self.0.seats.lock();
        seats.taken.len() + seats.opening
    }

    /// How many were closed for others so far.
    pub fn closed(&self) -> u64 {
        // Relaxed: a count only, nothing is published through it
        self.0.closed.load(Ordering::Relaxed)
    }
}

/// A reader's share in the cache.
#[derive(Debug)]
pub(super) struct Lent {
    cache: Arc<Cache>,
    slot: Arc<Slot>,
}

/// Wakes who waits for a file to be closed, when it is dropped: after a pin.
#[derive(Debug)]
struct Wake<'a>(&'a Cache);

impl Lent {
    /// The slot with its two counts, and its seat in the list.
    pub(super) const ALLOCATED_BYTES: usize = size_of::<Slot>() + 2 * size_of::<usize>() + size_of::<Arc<Slot>>();

    pub(super) fn new(descriptors: &Descriptors) -> Lent {
        let slot = Slot {
            file: RwLock::new(None),
            opening: Mutex::new(()),
            used: AtomicBool::new(false),
            seat: AtomicUsize::new(0),
        };
        Lent { cache: Arc::clone(&descriptors.0), slot: Arc::new(slot) }
    }

    /// Reads the open file.
    #[inline]
    pub(super) fn with<T>(
        &self,
        mut open: impl FnMut() -> SpillResult<Box<dyn OpenFile>>,
        read: impl FnOnce(&dyn OpenFile) -> SpillResult<T>,
    ) -> SpillResult<T> {
        // dropped in the opposite order: first the pin, then who waits for it is woken, after a panic too
        let _then = Wake(&self.cache);
        let mut pinned = self.slot.pin();
        loop {
            if let Some(file) = pinned.as_deref() {
                return read(file);
            }
            drop(pinned);
            pinned = self.open(&mut open)?;
        }
    }

    #[cold]
    fn open(
        &self,
        open: &mut dyn FnMut() -> SpillResult<Box<dyn OpenFile>>,
    ) -> SpillResult<RwLockReadGuard<'_, Place>> {
        let _one_at_a_time = self.slot.opening.lock();
        let pinned = self.slot.pin();
        if pinned.is_some() {
            return Ok(pinned);
        }
        drop(pinned);
        let seat = self.cache.seat();
        let file = open()?;
        *self.slot.file.write() = Some(file);
        let pinned = self.slot.pin();
        seat.take(&self.slot);
        Ok(pinned)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut seats = self.cache.seats.lock();
        let file = self.slot.file.write().take();
        if file.is_some() {
            seats.leave(&self.slot);
            // closed before its seat is free, and not under the lock of the seats
            seats.opening += 1;
            let seat = Seat { cache: &self.cache, taken: false };
            drop(seats);
            drop(file);
            drop(seat);
        }
    }
}

impl Slot {
    #[inline]
    fn pin(&self) -> RwLockReadGuard<'_, Place> {
        let pinned = self.file.read();
        // Relaxed: a hint for the hand; looked at first, so that readers on many threads do not write it all the time
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        pinned
    }

    /// Its file, unless it is pinned.
    fn close(&self) -> Place {
        self.file.try_write().and_then(|mut file| file.take())
    }
}

impl Seats {
    fn leave(&mut self, slot: &Slot) {
        // Relaxed: written and read under the lock of the seats
        let seat = slot.seat.load(Ordering::Relaxed);
        self.taken.swap_remove(seat);
        if let Some(moved) = self.taken.get(seat) {
            moved.seat.store(seat, Ordering::Relaxed);
        }
    }

    /// Takes a seat for a file that is about to be opened; what was open there comes back, to be closed before. None if
    /// every file is being read.
    fn empty(&mut self, most: usize) -> Option<Place> {
        if self.taken.len() + self.opening < most {
            self.opening += 1;
            return Some(None);
        }
        // the first time round, files that were read lately are passed over; the second time none is
        for step in 0..2 * self.taken.len() {
            self.hand = (self.hand + 1) % self.taken.len();
            let slot = Arc::clone(&self.taken[self.hand]);
            // Relaxed: a hint
            if slot.used.swap(false, Ordering::Relaxed) && step < self.taken.len() {
                continue;
            }
            if let Some(file) = slot.close() {
                self.leave(&slot);
                self.opening += 1;
                return Some(Some(file));
            }
        }
        None
    }
}

impl Cache {
    /// A seat for a file that is about to be opened, and room for it.
    fn seat(&self) -> Seat<'_> {
        let mut seats = self.seats.lock();
        let emptied = match seats.empty(self.most) {
            Some(emptied) => emptied,
            None => self.wait(seats, |seats| seats.empty(self.most)),
        };
        if let Some(file) = emptied {
            // Relaxed: a count only, nothing is published through it
            self.closed.fetch_add(1, Ordering::Relaxed);
            drop(file);
        }
        Seat { cache: self, taken: false }
    }

    #[cold]
    fn wait<T>(&self, mut seats: MutexGuard<'_, Seats>, mut ready: impl FnMut(&mut Seats) -> Option<T>) -> T {
        // Relaxed: the fence orders it before the look at the seats; see the module
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if !mutant("wait_unordered") {
            fence(Ordering::SeqCst);
        }
        let found = loop {
            if let Some(found) = ready(&mut seats) {
                break found;
            }
            seats = self.freed.wait(seats);
        };
        // Relaxed: who still sees it wakes nobody
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        found
    }

    #[cold]
    fn wake(&self) {
        let _asleep = self.seats.lock();
        self.freed.notify_all();
    }
}

impl Drop for Wake<'_> {
    #[inline]
    fn drop(&mut self) {
        // a pin goes by a locked operation, which comes before the look at who waits: see the module
        rmw_fence();
        // Relaxed: ordered by the fence
        if self.0.waiting.load(Ordering::Relaxed) != 0 {
            self.0.wake();
        }
    }
}

/// A seat that no slot has yet. Given back if the file does not open.
struct Seat<'a> {
    cache: &'a Cache,
    taken: bool,
}

impl Seat<'_> {
    fn take(mut self, slot: &Arc<Slot>) {
        let mut seats = self.cache.seats.lock();
        seats.opening -= 1;
        // Relaxed: written and read under the lock of the seats
        slot.seat.store(seats.taken.len(), Ordering::Relaxed);
        seats.taken.push(Arc::clone(slot));
        self.taken = true;
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if !self.taken {
            self.cache.seats.lock().opening -= 1;
            self.cache.freed.notify_all();
        }
    }
}
