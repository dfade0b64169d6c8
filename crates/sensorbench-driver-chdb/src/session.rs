//! Executing operations: a thread and a connection for each in flight.

use std::sync::Arc;

use sensorbench_driver::{BlockingConnector, BlockingSession, Deadline, DriverError, Request, Running, Watch};
use sensorbench_driver_http::clickhouse::Prepared;

use crate::store::{Connection, Store};

pub struct Connector {
    pub store: Store,
    pub operations: Arc<[Prepared]>,
    pub watch: Arc<Watch<Connection>>,
}

impl BlockingConnector for Connector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        let connection = self.store.connect()?;
        connection.use_database()?;
        let (operations, watch) = (self.operations.clone(), self.watch.clone());
        Ok(Box::new(ChdbSession { connection, operations, deadline, running: watch.running(), _watch: watch }))
    }
}

struct ChdbSession {
    connection: Arc<Connection>,
    operations: Arc<[Prepared]>,
    deadline: Arc<Deadline>,
    running: Arc<Running<Connection>>,
    /// Sessions outlive what made them, and are to be watched all the same.
    _watch: Arc<Watch<Connection>>,
}

impl BlockingSession for ChdbSession {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        let Request { operation, parameters, rows } = request;
        let connection = &self.connection;
        let outcome = self.running.during(connection, &self.deadline, || match &self.operations[*operation] {
            Prepared::Read(statement, columns) => connection.read(&statement.text(parameters), columns, rows),
            Prepared::Run(statement) => connection.run(&statement.text(parameters)),
            Prepared::Write(table, places) => {
                let rows = places.written(parameters, |data, value| table.append(data, value))?;
                connection.insert(table.insert(), &rows)
            }
        });
        match outcome {
            Err(DriverError::Timeout) => Err(self.deadline.passed().unwrap_or(DriverError::Timeout)),
            other => other,
        }
    }

    fn writes_many(&self, operation: usize) -> bool {
        matches!(self.operations[operation], Prepared::Write(..))
    }
}
