//! Executing operations.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request};

use super::connection::{Answered, Answering};
use super::pool::Pool;
use super::target::Target;
use crate::statement::OperationStatement;

/// Connections of a client thread where the URL does not say how many: one for each operation in flight, but no more than this.
/// Three client threads then still fit into the 100 connections that a server allows if nobody changed it. More operations
/// share connections.
const MAX_CONNECTIONS: usize = 32;

pub struct Connector {
    pub target: Arc<Target>,
    pub operations: Arc<[OperationStatement]>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let connections = self.target.connections.unwrap_or(concurrency.clamp(1, MAX_CONNECTIONS));
            let pool = Pool::open(self.target.clone(), self.operations.clone(), connections, concurrency > connections).await?;
            Ok(Box::new(PostgresqlSession { pool }) as Box<dyn AsyncSession>)
        })
    }
}

struct PostgresqlSession {
    pool: Arc<Pool>,
}

impl AsyncSession for PostgresqlSession {
    fn execute(&self, request: Box<Request>) -> Executing<'_> {
        Box::pin(self.answered(request))
    }
}

impl PostgresqlSession {
    async fn answered(&self, mut request: Box<Request>) -> (Box<Request>, Result<(), DriverError>) {
        loop {
            let connection = match self.pool.connection().await {
                Ok(connection) => connection,
                Err(error) => return (request, Err(error)),
            };
            if let Err(error) = connection.check(&request) {
                return (request, Err(error));
            }
            let outcome;
            (request, outcome) = InFlight { pool: &self.pool, answering: Some(connection.start(request)) }.await;
            // It was ended by a cancellation that was meant for the operation before it, and the server has undone what it did so far; or the connection
            // had been lost before. So it can be executed again.
            if !matches!(outcome, Err(DriverError::Cancelled)) {
                return (request, outcome);
            }
            request.rows.clear();
        }
    }
}

impl Drop for PostgresqlSession {
    fn drop(&mut self) {
        self.pool.close();
    }
}

/// An operation on a connection. Dropped before its end, it is given up.
struct InFlight<'a> {
    pool: &'a Arc<Pool>,
    /// None when it ended.
    answering: Option<Answering>,
}

impl Future for InFlight<'_> {
    type Output = Answered;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Self::Output> {
        let answering = self.answering.as_mut().expect("polled until it is ready");
        let polled = Pin::new(answering).poll(context);
        if polled.is_ready() {
            self.answering = None;
        }
        polled
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(answering) = self.answering.take() {
            self.pool.give_up(answering);
        }
    }
}
