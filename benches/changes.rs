//! What one change costs, in nanoseconds: alone on its thread, with budget, hard limit and cap set and none of them near.
//!
//! `cargo bench --bench changes`, some ten seconds; `-- --only mix` for some of the lines. Processor time over an empty loop,
//! alternating rounds, medians with the least and the most (`common/alternate.rs`). The mix of a term is one change of the
//! arena, three growths and one release of a reservation. Target: 0.56 ns over the mix, 2.0 ns for the shared form.

mod common;

use common::alternate::{Length, Loop, compare};
use common::contenders::{
    After, CHANGES, Contender, InOneSum, Nothing, OwnAtomic, Plimsoll, PlimsollBlocks, PlimsollTry, Shared,
    ThreadLocal, limiter, terms,
};
use common::options::Options;
use plimsoll::{ArenaHandle, GlobalMemoryLimiter, KIB, MIB, Reporter, Reservation, SharedReporter, Workspace};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

/// What a writer has in its hands.
struct Hands {
    reporter: Reporter,
    reservation: Reservation,
    arena: ArenaHandle,
    workspace: Workspace,
    within: Reservation,
    shared: SharedReporter,
}

impl Hands {
    fn new(limiter: &GlobalMemoryLimiter) -> Self {
        let reporter = limiter.reporter("writer");
        let reservation = reporter.reserve(64 * KIB);
        let mut arena = reporter.arena("postings");
        arena.set_bytes(&reporter, 32 * KIB);
        let workspace = reporter.workspace("workspace", 32 * MIB);
        let within = reporter.within(&workspace).reserve(64 * KIB);
        let shared = limiter.shared_reporter("account");
        shared.charge(64 * KIB);
        reporter.flush();
        shared.flush();
        Hands { reporter, reservation, arena, workspace, within, shared }
    }
}

/// A loop around one operation, compiled by itself. The hands go in by reference each, as a writer's methods have them.
macro_rules! operation {
    ($limiter:expr, $name:literal, $changes:literal, $target:expr, |$hands:ident, $n:ident| $body:block) => {{
        #[inline(never)]
        fn run($hands: &mut Hands, times: u64) {
            for time in 0..times {
                let $n = black_box((time.wrapping_mul(37) & 63) as usize);
                $body
            }
        }
        let mut hands = Hands::new($limiter);
        Loop { name: $name, changes: $changes, target_ns: $target, run: Box::new(move |times| run(&mut hands, times)) }
    }};
}

/// The mix of a term, two terms each time round.
fn mix<'a>(name: &'static str, target_ns: Option<f64>, mut contender: impl Contender + 'a) -> Loop<'a> {
    let run = move |times| terms(&mut contender, times);
    Loop { name, changes: 2.0 * CHANGES as f64, target_ns, run: Box::new(run) }
}

fn main() {
    let options = Options::from_command_line();
    options.announce("cargo bench --bench changes --");
    let length = match options.test() {
        true => Length { rounds: 1, slice: Duration::from_micros(20) },
        false => Length { rounds: 201, slice: Duration::from_millis(1) },
    };
    let limiter = limiter();
    let sum = || Arc::new(AtomicI64::new(0));

    println!("\nthe mix: one change of the arena, three growths, one release");
    let mut loops = vec![
        Loop { changes: 1.0, ..mix("empty loop, itself", None, Nothing::<0>) },
        mix("empty loop, compiled twice", None, Nothing::<1>),
        mix("mix: plimsoll", Some(0.56), Plimsoll::new(&limiter)),
        mix("mix: plimsoll, again", Some(0.56), Plimsoll::new(&limiter)),
        mix("mix: plimsoll, may be refused", None, PlimsollTry(Plimsoll::new(&limiter))),
        mix("mix: plimsoll, arena in blocks", None, PlimsollBlocks::new(&limiter)),
        mix("mix: shared form", Some(2.0), Shared::new(limiter.shared_reporter("account"))),
        mix("mix: reference after", None, After::new(&sum())),
        mix("mix: own line, atomic add", None, InOneSum(OwnAtomic::new())),
        mix("mix: thread-local buffer", None, InOneSum(ThreadLocal(sum()))),
        mix("mix: one mutex, nobody else there", None, InOneSum(Arc::new(Mutex::new(0)))),
    ];
    keep(&mut loops, &options);
    compare(&mut loops, length);

    println!("\nalone");
    let limiter = &limiter;
    let mut loops = vec![
        operation!(limiter, "empty loop, itself", 1.0, None, |_hands, n| {
            black_box(n);
        }),
        operation!(limiter, "empty loop, compiled twice", 1.0, None, |_hands, n| {
            black_box(n + 1);
        }),
        operation!(limiter, "charge, release", 2.0, None, |hands, n| {
            hands.reporter.charge(n);
            hands.reporter.release(n);
        }),
        operation!(limiter, "try_charge, release", 2.0, None, |hands, n| {
            if hands.reporter.try_charge(n).is_ok() {
                hands.reporter.release(n);
            }
        }),
        operation!(limiter, "reservation grow, shrink", 2.0, None, |hands, n| {
            hands.reservation.grow(&hands.reporter, n);
            hands.reservation.shrink(&hands.reporter, n);
        }),
        operation!(limiter, "reservation try_grow, shrink", 2.0, None, |hands, n| {
            if hands.reservation.try_grow(&hands.reporter, n).is_ok() {
                hands.reservation.shrink(&hands.reporter, n);
            }
        }),
        operation!(limiter, "reservation resize, up or down", 1.0, None, |hands, n| {
            hands.reservation.resize(&hands.reporter, n);
        }),
        operation!(limiter, "workspace grow, shrink", 2.0, None, |hands, n| {
            let account = hands.reporter.within(&hands.workspace);
            hands.within.grow(&account, n);
            hands.within.shrink(&account, n);
        }),
        operation!(limiter, "arena set_bytes, same block", 1.0, None, |hands, n| {
            hands.arena.set_bytes(&hands.reporter, 32 * KIB + (n >> 6));
        }),
        operation!(limiter, "spill_requested", 1.0, None, |hands, n| {
            black_box(n);
            if hands.arena.spill_requested() {
                black_box(());
            }
        }),
        operation!(limiter, "shared charge, release", 2.0, Some(2.0), |hands, n| {
            hands.shared.charge(n);
            hands.shared.release(n);
        }),
    ];
    keep(&mut loops, &options);
    compare(&mut loops, length);
}

/// The two empty loops, and what is asked for.
fn keep(loops: &mut Vec<Loop<'_>>, options: &Options) {
    let mut number = 0;
    loops.retain(|one| {
        number += 1;
        number <= 2 || options.wants("--only", one.name)
    });
}
