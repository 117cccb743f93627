//! What accounting costs many flush threads: 200 ns of work and five changes a term, with 1, 2, 8, 30 and 100 threads.
//!
//! `cargo bench --bench contention`, some two minutes. `-- --threads 1,2`, `-- --only plimsoll,mutex` (parts of names, whole
//! ones after `=`; nothing is always there) and `-- --rounds 9` do less. Targets: at most +0.5 % at one and two threads, and inside the
//! noise (nothing, compiled twice) above.
//!
//! | contender | what it does for a change |
//! |---|---|
//! | `nothing`, `nothing again` | no accounting |
//! | `plimsoll` | a reporter and a reservation; the arena's bytes by charge and release |
//! | `plimsoll, arena in blocks` | the same; the arena grows, tells of each block of 32 KiB, and spills at 2 MiB |
//! | `plimsoll, may be refused` | the same by `try_` calls |
//! | `shared form, one each` | plimsoll's form for several threads, and nobody to share it with |
//! | `shared form, one for all` | the same account for all threads |
//! | `reference before` | a lock and a look-up a term, two shared atomics for each change of a reservation |
//! | `reference after` | a total a writer by compare-exchange, differences published at 1 MiB |
//! | `one shared atomic`, `one mutex` | one sum for all |
//! | `thread-local buffer` | 4 MiB in thread-local memory, then one atomic |
//!
//! # Nothing is shared while there is headroom
//!
//! The run fails if `plimsoll` published, notified, decided or walked even once: these are the only ways from a change to
//! anything shared. Its threads' waits (voluntary context switches) are shown beside. System calls from outside:
//!
//! ```sh
//! bench=$(cargo bench --bench contention --no-run 2>&1 | sed -n 's/.*(\(.*\))$/\1/p')
//! events=task-clock,context-switches,syscalls:sys_enter_futex,raw_syscalls:sys_enter
//! for only in none =plimsoll '=one mutex'; do perf stat -e $events "$bench" --threads 8 --only "$only"; done
//! ```
//!
//! Every contender's threads start, wait for one another and end. `none` are the two nothings; each of the others adds one
//! contender, so whatever it adds above half of `none` is its own.

mod common;

use common::contend::{Entry, compare};
use common::contenders::{
    After, Before, InOneSum, Nothing, Plimsoll, PlimsollBlocks, PlimsollTry, Shared, ThreadLocal, Totals, limiter,
};
use common::options::Options;
use std::process::ExitCode;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

fn main() -> ExitCode {
    let options = Options::from_command_line();
    options.announce("cargo bench --bench contention --");
    let (limiter, blocks, shared) = (limiter(), limiter(), limiter());
    let account = shared.shared_reporter("for all");
    let totals = Arc::<Totals>::default();
    let sum = || Arc::new(AtomicI64::new(0));
    let (published, one, mutex, behind) = (sum(), sum(), Arc::new(Mutex::new(0)), sum());
    let entries = [
        Entry::new("nothing", |_| Nothing::<0>),
        Entry::new("nothing again", |_| Nothing::<1>),
        Entry::counted("plimsoll", &limiter, true, |_| Plimsoll::new(&limiter)),
        Entry::counted("plimsoll, arena in blocks", &blocks, false, |_| PlimsollBlocks::new(&blocks)),
        Entry::counted("plimsoll, may be refused", &limiter, true, |_| PlimsollTry(Plimsoll::new(&limiter))),
        Entry::counted("shared form, one each", &shared, true, |_| Shared::new(shared.shared_reporter("account"))),
        Entry::counted("shared form, one for all", &shared, true, |_| Shared::new(account.clone())),
        Entry::new("reference before", |writer| Before::new(&totals, writer)),
        Entry::new("reference after", |_| After::new(&published)),
        Entry::new("one shared atomic", |_| InOneSum(Arc::clone(&one))),
        Entry::new("one mutex", |_| InOneSum(Arc::clone(&mutex))),
        Entry::new("thread-local buffer", |_| InOneSum(ThreadLocal(Arc::clone(&behind)))),
    ];
    if compare(&entries, &options) {
        ExitCode::SUCCESS
    } else {
        eprintln!("contention: accounting was not silent although there was headroom");
        ExitCode::FAILURE
    }
}
