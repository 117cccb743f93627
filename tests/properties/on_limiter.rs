//! Calls on the limiter itself.

use crate::model::World;
use crate::ops::{Kind, Op, Step};
use crate::settings::{Budget, Settings};
use crate::writer::Writer;
use plimsoll::{ConfigError, GlobalMemoryLimiter, MIB};

impl World {
    pub(crate) fn step(&mut self, (op, who, which, bytes): Step) {
        if op.kind() == Kind::Nobody {
            return self.step_of_limiter(op, which, bytes);
        }
        if self.writers.is_empty() {
            return self.register(false, None);
        }
        let who = who % self.writers.len();
        let bytes = match op {
            Op::Charge | Op::TryCharge | Op::Reserve | Op::TryReserve => self.near(which, bytes),
            // With them `which` is one of several.
            Op::Grow | Op::TryGrow | Op::TryReplace | Op::TryGrowBytes => self.near(which / 8, bytes),
            _ => bytes,
        };
        match op.kind() {
            Kind::Account => self.step_of_account(op, who, which, bytes),
            Kind::Reservation => self.step_of_reservation(op, who, which, bytes),
            _ => self.step_of_arena(op, who, which, bytes),
        }
    }

    fn register(&mut self, shared: bool, cap: Option<usize>) {
        if self.writers.len() >= 6 {
            return;
        }
        let name = format!("writer {}", self.registered);
        self.registered += 1;
        let owned = || match cap {
            None => self.limiter.reporter(&name),
            Some(cap) => self.limiter.reporter_with_cap(&name, cap),
        };
        let account = || match cap {
            None => self.limiter.shared_reporter(&name),
            Some(cap) => self.limiter.shared_reporter_with_cap(&name, cap),
        };
        self.writers.push(Writer {
            reporter: (!shared).then(owned),
            shared: shared.then(account),
            cap: cap.or(self.settings.cap).unwrap_or(usize::MAX),
            own_cap: cap.is_some(),
            name,
            charged: 0,
            held: vec![],
            bytes: vec![],
            arenas: vec![],
        });
    }

    fn step_of_limiter(&mut self, op: Op, which: usize, bytes: usize) {
        match op {
            Op::Register | Op::RegisterShared => {
                self.register(op == Op::RegisterShared, which.is_multiple_of(5).then_some(bytes));
            }
            Op::Settle => {
                let settled = self.limiter.settle();
                let right = !settled || self.limiter.published_bytes() == self.limiter.held_bytes();
                self.check(right && settled == self.settings.barrier, || "settled and not exact".into());
            }
            Op::Poll => self.limiter.poll(),
            Op::Reconcile => {
                let drift = self.limiter.reconcile();
                self.check(drift.is_none(), || format!("drift: {drift}"));
            }
            Op::SetBudget => match which % 4 {
                0 => self.set(
                    |settings| settings.budget = Budget::Unlimited,
                    |limiter| {
                        limiter.set_unlimited();
                        Ok(())
                    },
                ),
                1 => {
                    let all = self.settings.hard_limit.unwrap_or(bytes);
                    self.set(|settings| settings.budget = Budget::Bytes(all), |limiter| limiter.set_budget_bytes(all));
                }
                _ => {
                    let budget = bytes * 4;
                    self.set(
                        |settings| settings.budget = Budget::Bytes(budget),
                        |limiter| limiter.set_budget_bytes(budget),
                    );
                }
            },
            Op::SetHardLimit => {
                let hard = match which % 5 {
                    0 => None,
                    1 => Some(bytes),
                    2 => Some(self.total()),
                    3 => Some(self.total() + bytes),
                    _ => Some(bytes * 4),
                };
                let before = self.settings.hard_limit;
                self.set(|settings| settings.hard_limit = hard, |limiter| limiter.set_hard_limit_bytes(hard));
                self.moves &= self.settings.barrier || self.settings.hard_limit == before;
            }
            Op::SetReserve => {
                let reserve = if which.is_multiple_of(3) { 0 } else { bytes };
                self.set(|settings| settings.reserve = reserve, |limiter| limiter.set_reserve_bytes(reserve));
            }
            Op::SetFloor => {
                let floor = bytes.max(1);
                self.set(|settings| settings.floor = floor, |limiter| limiter.set_floor_bytes(floor));
            }
            Op::SetCap => {
                let cap = (!which.is_multiple_of(3)).then_some(bytes);
                self.set(|settings| settings.cap = cap, |limiter| limiter.set_writer_cap_bytes(cap));
                let cap = self.settings.cap.unwrap_or(usize::MAX);
                self.writers.iter_mut().filter(|writer| !writer.own_cap).for_each(|writer| writer.cap = cap);
            }
            Op::SetLag => {
                let lag = [None, Some(0), Some(bytes * 2)][which % 3];
                self.set(
                    |settings| settings.lag = lag,
                    |limiter| {
                        limiter.set_lag_bytes(lag);
                        Ok(())
                    },
                );
            }
            _ => {
                let quantum = [Some(0), Some(700), Some(MIB), None, None][which % 5];
                self.set(
                    |settings| settings.quantum = quantum,
                    |limiter| {
                        limiter.set_quantum_bytes(quantum);
                        Ok(())
                    },
                );
            }
        }
    }

    /// Changes a setting, or is refused as the model says, and then nothing has changed.
    fn set(
        &mut self,
        edit: impl FnOnce(&mut Settings),
        call: impl FnOnce(&GlobalMemoryLimiter) -> Result<(), ConfigError>,
    ) {
        let mut wanted = self.settings.clone();
        edit(&mut wanted);
        let (verdict, result) = (wanted.verdict(), call(&self.limiter));
        self.check(result == verdict, || format!("{result:?} and not {verdict:?}"));
        if result.is_ok() {
            self.settings = wanted;
        }
        let limits = (self.limiter.budget_bytes(), self.limiter.hard_limit_bytes());
        let right = limits == (self.settings.budget_bytes(), self.settings.hard_limit);
        self.check(right, || format!("budget and hard limit are {limits:?}"));
    }
}
