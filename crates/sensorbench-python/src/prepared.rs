//! A run whose sessions are connected, and that waits for its start.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;

use crate::errors::UsageError;
use crate::run::Run;

#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Prepared {
    /// None once it has started.
    prepared: Mutex<Option<sensorbench_engine::Prepared>>,
}

impl Prepared {
    pub fn new(prepared: sensorbench_engine::Prepared) -> Self {
        Self { prepared: Mutex::new(Some(prepared)) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<sensorbench_engine::Prepared>> {
        self.prepared.lock().expect("nothing panics under this lock")
    }
}

#[pymethods]
impl Prepared {
    fn start_at(&self, python: Python, at_ns: u64) -> PyResult<Run> {
        let prepared = self.lock().take().ok_or_else(|| UsageError::new_err("the run has started already"))?;
        Ok(Run::new(python.detach(|| prepared.start_at(at_ns))))
    }
}
