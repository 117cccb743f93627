//! The process-wide barrier of the operating system: after it, every running thread of the process has passed a full
//! fence. It is what lets an owner's change do without one. Linux has it; elsewhere `register` says no, and windows are
//! then moved by their owners alone.
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{issue, register};

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{issue, register};
