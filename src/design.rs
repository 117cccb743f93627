//! Invariants and protocols, for whoever changes this crate. Docs only.
//!
//! # Words
//!
//! **held**: bytes a writer has charged. **arena**: the part of held that a spill frees. **persistent**: held minus arena.
//! **in flight**: arena bytes whose spill is asked for or running. **published**: the process-wide lagged sum. **exact**: the
//! sum of the writers' own totals. **quantum**: the size at which a writer publishes. **room**: how far a total may move
//! before it publishes: one byte less than the quantum. **granted**: all rooms together, which is the **lag bound**.
//! **reserved**: published, and what writers may add before they ask again (**credit**, a window's `ahead`).
//! **line**: the lagged sum above which somebody has to decide. **overage**: bytes to give back.
//!
//! # Invariants
//!
//! 1. *Conservation.* At every instant a cell's total is its charges minus its releases; published is the sum of what the
//!    cells have published; after the last drop all of it is exactly 0.
//! 2. *Lag.* |exact - published| <= granted, and the one change that each owner is making right now.
//! 3. *Reserved.* exact <= reserved, but for the one change that each owner is making. What a `try_` call is granted is
//!    reserved before, and never past the hard limit.
//! 4. *One writer.* Only its owner stores a cell's `held`. Everything else about a cell is written under its lock.
//! 5. *Quiet.* Without pressure a change takes no lock, no locked instruction and no system call. A quantum costs the cell's
//!    own lock (free) and one add on a shared line; a block costs a fence and two loads of lines that are rarely written.
//! 6. *Nobody is missed.* A notification that arrives during a decision makes the decider go round again.
//! 7. *Covered once.* Bytes in flight are read from the arenas' words and from nowhere else.
//! 8. *No user code under a lock.* Selectors, signal sources, wakers, subscribers and recorders are called with no lock held; a
//!    selector, source or waker that panics is told of and harms nobody else.
//! 9. *Bounded.* What is kept to say why does not grow with time, writers or names: 64 records, 48 names in each, 256 bytes a
//!    name, so less than 1 MiB a limiter. Nothing is formatted unless somebody was asked, or a shortfall began.
//!
//! # Imports
//!
//! `limit` uses `sync`, `units`, `error`, `telemetry` and nothing else; `telemetry` knows `limit`'s values but not its
//! workings; `selector` and `signal` know nobody. `membarrier` is known to `sync` alone.
//!
//! # A change (cell.rs)
//!
//! Owner: load `held`; add; store `held`; compiler fence; load one end of the window; compare. A charge looks at `hi`, a
//! release at `lo`. Outside: the slow path. **Store first, check then**: with the order reversed somebody who closes the
//! window in between would miss the change. A `try_` charge looks at `try_hi` before it stores, so that an amount which
//! will be refused is never seen.
//!
//! # Settling (window.rs)
//!
//! Under the cell's lock: take the returned bytes off `held` (owner only); reserve what is recorded above the window's reach;
//! raise `granted` if the room grows, or keep the room; count the window as open if it was closed; reserve what it takes
//! ahead; add the difference to `published`; set the window; lower `granted` if the room shrank; give back what was reserved
//! and is not used; count the window as closed if it has no room, last. Then, without the lock, look whether that took the
//! sum over the line.
//!
//! What somebody else finds above the reach is an attempt, or a charge, whose owner waits for the lock: it is neither
//! published nor reserved, he does that himself or takes it back.
//!
//! Bytes dropped without the owner: add to `returned` under the lock; publish at once unless the cell has room for it.
//! Half of a cell's room goes to `returned` once such a drop has been seen.
//!
//! The shared form changes `held` by locked operations, so its window is closed first, by everybody: close, fence, load
//! `held`, settle, open. Who changes it meanwhile comes to the slow path, and finds under the lock that the window covers
//! it, or settles for his own bytes only: another's attempt may still be refused.
//!
//! # Credit and the line (credit.rs)
//!
//! Room above is what is left below the line (budget and in flight) and the hard limit. A window takes ahead at most the
//! left bytes divided by twice the seats, so that windows shrink as the line comes near. Where that is less than a least
//! window (4 KiB) a writer that charges gets the least window all the same, past the line and not past the hard limit, and
//! idle windows are called back, once for each time that the line comes near: so the lagged sum is right but for a least
//! window of each writer that ran since, and crossing the line is seen at the block that does it. With a fixed quantum windows
//! do not shrink, and a decision may be late by the lag bound.
//!
//! # The hard limit (credit.rs)
//!
//! 1. A `try_` charge within the window: store, fence, look at `hi`. It was moved: take the lock; reserve, or take the
//!    bytes back out of `held`.
//! 2. Outside: under the lock, reserve what is above the reach by compare-exchange, then store. Nothing is stored before.
//! 3. Nothing to reserve: give back the own credit. If no window is open, look once more, and refuse.
//! 4. Else, under the calling lock (never taken while holding a cell): *tight*, so that nobody takes ahead from here on;
//!    close every window, which gives its credit back; look once more; grant or refuse.
//! 5. While tight, windows stay closed: every change is published and every release is there for others. It ends when two
//!    windows for everybody fit below the limit, or a quarter of it is free; not while somebody is calling.
//!
//! So a refusal is honest: at some instant during the call everything reserved was held, but for changes under way, and did
//! not fit together with what was asked. A refusal when all windows are closed walks nothing.
//!
//! Charges that record what exists are reserved past the limit; what is over after credit was called back is an overdraft.
//! A transfer takes what is reserved along, so it needs no room and leaves none to others in between. Where windows cannot
//! be moved (no barrier) none is opened while there is a hard limit.
//!
//! A limit that changes: store it; move every window; if more is reserved than may be, close every window as in step 4. The
//! last is needed because a cell may reserve by the old limit after others were moved by the new one; from then on, and
//! after every charge recorded past the limit, windows are tight.
//!
//! The reserve keeps writers with an arena below the limit less what is not used of it by those without: they have a sum of
//! their own (`apart`). The line is lower by the same. Who gives back lowers `apart` first and then what is reserved; who
//! reserves for a writer looks at `apart` again afterwards, and takes it back if the two do not go together. With its first
//! arena, and when bytes go over to it, a writer lowers `apart` at once; what is over then is called back, and decided on.
//!
//! # Workspaces (workspace.rs, workspace_cell.rs)
//!
//! A workspace has no account and no window: it is a count and a budget, beside an account that is charged as ever. It does
//! not hold its reporter, and cannot be used without one: [`Reporter::within`](crate::Reporter::within) takes both by
//! reference, so the one thread that may change the account is the one that changes the count. Used is `own + elsewhere`,
//! wrapping: `own` by plain instructions, `elsewhere` by locked ones (drops without the account, an arena's block). Neither is
//! folded into the other, so nothing is locked and a change has no slow path.
//!
//! A `try_` call asks the workspace, then the account, and then counts: the account is the last that can refuse, so there is
//! nothing to take back. In between the workspace can only get emptier. Growing goes account, workspace, reservation;
//! shrinking goes back: the parts are never above the whole. Arenas go up first (as for the decision), their workspace
//! last.
//!
//! Reservations and arenas keep the count alive and know it, or none: it is part of who they belong to. The last one gives
//! back what is left, which can only have been charged by hand: growing a reservation within a workspace therefore looks,
//! in release builds too, whether it came through it. One that came through a workspace and is grown past it is not
//! looked at (that is the hot path of everybody else); it leaves the workspace below zero, which reads as 0, and the account
//! right.
//!
//! # Dealing rooms (deal.rs)
//!
//! Rooms are dealt from the lag budget for a number of seats, a power of two. A joiner for whom there is no seat doubles
//! the number, moves every window to the smaller room, and then takes its own. A window never grows by what cannot be
//! granted, so the sum of the rooms stays within the lag budget under every interleaving; who finds nothing to be granted
//! publishes every change until there is.
//!
//! # Moving somebody else's window (moving.rs)
//!
//! Lock; `hi = 0`, `lo = MAX`; process-wide barrier; load `held`; publish on the owner's behalf; new window; unlock. A
//! change that missed the closed window has stored `held` before the barrier, so the load sees it; a change after it comes
//! to the slow path and waits for the lock. One barrier serves 64 cells. Where the system has no such barrier nothing is
//! moved but by its owner ([`Effective::process_barrier`](crate::Effective::process_barrier) says so): the lag bound holds
//! all the same, and a quantum that was changed reaches an idle writer with its next slow path.
//!
//! # Exact reads (cell.rs, registry.rs)
//!
//! `returns` says whether bytes were ever given back here without the owner. No, before and after `held` was read: then `held`
//! is the total. Yes: take the cell's lock, under which `returned` stands still, and read both. (Looking at `returned`
//! itself, without the lock, is not enough: bytes that are dropped and charged anew between the two loads count twice.) A transfer between
//! cells takes the transfer lock, counts itself as begun, changes both sides without running anybody's code, and counts
//! itself as done; a walk that finds begun and done apart goes again, and the third time it takes the lock. A walk gives
//! each cell at some instant. It is not a snapshot.
//!
//! # Deciding (decide.rs)
//!
//! Notifier: store the arena, or publish; fence; load `alert`, `published`, `line`. If there is pressure: `pending` + 1; who
//! saw 0 decides. During a shortfall all that can be asked is asked, so only an arena that can be asked now is news, and the
//! sum's return below the budget. A spill that ends, and an arena that leaves, always come here: they may have been counted on.
//!
//! Decider: (1) all words; (2) all arenas; (3) all cells; (4) overage = the largest of held over budget, system memory
//! short, process over its limit, minus what is in flight; (5) victims by the selector; (6) compare-exchange each from the
//! word of step 1 to requested; one that lost counts as covered this time, its owner is at it and will notify; one that won
//! is read again after a fence, and if it is smaller than in step 2, go to 1 after step 7 (its owner stores, fences, looks
//! whether it is asked, and notifies then); (7) store
//! `line` (budget plus in flight) and `alert` (a shortfall lasts); fence; if either was tightened go to 1, since a notifier
//! may have read the looser one; (8) compare-exchange `pending` from what was seen to 0, or go to 1.
//!
//! When the lagged sum is over the line and the walk is not, releases are held back somewhere: their windows are moved.
//!
//! Owner's finish: `held` down, arena down, word idle with the next generation, notify. So a decider that reads the word in
//! flight may find the arena down already and counts it for less; one that reads it idle finds all of it down.
//!
//! The lagged sum decides *when*; with a fixed quantum that is late by at most the lag bound. The exact walk decides *how
//! much*, so that nobody is asked for bytes that are gone.
//!
//! # Between two walks (between.rs)
//!
//! With more than 256 arenas a walk leaves behind who is in flight and who is next. Until notifications have paid for
//! another walk (four writers each), decisions read those in flight again, take the lagged sum for what is held, and ask the
//! next in order; each is looked at before, and asked by compare-exchange from the word of that look. If nobody is left, they
//! walk. The line, `calm` (up to which pressure from outside is covered) and `alert` are stored and looked at again as after a
//! walk. While everybody who can be asked is asked, an arena that becomes eligible is asked by its own owner. A spill that
//! began by itself since the walk is not seen as in flight: then somebody may be asked early.
//!
//! # Reconciling (reconcile.rs)
//!
//! Every sum moves under the lock of the cell it moves for. Transfers kept away, every cell locked, nobody joining or
//! leaving: then the sums are what the cells say, to the byte, or have drifted.
//!
//! # Panics (unwind.rs)
//!
//! User code runs after the words of a change are stored, under no lock: subscribers, recorders. Its panic reaches the
//! caller. A charge is then taken back, quietly, and an arena that grew for it shrinks again: a call that does not return
//! has taken nothing. A release stands, and what had to follow it follows.
//!
//! # Locks
//!
//! In this order, none of them while user code runs: `calling` (credit); dealing; transfers; `moving`; the lists; a cell's
//! window. Nobody takes two windows but under `moving`. In `spill`: a slot's opening lock; the seats; a slot's file.
//!
//! # Why (record.rs, explain.rs)
//!
//! A decision that asked somebody, or with which a shortfall began, leaves a record: the look (sum, lag, budget, floor,
//! source), the victims, and who was passed over for which reason. Every live arena of the look is either asked or counted
//! under exactly one reason: in flight, below the floor, exempt, not needed (in this order, the one that lasts longest
//! first), or chosen and faster than the decider. The largest sixteen are found in one pass over the decider's own copy of
//! the look; their cells are looked up under the list's read lock, and their names are made after it. A record is kept when
//! the decision's own state goes back: a reader meanwhile sees all records before it, and a subscriber that panics loses
//! that one record and nothing else. A decision between two walks looks at nobody but those it asks, and says so.
//!
//! A refusal is numbers and a kind. Whoever wants to know more asks [`explain`](crate::GlobalMemoryLimiter::explain), which
//! walks: cells for the sum and the three that hold most, then arenas for what can be spilled and what is in flight.
//!
//! # Where bytes go (spill/, a feature)
//!
//! Imports: `spill` uses `limit`'s public values, `units`, `error`, `sync` and `telemetry`; nobody but its users knows it. All
//! system calls go through `spill::files`, so every one of them can be made to fail.
//!
//! **A folder and its owner (folder/).** 1. A creator creates the owner file beside the folder-to-be, locks it, looks whether
//! the name still leads to the file that it has locked, writes the magic, and only then creates the folder. If the lock is
//! taken or the name leads elsewhere, a sweeper was faster, and the next number is tried. 2. A sweeper locks each owner file
//! that it can: a lock that is taken is a living owner's; else the owner is dead, or has no folder yet. With the lock held it
//! removes the folder, then the owner file. 3. An owner removes its folder first and its owner file last. So no folder is
//! without an owner file but where files cannot be locked; there nobody sweeps.
//!
//! **Disk space.** Taken from the quota before it is written, then charged if the folder is in memory; a refused charge gives
//! the quota back. What fails to be cut or removed stays counted, because it is there.
//!
//! **Spool and runs (spool/, run/).** 1. One append-only file a writer: header with a random identity, then runs; every
//! check-sum begins with that identity, the run's serial and the block's number. 2. A run: buffers and the list's growth are
//! charged, blocks are taken from the quota and written, the last write holds the rest and the seal; only then is the run in
//! the list. 3. A run that fails: the first error is kept, the file is cut to the end of the last sealed run, or removed.
//! 4. If the cut fails the file takes no more runs. 5. Nothing of it is ever synced: it will be deleted, and a write that was
//! lost is noticed by a check-sum.
//!
//! **Merge (merge/).** A pass merges contiguous groups, oldest first; outputs are kept apart until the pass ends, or fails, and
//! the list is then outputs followed by the rest: the order never changes, so a retry gives the same. A group is consumed only
//! when its output is sealed; its whole pages then go back by holes, and the quota with them. Memory that is refused: fewer
//! readers (never below two), then smaller blocks, then another pass, then the error. An earmark is charged before it is
//! needed and spent first, so the flush that makes room asks nobody.
//!
//! **Publish (publish/).** 1. Missing parents are created; what a killed replacement left under the third name is put back if
//! the place is empty. 2. Temporary folders whose lock is free are removed, the parent synced before the first of them: it may
//! be what was replaced, under a name that is not durable yet. That is why these are not owned folders as above. 3. The new
//! folder is created, locked and looked at again. 4. Everything is written; what is in it has to be what was added. 5. Each
//! file is synced once, then inner folders, then the folder. Whatever fails ends the publication for ever: nothing is synced a
//! second time, a retry has new files. 6. The old folder is locked; names are exchanged, or the old one gets the third name
//! first. 7. The parent is synced, and those of created folders; if that fails names go back. 8. Only then is the old content
//! removed, and success returned. Readers ask for the place, else the third name, else the place again.
//!
//! **Shared descriptors (read/).** 1. A reader pins its slot by a shared lock, reads, lets go, passes a fence, looks at `waiting`.
//! 2. Without a file it takes the slot's opening lock and looks again; takes a free seat, or the hand goes round and passes
//! over what was read since or is pinned; the emptied file is closed before the new one is opened; versions are compared;
//! the slot is filled and pinned, and only then has the seat. 3. If all are pinned: add to `waiting`, fence, look once more,
//! sleep under the seats' lock. Either it sees the pin gone or the reader sees it waiting. A closer only tries.
//!
//! **Several sources (read/).** The first is asked unless it rests. On an error the destination is put back and the others are
//! asked in order, those that rest last; none twice in a request. After a failed call a source rests for a hundred requests;
//! a wrong check-sum says nothing of other places. The first error is the one told.
//!
//! # Every atomic
//!
//! | word | written by | ordering | pairs with | model (`src/tests/loom`) |
//! |---|---|---|---|---|
//! | `Hot::held`, charge | owner | Relaxed | published by settling | `windows`, `who_sees_a_published_amount` |
//! | `Hot::held`, release | owner | Release | exact read, Acquire | `who_sees_bytes_free` |
//! | `Hot::held`, shared | all, locked | Relaxed up, Release down, then a fence | the fence in settling | `publish_against_publish` |
//! | `Hot::{lo, hi, try_hi}` | holder of the cell's lock | Relaxed | barrier, lock | `windows` |
//! | `Cell::returned` | holder of the cell's lock | Relaxed | the lock | `fold_against_exact_read` |
//! | `Cell::returns` | holder of the cell's lock, once | Relaxed, then a Release fence | the exact read's Acquire of `held` | `drop_and_charge_against_exact_read` |
//! | `Cell::handles` | handles | Relaxed up, AcqRel down | the last one | `drop_against_exact_read` |
//! | `Cell::{arenas, cap_bytes, slot}` | owner; registry under its lock | Relaxed | numbers only | none needed |
//! | `Ledger::published` | holder of a cell's lock | AcqRel, after `held` | readers, Acquire | `who_crosses_the_line` |
//! | `Ledger::reserved` | holder of a cell's lock | AcqRel | itself, by compare-exchange | `credit_taken_against_*` |
//! | `Ledger::open` | holder of a cell's lock | AcqRel, before credit is taken, after it is back | who is refused, Acquire | `a_second_look_at_the_pool` |
//! | `Ledger::{granted, apart, peaks}` | holder of a cell's lock | AcqRel; Relaxed | numbers only | `joiner_against_hoarder` |
//! | `Credit::state` | who calls back | Relaxed, before any cell's lock | the cells' locks | `nobody_takes_ahead_*` |
//! | `Credit::called` | anybody | Relaxed | a hint | none needed |
//! | `Registry::transfers_begun` | transfer | Relaxed, then a Release fence | the walk's Acquire reads | `transfer_against_exact_read` |
//! | `Registry::transfers_done` | transfer | Release | the walk's first load, Acquire | `transfer_against_exact_read` |
//! | `Registry::{live, next_id}` | registry | Relaxed | numbers only | none needed |
//! | `Deal::seats` | holder of the deal lock | Relaxed | the cells' locks, taken after it | `joiner_against_*` |
//! | `ArenaCell::word`, request | decider | AcqRel | owner's begin | `request_against_*` |
//! | `ArenaCell::bytes`, down, then a SeqCst fence | owner | Release | the decider's fence after a request | `request_against_shrinking` |
//! | `ArenaCell::word`, begin, leave | owner | AcqRel | decider, Acquire | `request_against_*` |
//! | `ArenaCell::word`, idle | owner | Release | decider, Acquire | `finish_against_pressure`, `begin_and_finish` |
//! | `ArenaCell::bytes` | owner | Release | decider, Acquire, after the words | `finish_against_pressure` |
//! | `ArenaCell::{generation, runs, exempt_until_ms}` | owner | Relaxed | before the word's Release | none needed |
//! | `WorkspaceCell::own` | who has workspace and account | Relaxed | itself | none needed |
//! | `WorkspaceCell::elsewhere` | all, locked | Relaxed up, Release down | the next grant, Acquire | `who_is_granted_sees_bytes_free` |
//! | `Decider::pending` | all | AcqRel | itself | `notification_during_a_decision` |
//! | `Decider::{system_short, process_over}` | notifier | Relaxed | `pending` | none needed |
//! | `Decider::rests` | decider | Relaxed | a hint | none needed |
//! | `Decider::{line, calm, alert}` | decider | AcqRel, then a SeqCst fence | the notifier's SeqCst fence | `growth_against_*` |
//! | settings | anybody | Relaxed | each a number of its own | none needed |
//! | `Cache::waiting` (spill) | who waits for a descriptor | Relaxed, then a SeqCst fence | the reader's fence after its pin | `who_waits_for_a_descriptor_is_woken` |
//! | `Slot::{used, seat}`, quotas, counts (spill) | anybody; the seats' lock | Relaxed | numbers and hints only | none needed |
//!
//! # Models
//!
//! Two or three threads, one contested act, the real code with small numbers. Loom 0.7.3 takes only the last access of a
//! word as a store's dependency: a single writer that loads its word and then stores it hides every order from it. So the
//! owner reads its own words unsynchronised in a model (`sync::own_load`), or keeps its own copy (an arena's generation),
//! and shared words are read by a read-modify-write before a compare-exchange. In a model the owner's compiler fence is a
//! full fence, because the process-wide barrier needs one on both sides; every model that is not about the barrier runs
//! without it, or it would hide what the notifier's fence is for.
//!
//! Each model asserts the set of outcomes that it saw, and each protocol has mutants (`sync::mutant`) that must fail.
