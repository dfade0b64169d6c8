//! The client for everything that is not measured, with a runtime of its own.

use std::sync::{Arc, Mutex};

use mongodb::{Client, Database};
use sensorbench_driver::{DriverError, runtime};
use tokio::runtime::Runtime;

use crate::target::Target;

/// Lends a client to one caller at a time; it is made when it is first needed.
pub struct Control {
    target: Arc<Target>,
    line: Mutex<Option<Line>>,
}

struct Line {
    runtime: Runtime,
    client: Client,
}

impl Control {
    pub fn new(target: Arc<Target>) -> Self {
        Self { target, line: Mutex::new(None) }
    }

    /// Does something in sensorbench's database, which knows its client.
    pub fn with<T>(&self, work: impl AsyncFnOnce(&Database) -> Result<T, DriverError>) -> Result<T, DriverError> {
        let mut line = self.line.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if line.is_none() {
            *line = Some(Line::open(&self.target)?);
        }
        let line = line.as_ref().expect("was just made");
        line.runtime.block_on(work(&self.target.database(&line.client)))
    }
}

impl Line {
    fn open(target: &Target) -> Result<Self, DriverError> {
        let runtime = runtime()?;
        let client = runtime.block_on(async { target.client(LOADING_CONNECTIONS) })?;
        Ok(Self { runtime, client })
    }
}

/// As many connections as batches are in flight while loading.
pub const LOADING_CONNECTIONS: usize = 4;

impl Drop for Line {
    /// The library tidies up by tasks, which need the runtime.
    fn drop(&mut self) {
        let client = self.client.clone();
        self.runtime.block_on(client.shutdown().immediate(true).into_future());
    }
}
