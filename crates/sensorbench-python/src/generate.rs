//! Generated rows and batched rows as Arrow streams.

use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_dataset::generator::{
    Articles, ArticlesPlan, Building, BuildingSeries, Fitted, FittedSeries, GeneratedRows, MachineLog, MachineLogPlan,
};
use sensorbench_dataset::{BatchedRows, Batching};

use crate::errors::{DataError, parsed};

type Stream = PyArrowType<Box<dyn RecordBatchReader + Send>>;

#[pyfunction]
pub fn generate_building(series: &str, seed: u64, start_us: i64, minutes: usize, threads: usize) -> PyResult<Stream> {
    let series: Vec<BuildingSeries> = parsed(series)?;
    Ok(PyArrowType(Box::new(GeneratedRows::new(Arc::new(Building::new(series, seed, start_us, minutes)), threads))))
}

#[pyfunction]
pub fn generate_fitted(series: &str, seed: u64, start_us: i64, end_us: i64, copies: usize, threads: usize) -> PyResult<Stream> {
    let series: Vec<FittedSeries> = parsed(series)?;
    Ok(PyArrowType(Box::new(GeneratedRows::new(Arc::new(Fitted::new(series, seed, start_us, end_us, copies)), threads))))
}

#[pyfunction]
pub fn generate_machine_log(plan: &str, seed: u64, threads: usize) -> PyResult<Stream> {
    let plan: MachineLogPlan = parsed(plan)?;
    Ok(PyArrowType(Box::new(GeneratedRows::new(Arc::new(MachineLog::new(plan, seed)), threads))))
}

#[pyfunction]
pub fn generate_articles(plan: &str, seed: u64, first_id: u64, end_id: u64, threads: usize) -> PyResult<Stream> {
    let plan: ArticlesPlan = parsed(plan)?;
    Ok(PyArrowType(Box::new(GeneratedRows::new(Arc::new(Articles::new(plan, seed, first_id..end_id)), threads))))
}

#[pyfunction]
pub fn batch_rows(rows: PyArrowType<RecordBatchStreamReader>, batching: &str) -> PyResult<Stream> {
    let batching: Batching = parsed(batching)?;
    let batched = BatchedRows::new(rows.0, batching).map_err(|error| DataError::new_err(error.to_string()))?;
    Ok(PyArrowType(Box::new(batched)))
}
