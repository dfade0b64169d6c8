//! Executing operations: each on a connection of its own while it lasts, from a pool that all operations of a session share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::LocalBoxFuture;
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Operation, Request};

use super::link::Link;
use super::pool::{Lease, Pool, Setup};
use super::statement::Statement;

/// A session has no more connections than these, unless the URL says otherwise. A server executes about as many statements at a time
/// as it has processors; more connections than these cost it memory and switching between threads, and gain nothing.
pub const MAX_CONNECTIONS: usize = 64;

pub struct Connector {
    setup: Arc<Setup>,
}

impl Connector {
    pub fn of(link: Arc<Link>, operations: &[Operation]) -> Result<Self, DriverError> {
        let statements = operations.iter().map(Statement::of).collect::<Result<_, _>>()?;
        Ok(Self { setup: Arc::new(Setup { link, statements }) })
    }
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        let connections = self.setup.link.server.connections.unwrap_or(concurrency.clamp(1, MAX_CONNECTIONS));
        Box::pin(async move {
            let pool = Pool::open(self.setup.clone(), connections).await?;
            Ok(Box::new(MysqlSession { pool }) as Box<dyn AsyncSession>)
        })
    }
}

struct MysqlSession {
    pool: Arc<Pool>,
}

impl AsyncSession for MysqlSession {
    fn execute(&self, request: Box<Request>) -> Executing<'_> {
        match self.pool.free_connection() {
            Some(lease) => Box::pin(Executed::on(&self.pool, lease, request)),
            None => Box::pin(async move {
                match self.pool.next_connection().await {
                    Ok(lease) => Executed::on(&self.pool, lease, request).await,
                    Err(error) => (request, Err(error)),
                }
            }),
        }
    }
}

impl Drop for MysqlSession {
    /// What was cancelled last must not keep running at the server when nobody is left to see to it.
    fn drop(&mut self) {
        self.pool.end_called_off();
    }
}

type Ended = (Lease, Box<Request>, Result<(), DriverError>);

/// An operation on its connection. When it is dropped before its end, the rest of it is done elsewhere, because the connection is of no
/// use before the answer is read to its end.
struct Executed<'a> {
    pool: &'a Arc<Pool>,
    connection_id: u32,
    /// False as long as the server has heard nothing of it.
    has_begun: bool,
    /// None when it has ended.
    operation: Option<Pin<Box<dyn Future<Output = Ended> + Send>>>,
}

impl<'a> Executed<'a> {
    fn on(pool: &'a Arc<Pool>, mut lease: Lease, mut request: Box<Request>) -> Self {
        let connection_id = lease.connection_id();
        let operation = Box::pin(async move {
            let outcome = lease.execute(&mut request).await;
            (lease, request, outcome)
        });
        Self { pool, connection_id, has_begun: false, operation: Some(operation) }
    }
}

impl Future for Executed<'_> {
    type Output = (Box<Request>, Result<(), DriverError>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Self::Output> {
        self.has_begun = true;
        let operation = self.operation.as_mut().expect("a future is not polled after its end");
        let (_lease, request, outcome) = ready!(operation.as_mut().poll(context));
        self.operation = None;
        Poll::Ready((request, outcome))
    }
}

impl Drop for Executed<'_> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take().filter(|_| self.has_begun) {
            let rest = async move {
                let (lease, ..) = operation.await;
                lease
            };
            self.pool.call_off(self.connection_id, rest);
        }
    }
}
