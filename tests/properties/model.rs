//! The sequential model: whether a `try_` call is granted, and what a charge that cannot be refused leaves behind.

use crate::settings::Settings;
use crate::writer::Writer;
use plimsoll::{GlobalMemoryLimiter, Refusal, ReserveError, SharedReporter};

pub(crate) struct World {
    pub(crate) limiter: GlobalMemoryLimiter,
    /// Another limiter, to which bytes can go.
    pub(crate) abroad: SharedReporter,
    pub(crate) settings: Settings,
    pub(crate) writers: Vec<Writer>,
    pub(crate) registered: usize,
    pub(crate) requests: u64,
    /// Windows move at once. Otherwise, once a hard limit was set while it runs, what is idle is not called back.
    pub(crate) moves: bool,
    pub(crate) overdrafts: u64,
    pub(crate) overdraft_peak: usize,
    pub(crate) errors: Vec<String>,
}

/// What a refusal should say: what is held, the limit, and which.
pub(crate) type Expected = Result<(), (usize, usize, Refusal)>;

/// The most that a counter holds.
pub(crate) const MOST: usize = isize::MAX as usize;

impl World {
    /// Settings that contradict one another are refused as the model says, and then made to fit.
    pub(crate) fn new(mut settings: Settings) -> Self {
        let mut errors = vec![];
        let mut built = settings.builder().build();
        for fix in
            [|settings: &mut Settings| settings.reserve = 0, |settings: &mut Settings| settings.hard_limit = None]
        {
            if built.as_ref().err() != settings.verdict().err().as_ref() {
                errors.push(format!("built {:?} and not {:?}", built.as_ref().err(), settings.verdict()));
            }
            if built.is_err() {
                fix(&mut settings);
                built = settings.builder().build();
            }
        }
        let limiter = built.expect("a floor below the budget");
        let abroad = GlobalMemoryLimiter::builder().build().expect("valid").shared_reporter("abroad");
        settings.barrier = limiter.effective().process_barrier;
        World {
            limiter,
            abroad,
            settings,
            writers: vec![],
            registered: 0,
            requests: 0,
            moves: true,
            overdrafts: 0,
            overdraft_peak: 0,
            errors,
        }
    }

    pub(crate) fn check(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.errors.push(what());
        }
    }

    /// What everybody holds.
    pub(crate) fn total(&self) -> usize {
        self.writers.iter().map(Writer::total).sum()
    }

    /// What writers without an arena leave of the reserve.
    pub(crate) fn unused_reserve(&self) -> usize {
        let apart: usize = self.writers.iter().filter(|writer| writer.is_apart()).map(Writer::total).sum();
        self.settings.reserve.saturating_sub(apart)
    }

    /// An amount that just fits below one of the limits, or just does not; or `bytes`.
    pub(crate) fn near(&self, which: usize, bytes: usize) -> usize {
        let limit = match which % 8 {
            0 | 1 => self.settings.hard_limit,
            2 | 3 => self.settings.hard_limit.map(|hard| hard.saturating_sub(self.unused_reserve())),
            4 => self.settings.budget_bytes().map(|budget| budget.saturating_sub(self.unused_reserve())),
            _ => None,
        };
        match limit.and_then(|limit| limit.checked_sub(self.total())) {
            Some(left) if left < 1_000_000 => left + bytes % 2,
            _ => bytes,
        }
    }

    /// Whether a `try_` call of a writer for `asked` more is granted.
    pub(crate) fn expect(&self, who: usize, asked: usize) -> Expected {
        let writer = &self.writers[who];
        let (own, total) = (writer.total(), self.total());
        if asked > MOST {
            return Err((own, MOST, Refusal::Overflow));
        }
        if own.saturating_add(asked) > writer.cap {
            return Err((own, writer.cap, Refusal::WriterCap));
        }
        if own + asked > MOST {
            return Err((own, MOST, Refusal::Overflow));
        }
        let Some(hard) = self.settings.hard_limit else { return Ok(()) };
        let top = if writer.is_apart() { hard } else { hard - self.unused_reserve().min(hard) };
        match total + asked {
            _ if asked == 0 => Ok(()),
            sum if sum <= top => Ok(()),
            sum if sum <= hard => Err((total, top, Refusal::Reserve)),
            _ => Err((total, hard, Refusal::HardLimit)),
        }
    }

    /// Whether it was granted; what was answered is what was expected.
    pub(crate) fn answered(&mut self, expected: Expected, asked: usize, result: Result<(), ReserveError>) -> bool {
        let told = result.map_err(|error| (error.held_bytes, error.limit_bytes, error.kind));
        let of_all = |kind| matches!(kind, Refusal::HardLimit | Refusal::Reserve);
        if !self.moves && (of_all(expected.map_or_else(|e| e.2, |()| Refusal::HardLimit))) {
            // What is idle is in the way, and what was reserved before a limit fell may be used.
            let right = told.is_ok() || told.is_err_and(|error| of_all(error.2));
            self.check(right, || format!("answered {told:?} without a barrier"));
        } else {
            self.check(told == expected, || format!("{asked} asked, answered {told:?} and not {expected:?}"));
        }
        self.check(result.is_ok_and(|()| true) || result.is_err_and(|error| error.asked_bytes == asked), || {
            format!("a refusal of {result:?} and not of {asked}")
        });
        result.is_ok()
    }

    /// `bytes` more are about to be recorded that cannot be refused, `beside` what is held by somebody who is not listed.
    pub(crate) fn records(&mut self, bytes: usize, beside: usize) {
        let after = self.total() + beside + bytes;
        if let Some(hard) = self.settings.hard_limit
            && bytes > 0
            && after > hard
        {
            self.overdrafts += 1;
            self.overdraft_peak = self.overdraft_peak.max(after - hard);
        }
    }
}
