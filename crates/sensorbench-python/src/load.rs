//! A load in progress while Python watches it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
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
    /// How it ended, and how long it took; None while it is running.
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

/// Rows that several workers take, a batch at a time.
#[derive(Clone)]
pub struct SharedRows {
    schema: SchemaRef,
    source: Arc<Mutex<Source>>,
}

/// Where they come from, and how many a batch has at most.
struct Source {
    rows: Box<dyn RecordBatchReader + Send>,
    batch_rows: usize,
    /// What is left of a batch that is larger.
    left: Option<RecordBatch>,
}

impl SharedRows {
    /// Rows in batches of at most this many.
    pub fn new(rows: Box<dyn RecordBatchReader + Send>, batch_rows: usize) -> Self {
        let source = Source { batch_rows, left: None, rows };
        Self { schema: source.rows.schema(), source: Arc::new(Mutex::new(source)) }
    }

    /// Loads them by several drivers of one target at the same time: each takes the next batch when it has sent one. When one of them fails,
    /// the others stop.
    pub fn load(&self, drivers: &[&dyn Driver], table: &str, progress: &Progress) -> Result<(), DriverError> {
        let work = |driver: &dyn Driver| {
            let loaded = driver.load(table, Box::new(self.clone()), progress);
            if loaded.is_err() {
                progress.stop();
            }
            loaded
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let started: Vec<_> = drivers.iter().map(|driver| scope.spawn(|| work(*driver))).collect();
            started.into_iter().map(|worker| worker.join().expect("drivers return their errors")).collect()
        });
        let errors: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        // Those that were stopped say less than the one that failed.
        match errors.iter().find(|error| !matches!(error, DriverError::Cancelled)).or(errors.first()) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl Iterator for SharedRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.source.lock().expect("nobody panics while it holds the lock").next()
    }
}

impl RecordBatchReader for SharedRows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Source {
    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let batch = match self.left.take() {
            Some(batch) => batch,
            None => match self.rows.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            },
        };
        if batch.num_rows() <= self.batch_rows {
            return Some(Ok(batch));
        }
        self.left = Some(batch.slice(self.batch_rows, batch.num_rows() - self.batch_rows));
        Some(Ok(batch.slice(0, self.batch_rows)))
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
        Ok(written(&json!({
            "rows": self.progress.rows(),
            "duration_s": duration.as_secs_f64(),
            "batches": batches.count(),
            "batch_s": batch_s,
            "retries": self.progress.retries(),
        })))
    }
}
