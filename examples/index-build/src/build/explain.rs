//! The limiter's records of a build, in the build's own words.
use crate::explained::{Counts, Explained, Explanation, Named, PassedOver};
use plimsoll::{Decision, GlobalMemoryLimiter};

/// The decisions so far; none without a limiter.
pub(super) fn explain(limiter: Option<&GlobalMemoryLimiter>) -> Explained {
    let decisions = limiter.map(|limiter| limiter.snapshot().decisions).unwrap_or_default();
    Explained {
        total: decisions.last().map_or(0, |last| last.number),
        decisions: decisions.iter().map(|decision| explained(decision)).collect(),
    }
}

fn explained(decision: &Decision) -> Explanation {
    let counts = &decision.passed_over_counts;
    Explanation {
        number: decision.number,
        at_ms: Some(u64::try_from(decision.at.as_millis()).unwrap_or(u64::MAX)),
        walked: decision.walked,
        source: decision.source.to_string(),
        overage_bytes: decision.overage_bytes as u64,
        exact_bytes: decision.exact_bytes as u64,
        kept_free_bytes: decision.kept_free_bytes as u64,
        published_bytes: decision.published_bytes as u64,
        granted_bytes: decision.granted_bytes as u64,
        budget_bytes: decision.budget_bytes.map(|bytes| bytes as u64),
        floor_bytes: decision.floor_bytes as u64,
        in_flight_bytes: decision.in_flight_bytes as u64,
        requests: decision.requests as u64,
        requested_bytes: decision.requested_bytes as u64,
        victims: decision
            .victims
            .iter()
            .map(|(name, bytes)| Named { name: name.clone(), bytes: *bytes as u64 })
            .collect(),
        passed_over: decision
            .passed_over
            .iter()
            .map(|(name, bytes, why)| PassedOver { name: name.clone(), bytes: *bytes as u64, why: why.to_string() })
            .collect(),
        passed_over_counts: Counts {
            in_flight: counts.in_flight as u64,
            below_floor: counts.below_floor as u64,
            exempt: counts.exempt as u64,
            not_needed: counts.not_needed as u64,
            moved_on: counts.moved_on as u64,
        },
        shortfall_bytes: decision.shortfall_bytes as u64,
        text: decision.to_string(),
    }
}
