//! HdrHistogram interval logs.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_array::{RecordBatch, StringArray, UInt64Array};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_engine::Interval;
use sensorbench_histogram::{Latencies, TaggedInterval, interval_log_header, interval_log_line};

use crate::errors::DataError;

/// The intervals as a log of its own, tags being `phase.operation.kind`; empty when there are none.
pub fn interval_log(intervals: &[Interval], phases: &[String], operations: &[&str], interval_ns: u64) -> String {
    let mut log = String::new();
    for interval in intervals {
        for (cell, figures) in interval.figures.iter().enumerate() {
            let (phase, operation) = (&phases[cell / operations.len()], operations[cell % operations.len()]);
            let kinds = [
                ("response", &figures.response),
                ("service", &figures.service),
                ("wait", &figures.wait),
                ("failed", &figures.failed),
            ];
            for (kind, latencies) in kinds.into_iter().filter(|(_, latencies)| !latencies.is_empty()) {
                log += &line(format!("{phase}.{operation}.{kind}"), interval.number * interval_ns, interval_ns, latencies);
            }
        }
    }
    if log.is_empty() { log } else { interval_log_header() + &log }
}

/// Latencies of a whole run as a log of one line; empty when there are none.
pub fn latencies_log(tag: &str, latencies: &Latencies) -> String {
    if latencies.is_empty() { String::new() } else { interval_log_header() + &line(tag.to_owned(), 0, 0, latencies) }
}

fn line(tag: String, start_ns: u64, length_ns: u64, latencies: &Latencies) -> String {
    let interval = TaggedInterval {
        tag,
        start: Duration::from_nanos(start_ns),
        length: Duration::from_nanos(length_ns),
        latencies: latencies.clone(),
    };
    interval_log_line(&interval).expect("names of phases and operations are checked to be words")
}

/// The same log with one line for each tag, which has all its intervals.
#[pyfunction]
pub fn summed_interval_log(python: Python, text: &str) -> PyResult<String> {
    let summed = python.detach(|| sensorbench_histogram::summed_interval_log(text));
    summed.map_err(|error| DataError::new_err(error.to_string()))
}

/// One row for each line of the log: its tag, start and length, the counted values and their counts.
#[pyfunction]
pub fn read_interval_log(python: Python, text: &str) -> PyResult<PyArrowType<RecordBatch>> {
    let intervals = python
        .detach(|| sensorbench_histogram::read_interval_log(text))
        .map_err(|error| DataError::new_err(error.to_string()))?;
    let (mut values, mut counts) = (ListBuilder::new(UInt64Builder::new()), ListBuilder::new(UInt64Builder::new()));
    for interval in &intervals {
        values.append_value(interval.latencies.bins().map(|(value, _)| Some(value)));
        counts.append_value(interval.latencies.bins().map(|(_, count)| Some(count)));
    }
    let nanoseconds = |of: fn(&TaggedInterval) -> Duration| {
        Arc::new(UInt64Array::from_iter_values(intervals.iter().map(|interval| of(interval).as_nanos() as u64)))
    };
    let batch = RecordBatch::try_from_iter([
        ("tag", Arc::new(StringArray::from_iter_values(intervals.iter().map(|interval| &interval.tag))) as _),
        ("start_ns", nanoseconds(|interval| interval.start) as _),
        ("length_ns", nanoseconds(|interval| interval.length) as _),
        ("value_ns", Arc::new(values.finish()) as _),
        ("count", Arc::new(counts.finish()) as _),
    ]);
    batch.map(PyArrowType).map_err(|error| DataError::new_err(error.to_string()))
}
