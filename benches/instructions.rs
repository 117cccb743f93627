//! How many instructions a change costs: exact and repeatable, also on a busy machine.
//!
//! `cargo bench --bench instructions` runs itself under `valgrind --tool=callgrind`, each operation as a loop of two
//! lengths; the difference of the two, less the same for an empty loop, is what one operation costs inlined. Budget,
//! writer cap and a window are set. It ends with an error when an operation is above its limit.

use plimsoll::{ArenaHandle, GIB, GlobalMemoryLimiter, KIB, MIB, Reporter, Reservation, SharedReporter, Workspace};
use std::hint::black_box;
use std::process::{Command, ExitCode};

/// Name, operations a round, limit in instructions (0: printed only), the round.
struct Operation {
    name: &'static str,
    per_round: f64,
    limit: f64,
    run: fn(&Reporter, &SharedReporter, &mut Reservation, &mut ArenaHandle, &mut Within, u64),
}

/// A workspace, and a reservation that came through it.
type Within = (Workspace, Reservation);

struct Bench {
    reporter: Reporter,
    shared: SharedReporter,
    reservation: Reservation,
    arena: ArenaHandle,
    within: Within,
}

impl Bench {
    fn new() -> Self {
        let limiter = GlobalMemoryLimiter::builder()
            .budget_bytes(2 * GIB)
            .floor_bytes(MIB)
            .writer_cap_bytes(512 * MIB)
            .build()
            .expect("the configuration is valid");
        let reporter = limiter.reporter("bench");
        reporter.charge(64 * KIB);
        let shared = limiter.shared_reporter("shared");
        shared.charge(64 * KIB);
        let reservation = reporter.reserve(64 * KIB);
        let mut arena = reporter.arena("arena");
        arena.set_bytes(&reporter, 32 * KIB);
        let workspace = reporter.workspace("workspace", 32 * MIB);
        let through_it = reporter.within(&workspace).reserve(64 * KIB);
        reporter.flush();
        Bench { reporter, shared, reservation, arena, within: (workspace, through_it) }
    }

    fn run(&mut self, operation: &Operation, rounds: u64) {
        let Bench { reporter, shared, reservation, arena, within } = self;
        (operation.run)(reporter, shared, reservation, arena, within, rounds);
    }
}

macro_rules! operations {
    ($($name:literal, $per_round:literal, $limit:literal, |$hands:pat, $n:ident| $body:block;)*) => {
        &[$({
            // By reference each, as a writer's methods have them; black_box could change what is reached through `Bench`.
            #[inline(never)]
            fn run(reporter: &Reporter, shared: &SharedReporter, reservation: &mut Reservation, arena: &mut ArenaHandle, within: &mut Within, rounds: u64) {
                let $hands = (reporter, shared, reservation, arena, within);
                for round in 0..rounds {
                    let $n = black_box((round.wrapping_mul(37) & 63) as usize);
                    $body
                }
            }
            Operation { name: $name, per_round: $per_round, limit: $limit, run }
        }),*]
    };
}

const OPERATIONS: &[Operation] = operations! {
    "empty loop", 1.0, 0.0, |_, n| { black_box(n); };
    "charge, release", 2.0, 7.0, |(reporter, ..), n| { reporter.charge(n); reporter.release(n); };
    "try_charge, release", 2.0, 9.0, |(reporter, ..), n| { if reporter.try_charge(n).is_ok() { reporter.release(n); } };
    "reservation grow, shrink", 2.0, 9.0, |(reporter, _, reservation, ..), n| {
        reservation.grow(reporter, n);
        reservation.shrink(reporter, n);
    };
    "reservation try_grow, shrink", 2.0, 11.0, |(reporter, _, reservation, ..), n| {
        if reservation.try_grow(reporter, n).is_ok() { reservation.shrink(reporter, n); }
    };
    "reservation resize, up or down", 1.0, 10.0, |(reporter, _, reservation, ..), n| { reservation.resize(reporter, n); };
    "arena set_bytes, unchanged", 1.0, 7.0, |(reporter, _, _, arena, _), n| { arena.set_bytes(reporter, 32 * KIB + (n >> 6)); };
    "spill_requested", 1.0, 3.0, |(_, _, _, arena, _), n| { black_box(n); if arena.spill_requested() { black_box(()); } };
    "workspace charge, release", 2.0, 14.0, |(reporter, .., (workspace, _)), n| {
        let account = reporter.within(workspace);
        account.charge(n);
        account.release(n);
    };
    "workspace grow, shrink", 2.0, 20.0, |(reporter, .., (workspace, reservation)), n| {
        let account = reporter.within(workspace);
        reservation.grow(&account, n);
        reservation.shrink(&account, n);
    };
    "workspace try_grow, shrink", 2.0, 28.0, |(reporter, .., (workspace, reservation)), n| {
        let account = reporter.within(workspace);
        if reservation.try_grow(&account, n).is_ok() { reservation.shrink(&account, n); }
    };
    "shared charge, release", 2.0, 0.0, |(_, shared, ..), n| { shared.charge(n); shared.release(n); };
};

const ROUNDS: [u64; 2] = [10_000, 110_000];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, index, rounds] = arguments.as_slice()
        && flag == "--loop"
    {
        let operation = &OPERATIONS[index.parse::<usize>().expect("an index")];
        Bench::new().run(operation, rounds.parse().expect("a number of rounds"));
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--test") {
        // `cargo test --benches`: that every loop runs is all that is asked.
        let mut bench = Bench::new();
        OPERATIONS.iter().for_each(|operation| bench.run(operation, 100));
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    let mut empty = 0.0;
    println!("{:32} {:>12} {:>8}", "operation", "instructions", "limit");
    for (index, operation) in OPERATIONS.iter().enumerate() {
        let Some(counts) = counts(index) else {
            eprintln!("instructions: valgrind does not run here (Debian package valgrind)");
            return ExitCode::FAILURE;
        };
        let round = (counts[1] - counts[0]) as f64 / (ROUNDS[1] - ROUNDS[0]) as f64;
        if index == 0 {
            empty = round;
        }
        let one = (round - empty) / operation.per_round;
        let over = operation.limit > 0.0 && one > operation.limit;
        failed |= over;
        let limit = if operation.limit > 0.0 { format!("{:.1}", operation.limit) } else { "-".into() };
        println!("{:32} {one:>12.2} {limit:>8}{}", operation.name, if over { "  ABOVE" } else { "" });
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Instructions of the whole process for both lengths of the loop.
fn counts(index: usize) -> Option<[u64; 2]> {
    let mut counts = [0; 2];
    for (count, rounds) in counts.iter_mut().zip(ROUNDS) {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--loop", &index.to_string(), &rounds.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("Collected :"))?;
        *count = line.rsplit(' ').next()?.parse().ok()?;
    }
    Some(counts)
}
