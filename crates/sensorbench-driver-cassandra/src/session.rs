//! Executing operations.

use std::sync::Arc;

use futures::future::LocalBoxFuture;
use scylla::client::session::Session;
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request};

use crate::prepared::Prepared;
use crate::schema::OperationStatement;
use crate::target::Target;

/// Connections of a client thread to each node where the URL does not say how many: one for this many operations in flight. Each
/// connection carries thousands of them, but the server reads a connection with one thread.
const IN_FLIGHT_A_CONNECTION: usize = 64;
pub const MAX_CONNECTIONS: usize = 4;

pub struct Connector {
    pub target: Arc<Target>,
    pub operations: Arc<[OperationStatement]>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let default = concurrency.div_ceil(IN_FLIGHT_A_CONNECTION).clamp(1, MAX_CONNECTIONS);
            let (target, connections) = (&self.target, self.target.server.connections.unwrap_or(default));
            let session = target.connect(connections, Some(&target.server.namespace)).await?;
            let mut prepared = Vec::with_capacity(self.operations.len());
            for operation in self.operations.iter() {
                prepared.push(Prepared::of(&session, &self.target, operation).await?);
            }
            Ok(Box::new(CassandraSession { session, prepared, target: self.target.clone() }) as Box<dyn AsyncSession>)
        })
    }
}

struct CassandraSession {
    session: Session,
    prepared: Vec<Prepared>,
    target: Arc<Target>,
}

impl AsyncSession for CassandraSession {
    /// An operation that is given up is forgotten: the protocol has no way to end it, and its answer is thrown away when it comes.
    fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
        Box::pin(async move {
            let prepared = &self.prepared[request.operation];
            let done = prepared.execute(&self.session, &self.target.shown, &mut request).await;
            (request, done)
        })
    }
}
