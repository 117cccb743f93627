//! Who may hold how much.
//!
//! | file | what is in it |
//! |---|---|
//! | `limiter`, `builder`, `global` | the handle, how it is made, the process's own |
//! | `reporter`, `shared`, `account`, `workspace`, `reservation`, `replacement`, `arena`, `spill` | what a writer holds in its hands |
//! | `cell`, `window`, `deal`, `credit`, `caps`, `moving`, `transfer`, `refusal`, `mistakes`, `unwind`, `workspace_cell` | one writer's words: the fast path, the slow one, how large a window is, what bounds it, who moves it |
//! | `ledger`, `registry`, `reconcile`, `core`, `settings` | what all writers of a limiter share |
//! | `arena_cell`, `decide`, `between`, `record`, `decision`, `sampling`, `selector`, `signal` | who must spill, when and why |
//! | `snapshot`, `effective`, `explain` | what an operator sees |
//!
//! Imports go from the first rows to the later ones; `selector` and `signal` know nobody.

mod account;
mod arena;
mod arena_cell;
mod between;
mod builder;
mod caps;
mod cell;
mod core;
mod credit;
mod deal;
mod decide;
mod decision;
mod effective;
mod explain;
mod global;
mod ledger;
mod limiter;
mod mistakes;
mod moving;
mod reconcile;
mod record;
mod refusal;
mod registry;
mod replacement;
mod reporter;
mod reservation;
mod sampling;
mod selector;
mod settings;
mod shared;
mod signal;
mod snapshot;
mod spill;
mod transfer;
mod unwind;
mod window;
mod workspace;
mod workspace_cell;

pub use account::Account;
pub use arena::ArenaHandle;
pub use builder::LimiterBuilder;
pub use decision::{Decision, PassedOver, PassedOverCounts, PressureSource, Shortfall};
pub use effective::{Effective, Origin};
pub use explain::Explanation;
pub use limiter::{ClosedLimiter, GlobalMemoryLimiter};
pub use reconcile::Drift;
pub use replacement::Replacement;
pub use reporter::Reporter;
pub use reservation::Reservation;
pub use selector::{ArenaView, LargestFirst, SpillSelector};
pub use shared::SharedReporter;
pub use signal::{Pressure, ScriptedSignals, SignalSource};
pub use snapshot::{ArenaSnapshot, Snapshot, WriterSnapshot};
pub use spill::SpillGuard;
pub use workspace::{Workspace, WorkspaceAccount};

pub(crate) use ledger::Ledger;
