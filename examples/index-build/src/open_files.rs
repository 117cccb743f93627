//! How many files the process may have open at once. Builds and readers of an index ask it before they keep files open.

/// The system's limit; without one, the largest number.
#[cfg(unix)]
pub(crate) fn most_open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// A number that every system allows.
#[cfg(not(unix))]
pub(crate) fn most_open_files() -> usize {
    512
}
