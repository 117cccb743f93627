//! Rooms are dealt from the lag budget, and dealt again as reporters come and go.

use plimsoll::{GIB, GlobalMemoryLimiter, KIB, MIB, Reporter};

fn reporters(limiter: &GlobalMemoryLimiter, count: usize) -> Vec<Reporter> {
    (0..count).map(|number| limiter.reporter(&format!("writer {number}"))).collect()
}

#[test]
fn up_to_64_reporters_have_a_whole_quantum_at_2_gib() {
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(2 * GIB).build().unwrap();
    let mut writers = Vec::new();
    for count in 1..=64 {
        writers.push(limiter.reporter("writer"));
        assert_eq!(limiter.effective().quantum_bytes.0, MIB, "with {count} reporters");
    }
    assert_eq!(limiter.lag_bound_bytes(), 64 * (MIB - 1));
}

/// BUGLOG B04 with the lag budget: 1,000 writers grow once to 800 KiB and stop, at a budget of 512 MiB. What they hide
/// together is bounded as a sum, and the first request comes before the budget is passed by more than that.
#[test]
fn a_thousand_writers_hide_no_more_than_the_lag_budget_together() {
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(512 * MIB).floor_bytes(MIB).build().unwrap();
    let spillable = limiter.reporter("spillable");
    let mut arena = spillable.arena("postings");
    arena.set_bytes(&spillable, 2 * MIB);
    let writers = reporters(&limiter, 1_000);
    let mut asked_at = None;
    for writer in &writers {
        for _ in 0..200 {
            writer.charge(4 * KIB);
        }
        let (held, published) = (limiter.held_bytes(), limiter.published_bytes());
        assert!(held.abs_diff(published) <= limiter.lag_bound_bytes());
        assert!(limiter.lag_bound_bytes() <= 32 * MIB, "{}", limiter.lag_bound_bytes());
        if arena.spill_requested() && asked_at.is_none() {
            asked_at = Some(held);
        }
    }
    let asked_at = asked_at.expect("the budget was passed by far");
    assert!((512 * MIB..=544 * MIB + 800 * KIB).contains(&asked_at), "asked at {asked_at}");
    assert_eq!(limiter.held_bytes(), 819_200_000 + 2 * MIB);
    writers.iter().for_each(|writer| writer.release(800 * KIB));
    drop((writers, arena, spillable));
    assert_eq!((limiter.held_bytes(), limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0, 0));
}

#[test]
fn rooms_grow_again_when_reporters_have_left() {
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(64 * MIB).build().unwrap();
    let staying = limiter.reporter("staying");
    let many = reporters(&limiter, 300);
    assert_eq!(limiter.effective().quantum_bytes.0, 4 * MIB / 512);
    staying.charge(8 * KIB);
    assert_eq!(limiter.published_bytes(), 8 * KIB, "its window was moved while it did nothing");
    drop(many);
    staying.charge(8 * KIB);
    staying.flush();
    let room = limiter.lag_bound_bytes();
    assert!(room > 512 * KIB, "{room}");
    staying.charge(room);
    assert_eq!(limiter.published_bytes(), 16 * KIB);
    staying.release(16 * KIB + room);
}

#[test]
fn below_4_kib_a_reporter_every_change_is_published() {
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(MIB).build().unwrap();
    let writers = reporters(&limiter, 32);
    assert_eq!((limiter.effective().quantum_bytes.0, limiter.lag_bound_bytes()), (0, 0));
    writers[7].charge(3);
    assert_eq!(limiter.published_bytes(), 3);
    writers[7].release(3);
}

#[test]
fn a_lag_budget_can_be_given_and_changed() {
    let limiter = GlobalMemoryLimiter::builder().unlimited().lag_bytes(64 * KIB).build().unwrap();
    let writers = reporters(&limiter, 4);
    assert_eq!(limiter.effective().quantum_bytes.0, 16 * KIB);
    assert!(limiter.lag_bound_bytes() <= 64 * KIB);
    writers[0].charge(10 * KIB);
    limiter.set_lag_bytes(Some(16 * KIB));
    if limiter.effective().process_barrier {
        assert_eq!((limiter.lag_bound_bytes(), limiter.published_bytes()), (4 * (4 * KIB - 1), 10 * KIB));
    }
    writers[0].release(10 * KIB);
}

#[test]
fn without_the_barrier_a_joiner_gets_what_others_have_left() {
    let limiter = GlobalMemoryLimiter::builder().budget_bytes(16 * MIB).without_process_barrier().build().unwrap();
    assert!(!limiter.effective().process_barrier && !limiter.settle());
    let hoarder = limiter.reporter("hoarder");
    assert_eq!(limiter.lag_bound_bytes(), MIB - 1);
    let joiner = limiter.reporter("joiner");
    joiner.charge(5);
    assert_eq!(
        (limiter.published_bytes(), limiter.lag_bound_bytes()),
        (5, MIB - 1),
        "nothing is left: published at once"
    );
    hoarder.flush();
    joiner.charge(5);
    assert_eq!(limiter.lag_bound_bytes(), 2 * (512 * KIB - 1), "the hoarder came by and gave back");
    joiner.charge(5);
    assert_eq!((limiter.published_bytes(), limiter.held_bytes()), (10, 15));
    joiner.release(15);
    drop((joiner, hoarder));
    assert_eq!((limiter.published_bytes(), limiter.lag_bound_bytes()), (0, 0));
}
