//! Runs that load generators share, against the same run by one alone.

mod common;

use std::collections::HashSet;
use std::time::Duration;

use common::{assert_accounted_for, null_driver, plan, rate};
use sensorbench_engine::{Ended, EngineError, Merge, Plan, Prepared, ReadyPlan, Record, Segment};
use sensorbench_histogram::Latencies;
use serde_json::{Value, json};

const NO_LIMIT: Duration = Duration::from_secs(60);
const GENERATORS: u64 = 4;
/// This long after the clock's zero they begin: connecting to the null database takes less.
const START_NS: u64 = 100_000_000;

/// Two kinds of operation, of which one has parameters, in phases that are given.
fn mixed(phases: Value, share: Option<(u64, u64, u64)>) -> Plan {
    let parameter = |name: &str| json!({"name": name, "type": "integer"});
    let operations = json!([
        {"weight": 3.0, "operation": {"name": "look_up", "parameters": [parameter("id")]}, "parameters": [{"source": 0, "column": 0}]},
        {"weight": 1.0, "operation": {"name": "count"}},
    ]);
    let sources = json!([{"numbers": {"columns": [{"type": "integer", "start": 5, "step": 3}]}}]);
    let share =
        share.map(|(number, of, clock_origin_ns)| json!({"number": number, "of": of, "clock_origin_ns": clock_origin_ns}));
    let changes = json!({
        "operations": operations,
        "parameter_sources": sources,
        "phases": phases,
        "concurrency": 16,
        "interval_s": 0.1,
        "log_every": 1,
        "share": share,
    });
    plan(json!(null), changes)
}

fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The log of one load generator, and the logs and figures of several that share the run.
fn alone_and_shared(url: &str, phases: &Value) -> ((Segment, Ended), Vec<(Segment, Ended)>) {
    let end = |run: sensorbench_engine::Run| {
        assert!(run.wait(NO_LIMIT), "the run does not end");
        run.end()
    };
    let alone = end(Prepared::connect(null_driver(url).as_ref(), mixed(phases.clone(), None), &[]).unwrap().start());
    let origin_ns = monotonic_ns();
    let prepared: Vec<Prepared> = (0..GENERATORS)
        .map(|number| {
            let plan = mixed(phases.clone(), Some((number, GENERATORS, origin_ns)));
            Prepared::connect(null_driver(url).as_ref(), plan, &[]).unwrap()
        })
        .collect();
    let runs: Vec<_> = prepared.into_iter().map(|prepared| prepared.start_at(START_NS)).collect();
    (alone, runs.into_iter().map(end).collect())
}

/// What a record says of the operation itself: phase, k, kind and intended start since the phase began, where a schedule has it.
fn identity(record: &Record, ended: &Ended, is_open: bool) -> (u16, u64, u16, u64) {
    let phase_ns = ended.phases[usize::from(record.phase)].start_ns.unwrap();
    let since_ns = if is_open { record.intended_start_ns - phase_ns } else { 0 };
    (record.phase, record.k, record.operation, since_ns)
}

/// All of them, in their order.
fn identities(runs: &[(Segment, Ended)], is_open: bool) -> Vec<(u16, u64, u16, u64)> {
    let of_run = |(segment, ended): &(Segment, Ended)| -> Vec<_> {
        segment.recorded.log.iter().map(|record| identity(record, ended, is_open)).collect()
    };
    let mut all: Vec<_> = runs.iter().flat_map(of_run).collect();
    all.sort_unstable();
    all
}

#[test]
fn together_they_execute_the_operations_of_one() {
    for url in ["null:?delay_ms=1", "null:?delay_ms=1&session=blocking"] {
        let phases = json!([{"name": "warm_up", "operations": 30}, {"name": "measure", "operations": 403}]);
        let (alone, shared) = alone_and_shared(url, &phases);
        let expected = identities(&[alone], false);
        assert_eq!(expected.len(), 433);
        assert_eq!(identities(&shared, false), expected, "{url}");
        for (number, (segment, ended)) in shared.iter().enumerate() {
            assert!(segment.recorded.log.iter().all(|record| record.k % GENERATORS == number as u64));
            assert_accounted_for(ended.phases.iter().map(|phase| phase.started).sum(), &ended.figures);
        }
        let slots: HashSet<u32> =
            shared.iter().flat_map(|(segment, _)| &segment.recorded.log).map(|record| record.slot).collect();
        assert_eq!(slots, (0..16).collect(), "each load generator has slots of its own");
    }
}

#[test]
fn each_arrival_comes_when_it_would_with_one() {
    let pace =
        |arrival: &str| json!({"arrival": arrival, "segments": [{"from_per_s": 400.0, "to_per_s": 900.0, "length_s": 0.3}]});
    for arrival in ["constant", "poisson"] {
        let phases = json!([
            {"name": "ramp", "duration_s": 0.3, "pace": pace(arrival)},
            {"name": "measure", "duration_s": 0.3, "pace": rate(700.0)},
        ]);
        let (alone, shared) = alone_and_shared("null:", &phases);
        let common: HashSet<u64> = shared.iter().map(|(_, ended)| ended.phases[0].start_ns.unwrap()).collect();
        assert_eq!(common, HashSet::from([START_NS]));
        let offered = |runs: &[(Segment, Ended)]| -> Vec<u64> {
            let of_phase = |phase: usize| {
                runs.iter().map(|(_, ended)| ended.phases[phase].started + ended.phases[phase].dropped).sum::<u64>()
            };
            (0..2).map(of_phase).collect()
        };
        assert_eq!(offered(&shared), offered(std::slice::from_ref(&alone)));
        let (found, expected) = (identities(&shared, true), identities(&[alone], true));
        // What a busy machine dropped at the very end of a phase did not start.
        let (all, both): (HashSet<_>, HashSet<_>) = (expected.iter().copied().collect(), found.iter().copied().collect());
        let by_k = |set: &HashSet<(u16, u64, u16, u64)>| set.iter().map(|(phase, k, _, _)| (*phase, *k)).collect::<HashSet<_>>();
        let started_in_both = by_k(&all).intersection(&by_k(&both)).count();
        assert_eq!(all.intersection(&both).count(), started_in_both, "{arrival}");
        assert!(started_in_both > 200, "{started_in_both}");
    }
}

#[test]
fn each_keeps_records_of_its_own_operations() {
    let phases = json!([{"name": "measure", "operations": 800}]);
    let logged = |number| {
        let mut plan = mixed(phases.clone(), Some((number, GENERATORS, monotonic_ns())));
        plan.log_every = Some(20);
        let run = Prepared::connect(null_driver("null:").as_ref(), plan, &[]).unwrap().start();
        assert!(run.wait(NO_LIMIT), "the run does not end");
        let mut numbers: Vec<u64> = run.end().0.recorded.log.iter().map(|record| record.k).collect();
        numbers.sort_unstable();
        numbers
    };
    for number in 0..GENERATORS {
        assert_eq!(logged(number), (0..10).map(|nth| number + 20 * GENERATORS * nth).collect::<Vec<_>>());
    }
}

#[test]
fn parameters_follow_from_k_alone() {
    let values = |share| {
        let ready = ReadyPlan::new(mixed(json!([{"name": "measure", "operations": 40}]), share), &[]).unwrap();
        (0..40).map(|k| (ready.kind_of(0, k), ready.parameters_of(0, k).collect::<Vec<_>>())).collect::<Vec<_>>()
    };
    let alone = values(None);
    assert!((0..GENERATORS).all(|number| values(Some((number, GENERATORS, 0))) == alone));
}

#[test]
fn merged_latencies_are_those_of_the_union() {
    let phases = json!([{"name": "measure", "duration_s": 0.4, "pace": rate(1000.0)}]);
    let (_, shared) = alone_and_shared("null:?delay_ms=2", &phases);
    let mut merge = Merge::new(2);
    let mut union: Vec<(Latencies, Latencies, Latencies)> = vec![Default::default(); 2];
    let mut timer_lag = Latencies::default();
    for (segment, ended) in shared {
        for record in &segment.recorded.log {
            let (response, service, wait) = &mut union[usize::from(record.operation)];
            response.record(record.response_ns());
            service.record(record.service_ns());
            wait.record(record.schedule_lag_ns());
            if let Some(lag_ns) = record.own_lag_ns {
                timer_lag.record(lag_ns);
            }
        }
        segment.recorded.intervals.into_iter().for_each(|interval| merge.add(interval));
        merge.add_timer_lag(&ended.timer_lag);
    }
    let early = merge.take_before(3);
    let numbers: Vec<u64> = early.iter().map(|interval| interval.number).collect();
    assert!(numbers.is_sorted() && numbers.iter().all(|number| *number < 3), "{numbers:?}");
    // Taking some of it out changes nothing of the whole.
    for (figures, (response, service, wait)) in merge.figures().into_iter().zip(union) {
        assert!(response.count() > 50);
        assert_eq!((figures.response, figures.service, figures.wait), (response, service, wait));
    }
    assert_eq!(*merge.timer_lag(), timer_lag);
}

#[test]
fn what_load_generators_cannot_share_is_refused() {
    let refused = |plan: Plan| match Prepared::connect(null_driver("null:").as_ref(), plan, &[]) {
        Err(EngineError::Plan(message)) => message,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the plan was accepted"),
    };
    let phases = json!([{"name": "measure", "operations": 4}]);
    assert!(refused(mixed(phases.clone(), Some((4, 4, 0)))).contains("must be below"));
    assert!(refused(mixed(phases.clone(), Some((0, 17, 0)))).contains("concurrency of 16 cannot be shared by 17"));
    let late = json!([{"name": "warm_up", "operations": 4}, {"name": "measure", "duration_s": 1.0, "pace": rate(10.0)}]);
    assert!(refused(mixed(late, Some((0, 2, 0)))).contains("cannot follow"));
    let mut reading = mixed(phases, Some((0, 2, 0)));
    let written = json!({"written": {"operation": 0, "window": 20, "exponent": null, "span": null}});
    reading.parameter_sources.push(serde_json::from_value(written).unwrap());
    assert!(refused(reading).contains("read what the run writes"));
}

#[test]
fn a_run_that_is_not_started_disconnects() {
    let plan = mixed(json!([{"name": "measure", "duration_s": 60.0}]), None);
    drop(Prepared::connect(null_driver("null:?session=blocking").as_ref(), plan, &[]).unwrap());
}
