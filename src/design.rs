//! Invariants and protocols.
