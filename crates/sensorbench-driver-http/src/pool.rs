//! The connections of one thread: so many at most, each for one request at a time.

use std::cell::RefCell;
use std::sync::Arc;

use sensorbench_driver::DriverError;
use tokio::sync::Semaphore;

use crate::connection::{Call, Connection, Reply};
use crate::target::Target;

/// Connections of one thread. More requests wait until one of them is free.
pub struct Pool {
    target: Arc<Target>,
    permits: Semaphore,
    idle: RefCell<Vec<Connection>>,
}

impl Pool {
    pub fn new(target: Arc<Target>, connections: usize) -> Self {
        Self { target, permits: Semaphore::new(connections), idle: RefCell::default() }
    }

    /// Opens all connections, so that no request pays for it.
    pub async fn fill(&self, connections: usize) -> Result<(), DriverError> {
        for _ in 0..connections {
            let connection = Connection::open(&self.target).await?;
            self.idle.borrow_mut().push(connection);
        }
        Ok(())
    }

    /// Sends a request and takes its answer as it comes. A connection whose request is given up, or failed, is closed.
    pub async fn exchange(&self, call: Call, take: impl FnMut(&[u8]) -> Result<(), DriverError>) -> Result<Reply, DriverError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let mut connection = self.connection().await?;
        let reply = connection.exchange(&self.target, call, take).await?;
        if reply.status == hyper::StatusCode::UNAUTHORIZED || reply.status == hyper::StatusCode::FORBIDDEN {
            return Err(self.target.not_let_in(reply.shown()));
        }
        self.idle.borrow_mut().push(connection);
        Ok(reply)
    }

    async fn connection(&self) -> Result<Connection, DriverError> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            match idle {
                None => return Connection::open(&self.target).await,
                Some(mut connection) => {
                    if connection.is_usable().await {
                        return Ok(connection);
                    }
                }
            }
        }
    }

    /// Sends a request and takes its whole answer.
    pub async fn ask(&self, call: Call) -> Result<Reply, DriverError> {
        let mut body = Vec::new();
        let mut reply = self
            .exchange(call, |data| {
                body.extend_from_slice(data);
                Ok(())
            })
            .await?;
        if reply.status.is_success() {
            reply.body = body;
        }
        Ok(reply)
    }
}
