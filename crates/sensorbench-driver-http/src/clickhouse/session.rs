//! Executing operations.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use sensorbench_driver::{AsyncConnector, AsyncSession, Column, DriverError, Executing, Request, Rows, Value};

use super::native::Answer;
use super::statement::Statement;
use super::table::Table;
use crate::connection::Call;
use crate::load::Form;
use crate::pool::Pool;
use crate::row_places::RowPlaces;
use crate::session::connected;
use crate::sql;
use crate::target::Target;

/// Where calls for rows go. Servers that can leave out dictionaries do.
pub fn reading_path(database: &str, settings: &str) -> Bytes {
    format!("/?database={database}&readonly=2&low_cardinality_allow_in_native_format=0{settings}").into()
}

/// A call for rows.
pub fn reading(path: Bytes, mut statement: String) -> Call {
    statement.push_str(" FORMAT Native");
    Call::post(path, statement.into_bytes())
}

/// An operation, ready to be executed.
pub type Prepared = sql::Prepared<Statement, Table>;

pub struct Connector {
    pub target: Arc<Target>,
    /// What every call for rows asks of the server besides, as a part of its path.
    pub settings: &'static str,
    pub operations: Arc<[Prepared]>,
}

impl AsyncConnector for Connector {
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>> {
        Box::pin(async move {
            let pool = connected(&self.target, concurrency).await?;
            let Self { target, settings, operations } = self;
            let reading_path = reading_path(&target.namespace, settings);
            let session = ClickhouseSession { target: target.clone(), reading_path, operations: operations.clone(), pool };
            Ok(Box::new(session) as Box<dyn AsyncSession>)
        })
    }
}

struct ClickhouseSession {
    target: Arc<Target>,
    reading_path: Bytes,
    operations: Arc<[Prepared]>,
    pool: Pool,
}

impl AsyncSession for ClickhouseSession {
    /// Dropped before its end, the connection is closed, by which a server that cares knows that nobody waits any more.
    fn execute(&self, mut request: Box<Request>) -> Executing<'_> {
        Box::pin(async move {
            let Request { operation, parameters, rows } = request.as_mut();
            let outcome = match &self.operations[*operation] {
                Prepared::Read(statement, columns) => self.read(statement.text(parameters), columns, rows).await,
                Prepared::Run(statement) => {
                    self.send(Call::post(format!("/?database={}", self.target.namespace), statement.text(parameters).into()))
                        .await
                }
                Prepared::Write(table, places) => self.write(table, places, parameters).await,
            };
            (request, outcome)
        })
    }

    fn writes_many(&self, operation: usize) -> bool {
        matches!(self.operations[operation], Prepared::Write(..))
    }
}

impl ClickhouseSession {
    async fn read(&self, statement: String, columns: &[Column], rows: &mut Rows) -> Result<(), DriverError> {
        read(&self.pool, reading(self.reading_path.clone(), statement), columns, rows).await
    }

    async fn write(&self, table: &Table, places: &RowPlaces, parameters: &[Value]) -> Result<(), DriverError> {
        self.send(table.call(places.written(parameters, |data, value| table.append(data, value))?)).await
    }

    async fn send(&self, call: Call) -> Result<(), DriverError> {
        let reply = self.pool.ask(call).await?;
        if reply.status.is_success() { Ok(()) } else { Err(DriverError::Statement(reply.shown())) }
    }
}

/// Sends a call for rows of these columns and appends them.
pub async fn read(pool: &Pool, call: Call, columns: &[Column], rows: &mut Rows) -> Result<(), DriverError> {
    let mut answer = Answer::of(columns);
    let reply = pool.exchange(call, |data| answer.take(data, rows)).await?;
    if reply.status.is_success() { answer.finish(rows) } else { Err(DriverError::Statement(reply.shown())) }
}
