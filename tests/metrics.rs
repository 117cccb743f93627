//! Every metric of the table in `telemetry`, with its labels and its value, as a recorder sees it.
mod common;

use common::{fixed, spill_if_asked};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use plimsoll::{GlobalMemoryLimiter, KIB, MIB};
use std::collections::BTreeMap;

/// `name{label=value,..}` and its value; a counter reads as what was added since the last look.
fn look(snapshotter: &Snapshotter) -> BTreeMap<String, f64> {
    let rows = snapshotter.snapshot().into_vec();
    rows.into_iter()
        .map(|(key, _, _, value)| {
            let labels: Vec<_> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let value = match value {
                DebugValue::Counter(n) => n as f64,
                DebugValue::Gauge(n) => n.into_inner(),
                DebugValue::Histogram(_) => panic!("the table has no histogram"),
            };
            (format!("{}{{{}}}", key.key().name(), labels.join(",")), value)
        })
        .collect()
}

fn is(seen: &BTreeMap<String, f64>, wanted: &[(&str, f64)]) {
    for (name, value) in wanted {
        assert_eq!(seen.get(*name), Some(value), "{name} of {seen:#?}");
    }
}

#[test]
fn every_metric_of_the_table_is_told_with_its_labels_and_value() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let limiter = metrics::with_local_recorder(&recorder, || {
        fixed().name("node").budget_bytes(10 * MIB).build().expect("a valid configuration")
    });
    // Handles are bound: none of this needs the recorder to be installed.
    let (a, b) = (limiter.reporter("a"), limiter.reporter("b"));
    let (mut of_a, mut of_b) = (a.arena("postings"), b.arena("postings"));
    of_a.set_bytes(&a, 4 * MIB);
    of_b.set_bytes(&b, 8 * MIB); // asks b: forced
    assert_eq!(spill_if_asked(&mut of_b, &b), Some(8 * MIB));
    of_b.set_bytes(&b, 4 * MIB);
    of_b.begin_own_spill(&b).expect("not empty").finish(0);
    drop(of_a.begin_own_spill(&a).expect("not empty"));
    b.charge(700 * KIB);

    let seen = look(&snapshotter);
    let stats = limiter.stats();
    is(
        &seen,
        &[
            ("plimsoll_limit_published_bytes{limiter=node}", limiter.published_bytes() as f64),
            ("plimsoll_limit_lag_bound_bytes{limiter=node}", limiter.lag_bound_bytes() as f64),
            ("plimsoll_limit_budget_bytes{limiter=node}", (10 * MIB) as f64),
            ("plimsoll_limit_publishes_total{limiter=node}", stats.publishes as f64),
            ("plimsoll_limit_notifications_total{limiter=node}", 5.0),
            ("plimsoll_limit_decisions_total{limiter=node}", stats.decisions as f64),
            ("plimsoll_limit_requests_total{limiter=node}", 1.0),
            ("plimsoll_limit_spills_total{limiter=node,kind=forced}", 1.0),
            ("plimsoll_limit_spills_total{limiter=node,kind=own}", 1.0),
            ("plimsoll_limit_spills_total{limiter=node,kind=failed}", 1.0),
            ("plimsoll_limit_shortfall_episodes_total{limiter=node}", 0.0),
            ("plimsoll_limit_accounting_errors_total{limiter=node}", 0.0),
            ("plimsoll_limit_overdrafts_total{limiter=node}", 0.0),
        ],
    );
    assert_eq!((limiter.published_bytes(), limiter.lag_bound_bytes()), (4 * MIB, 2 * (MIB - 1)));
    assert_eq!(seen.len(), 13, "nothing that the table does not name: {seen:#?}");
    assert!(stats.decisions > 0 && stats.publishes == 5);

    a.charge(100 * MIB); // more than there is to reclaim
    limiter.set_budget_bytes(2_000 * MIB).expect("valid");
    a.release(100 * MIB);
    b.release(699 * KIB);
    drop((of_a, of_b, a, b)); // one KiB is left
    is(
        &look(&snapshotter),
        &[
            ("plimsoll_limit_published_bytes{limiter=node}", 0.0),
            ("plimsoll_limit_lag_bound_bytes{limiter=node}", 0.0),
            ("plimsoll_limit_budget_bytes{limiter=node}", (2_000 * MIB) as f64),
            ("plimsoll_limit_shortfall_episodes_total{limiter=node}", 1.0),
            ("plimsoll_limit_accounting_errors_total{limiter=node}", 1.0),
        ],
    );
}

#[test]
fn writers_are_told_on_request_only_and_with_the_recorder_of_that_moment() {
    let (early, late) = (DebuggingRecorder::new(), DebuggingRecorder::new());
    let limiter = metrics::with_local_recorder(&early, || {
        GlobalMemoryLimiter::builder().unlimited().name("node").build().expect("a valid configuration")
    });
    let (a, b) = (limiter.reporter("a"), limiter.reporter("b"));
    a.charge(3 * MIB);
    b.charge(5);
    metrics::with_local_recorder(&late, || limiter.record_writers());
    let seen = look(&late.snapshotter());
    is(
        &seen,
        &[
            ("plimsoll_writer_held_bytes{limiter=node,writer=a}", (3 * MIB) as f64),
            ("plimsoll_writer_held_bytes{limiter=node,writer=b}", 5.0),
        ],
    );
    assert_eq!(seen.len(), 2, "handles bind when the limiter is built: {seen:#?}");
    let seen = look(&early.snapshotter());
    is(&seen, &[("plimsoll_limit_publishes_total{limiter=node}", 1.0)]);
    assert!(!seen.keys().any(|name| name.starts_with("plimsoll_writer")), "{seen:#?}");
    a.release(3 * MIB);
    b.release(5);
}

/// A gauge that was set stays what it was; so taking the budget away has to say something.
#[test]
fn a_budget_that_is_taken_away_does_not_stay_in_its_gauge() {
    let recorder = DebuggingRecorder::new();
    let limiter = metrics::with_local_recorder(&recorder, || {
        fixed().name("node").budget_bytes(10 * MIB).build().expect("a valid configuration")
    });
    limiter.set_unlimited();
    is(&look(&recorder.snapshotter()), &[("plimsoll_limit_budget_bytes{limiter=node}", f64::INFINITY)]);
}

/// A recorder is the caller's code, so it is not called under a lock either.
#[test]
fn a_recorder_may_call_back_into_the_limiter() {
    use std::sync::{Arc, OnceLock};

    #[derive(Default)]
    struct CallsBack(OnceLock<GlobalMemoryLimiter>);
    impl CallsBack {
        fn call(&self) {
            if let Some(limiter) = self.0.get() {
                let snapshot = limiter.snapshot();
                assert!(limiter.held_bytes() < 1_000 * MIB && snapshot.writers.len() < 10);
                drop(limiter.reporter("passing"));
            }
        }
    }
    impl metrics::CounterFn for CallsBack {
        fn increment(&self, _: u64) {
            self.call();
        }
        fn absolute(&self, _: u64) {
            self.call();
        }
    }
    impl metrics::GaugeFn for CallsBack {
        fn increment(&self, _: f64) {
            self.call();
        }
        fn decrement(&self, _: f64) {
            self.call();
        }
        fn set(&self, _: f64) {
            self.call();
        }
    }

    struct Recorder(Arc<CallsBack>);
    impl metrics::Recorder for Recorder {
        fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
        fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
        fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
        fn register_counter(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
            metrics::Counter::from_arc(Arc::clone(&self.0))
        }
        fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
            metrics::Gauge::from_arc(Arc::clone(&self.0))
        }
        fn register_histogram(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
            metrics::Histogram::noop()
        }
    }

    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let calls_back = Arc::new(CallsBack::default());
        let limiter = metrics::with_local_recorder(&Recorder(Arc::clone(&calls_back)), || {
            fixed().budget_bytes(10 * MIB).build().expect("a valid configuration")
        });
        calls_back.0.set(limiter.clone()).expect("once");
        let (reporter, shared) = (limiter.reporter("writer"), limiter.shared_reporter("cache"));
        let mut arena = reporter.arena("postings");
        for _ in 0..3 {
            arena.set_bytes(&reporter, 11 * MIB);
            drop(reporter.reserve(3 * MIB));
            let mut handed = shared.reserve(2 * MIB);
            handed.transfer(&reporter);
            drop(handed);
            limiter.settle();
            assert_eq!(spill_if_asked(&mut arena, &reporter), Some(11 * MIB));
        }
        assert_eq!((limiter.held_bytes(), limiter.published_bytes()), (0, 0));
        done.send(()).expect("the test waits");
    });
    match wait.recv_timeout(std::time::Duration::from_secs(10)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("deadlock"),
        _ => thread.join().expect("no panic there"),
    }
}
