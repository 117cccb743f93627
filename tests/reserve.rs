//! Room for those that cannot spill, when a writer changes sides, bytes go over, or what exists is recorded past it; and
//! what a refusal leaves behind. Found by `properties` and by reading.
mod common;

use common::fixed;
use plimsoll::{GlobalMemoryLimiter, KIB, MIB, Refusal};

fn limited() -> plimsoll::LimiterBuilder {
    fixed().quantum_bytes(0).unlimited().hard_limit_bytes(100 * KIB).reserve_bytes(20 * KIB)
}

/// The sum of those for whom the reserve is was that of before until the writer's next slow path.
#[test]
fn the_reserve_is_not_used_by_a_writer_from_its_first_arena_on() {
    let limiter = limited().build().expect("valid");
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    first.charge(20 * KIB);
    let _first_arena = first.arena("postings");
    let mut arena = second.arena("postings");
    let error = arena.try_grow_bytes(&second, 70 * KIB).expect_err("20 KiB are kept free beside 80 of writers");
    assert_eq!((error.kind, error.limit_bytes), (Refusal::Reserve, 80 * KIB));
    arena.try_grow_bytes(&second, 60 * KIB).expect("80 KiB are for writers");
    let reader = limiter.reporter("reader");
    reader.try_reserve(20 * KIB).expect("kept free").free_with(&reader);
    first.release(20 * KIB);
}

#[test]
fn the_reserve_is_used_by_a_writer_that_has_lost_its_last_arena() {
    let limiter = limited().build().expect("valid");
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    let mut arena = second.arena("postings");
    let last = first.arena("postings");
    first.charge(20 * KIB);
    drop(last);
    arena.try_grow_bytes(&second, 80 * KIB).expect("what the first one holds is in the reserve");
    first.release(20 * KIB);
}

#[test]
fn a_writer_with_its_first_arena_makes_no_use_of_credit_that_was_for_others() {
    let limiter = limited().quantum_bytes(30 * KIB).build().expect("valid");
    let second = limiter.reporter("second");
    let mut arena = second.arena("postings");
    arena.set_bytes(&second, 60 * KIB);
    let first = limiter.reporter("first");
    first.charge(1);
    assert!(limiter.reserved_bytes() > 80 * KIB, "it may take more without asking");
    let _first_arena = first.arena("postings");
    second.try_charge(19 * KIB).expect("79 of 80 KiB");
    assert_eq!(first.try_charge(2 * KIB).expect_err("81 of 80 KiB").kind, Refusal::Reserve);
    first.release(1);
    second.release(19 * KIB);
}

/// The line is the budget less what of the reserve is not used: no byte more is held, and it is crossed.
#[test]
fn bytes_that_go_over_to_a_writer_ask_for_a_spill_if_the_reserve_is_not_free_beside_them() {
    let limiter = limited().budget_bytes(100 * KIB).build().expect("valid");
    let (reader, writer) = (limiter.reporter("reader"), limiter.reporter("writer"));
    let mut arena = writer.arena("postings");
    arena.set_bytes(&writer, 80 * KIB);
    let mut buffer = reader.reserve(10 * KIB);
    assert!(!arena.spill_requested(), "exactly at the budget less what of the reserve is not used");
    buffer.transfer(&writer);
    assert!(arena.spill_requested(), "90 KiB of 80");
}

#[test]
fn a_writer_with_its_first_arena_asks_for_a_spill_if_the_reserve_is_not_free_beside_it() {
    let limiter = limited().budget_bytes(100 * KIB).build().expect("valid");
    let (first, second) = (limiter.reporter("first"), limiter.reporter("second"));
    first.charge(10 * KIB);
    let mut arena = second.arena("postings");
    arena.set_bytes(&second, 80 * KIB);
    assert!(!arena.spill_requested(), "exactly at the budget less what of the reserve is not used");
    let _arena = first.arena("postings");
    assert!(arena.spill_requested(), "90 KiB of 80");
    first.release(10 * KIB);
}

/// What exists is recorded past what writers may use, and below the hard limit: credit that others had taken before was
/// used all the same.
#[test]
fn credit_is_called_back_when_what_exists_is_recorded_past_the_reserve() {
    let limiter = limited().quantum_bytes(4 * KIB).build().expect("valid");
    let (first, second, reader) = (limiter.reporter("first"), limiter.reporter("second"), limiter.reporter("reader"));
    let (_first_arena, _second_arena) = (first.arena("postings"), second.arena("postings"));
    second.charge(KIB);
    first.charge(81 * KIB);
    assert_eq!(second.try_charge(KIB).expect_err("83 of 80 KiB").kind, Refusal::Reserve);
    reader.try_charge(18 * KIB).expect("what is left of the hard limit");
    assert_eq!((limiter.held_bytes(), limiter.stats().overdrafts), (100 * KIB, 0));
    first.release(81 * KIB);
    second.release(KIB);
    reader.release(18 * KIB);
}

/// An attempt that is refused shows the arena at its new size for a moment. Whoever decides then asks for it and counts on
/// all of it: the line stood that much too high for good, and nobody was asked any more.
#[test]
fn a_refused_growth_leaves_no_request_that_is_counted_on() {
    let limiter = GlobalMemoryLimiter::builder()
        .budget_bytes(50 * KIB)
        .hard_limit_bytes(MIB)
        .floor_bytes(KIB)
        .block_bytes(KIB)
        .quantum_bytes(10 * KIB)
        .build()
        .expect("valid");
    let writers: Vec<_> = (0..6).map(|_| limiter.reporter("writer")).collect();
    writers.iter().for_each(|writer| writer.charge(9 * KIB));
    assert!(limiter.published_bytes() < 50 * KIB && limiter.held_bytes() == 54 * KIB, "over, and not seen yet");
    let mut arena = writers[0].arena("postings");
    let mut other = writers[1].arena("postings");
    arena.try_grow_bytes(&writers[0], 2 * MIB).expect_err("beyond the hard limit");
    assert_eq!(limiter.snapshot().in_flight_bytes, 0, "there is nothing to spill");
    other.set_bytes(&writers[1], 20 * KIB);
    assert!(other.spill_requested(), "74 KiB of 50");
    drop((arena, other));
    writers.iter().for_each(|writer| writer.release(9 * KIB));
}

/// Where every change is published no window had to be closed, and so nobody said that credit was short: then windows were
/// opened, and a release stayed in one of them.
#[test]
fn what_is_given_back_while_over_the_limit_is_given_back_at_once() {
    let limiter = fixed().quantum_bytes(0).unlimited().hard_limit_bytes(10 * KIB).build().expect("valid");
    let reporter = limiter.reporter("writer");
    reporter.charge(11 * KIB);
    limiter.set_quantum_bytes(Some(MIB));
    reporter.release(512);
    assert_eq!((limiter.reserved_bytes(), limiter.overdraft_bytes()), (11 * KIB - 512, 512));
    limiter.set_hard_limit_bytes(Some(KIB)).expect("valid");
    reporter.release(512);
    assert_eq!(limiter.overdraft_bytes(), 9 * KIB);
    reporter.release(10 * KIB);
    assert_eq!(limiter.reserved_bytes(), 0);
}
