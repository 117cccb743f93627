//! What can be done, and how often.

use proptest::prelude::*;

/// A public call, or a few that belong together. The order matters: see [`Op::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    // Of nobody in particular.
    Register,
    RegisterShared,
    Settle,
    Poll,
    Reconcile,
    SetBudget,
    SetHardLimit,
    SetReserve,
    SetFloor,
    SetCap,
    SetLag,
    SetQuantum,
    // Of an account.
    Charge,
    ChargeElsewhere,
    Release,
    TryCharge,
    TryHuge,
    Reserve,
    TryReserve,
    Flush,
    DropReporter,
    DropWriter,
    // Of a reservation.
    Grow,
    TryGrow,
    Shrink,
    Resize,
    TryResize,
    Split,
    Take,
    Merge,
    Free,
    FreeElsewhere,
    FreeWith,
    DropReservation,
    DropElsewhere,
    Transfer,
    TransferElsewhere,
    TransferAway,
    ReplaceCommit,
    ReplaceDrop,
    TryReplace,
    // Of an arena.
    Arena,
    SetBytes,
    SetBytesElsewhere,
    TryGrowBytes,
    Spill,
    SpillFails,
    OwnSpill,
    OwnSpillFails,
    DropArena,
    DropArenaElsewhere,
}
use Op::*;

/// Who has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nobody,
    Account,
    Reservation,
    Arena,
}

impl Op {
    pub(crate) fn kind(self) -> Kind {
        match self as usize {
            n if n < Charge as usize => Kind::Nobody,
            n if n < Grow as usize => Kind::Account,
            n if n < Arena as usize => Kind::Reservation,
            _ => Kind::Arena,
        }
    }
}

/// Every call with its weight.
const OPS: [(usize, Op); 51] = [
    (3, Register),
    (2, RegisterShared),
    (1, Settle),
    (1, Poll),
    (1, Reconcile),
    (1, SetBudget),
    (2, SetHardLimit),
    (1, SetReserve),
    (1, SetFloor),
    (1, SetCap),
    (1, SetLag),
    (1, SetQuantum),
    (4, Charge),
    (1, ChargeElsewhere),
    (4, Release),
    (4, TryCharge),
    (1, TryHuge),
    (3, Reserve),
    (4, TryReserve),
    (1, Flush),
    (1, DropReporter),
    (1, DropWriter),
    (2, Grow),
    (3, TryGrow),
    (2, Shrink),
    (2, Resize),
    (2, TryResize),
    (2, Split),
    (1, Take),
    (2, Merge),
    (1, Free),
    (1, FreeElsewhere),
    (2, FreeWith),
    (2, DropReservation),
    (1, DropElsewhere),
    (3, Transfer),
    (1, TransferElsewhere),
    (1, TransferAway),
    (1, ReplaceCommit),
    (1, ReplaceDrop),
    (2, TryReplace),
    (5, Arena),
    (12, SetBytes),
    (1, SetBytesElsewhere),
    (6, TryGrowBytes),
    (5, Spill),
    (1, SpillFails),
    (1, OwnSpill),
    (1, OwnSpillFails),
    (1, DropArena),
    (1, DropArenaElsewhere),
];

/// What to do, to whom, with how much; the numbers are taken modulo what there is.
pub(crate) type Step = (Op, usize, usize, usize);

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let all: Vec<Op> = OPS.iter().flat_map(|&(weight, op)| std::iter::repeat_n(op, weight)).collect();
    let bytes = prop_oneof![3 => 0..200_usize, 3 => 0..3_000_usize, 3 => 0..40_000_usize, 1 => 0..600_000_usize];
    let steps = prop::collection::vec((prop::sample::select(all), 0..60_usize, 0..96_usize, bytes), 1..80);
    // Half of the sequences begin with somebody there.
    (prop::bool::ANY, steps).prop_map(|(begun, steps)| {
        let begin = [(Register, 0), (Register, 0), (Arena, 0), (Arena, 1), (Register, 0), (RegisterShared, 0)];
        let begin = begin.into_iter().filter(|_| begun).map(|(op, who)| (op, who, 1, 0));
        begin.chain(steps).collect()
    })
}
