//! How far a load has come, for those who watch it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sensorbench_histogram::Latencies;

use crate::DriverError;

/// Counters that a loading driver moves and others read, and the wish to stop.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    retries: AtomicU64,
    stop: AtomicBool,
    batches: Mutex<Latencies>,
}

impl Progress {
    /// Counts rows that the database has taken in, in one batch that took this long.
    pub fn add_batch(&self, rows: u64, duration: std::time::Duration) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.batches.lock().expect("nothing panics under this lock").record(duration.as_nanos() as u64);
    }

    /// Counts requests that were sent again, because a database was too busy for them or away. Their rows count when they are in.
    pub fn add_retries(&self, retries: u64) {
        self.retries.fetch_add(retries, Ordering::Relaxed);
    }

    /// Requests that were sent again so far.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Rows taken in so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// How long batches took so far.
    pub fn batches(&self) -> Latencies {
        self.batches.lock().expect("nothing panics under this lock").clone()
    }

    /// Asks the load to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// An error when the load should stop. Asked once a batch.
    pub fn check(&self) -> Result<(), DriverError> {
        if self.stop.load(Ordering::Relaxed) { Err(DriverError::Cancelled) } else { Ok(()) }
    }
}
