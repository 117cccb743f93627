//! Counts nothing, and costs nothing: every call is empty and inlined.
use crate::accounting::{Account, Charge, Meter, Mode, Spilling, Why};

/// The mode `off`, and its account and meter.
#[derive(Debug, Default, Clone, Copy)]
pub struct Off;

impl Charge for Off {
    #[inline(always)]
    fn charge(&mut self, _: usize) {}
    #[inline(always)]
    fn release(&mut self, _: usize) {}
}

impl Account for Off {
    #[inline(always)]
    fn term_begins(&mut self) {}
    #[inline(always)]
    fn term_ends(&mut self) {}
}

impl Spilling for Off {
    #[inline(always)]
    fn finish(self) {}
}

impl Meter for Off {
    type Account = Off;
    type Spilling<'a> = Off;
    #[inline(always)]
    fn account(&mut self) -> &mut Off {
        self
    }
    #[inline(always)]
    fn set_arena(&mut self, _: usize) {}
    #[inline(always)]
    fn new_term(&mut self) {}
    #[inline(always)]
    fn spill_requested(&self) -> bool {
        false
    }
    fn begin_spill(&mut self, _: Why) -> Option<Off> {
        Some(Off)
    }
}

impl Mode for Off {
    type Account = Off;
    type Meter = Off;
    fn account(&self, _: &str) -> Off {
        Off
    }
    fn meter(&self, _: &str, _: &Self::Account) -> Off {
        Off
    }
    fn held_bytes(&self) -> usize {
        0
    }
}
