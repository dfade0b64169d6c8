//! Executing operations.

use std::sync::Arc;

use bson::Document;
use futures::StreamExt;
use futures::future::{LocalBoxFuture, try_join_all};
use mongodb::action::Action;
use mongodb::error::Error;
use mongodb::{Client, Database};
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request};
use tokio::runtime::Handle;

use crate::command::{Prepared, Reply};
use crate::errors;
use crate::target::Target;

/// Connections of a client thread where the URL does not say how many: one for each operation in flight, but no more than this,
/// which is the library's own limit. More operations wait for one of them.
const MAX_CONNECTIONS: usize = 100;

pub struct Connector {
    pub target: Arc<Target>,
    pub operations: Arc<[Prepared]>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let connections = self.target.connections.unwrap_or(concurrency.clamp(1, MAX_CONNECTIONS));
            let client = self.target.client(connections)?;
            let session = MongodbSession {
                target: self.target.clone(),
                operations: self.operations.clone(),
                database: self.target.database(&client),
                client: Some(client),
                runtime: Handle::current(),
            };
            // All at once, so that each opens a connection of its own.
            try_join_all((0..connections).map(|_| session.ping())).await?;
            Ok(Box::new(session) as Box<dyn AsyncSession>)
        })
    }
}

struct MongodbSession {
    target: Arc<Target>,
    operations: Arc<[Prepared]>,
    database: Database,
    client: Option<Client>,
    runtime: Handle,
}

impl AsyncSession for MongodbSession {
    /// Dropped before its end, the library closes the connection, by which the server knows that nobody waits any more.
    fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
        Box::pin(async move {
            let outcome = self.answer(&mut request).await;
            (request, outcome)
        })
    }
}

impl MongodbSession {
    async fn ping(&self) -> Result<(), DriverError> {
        let pinged = self.database.run_command(bson::doc! {"ping": 1}).await;
        pinged.map(|_| ()).map_err(|error| self.refused(error))
    }

    async fn answer(&self, request: &mut Request) -> Result<(), DriverError> {
        let operation = &self.operations[request.operation];
        let command = operation.command(request)?;
        if operation.reply == Reply::Cursor {
            let sent = self.database.run_raw_cursor_command(command);
            let sent = sent.optional(self.target.read_preference.clone(), |sent, preference| sent.selection_criteria(preference));
            let mut batches = sent.batch().await.map_err(|error| self.refused(error))?;
            while let Some(batch) = batches.next().await {
                let batch = batch.map_err(|error| self.refused(error))?;
                for document in batch.doc_slices().map_err(|error| self.refused(error))? {
                    let document = document.map_err(|error| DriverError::Data(error.to_string()))?;
                    let document =
                        document.as_document().ok_or_else(|| DriverError::Data("a row is not a document".to_owned()))?;
                    operation.push(document, request)?;
                }
            }
            return Ok(());
        }
        let read_preference = if operation.writes { None } else { self.target.read_preference.clone() };
        let sent = self.database.run_raw_command(command);
        let sent = sent.optional(read_preference, |sent, preference| sent.selection_criteria(preference));
        let reply = sent.await.map_err(|error| self.refused(error))?;
        check_written(&reply)?;
        operation.push_reply(&reply, request)
    }

    fn refused(&self, error: Error) -> DriverError {
        errors::statement_error(&self.target.shown, error)
    }
}

impl Drop for MongodbSession {
    /// The library tidies up by a task, which needs the runtime.
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        self.client.take();
    }
}

/// A write that the server answers with `ok` may have failed all the same.
fn check_written(reply: &Document) -> Result<(), DriverError> {
    let first = reply.get_array("writeErrors").ok().and_then(|errors| errors.first()).and_then(|error| error.as_document());
    let message = |error: &Document| error.get_str("errmsg").unwrap_or("it does not say why").to_owned();
    if let Some(error) = first {
        return Err(DriverError::Statement(message(error)));
    }
    match reply.get_document("writeConcernError") {
        Ok(error) => Err(DriverError::Statement(format!("the write concern was not met: {}", message(error)))),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn writes_that_failed_are_told() {
        assert!(check_written(&doc! {"ok": 1, "n": 1}).is_ok());
        let refusal = |reply| check_written(&reply).unwrap_err().to_string();
        assert_eq!(
            refusal(doc! {"ok": 1, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "duplicate key"}]}),
            "duplicate key"
        );
        let concern = doc! {"ok": 1, "writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}};
        assert_eq!(refusal(concern), "the write concern was not met: waiting for replication timed out");
    }
}
