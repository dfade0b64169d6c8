//! Markers that are written and watched while Python does something else.

use std::sync::{Mutex, MutexGuard};

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use crate::arrow_tables::probed_markers;
use crate::errors::UsageError;

#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Freshness {
    /// None when it is over.
    freshness: Mutex<Option<sensorbench_engine::Freshness>>,
}

impl Freshness {
    pub fn new(freshness: sensorbench_engine::Freshness) -> Self {
        Self { freshness: Mutex::new(Some(freshness)) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<sensorbench_engine::Freshness>> {
        self.freshness.lock().expect("nothing panics under this lock")
    }
}

fn over() -> PyErr {
    UsageError::new_err("the markers are over")
}

#[pymethods]
impl Freshness {
    fn now_ns(&self) -> PyResult<u64> {
        self.lock().as_ref().map(sensorbench_engine::Freshness::now_ns).ok_or_else(over)
    }

    fn stop(&self) -> PyResult<()> {
        self.lock().as_ref().map(sensorbench_engine::Freshness::stop).ok_or_else(over)
    }

    fn end(&self, python: Python) -> PyResult<PyArrowType<RecordBatch>> {
        let freshness = self.lock().take().ok_or_else(over)?;
        Ok(PyArrowType(probed_markers(&python.detach(|| freshness.end()))))
    }
}
