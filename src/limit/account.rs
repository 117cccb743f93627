//! What a reservation can be changed through: the owner's form, or the shared one.

use super::cell::Handle;
use super::reporter::Reporter;
use super::shared::SharedReporter;

mod sealed {
    use super::Handle;

    /// Not nameable outside, so nobody else can implement [`Account`](super::Account).
    pub trait Sealed {
        #[doc(hidden)]
        fn add(&self, bytes: usize);
        #[doc(hidden)]
        fn sub_charged(&self, bytes: usize);
        #[doc(hidden)]
        fn try_add(&self, bytes: usize) -> bool;
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "the trait is sealed")]
        fn handle(&self) -> &Handle;
    }
}
pub(crate) use sealed::Sealed;

/// A [`Reporter`] or a [`SharedReporter`]: what a [`Reservation`](crate::Reservation) is changed through.
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
    fn try_add(&self, bytes: usize) -> bool {
        self.handle.0.try_charge(bytes)
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
    fn try_add(&self, bytes: usize) -> bool {
        self.handle.0.try_charge_shared(bytes)
    }
    #[inline(always)]
    fn handle(&self) -> &Handle {
        &self.handle
    }
}
