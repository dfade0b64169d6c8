//! A run in progress while Python watches and steers it.

use std::time::Duration;

use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sensorbench_engine::{Ended, Figures, OUTCOMES, PhaseReport, Segment, Snapshot};
use sensorbench_histogram::Latencies;
use serde_json::{Value, json};

use crate::arrow_tables::{answers, intervals, operation_log};
use crate::errors::{run_error, written};
use crate::interval_log::{interval_log, latencies_log};

#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Run {
    run: sensorbench_engine::Run,
}

impl Run {
    pub fn new(run: sensorbench_engine::Run) -> Self {
        Self { run }
    }

    fn operation_names(&self) -> Vec<&str> {
        self.run.plan().operations().iter().map(|operation| operation.name.as_str()).collect()
    }

    fn phase_names(&self) -> Vec<String> {
        self.run.snapshot().phases.into_iter().map(|phase| phase.name).collect()
    }

    /// The segment as a dictionary of Arrow tables, event list and interval log.
    fn segment<'py>(&self, python: Python<'py>, segment: Segment) -> PyResult<Bound<'py, PyDict>> {
        let names = self.operation_names();
        let recorded = &segment.recorded;
        let events: Vec<(u64, String)> = segment.events.into_iter().map(|event| (event.time_ns, event.name)).collect();
        let dictionary = PyDict::new(python);
        dictionary.set_item("operations", PyArrowType(operation_log(&recorded.log)))?;
        dictionary.set_item("answers", PyArrowType(answers(&recorded.answers)))?;
        dictionary.set_item("intervals", PyArrowType(intervals(&recorded.intervals, names.len(), self.run.interval_ns())))?;
        dictionary
            .set_item("histograms", interval_log(&recorded.intervals, &self.phase_names(), &names, self.run.interval_ns()))?;
        dictionary.set_item("events", events)?;
        Ok(dictionary)
    }

    fn figures(&self, figures: &[Figures], phases: &[PhaseReport]) -> Value {
        let names = self.operation_names();
        let of_phase = |(number, phase): (usize, &PhaseReport)| {
            let operations = names.iter().enumerate().map(|(operation, name)| {
                let cell = &figures[number * names.len() + operation];
                (name.to_string(), figures_as_json(cell))
            });
            json!({
                "name": phase.name,
                "start_ns": phase.start_ns,
                "end_ns": phase.end_ns,
                "started": phase.started,
                "dropped": phase.dropped,
                "operations": operations.collect::<serde_json::Map<_, _>>(),
            })
        };
        phases.iter().enumerate().map(of_phase).collect()
    }
}

pub fn figures_as_json(figures: &Figures) -> Value {
    let counts = OUTCOMES
        .iter()
        .map(|outcome| (outcome.name().to_owned(), json!(figures.count(*outcome))))
        .collect::<serde_json::Map<_, _>>();
    json!({
        "counts": counts,
        "late": figures.late,
        "rows": figures.rows,
        "response_ns": latencies_as_json(&figures.response),
        "service_ns": latencies_as_json(&figures.service),
        "schedule_lag_ns": latencies_as_json(&figures.wait),
        "failed_ns": latencies_as_json(&figures.failed),
    })
}

pub fn latencies_as_json(latencies: &Latencies) -> Value {
    if latencies.is_empty() {
        return Value::Null;
    }
    json!({
        "count": latencies.count(),
        "mean": latencies.mean(),
        "p50": latencies.quantile(0.5),
        "p90": latencies.quantile(0.9),
        "p95": latencies.quantile(0.95),
        "p99": latencies.quantile(0.99),
        "p999": latencies.quantile(0.999),
        "max": latencies.max(),
    })
}

#[pymethods]
impl Run {
    fn wait(&self, python: Python, timeout_s: f64) -> bool {
        python.detach(|| self.run.wait(Duration::from_secs_f64(timeout_s)))
    }

    fn now_ns(&self) -> u64 {
        self.run.now_ns()
    }

    fn snapshot(&self, python: Python) -> String {
        let Snapshot { now_ns, phases, current_phase, figures } = python.detach(|| self.run.snapshot());
        written(&json!({"now_ns": now_ns, "current_phase": current_phase, "phases": self.figures(&figures, &phases)}))
    }

    fn take<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let segment = python.detach(|| self.run.take());
        self.segment(python, segment)
    }

    /// What kept a replay from reading its trace to the end.
    fn failure(&self) -> Option<String> {
        self.run.failure()
    }

    fn annotate(&self, name: &str) {
        self.run.annotate(name);
    }

    fn set_rate(&self, per_s: f64) -> PyResult<()> {
        self.run.set_rate(per_s).map_err(run_error)
    }

    fn set_rate_at(&self, per_s: f64, at_ns: u64) -> PyResult<()> {
        self.run.set_rate_at(at_ns, per_s).map_err(run_error)
    }

    /// As an interval log with one line.
    fn timer_lag(&self) -> String {
        latencies_log("timer_lag", &self.run.timer_lag())
    }

    fn stop(&self) {
        self.run.stop();
    }

    fn cancel(&self) {
        self.run.cancel();
    }

    fn end<'py>(&self, python: Python<'py>) -> PyResult<(Bound<'py, PyDict>, String)> {
        let (segment, ended) = python.detach(|| self.run.end());
        let Ended { phases, figures, errors, timer_lag, client_cpu_ns, process_cpu_ns, clock_drift, duration_ns } = ended;
        let names = self.operation_names();
        let errors: Vec<Value> = errors
            .into_iter()
            .map(|((phase, operation, kind), error)| {
                let (phase, operation) = (&phases[usize::from(phase)].name, names[usize::from(operation)]);
                json!({"phase": phase, "operation": operation, "kind": kind.name(), "count": error.count, "first_message": error.first_message})
            })
            .collect();
        let whole = json!({
            "phases": self.figures(&figures, &phases),
            "errors": errors,
            "timer_lag_ns": latencies_as_json(&timer_lag),
            "client_cpu_ns": client_cpu_ns,
            "process_cpu_ns": process_cpu_ns,
            "clock_drift": clock_drift,
            "duration_ns": duration_ns,
        });
        Ok((self.segment(python, segment)?, written(&whole)))
    }
}
