//! The process's own limiter.

use super::builder::LimiterBuilder;
use super::limiter::GlobalMemoryLimiter;
use super::settings::{Wanted, resolve};
use crate::error::InstallError;
use crate::sync::{AtomicBool, Ordering};
use once_cell::sync::Lazy;

static GLOBAL: Lazy<(GlobalMemoryLimiter, AtomicBool)> = Lazy::new(|| {
    let builder = LimiterBuilder::new().name("global");
    let resolved = resolve(&Wanted::new()).expect("an unlimited limiter without options is valid");
    (builder.into_limiter(&resolved), AtomicBool::new(false))
});

impl GlobalMemoryLimiter {
    /// The process's own limiter: unlimited until [`install_global`](Self::install_global), adjustable by its `set_`
    /// methods afterwards, never destroyed.
    pub fn global() -> &'static GlobalMemoryLimiter {
        &GLOBAL.0
    }

    /// Gives the process's own limiter its options, once. Reporters that exist already are counted in it as before. Its
    /// name stays `global`.
    ///
    /// # Errors
    ///
    /// [`InstallError`]: installed before, or a configuration that cannot work. Nothing has changed then.
    pub fn install_global(builder: LimiterBuilder) -> Result<&'static GlobalMemoryLimiter, InstallError> {
        // Before the one installation is used up.
        resolve(&builder.wanted)?;
        let (limiter, installed) = &*GLOBAL;
        if installed.swap(true, Ordering::AcqRel) {
            return Err(InstallError::AlreadyInstalled);
        }
        limiter.core().install(builder)?;
        Ok(limiter)
    }
}
