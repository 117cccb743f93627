//! The process's own limiter. One test, because there is one such limiter in a process.
use plimsoll::{ConfigError, GlobalMemoryLimiter, InstallError, MIB, Origin};

#[test]
fn the_process_wide_limiter_is_unlimited_then_installed_once_and_adjustable_later() {
    let before = GlobalMemoryLimiter::global();
    assert_eq!((before.budget_bytes(), before.effective().budget_bytes), (None, (None, Origin::Default)));
    let early = before.reporter("early");
    let mut arena = early.arena("postings");
    arena.set_bytes(&early, 50 * MIB);
    assert!(!arena.spill_requested());

    let invalid = GlobalMemoryLimiter::install_global(GlobalMemoryLimiter::builder().budget_bytes(0));
    assert_eq!(invalid.err(), Some(InstallError::Config(ConfigError::ZeroBudget)));
    assert_eq!(before.budget_bytes(), None, "nothing was installed");

    let builder = || GlobalMemoryLimiter::builder().name("mine").budget_bytes(40 * MIB).floor_bytes(MIB);
    let installed = GlobalMemoryLimiter::install_global(builder()).expect("the first one");
    assert!(std::ptr::eq(installed, before), "it is the same limiter");
    assert_eq!((installed.budget_bytes(), installed.held_bytes()), (Some(40 * MIB), 50 * MIB));
    assert!(arena.spill_requested(), "what was held before counts at once");
    assert_eq!(installed.snapshot().limiter, "global", "its name stays");

    let second = GlobalMemoryLimiter::install_global(builder().budget_bytes(MIB));
    assert_eq!(second.err(), Some(InstallError::AlreadyInstalled));
    assert_eq!(installed.budget_bytes(), Some(40 * MIB), "the first one's settings stay");
    let second = GlobalMemoryLimiter::install_global(GlobalMemoryLimiter::builder().budget_bytes(0));
    assert_eq!(second.err(), Some(InstallError::Config(ConfigError::ZeroBudget)));

    installed.set_budget_bytes(100 * MIB).expect("valid");
    installed.set_writer_cap_bytes(Some(60 * MIB)).expect("valid");
    let late = GlobalMemoryLimiter::global().reporter("late");
    assert_eq!(
        (installed.budget_bytes(), late.cap_bytes(), early.cap_bytes()),
        (Some(100 * MIB), Some(60 * MIB), Some(60 * MIB))
    );
    assert_eq!(installed.effective().floor_bytes, (MIB, Origin::Option));
    installed.set_unlimited();
    let clone = installed.clone();
    drop((arena, early, late));
    assert_eq!((clone.held_bytes(), clone.published_bytes(), clone.live_reporters()), (0, 0, 0));
}
