//! Runs on the null driver, in real time.

mod common;

use std::time::{Duration, Instant};

use common::{assert_accounted_for, null_driver, plan, rate};
use sensorbench_engine::{Ended, EngineError, Outcome, Plan, Run, Segment};
use serde_json::{Value, json};

const NO_LIMIT: Duration = Duration::from_secs(60);

fn run_to_end(url: &str, plan: Plan) -> (Segment, Ended) {
    let run = Run::start(null_driver(url).as_ref(), plan, &[]).unwrap();
    assert!(run.wait(NO_LIMIT), "the run does not end");
    run.end()
}

#[test]
fn a_closed_loop_does_so_many_operations_whatever_the_concurrency() {
    for url in ["null:", "null:?session=blocking"] {
        for concurrency in [1, 7] {
            let phases = json!([{"name": "warm_up", "operations": 500}, {"name": "measure", "operations": 10_000}]);
            let plan = plan(json!(null), json!({"phases": phases, "concurrency": concurrency, "log_every": 1}));
            let (segment, ended) = run_to_end(url, plan);
            assert_eq!(ended.phases.iter().map(|phase| phase.started).collect::<Vec<_>>(), [500, 10_000]);
            assert_accounted_for(10_500, &ended.figures);
            let mut numbers: Vec<u64> =
                segment.recorded.log.iter().filter(|record| record.phase == 1).map(|record| record.k).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..10_000).collect::<Vec<_>>(), "{url} with {concurrency} in flight");
        }
    }
}

#[test]
fn each_slot_executes_one_operation_after_the_other() {
    for (url, threads) in [("null:?delay_ms=1", 1), ("null:?delay_ms=1", 3), ("null:?delay_ms=1&session=blocking", 1)] {
        let phase = json!({"name": "measure", "operations": 500});
        let plan = plan(phase, json!({"concurrency": 8, "threads": threads, "log_every": 1}));
        let mut log = run_to_end(url, plan).0.recorded.log;
        log.sort_unstable_by_key(|record| (record.slot, record.start_ns));
        for pair in log.windows(2).filter(|pair| pair[0].slot == pair[1].slot) {
            assert!(pair[0].end_ns <= pair[1].start_ns, "{url}: {pair:?}");
        }
        let mut slots: Vec<u32> = log.iter().map(|record| record.slot).collect();
        slots.dedup();
        assert_eq!(slots, (0..8).collect::<Vec<_>>(), "{url}, {threads} threads");
    }
}

#[test]
fn threads_share_the_operations() {
    let plan = plan(json!({"name": "measure", "operations": 100_000}), json!({"concurrency": 4, "threads": 2}));
    assert_accounted_for(100_000, &run_to_end("null:", plan).1.figures);
}

#[test]
fn an_open_loop_keeps_its_rate_and_measures_from_the_intended_start() {
    for url in ["null:?delay_ms=2", "null:?delay_ms=2&session=blocking"] {
        for arrival in ["constant", "poisson"] {
            let pace = json!({"arrival": arrival, "segments": [{"from_per_s": 500.0}]});
            let plan =
                plan(json!({"name": "measure", "duration_s": 1.0, "pace": pace}), json!({"concurrency": 32, "log_every": 1}));
            let (segment, ended) = run_to_end(url, plan);
            let phase = &ended.phases[0];
            // A machine that is busy at the very end drops the last ones; what was intended does not depend on that.
            assert!((400..600).contains(&(phase.started + phase.dropped)), "{url} {arrival}: {phase:?}");
            assert!(phase.started > phase.dropped, "{url} {arrival}: {phase:?}");
            assert_accounted_for(phase.started, &ended.figures);
            assert_eq!(segment.recorded.log.len() as u64, phase.started);
            for record in &segment.recorded.log {
                assert!(record.intended_start_ns <= record.start_ns && record.start_ns <= record.end_ns);
                assert_eq!(record.response_ns(), record.schedule_lag_ns() + record.service_ns());
                assert!(record.service_ns() >= 2_000_000, "the delay is in the service time");
            }
        }
    }
}

#[test]
fn beyond_capacity_operations_wait_and_what_never_started_is_counted() {
    // One in flight at 10 ms each makes 100/s; 1,000/s are asked for.
    for url in ["null:?delay_ms=10", "null:?delay_ms=10&session=blocking"] {
        let plan = plan(json!({"name": "measure", "duration_s": 0.5, "pace": rate(1000.0)}), json!({}));
        let (_, ended) = run_to_end(url, plan);
        let phase = &ended.phases[0];
        assert_eq!(phase.started + phase.dropped, 500, "{phase:?}");
        assert!((20..=60).contains(&phase.started), "{phase:?}");
        let figures = &ended.figures[0];
        assert!(figures.response.max() > Some(300_000_000), "the wait of half a second counts: {:?}", figures.response.max());
        assert!(
            figures.service.quantile(0.5) < Some(100_000_000),
            "the service time does not show it: {:?}",
            figures.service.quantile(0.5)
        );
        assert!(figures.late >= phase.started - 1);
    }
}

#[test]
fn operations_that_take_too_long_time_out_at_their_limit() {
    for url in ["null:?delay_ms=5000", "null:?delay_ms=5000&session=blocking"] {
        let start = Instant::now();
        let plan = plan(json!({"name": "measure", "operations": 8}), json!({"concurrency": 4, "timeout_s": 0.1}));
        let (_, ended) = run_to_end(url, plan);
        assert!(start.elapsed() < Duration::from_secs(3));
        let figures = &ended.figures[0];
        assert_eq!((figures.count(Outcome::Timeout), figures.count(Outcome::Ok)), (8, 0), "{url}");
        let limit_ns = figures.response.quantile(0.5).unwrap() as f64;
        assert!((limit_ns / 1e8 - 1.0).abs() < 0.001, "{limit_ns} is not the limit");
        assert_accounted_for(8, &ended.figures);
    }
}

#[test]
fn a_cancelled_run_accounts_for_operations_in_flight() {
    for url in ["null:?delay_ms=60000", "null:?delay_ms=60000&session=blocking"] {
        let plan = plan(json!({"name": "measure", "duration_s": 60.0}), json!({"concurrency": 3, "timeout_s": 60.0}));
        let run = Run::start(null_driver(url).as_ref(), plan, &[]).unwrap();
        assert!(!run.wait(Duration::from_millis(50)));
        run.cancel();
        assert!(run.wait(Duration::from_secs(5)), "a cancelled run ends");
        let (_, ended) = run.end();
        assert_eq!(ended.figures[0].count(Outcome::Cancelled), 3, "{url}");
        assert_accounted_for(3, &ended.figures);
    }
}

#[test]
fn a_stopped_run_lets_operations_in_flight_end() {
    let plan = plan(json!({"name": "measure", "duration_s": 60.0}), json!({"concurrency": 2}));
    let run = Run::start(null_driver("null:?delay_ms=100").as_ref(), plan, &[]).unwrap();
    assert!(!run.wait(Duration::from_millis(30)));
    run.stop();
    assert!(run.wait(Duration::from_secs(5)));
    let (_, ended) = run.end();
    assert_eq!((ended.figures[0].count(Outcome::Ok), ended.figures[0].ended()), (2, 2));
}

#[test]
fn the_rate_changes_while_the_run_goes_on() {
    for url in ["null:", "null:?session=blocking"] {
        let plan = plan(json!({"name": "measure", "duration_s": 1.0, "pace": rate(10.0)}), json!({"concurrency": 4}));
        let run = Run::start(null_driver(url).as_ref(), plan, &[]).unwrap();
        assert!(!run.wait(Duration::from_millis(500)));
        run.set_rate(2000.0).unwrap();
        assert!(run.wait(NO_LIMIT));
        let (segment, ended) = run.end();
        assert!((800..1100).contains(&ended.phases[0].started), "{url}: {:?}", ended.phases);
        assert_eq!(segment.events[0].name, "rate set to 2000/s");
    }
    let closed =
        Run::start(null_driver("null:").as_ref(), plan(json!({"name": "measure", "duration_s": 0.1}), json!({})), &[]).unwrap();
    assert!(matches!(closed.set_rate(1.0), Err(EngineError::Plan(_))));
}

#[test]
fn phases_may_be_closed_and_open_in_turn() {
    for url in ["null:", "null:?session=blocking"] {
        let phases = json!([
            {"name": "step 1", "duration_s": 0.2, "pace": rate(100.0)},
            {"name": "closed", "operations": 50},
            {"name": "step 2", "duration_s": 0.2, "pace": rate(500.0)},
        ]);
        let (_, ended) = run_to_end(url, plan(json!(null), json!({"phases": phases, "concurrency": 8})));
        let started: Vec<u64> = ended.phases.iter().map(|phase| phase.started + phase.dropped).collect();
        assert_eq!(started, [20, 50, 100], "{url}");
    }
}

#[test]
fn operations_in_turn_come_exactly_so_many_times_in_each_phase() {
    let operation = |name: &str, weight: f64| json!({"weight": weight, "operation": {"name": name}});
    let operations = json!([operation("look_up", 1.0), operation("count", 2.0)]);
    let phases = json!([{"name": "warm_up", "operations": 4}, {"name": "measure", "operations": 12}]);
    for url in ["null:", "null:?session=blocking"] {
        let changes = json!({"phases": phases, "operations": operations, "order": "in turn", "concurrency": 3});
        let (_, ended) = run_to_end(url, plan(json!(null), changes));
        let counts: Vec<u64> = ended.figures.iter().map(|figures| figures.ended()).collect();
        assert_eq!(counts, [2, 2, 4, 8], "{url}");
    }
}

#[test]
fn segments_taken_on_the_way_add_up_to_the_whole() {
    let plan = plan(json!({"name": "measure", "duration_s": 0.6}), json!({"concurrency": 2, "interval_s": 0.1, "log_every": 1}));
    let run = Run::start(null_driver("null:?delay_ms=1").as_ref(), plan, &[]).unwrap();
    let (mut taken, mut logged) = (0, 0);
    let mut count = |segment: Segment| {
        taken += segment.recorded.intervals.iter().map(|interval| interval.figures[0].ended()).sum::<u64>();
        logged += segment.recorded.log.len() as u64;
    };
    while !run.wait(Duration::from_millis(70)) {
        count(run.take());
    }
    let (segment, ended) = run.end();
    count(segment);
    let started = ended.phases[0].started;
    assert_eq!((taken, logged, ended.figures[0].ended()), (started, started, started));
}

#[test]
fn annotations_and_times_are_on_one_clock() {
    let run =
        Run::start(null_driver("null:").as_ref(), plan(json!({"name": "measure", "duration_s": 0.1}), json!({})), &[]).unwrap();
    let before_ns = run.now_ns();
    run.annotate("node added");
    let event = run.take().events.remove(0);
    assert!(before_ns <= event.time_ns && event.time_ns <= run.now_ns());
    assert_eq!(event.name, "node added");
}

#[test]
fn plans_that_make_no_sense_are_refused_before_anything_starts() {
    let refused = |phase, changes| match Run::start(null_driver("null:").as_ref(), plan(phase, changes), &[]) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the plan was accepted"),
    };
    assert!(refused(json!({"name": "measure"}), json!({})).contains("has no end"));
    let phase = json!({"name": "measure", "operations": 1});
    assert!(refused(phase.clone(), json!({"concurrency": 0})).contains("concurrency"));
    assert!(refused(phase.clone(), json!({"timeout_s": 0.0})).contains("timeout_s"));
    assert!(refused(phase.clone(), json!({"parameter_sources": [{"rows": {"table": 3}}]})).contains("no parameter table 3"));
    let operation = json!([{"weight": 1.0, "operation": {"name": "x", "parameters": [{"name": "p", "type": "text"}]}}]);
    assert!(refused(phase, json!({"operations": operation})).contains("each parameter needs one source"));
}

/// A plan of one operation that is three statements, in time buckets of a month.
fn quarter(changes: Value) -> Plan {
    let operation = json!({
        "weight": 1.0,
        "operation": {
            "name": "count_of_quarter",
            "parameters": [{"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"}],
            "columns": [{"name": "count", "type": "integer"}],
        },
        "parameters": [{"source": 0, "column": 0}, {"source": 0, "column": 1}],
        "client_steps": {
            "for_each": {"name": "month", "parts": {"time_buckets": {"from": 0, "to": 1, "every": {"months": 1}}}},
            "returns": [{"name": "time", "type": "timestamp"}],
            "reduce": {"function": "count", "column": 0},
        },
    });
    let time = |start: i64| json!({"type": "timestamp", "start": start, "step": 0});
    let source = json!({"numbers": {"columns": [time(0), time(90 * 86_400_000_000)]}});
    let mut all = json!({"operations": [operation], "parameter_sources": [source]});
    all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    plan(json!({"name": "measure", "operations": 8}), all)
}

#[test]
fn an_operation_of_several_statements_is_one_operation() {
    for (url, min_ms) in [("null:?delay_ms=2", 2), ("null:?delay_ms=2&session=blocking", 6)] {
        let (segment, ended) = run_to_end(url, quarter(json!({"concurrency": 3, "log_every": 1, "answers_every": 1})));
        assert_accounted_for(8, &ended.figures);
        assert_eq!(ended.figures[0].rows, 8, "the rows of all statements are reduced to one");
        assert_eq!((segment.recorded.answers.len(), segment.recorded.log.len()), (8, 8));
        assert!(segment.recorded.log.iter().all(|record| record.service_ns() >= min_ms * 1_000_000), "{url}");
    }
}

#[test]
fn answers_are_kept_whole_at_first_and_then_now_and_again() {
    let phase = json!({"name": "measure", "operations": 100});
    let (segment, _) = run_to_end("null:", plan(phase, json!({"answers_every": 30, "answers_whole": 5})));
    let mut kept: Vec<u64> = segment.recorded.answers.iter().map(|answer| answer.k).collect();
    kept.sort_unstable();
    assert_eq!(kept, [0, 1, 2, 3, 4, 30, 60, 90]);
}

#[test]
fn an_operation_of_several_statements_times_out_as_a_whole() {
    // In the blocking session each statement alone is in time.
    for url in ["null:?delay_ms=60000", "null:?delay_ms=80&session=blocking"] {
        let (_, ended) = run_to_end(url, quarter(json!({"concurrency": 4, "timeout_s": 0.1})));
        assert_eq!(ended.figures[0].count(Outcome::Timeout), 8, "{url}");
        assert_accounted_for(8, &ended.figures);
    }
}
