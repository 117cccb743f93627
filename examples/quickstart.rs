//! Eight writers of one index under a budget: each takes blocks, and spills when it is asked.
//!
//! `cargo run --example quickstart`

use plimsoll::{Bytes, GlobalMemoryLimiter, KIB, MIB};
use std::sync::atomic::{AtomicUsize, Ordering};

const BLOCK: usize = 64 * KIB;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = GlobalMemoryLimiter::builder().name("quickstart").budget_bytes(16 * MIB).floor_bytes(MIB).build()?;
    println!("{}\n", limiter.effective());
    let spilled = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 1..=8 {
            let (limiter, spilled) = (&limiter, &spilled);
            scope.spawn(move || {
                let reporter = limiter.reporter(&format!("writer {number}"));
                let mut arena = reporter.arena("postings");
                let mut blocks: Vec<Vec<u8>> = Vec::new();
                for _ in 0..100 * number {
                    blocks.push(vec![number as u8; BLOCK]);
                    arena.set_bytes(&reporter, blocks.len() * BLOCK);
                    if arena.spill_requested()
                        && let Some(spill) = arena.begin_spill(&reporter)
                    {
                        // A real writer writes a sorted run here.
                        spilled.fetch_add(spill.bytes(), Ordering::Relaxed);
                        blocks.clear();
                        spill.finish(0);
                    }
                }
                if number == 8 {
                    println!("{}", limiter.snapshot());
                }
            });
        }
    });
    let stats = limiter.stats();
    println!(
        "{} spills of {} in all, at most {} held at once, {} held now",
        stats.forced_spills,
        Bytes(spilled.into_inner()),
        Bytes(stats.peak_held_bytes),
        Bytes(limiter.held_bytes())
    );
    Ok(())
}
