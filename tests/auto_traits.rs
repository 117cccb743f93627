//! The table of auto traits in the crate's page, type by type.
use plimsoll::*;
use static_assertions::{assert_impl_all as yes, assert_not_impl_any as no};
use std::panic::{RefUnwindSafe, UnwindSafe};

yes!(GlobalMemoryLimiter: Send, Sync, UnwindSafe, RefUnwindSafe, Clone);
yes!(ClosedLimiter: Send, Sync, UnwindSafe, RefUnwindSafe);
yes!(Reporter: Send, UnwindSafe, RefUnwindSafe);
no!(Reporter: Sync, Clone);
yes!(SharedReporter: Send, Sync, UnwindSafe, RefUnwindSafe, Clone);
yes!(Reservation: Send, Sync, UnwindSafe, RefUnwindSafe);
no!(Reservation: Clone);
yes!(Workspace: Send, UnwindSafe, RefUnwindSafe);
no!(Workspace: Sync, Clone);
yes!(WorkspaceAccount<'static, Reporter>: UnwindSafe, RefUnwindSafe, Copy);
no!(WorkspaceAccount<'static, Reporter>: Send, Sync);
no!(WorkspaceAccount<'static, SharedReporter>: Send, Sync);
yes!(ArenaHandle: Send, Sync, UnwindSafe, RefUnwindSafe);
no!(ArenaHandle: Clone);
no!(SpillGuard<'static>: Send, Sync, UnwindSafe, Clone);
no!(Replacement<'static, Reporter>: Send, Sync, UnwindSafe, Clone);
yes!(Replacement<'static, SharedReporter>: Send, Sync);
no!(Replacement<'static, SharedReporter>: UnwindSafe, Clone);
yes!(LimiterBuilder: Send, Sync);
no!(LimiterBuilder: UnwindSafe, Clone);
yes!(ScriptedSignals: Send, Sync, UnwindSafe, RefUnwindSafe);
yes!(dyn SpillSelector: Send, Sync);
yes!(dyn SignalSource: Send, Sync);

yes!(LargestFirst: Send, Sync, UnwindSafe, Copy);
yes!(ArenaView: Send, Sync, UnwindSafe, Copy);
yes!(Pressure: Send, Sync, UnwindSafe, Copy);
yes!(PressureSource: Send, Sync, UnwindSafe, Copy);
yes!(Decision: Send, Sync, UnwindSafe, Clone);
yes!(PassedOver: Send, Sync, UnwindSafe, Copy);
yes!(PassedOverCounts: Send, Sync, UnwindSafe, Copy);
yes!(Explanation: Send, Sync, UnwindSafe, Clone);
yes!(Shortfall: Send, Sync, UnwindSafe, Copy);
yes!(plimsoll::Drift: Send, Sync, UnwindSafe, Copy);
yes!(Snapshot: Send, Sync, UnwindSafe, Clone);
yes!(WriterSnapshot: Send, Sync, UnwindSafe, Clone);
yes!(ArenaSnapshot: Send, Sync, UnwindSafe, Clone);
yes!(Stats: Send, Sync, UnwindSafe, Copy);
yes!(Effective: Send, Sync, UnwindSafe, Copy);
yes!(Origin: Send, Sync, UnwindSafe, Copy);
yes!(Bytes: Send, Sync, UnwindSafe, Copy);
yes!(Refusal: Send, Sync, UnwindSafe, Copy);
yes!(ReserveError: Send, Sync, UnwindSafe, Copy, std::error::Error);
yes!(ConfigError: Send, Sync, UnwindSafe, Copy, std::error::Error);
yes!(InstallError: Send, Sync, UnwindSafe, Copy, std::error::Error);

/// What the assertions above cannot say: none of the owned types borrows anything.
#[test]
fn owned_types_are_static() {
    fn is_static<T: 'static>() {}
    is_static::<GlobalMemoryLimiter>();
    is_static::<ClosedLimiter>();
    is_static::<LimiterBuilder>();
    is_static::<Reporter>();
    is_static::<SharedReporter>();
    is_static::<Reservation>();
    is_static::<Workspace>();
    is_static::<ArenaHandle>();
    is_static::<ScriptedSignals>();
    is_static::<Snapshot>();
    is_static::<Effective>();
    is_static::<Explanation>();
}

/// What the table promises, used: a writer's panic is caught with everything it has by reference.
#[test]
fn a_writer_can_be_caught_with_what_it_has_by_reference() {
    let limiter = GlobalMemoryLimiter::builder().unlimited().build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let caught = std::panic::catch_unwind(|| {
        let _scratch = reporter.reserve(1_000);
        assert_eq!(limiter.held_bytes(), 0, "the writer's own panic");
    });
    assert!(caught.is_err());
    assert_eq!((reporter.held_bytes(), limiter.held_bytes()), (0, 0));
}
