//! Generated rows and batched rows as Arrow streams.

use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_dataset::generator::{
    Articles, ArticlesPlan, Building, BuildingSeries, Devices, DevicesPlan, Fitted, FittedSeries, GeneratedRows, Hosts,
    MachineLog, MachineLogPlan, Parts, Stations, StationsPlan, Telemetry, TelemetryPlan, Trucks, Walks, WalksPlan,
};
use sensorbench_dataset::{BatchedRows, Batching};

use crate::errors::{DataError, parsed};

type Stream = PyArrowType<Box<dyn RecordBatchReader + Send>>;

/// A generator, of which any range of parts can be had.
#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Generator(Arc<dyn Parts>);

#[pymethods]
impl Generator {
    #[getter]
    fn parts(&self) -> usize {
        self.0.parts()
    }

    #[pyo3(signature = (threads, first = 0, end = None))]
    fn rows(&self, threads: usize, first: usize, end: Option<usize>) -> Stream {
        let numbers = first..end.unwrap_or(usize::MAX);
        PyArrowType(Box::new(GeneratedRows::range(self.0.clone(), numbers, threads)))
    }
}

#[pyfunction]
pub fn generate_building(series: &str, seed: u64, start_us: i64, minutes: usize) -> PyResult<Generator> {
    let series: Vec<BuildingSeries> = parsed(series)?;
    Ok(Generator(Arc::new(Building::new(series, seed, start_us, minutes))))
}

#[pyfunction]
pub fn generate_fitted(series: &str, seed: u64, start_us: i64, end_us: i64, copies: usize) -> PyResult<Generator> {
    let series: Vec<FittedSeries> = parsed(series)?;
    Ok(Generator(Arc::new(Fitted::new(series, seed, start_us, end_us, copies))))
}

#[pyfunction]
pub fn generate_machine_log(plan: &str, seed: u64) -> PyResult<Generator> {
    let plan: MachineLogPlan = parsed(plan)?;
    Ok(Generator(Arc::new(MachineLog::new(plan, seed))))
}

#[pyfunction]
pub fn generate_articles(plan: &str, seed: u64, first_id: u64, end_id: u64) -> PyResult<Generator> {
    let plan: ArticlesPlan = parsed(plan)?;
    Ok(Generator(Arc::new(Articles::new(plan, seed, first_id..end_id))))
}

#[pyfunction]
pub fn generate_walks(plan: &str, seed: u64) -> PyResult<Generator> {
    let plan: WalksPlan = parsed(plan)?;
    Ok(Generator(Arc::new(Walks::new(plan, seed))))
}

#[pyfunction]
pub fn generate_stations(plan: &str, seed: u64) -> PyResult<Generator> {
    let plan: StationsPlan = parsed(plan)?;
    Ok(Generator(Arc::new(Stations::new(plan, seed))))
}

#[pyfunction]
pub fn generate_devices(plan: &str, seed: u64) -> PyResult<Generator> {
    let plan: DevicesPlan = parsed(plan)?;
    Ok(Generator(Arc::new(Devices::new(plan, seed))))
}

#[pyfunction]
pub fn generate_hosts(hosts: u64, seed: u64, of_measurements: bool) -> Generator {
    Generator(Arc::new(Hosts::new(hosts, seed, of_measurements)))
}

#[pyfunction]
pub fn generate_telemetry(plan: &str, seed: u64) -> PyResult<Generator> {
    let plan: TelemetryPlan = parsed(plan)?;
    let (fields, max_fields) = (plan.fields.len(), Telemetry::MAX_FIELDS);
    if fields > max_fields {
        return Err(DataError::new_err(format!("a measurement of {fields} fields; expected at most {max_fields}")));
    }
    Ok(Generator(Arc::new(Telemetry::new(plan, seed))))
}

#[pyfunction]
pub fn generate_trucks(trucks: u64, seed: u64) -> Generator {
    Generator(Arc::new(Trucks::new(trucks, seed)))
}

#[pyfunction]
pub fn batch_rows(rows: PyArrowType<RecordBatchStreamReader>, batching: &str) -> PyResult<Stream> {
    let batching: Batching = parsed(batching)?;
    let batched = BatchedRows::new(rows.0, batching).map_err(|error| DataError::new_err(error.to_string()))?;
    Ok(PyArrowType(Box::new(batched)))
}
