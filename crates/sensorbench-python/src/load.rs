//! A load that goes on while Python watches it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sensorbench_driver::{Driver, DriverError, Progress};
use serde_json::json;

use crate::errors::{driver_error, written};

#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Load {
    progress: Arc<Progress>,
    outcome: Arc<Outcome>,
}

#[derive(Default)]
struct Outcome {
    /// How it ended, and how long it took; None while it goes on.
    ended: Mutex<Option<(Result<(), DriverError>, Duration)>>,
    changed: Condvar,
}

impl Load {
    /// Starts what takes in rows, on a thread of its own.
    pub fn start(
        driver: Arc<dyn Driver>,
        load: impl FnOnce(&dyn Driver, &Progress) -> Result<(), DriverError> + Send + 'static,
    ) -> Self {
        let (progress, outcome) = (Arc::new(Progress::default()), Arc::new(Outcome::default()));
        let (thread_progress, thread_outcome) = (progress.clone(), outcome.clone());
        std::thread::spawn(move || {
            let start = Instant::now();
            let result = load(driver.as_ref(), &thread_progress);
            *thread_outcome.ended.lock().expect("nothing panics under this lock") = Some((result, start.elapsed()));
            thread_outcome.changed.notify_all();
        });
        Self { progress, outcome }
    }
}

#[pymethods]
impl Load {
    fn wait(&self, python: Python, timeout_s: f64) -> bool {
        python.detach(|| {
            let ended = self.outcome.ended.lock().expect("nothing panics under this lock");
            let timeout = Duration::from_secs_f64(timeout_s);
            let waited = self.outcome.changed.wait_timeout_while(ended, timeout, |ended| ended.is_none());
            waited.expect("nothing panics under this lock").0.is_some()
        })
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.progress.rows()
    }

    fn stop(&self) {
        self.progress.stop();
    }

    /// What the load did, when it is over; raises its error.
    fn result(&self) -> PyResult<String> {
        let ended = self.outcome.ended.lock().expect("nothing panics under this lock");
        let (result, duration) = ended.as_ref().expect("asked for when wait said so");
        result.clone().map_err(driver_error)?;
        let batches = self.progress.batches();
        let seconds = |nanoseconds: Option<u64>| nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9);
        let batch_s =
            json!({"p50": seconds(batches.quantile(0.5)), "p99": seconds(batches.quantile(0.99)), "max": seconds(batches.max())});
        Ok(written(
            &json!({"rows": self.progress.rows(), "duration_s": duration.as_secs_f64(), "batches": batches.count(), "batch_s": batch_s}),
        ))
    }
}
