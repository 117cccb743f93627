//! Calls on an arena.

use crate::model::World;
use crate::ops::Op;
use crate::writer::{ARENA_END, elsewhere};
use plimsoll::Refusal;

impl World {
    pub(crate) fn step_of_arena(&mut self, op: Op, who: usize, which: usize, bytes: usize) {
        let writer = &mut self.writers[who];
        if op == Op::Arena {
            if let Some(reporter) = &writer.reporter
                && writer.arenas.len() < 3
            {
                writer.arenas.push((reporter.arena_with_address_space("postings", ARENA_END), 0));
            }
            return;
        }
        if writer.arenas.is_empty() {
            return;
        }
        let n = which % writer.arenas.len();
        match op {
            Op::DropArena => drop(writer.arenas.swap_remove(n)),
            Op::DropArenaElsewhere => {
                let (gone, _) = writer.arenas.swap_remove(n);
                elsewhere(move || drop(gone));
            }
            _ if writer.reporter.is_none() => {}
            Op::SetBytes | Op::SetBytesElsewhere => self.set_bytes(op, who, n, bytes),
            Op::TryGrowBytes => self.try_grow_bytes(who, n, bytes),
            Op::Spill | Op::SpillFails => self.spill(op, who, n, bytes),
            _ => self.own_spill(op, who, n, bytes),
        }
    }

    fn set_bytes(&mut self, op: Op, who: usize, n: usize, bytes: usize) {
        self.records(bytes.saturating_sub(self.writers[who].arenas[n].1), 0);
        let writer = &mut self.writers[who];
        if op == Op::SetBytes {
            let (arena, now) = &mut writer.arenas[n];
            arena.set_bytes(writer.reporter.as_ref().expect("there"), bytes);
            *now = bytes;
            return;
        }
        let reporter = writer.reporter.take().expect("there");
        let (mut arena, _) = writer.arenas.swap_remove(n);
        let (reporter, arena) = elsewhere(move || {
            arena.set_bytes(&reporter, bytes);
            (reporter, arena)
        });
        writer.reporter = Some(reporter);
        writer.arenas.push((arena, bytes));
    }

    fn try_grow_bytes(&mut self, who: usize, n: usize, bytes: usize) {
        let before = self.writers[who].arenas[n].1;
        let expected = match before + bytes <= ARENA_END {
            false => Err((before, ARENA_END, Refusal::ArenaAddressSpace)),
            true if bytes == 0 => Ok(()),
            true => self.expect(who, bytes),
        };
        let writer = &mut self.writers[who];
        let reporter = writer.reporter.as_ref().expect("there");
        let result = writer.arenas[n].0.try_grow_bytes(reporter, bytes);
        if self.answered(expected, bytes, result) {
            self.writers[who].arenas[n].1 += bytes;
        }
    }

    fn spill(&mut self, op: Op, who: usize, n: usize, bytes: usize) {
        let before = self.writers[who].arenas[n].1;
        let asked = self.writers[who].arenas[n].0.spill_requested();
        let enough = before > 0 && (before >= self.settings.floor || before > ARENA_END - ARENA_END / 32);
        let remaining = match op {
            Op::Spill => Some(bytes % (before + before / 4 + 1)),
            _ => None,
        };
        if asked && enough {
            // A buffer for the run, and what is left of the arena beside it: both exist.
            self.records(500, 0);
            self.records(remaining.map_or(0, |remaining| remaining.saturating_sub(before)), 500);
        }
        let writer = &mut self.writers[who];
        let reporter = writer.reporter.as_ref().expect("there");
        let arena = &mut writer.arenas[n];
        let right = match arena.0.begin_spill(reporter) {
            Some(spill) => {
                let right = asked && enough && spill.is_forced() && spill.bytes() == before;
                let _run_buffer = reporter.reserve(500);
                if let Some(remaining) = remaining {
                    spill.finish(remaining);
                    arena.1 = remaining;
                }
                right
            }
            None => !asked || !enough,
        };
        self.check(right, || "a spill that nobody needs, or a request that was not honoured".into());
    }

    fn own_spill(&mut self, op: Op, who: usize, n: usize, bytes: usize) {
        let writer = &mut self.writers[who];
        let reporter = writer.reporter.as_ref().expect("there");
        let arena = &mut writer.arenas[n];
        let before = arena.1;
        let began = match arena.0.begin_own_spill(reporter) {
            Some(spill) => {
                if op == Op::OwnSpill {
                    arena.1 = bytes % (before + 1);
                    spill.finish(arena.1);
                }
                true
            }
            None => false,
        };
        self.check(began == (before > 0), || "an own spill of an empty arena, or none of one that is not".into());
    }
}
