//! The client for everything that is not measured, with a runtime of its own.

use std::sync::{Arc, Mutex};

use sensorbench_driver::{DriverError, runtime};
use tokio::runtime::Runtime;

use crate::connection::{Call, Reply};
use crate::pool::Pool;
use crate::target::Target;

/// Lends its connections to one caller at a time; they are opened when they are first needed.
pub struct Control {
    pub target: Arc<Target>,
    runtime: Mutex<Option<Runtime>>,
}

impl Control {
    pub fn new(target: Target) -> Self {
        Self { target: Arc::new(target), runtime: Mutex::new(None) }
    }

    /// Does something with connections to the server.
    pub fn with<T>(&self, connections: usize, work: impl AsyncFnOnce(&Pool) -> Result<T, DriverError>) -> Result<T, DriverError> {
        let mut kept = self.runtime.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.is_none() {
            *kept = Some(runtime()?);
        }
        let runtime = kept.as_ref().expect("was just made");
        runtime.block_on(async { work(&Pool::new(self.target.clone(), connections)).await })
    }

    /// Sends a request and takes its whole answer, whatever its status.
    pub fn ask(&self, call: Call) -> Result<Reply, DriverError> {
        self.with(1, async |pool| pool.ask(call).await)
    }

    /// The answer to a request; a refusal is an error.
    pub fn answer(&self, call: Call) -> Result<Reply, DriverError> {
        let reply = self.ask(call)?;
        if reply.status.is_success() { Ok(reply) } else { Err(DriverError::Statement(reply.shown())) }
    }
}
