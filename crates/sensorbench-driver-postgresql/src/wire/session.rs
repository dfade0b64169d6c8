//! Executing operations.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request};

use super::connection::{Answered, Answering, Connection};
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
            let pool = Pool::open(self.target.clone(), self.operations.clone(), connections).await?;
            Ok(Box::new(PostgresqlSession { pool, spare: RefCell::default() }) as Box<dyn AsyncSession>)
        })
    }
}

struct PostgresqlSession {
    pool: Arc<Pool>,
    /// Operations that are over, whose memory is used again.
    spare: RefCell<Vec<Answering>>,
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
            (request, outcome) = InFlight::start(self, connection, request).await;
            // It was ended by a cancellation that was meant for the operation before it. The server has undone what it did so far,
            // so it can be executed anew.
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
    session: &'a PostgresqlSession,
    connection: Arc<Connection>,
    number: u64,
    answering: Option<Answering>,
}

impl<'a> InFlight<'a> {
    #[inline]
    fn start(session: &'a PostgresqlSession, connection: Arc<Connection>, request: Box<Request>) -> Self {
        let (number, answered) = connection.start(request);
        let answering = match session.spare.borrow_mut().pop() {
            Some(mut spare) => {
                spare.set(answered);
                spare
            }
            None => Answering::new(answered),
        };
        Self { session, connection, number, answering: Some(answering) }
    }
}

impl Future for InFlight<'_> {
    type Output = Answered;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Self::Output> {
        let answering = self.answering.as_mut().expect("polled until it is ready");
        let polled = answering.poll(context);
        if polled.is_ready() {
            self.session.spare.borrow_mut().extend(self.answering.take());
        }
        polled
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(answering) = self.answering.take() {
            self.session.pool.give_up(&self.connection, self.number, answering);
        }
    }
}
