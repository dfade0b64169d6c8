//! Executing operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use sensorbench_driver::{
    AsyncConnector, AsyncSession, Column, DriverError, Executing, Operation, Request, Rows, SchemaError, Value, parse_part,
};
use serde::Deserialize;
use serde_json::json;

use super::answer;
use super::precision::Precision;
use super::statement::Statement;
use super::table::Table;
use crate::connection::Call;
use crate::load::Form;
use crate::pool::Pool;
use crate::session::connected;
use crate::target::Target;

/// More rows of an answer than this are an error of the server; by itself it takes 10,000.
const MAX_ROWS: i32 = i32::MAX;

/// A call for rows.
pub fn reading(database: &str, statement: &str) -> Call {
    let body = json!({"database": database, "sql": statement, "row_limit": MAX_ROWS});
    Call::post_json("/rest/table/v1/query", body.to_string().into_bytes())
}

/// A call that returns nothing.
pub fn running(database: &str, statement: &str) -> Call {
    let body = json!({"database": database, "sql": statement});
    Call::post_json("/rest/table/v1/nonQuery", body.to_string().into_bytes())
}

/// An operation, ready to be executed.
#[derive(Clone)]
pub enum Prepared {
    Read(Statement, Vec<Column>),
    /// A statement that returns nothing.
    Run(Statement),
    /// A row of a table, whose columns are parameters in these places.
    Write(Table, Vec<usize>),
}

impl Prepared {
    /// Refuses an operation that cannot work, as far as that is known without a server.
    pub fn check(operation: &Operation) -> Result<(), DriverError> {
        if written(operation)?.is_none() {
            Statement::of(operation)?;
        }
        Ok(())
    }

    /// An operation; `table` finds a table with the columns that are written.
    pub fn of(operation: &Operation, table: impl FnOnce(&WriteText) -> Result<Table, DriverError>) -> Result<Self, DriverError> {
        let Some(text) = written(operation)? else {
            let statement = Statement::of(operation)?;
            return Ok(if operation.columns.is_empty() {
                Self::Run(statement)
            } else {
                Self::Read(statement, operation.columns.clone())
            });
        };
        let table = table(&text)?;
        let places = table.columns().map(|name| operation.require_parameter(name)).collect::<Result<_, _>>()?;
        Ok(Self::Write(table, places))
    }
}

/// `[operation.NAME]` that writes a row of a table; a column has the parameter of its own name, if no other one is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteText {
    pub write: String,
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
}

/// What an operation says that writes a row; None where it is a statement.
pub fn written(operation: &Operation) -> Result<Option<WriteText>, SchemaError> {
    if operation.statement.get("write").is_none() {
        return Ok(None);
    }
    parse_part(&format!("operation.{}", operation.name), &operation.statement).map(Some)
}

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
}

impl IotdbSession {
    async fn executed(&self, operation: &Prepared, parameters: &[Value], rows: &mut Rows) -> Result<(), DriverError> {
        let database = &self.target.namespace;
        match operation {
            Prepared::Read(statement, columns) => {
                let reply = self.pool.ask(reading(database, &statement.text(self.precision, parameters)?)).await?;
                answer::read(&reply, columns, self.precision, rows)
            }
            Prepared::Run(statement) => self.send(running(database, &statement.text(self.precision, parameters)?)).await,
            Prepared::Write(table, places) => self.send(table.row(places, parameters)?).await,
        }
    }

    async fn send(&self, call: Call) -> Result<(), DriverError> {
        let reply = self.pool.ask(call).await?;
        answer::refusal(&reply).map_or(Ok(()), |refusal| Err(DriverError::Statement(refusal)))
    }
}
