//! plimsoll tells a process what every index writer holds, to the byte, keeps the process inside its budget, and says
//! who must spill and when.
//!
//! Many writers build at once, each holding memory that only a spill to disk frees. A [`Reporter`] counts what one writer
//! holds, in words that nobody else writes: exact for everybody who asks, published process-wide in quanta. A
//! [`GlobalMemoryLimiter`] hears of an [`ArenaHandle`] only when its block size changes; above the budget it asks the
//! largest arenas to spill, and each owner does so on its own thread.
//!
//! ```
//! use plimsoll::{GlobalMemoryLimiter, KIB, MIB};
//!
//! let limiter = GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).floor_bytes(4 * MIB).writer_cap_bytes(96 * MIB).build()?;
//! let reporter = limiter.reporter("logs/message");
//! let mut arena = reporter.arena("postings");
//! let mut scratch = reporter.try_reserve(40 * KIB)?; // before it is allocated
//! scratch.try_resize(&reporter, 64 * KIB)?;
//! for block in 1..=1_000 {
//!     arena.set_bytes(&reporter, block * 128 * KIB); // once a block: the limiter may ask for a spill
//!     if arena.spill_requested()
//!         && let Some(spill) = arena.begin_spill(&reporter)
//!     {
//!         assert!(spill.bytes() >= 63 * MIB); // write the run and free the blocks here
//!         spill.finish(0);
//!         break;
//!     }
//! }
//! drop((scratch, arena, reporter));
//! assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is not counted
//!
//! What nobody charges: the allocator's own slack and fragmentation, thread stacks, the page cache behind files that are
//! written or mapped, memory of libraries without a size call. The index build of this repository charges at least 95 % of
//! what its allocator has live; leave 10 % of a budget and 10 MiB for the rest, and measure your own process.
//!
//! # Guarantees
//!
//! * A writer's total is exact at once; after the last drop every sum is exactly 0. No error, panic or refused call leaves
//!   a charge behind (`mem::forget` aside).
//! * The lagged sum differs from the exact one by at most [`GlobalMemoryLimiter::lag_bound_bytes`], and the one change that
//!   each owner is making.
//! * Near the budget the lagged sum is right but for 4 KiB of each writer that runs, so a request is not late (unless the
//!   quantum is fixed, or the system has no process-wide barrier: then by at most the lag bound).
//! * What `try_` calls are granted never passes the hard limit, under any interleaving.
//! * Without pressure a change takes no lock, no locked instruction and no system call.
//!
//! # Where to look
//!
//! [`GlobalMemoryLimiter`], [`LimiterBuilder`]: the budget. [`Reporter`], [`SharedReporter`], [`Reservation`],
//! [`Workspace`], [`ArenaHandle`], [`SpillGuard`]: a writer's side. [`SpillSelector`], [`SignalSource`]: what can be plugged in.
//! [`Snapshot`], [`Stats`], [`Effective`]: what an operator sees. [`Decision`], [`Explanation`]: why somebody was asked to
//! spill, why something was refused. [`telemetry`]: metrics and events.
//! [`design`]: invariants and protocols.
//!
//! | type | `Send` | `Sync` | `UnwindSafe` | `'static` |
//! |---|---|---|---|---|
//! | [`GlobalMemoryLimiter`], [`ClosedLimiter`] | yes | yes | yes | yes |
//! | [`Reporter`], [`Workspace`] | yes | no: one owner | yes | yes |
//! | [`SharedReporter`], [`Reservation`], [`ArenaHandle`] | yes | yes | yes | yes |
//! | [`SpillGuard`] | no: it borrows the reporter | no | no | no |
//! | [`WorkspaceAccount`] | no: it borrows both | no | yes | no |
//! | [`Replacement`] | through a [`SharedReporter`] only | as `Send` | no | no |
//! | [`LimiterBuilder`] | yes | yes | no: it may hold any selector | yes |
//! | [`ScriptedSignals`] | yes | yes | yes | yes |
//! | values: [`Snapshot`], [`Stats`], [`Effective`], [`Decision`], [`Explanation`], [`Shortfall`], [`Drift`], [`Pressure`], [`ArenaView`], [`Bytes`], what they are made of, errors | yes | yes | yes | yes |

pub mod design;
mod error;
mod limit;
mod membarrier;
#[cfg(feature = "spill")]
pub mod spill;
mod sync;
pub mod telemetry;
mod units;

#[cfg(test)]
mod tests;

pub use error::{ConfigError, InstallError, Refusal, ReserveError};
pub use limit::{
    Account, ArenaHandle, ArenaSnapshot, ArenaView, ClosedLimiter, Decision, Drift, Effective, Explanation,
    GlobalMemoryLimiter, LargestFirst, LimiterBuilder, Origin, PassedOver, PassedOverCounts, Pressure, PressureSource,
    Replacement, Reporter, Reservation, ScriptedSignals, SharedReporter, Shortfall, SignalSource, Snapshot, SpillGuard,
    SpillSelector, Workspace, WorkspaceAccount, WriterSnapshot,
};
pub use telemetry::Stats;
pub use units::{Bytes, GIB, KIB, MIB};
