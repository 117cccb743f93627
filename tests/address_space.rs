//! B29: an arena whose addresses end is asked to spill before they do, nothing wraps, and the document in progress is not
//! lost. No real memory: the numbers are made up.
mod common;

use common::{fixed, spill_if_asked};
use plimsoll::{GIB, MIB, Refusal};

#[test]
fn an_arena_is_asked_before_its_address_space_ends_and_its_document_goes_on() {
    for end in [2 * GIB, 4 * GIB - 1, 4 * GIB, 4 * GIB + 1] {
        let limiter = fixed().unlimited().floor_bytes(usize::MAX).build().expect("a valid configuration");
        let reporter = limiter.reporter("writer");
        let mut arena = reporter.arena_with_address_space("postings", end);
        assert_eq!(arena.max_bytes(), end);
        let margin = end / 32;
        let mut at = 0;
        while !arena.spill_requested() {
            at += 32 * 1_024;
            arena.set_bytes(&reporter, at);
            assert!(at <= end - margin + 32 * 1_024, "asked at {at} of {end}");
        }
        assert!(at > end - margin, "not before {} of {end}", end - margin);
        // The document in progress goes on to its end, in blocks that are asked for, within the margin.
        for _ in 0..100 {
            arena.try_grow_bytes(&reporter, 32 * 1_024).expect("the margin holds a document");
        }
        let rest = end - arena.bytes();
        let refused = arena.try_grow_bytes(&reporter, rest + 1).expect_err("past the end");
        assert_eq!((refused.kind, refused.limit_bytes), (Refusal::ArenaAddressSpace, end));
        assert_eq!((refused.asked_bytes, refused.held_bytes), (rest + 1, arena.bytes()));
        assert_eq!(limiter.held_bytes(), arena.bytes(), "a refusal changes nothing");
        arena.try_grow_bytes(&reporter, rest).expect("exactly to the end");
        assert_eq!(spill_if_asked(&mut arena, &reporter), Some(end), "the floor does not matter here");
        assert_eq!((limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0));
        arena.set_bytes(&reporter, 32 * 1_024);
        assert!(!arena.spill_requested());
    }
}

#[test]
fn an_arena_without_an_end_of_its_own_passes_4_gib_without_a_wrap() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena("postings");
    for bytes in [2 * GIB - 1, 2 * GIB, 4 * GIB - 1, 4 * GIB, 4 * GIB + 1, 64 * GIB] {
        arena.set_bytes(&reporter, bytes);
        assert_eq!((arena.bytes(), reporter.held_bytes(), limiter.held_bytes()), (bytes, bytes, bytes));
        assert!(!arena.spill_requested());
        assert_eq!(limiter.snapshot().writers[0].arena_bytes(), bytes);
    }
    assert_eq!(arena.max_bytes(), (1 << 40) - 1, "the effective end is readable");
    arena.set_bytes(&reporter, 1 << 40);
    assert!(arena.spill_requested(), "its end is what one word can say is in flight");
    assert_eq!(limiter.snapshot().in_flight_bytes, 1 << 40);
    assert_eq!(arena.try_grow_bytes(&reporter, 1).expect_err("past the end").kind, Refusal::ArenaAddressSpace);
    assert_eq!(arena.try_grow_bytes(&reporter, usize::MAX).expect_err("no wrap").kind, Refusal::ArenaAddressSpace);
    assert_eq!(spill_if_asked(&mut arena, &reporter), Some(1 << 40));
}

#[test]
fn a_failed_spill_at_the_end_of_the_address_space_is_asked_for_again_at_the_next_block() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena_with_address_space("postings", 64 * MIB);
    arena.set_bytes(&reporter, 63 * MIB);
    drop(arena.begin_spill(&reporter).expect("asked for"));
    assert!(!arena.spill_requested());
    arena.set_bytes(&reporter, 63 * MIB + 1);
    assert!(arena.spill_requested(), "its end does not wait for a back-off");
}

#[test]
fn an_address_space_of_nothing_refuses_the_first_block() {
    let limiter = fixed().unlimited().build().expect("a valid configuration");
    let reporter = limiter.reporter("writer");
    let mut arena = reporter.arena_with_address_space("postings", 0);
    assert_eq!(arena.try_grow_bytes(&reporter, 1).expect_err("no address").kind, Refusal::ArenaAddressSpace);
    arena.try_grow_bytes(&reporter, 0).expect("nothing is no growth");
    assert!(arena.begin_own_spill(&reporter).is_none());
    assert!(!arena.spill_requested());
}
