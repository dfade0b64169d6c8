//! Executing operations.

use std::sync::Arc;

use sensorbench_driver::{BlockingConnector, BlockingSession, Deadline, DriverError, Request};

use crate::pool::Pool;

/// Makes sessions that share the connections of a pool.
pub struct Connector {
    pub pool: Arc<Pool>,
}

impl BlockingConnector for Connector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        self.pool.open()?;
        Ok(Box::new(OdbcSession { pool: self.pool.clone(), deadline }))
    }
}

struct OdbcSession {
    pool: Arc<Pool>,
    deadline: Arc<Deadline>,
}

impl BlockingSession for OdbcSession {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        self.pool.execute(request, &self.deadline)
    }
}
