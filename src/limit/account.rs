//! What a reservation can be changed through: the owner's form, or the shared one, as it is or within a workspace.

use super::cell::Handle;
use super::reporter::Reporter;
use super::shared::SharedReporter;
use super::workspace_cell::WorkspaceCell;
use crate::error::ReserveError;
use std::sync::Arc;

mod sealed {
    use super::{Arc, Handle, ReserveError, WorkspaceCell};

    /// Not nameable outside, so nobody else can implement [`Account`](super::Account).
    pub trait Sealed {
        /// Whether [`workspace`](Self::workspace) answers one.
        #[doc(hidden)]
        const IN_WORKSPACE: bool = false;
        #[doc(hidden)]
        fn add(&self, bytes: usize);
        /// Without its workspace, if it is within one.
        #[doc(hidden)]
        fn add_to_account(&self, bytes: usize) {
            self.add(bytes);
        }
        #[doc(hidden)]
        fn sub_charged(&self, bytes: usize);
        #[doc(hidden)]
        fn try_add(&self, bytes: usize) -> Result<(), ReserveError>;
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "the trait is sealed")]
        fn handle(&self) -> &Handle;
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "the trait is sealed")]
        fn workspace(&self) -> Option<&Arc<WorkspaceCell>> {
            None
        }
    }
}
pub(crate) use sealed::Sealed;

/// A [`Reporter`], a [`SharedReporter`], or one of them within a workspace
/// ([`WorkspaceAccount`](crate::WorkspaceAccount)): what a [`Reservation`](crate::Reservation) is changed through.
pub trait Account: Sealed {}

impl Account for Reporter {}
impl Account for SharedReporter {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl Sealed for Reporter {
    #[inline(always)]
    fn add(&self, bytes: usize) {
        self.handle.0.charge(bytes);
    }
    #[inline(always)]
    fn sub_charged(&self, bytes: usize) {
        self.handle.0.release_charged(bytes);
    }
    #[inline(always)]
    fn try_add(&self, bytes: usize) -> Result<(), ReserveError> {
        self.try_charge(bytes)
    }
    #[inline(always)]
    fn handle(&self) -> &Handle {
        &self.handle
    }
}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl Sealed for SharedReporter {
    #[inline(always)]
    fn add(&self, bytes: usize) {
        self.handle.0.charge_shared(bytes);
    }
    #[inline(always)]
    fn sub_charged(&self, bytes: usize) {
        self.handle.0.release_shared(bytes);
    }
    #[inline(always)]
    fn try_add(&self, bytes: usize) -> Result<(), ReserveError> {
        self.try_charge(bytes)
    }
    #[inline(always)]
    fn handle(&self) -> &Handle {
        &self.handle
    }
}
