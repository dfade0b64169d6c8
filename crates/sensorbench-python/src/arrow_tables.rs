//! Arrow tables from Python, and records of runs as Arrow tables.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array};
use arrow_pyarrow::PyArrowType;
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use sensorbench_engine::{Answer, Figures, Interval, OUTCOMES, ParameterTable, Probed, Record};

use crate::errors::{DataError, run_error};

/// The candidates of a plan's parameter sources.
pub fn parameter_tables(tables: Vec<PyArrowType<RecordBatchStreamReader>>) -> PyResult<Vec<ParameterTable>> {
    let table = |table: PyArrowType<RecordBatchStreamReader>| {
        let batches: Vec<RecordBatch> =
            table.0.collect::<Result<_, ArrowError>>().map_err(|error| DataError::new_err(error.to_string()))?;
        ParameterTable::of(&batches).map_err(run_error)
    };
    tables.into_iter().map(table).collect()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("columns of one length")
}

fn numbers(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

fn small_numbers(values: impl Iterator<Item = u16>) -> ArrayRef {
    Arc::new(UInt16Array::from_iter_values(values))
}

/// One row for each operation.
pub fn operation_log(log: &[Record]) -> RecordBatch {
    batch(vec![
        ("phase", small_numbers(log.iter().map(|record| record.phase))),
        ("operation", small_numbers(log.iter().map(|record| record.operation))),
        ("k", numbers(log.iter().map(|record| record.k))),
        ("slot", Arc::new(UInt32Array::from_iter_values(log.iter().map(|record| record.slot)))),
        ("outcome", Arc::new(StringArray::from_iter_values(log.iter().map(|record| record.outcome.name())))),
        ("intended_start_ns", numbers(log.iter().map(|record| record.intended_start_ns))),
        ("start_ns", numbers(log.iter().map(|record| record.start_ns))),
        ("end_ns", numbers(log.iter().map(|record| record.end_ns))),
        ("rows", numbers(log.iter().map(|record| record.rows))),
    ])
}

/// One row for each marker.
pub fn probed_markers(markers: &[Probed]) -> RecordBatch {
    let column = |value: fn(&Probed) -> u64| numbers(markers.iter().map(value));
    let time = |value: fn(&Probed) -> Option<u64>| -> ArrayRef { Arc::new(markers.iter().map(value).collect::<UInt64Array>()) };
    batch(vec![
        ("marker", column(|probed| probed.marker)),
        ("intended_start_ns", column(|probed| probed.intended_start_ns)),
        ("start_ns", column(|probed| probed.start_ns)),
        ("end_ns", column(|probed| probed.end_ns)),
        ("outcome", Arc::new(StringArray::from_iter_values(markers.iter().map(|probed| probed.outcome.name())))),
        ("missed_ns", time(|probed| probed.missed_ns)),
        ("found_ns", time(|probed| probed.found_ns)),
        ("reads", column(|probed| probed.reads)),
        ("failed_reads", column(|probed| probed.failed_reads)),
    ])
}

/// One row for each answer.
pub fn answers(answers: &[Answer]) -> RecordBatch {
    let mut computed = ListBuilder::new(Float64Builder::new());
    for answer in answers {
        computed.append_value(answer.digest.computed.iter().map(|value| Some(*value)));
    }
    batch(vec![
        ("phase", small_numbers(answers.iter().map(|answer| answer.phase))),
        ("operation", small_numbers(answers.iter().map(|answer| answer.operation))),
        ("k", numbers(answers.iter().map(|answer| answer.k))),
        ("rows", numbers(answers.iter().map(|answer| answer.digest.rows))),
        ("hash", numbers(answers.iter().map(|answer| answer.digest.hash))),
        ("in_order", Arc::new(answers.iter().map(|answer| answer.digest.in_order).collect::<BooleanArray>())),
        ("computed", Arc::new(computed.finish())),
    ])
}

/// One row for each interval, phase and operation in which something ended.
pub fn intervals(intervals: &[Interval], operations: usize, interval_ns: u64) -> RecordBatch {
    let cells: Vec<(u64, usize, &Figures)> = intervals
        .iter()
        .flat_map(|interval| interval.figures.iter().enumerate().map(|(cell, figures)| (interval.number, cell, figures)))
        .filter(|(_, _, figures)| figures.ended() > 0)
        .collect();
    let column = |value: fn(&Figures) -> u64| numbers(cells.iter().map(|(_, _, figures)| value(figures)));
    let quantile = |of: fn(&Figures) -> Option<u64>| -> ArrayRef {
        Arc::new(cells.iter().map(|(_, _, figures)| of(figures)).collect::<UInt64Array>())
    };
    let mean = |of: fn(&Figures) -> Option<f64>| -> ArrayRef {
        Arc::new(cells.iter().map(|(_, _, figures)| of(figures)).collect::<Float64Array>())
    };
    let mut columns = vec![
        ("start_ns", numbers(cells.iter().map(|(number, _, _)| number * interval_ns))),
        ("length_ns", numbers(cells.iter().map(|_| interval_ns))),
        ("phase", small_numbers(cells.iter().map(|(_, cell, _)| (cell / operations) as u16))),
        ("operation", small_numbers(cells.iter().map(|(_, cell, _)| (cell % operations) as u16))),
    ];
    for (number, outcome) in OUTCOMES.iter().enumerate() {
        columns.push((outcome.name(), numbers(cells.iter().map(|(_, _, figures)| figures.counts[number]))));
    }
    columns.extend([
        ("late", column(|figures| figures.late)),
        ("rows", column(|figures| figures.rows)),
        ("response_mean_ns", mean(|figures| figures.response.mean())),
        ("response_p50_ns", quantile(|figures| figures.response.quantile(0.5))),
        ("response_p95_ns", quantile(|figures| figures.response.quantile(0.95))),
        ("response_p99_ns", quantile(|figures| figures.response.quantile(0.99))),
        ("response_max_ns", quantile(|figures| figures.response.max())),
        ("service_p50_ns", quantile(|figures| figures.service.quantile(0.5))),
        ("service_p99_ns", quantile(|figures| figures.service.quantile(0.99))),
        ("service_max_ns", quantile(|figures| figures.service.max())),
    ]);
    batch(columns)
}
