//! What several benches use: figures, alternating rounds, contenders, and threads with work between the changes.
//! `benches/peers` uses it too, as a module by its path.

#![allow(dead_code, reason = "each bench uses a part of it")]

pub(crate) mod alternate;
pub(crate) mod contend;
pub(crate) mod contenders;
pub(crate) mod figures;
pub(crate) mod options;
pub(crate) mod work;
