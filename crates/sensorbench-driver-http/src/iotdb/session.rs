//! Executing operations.

use std::sync::Arc;

use futures::future::LocalBoxFuture;
use sensorbench_driver::{AsyncConnector, AsyncSession, DriverError, Executing, Request, Rows, Value};

use super::answer;
use super::place::Place;
use super::precision::Precision;
use super::statement::Statement;
use super::tree;
use crate::connection::Call;
use crate::load::Form;
use crate::pool::Pool;
use crate::session::connected;
use crate::sql;
use crate::target::Target;
use crate::template::quoted;

/// More rows of an answer than this are an error of the server; by itself it takes 10,000.
const MAX_ROWS: i32 = i32::MAX;

/// A call for rows.
pub fn reading(database: &str, statement: &str) -> Call {
    let (database, statement) = (quoted(database), quoted(statement));
    let body = format!("{{\"database\":{database},\"sql\":{statement},\"row_limit\":{MAX_ROWS}}}");
    Call::post_json("/rest/table/v1/query", body.into_bytes())
}

/// A call that returns nothing.
pub fn running(database: &str, statement: &str) -> Call {
    let body = format!("{{\"database\":{},\"sql\":{}}}", quoted(database), quoted(statement));
    Call::post_json("/rest/table/v1/nonQuery", body.into_bytes())
}

/// An operation, ready to be executed.
pub type Prepared = sql::Prepared<Statement, Place>;

pub struct Connector {
    pub target: Arc<Target>,
    pub precision: Precision,
    pub operations: Arc<[Prepared]>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let pool = connected(&self.target, concurrency).await?;
            let Self { target, precision, operations } = self;
            let session = IotdbSession { target: target.clone(), precision: *precision, operations: operations.clone(), pool };
            Ok(Box::new(session) as Box<dyn AsyncSession>)
        })
    }
}

struct IotdbSession {
    target: Arc<Target>,
    precision: Precision,
    operations: Arc<[Prepared]>,
    pool: Pool,
}

impl AsyncSession for IotdbSession {
    /// Dropped before its end, the connection is closed.
    fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
        Box::pin(async move {
            let Request { operation, parameters, rows } = request.as_mut();
            let outcome = self.executed(&self.operations[*operation], parameters, rows).await;
            (request, outcome)
        })
    }

    fn writes_many(&self, operation: usize) -> bool {
        matches!(self.operations[operation], Prepared::Write(..))
    }
}

impl IotdbSession {
    async fn executed(&self, operation: &Prepared, parameters: &[Value], rows: &mut Rows) -> Result<(), DriverError> {
        let database = &self.target.namespace;
        match operation {
            Prepared::Read(statement, columns) => {
                let text = statement.text(self.precision, parameters)?;
                if statement.is_tree {
                    let reply = self.pool.ask(tree::reading(&text)).await?;
                    return tree::read(&reply, columns, self.precision, rows);
                }
                let reply = self.pool.ask(reading(database, &text)).await?;
                answer::read(&reply, columns, self.precision, rows)
            }
            Prepared::Run(statement) if statement.is_tree => {
                self.send(tree::running(&statement.text(self.precision, parameters)?)).await
            }
            Prepared::Run(statement) => self.send(running(database, &statement.text(self.precision, parameters)?)).await,
            Prepared::Write(place, places) => {
                self.send(place.call(places.written(parameters, |data, value| place.append(data, value))?)).await
            }
        }
    }

    async fn send(&self, call: Call) -> Result<(), DriverError> {
        let reply = self.pool.ask(call).await?;
        answer::refusal(&reply).map_or(Ok(()), |refusal| Err(DriverError::Statement(refusal)))
    }
}
