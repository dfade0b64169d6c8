//! Control of a target. Each call makes a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, ReplayConnector,
    ReplayRequest, Schema, Sessions, Size, SqlSchema, WriteCheck, WriteQuestion,
};

use crate::dialect::quoted;
use crate::namespace::Namespace;
use crate::wire::{Connector, Link, Replayer, check_tables, check_writes, load, run};

/// A target of whichever dialect.
pub struct WireDriver {
    link: Arc<Link>,
    schema: KeptSchema<SqlSchema>,
}

impl WireDriver {
    pub fn new(link: Arc<Link>) -> Self {
        Self { link, schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(self.link.server.shown())
    }

    /// Does something on a connection of its own.
    fn control<T>(&self, work: impl AsyncFnOnce(&mut Conn) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.runtime()?.block_on(async { with(self.link.connect().await?, work).await })
    }

    /// Does something inside sensorbench's own database.
    fn inside<T>(&self, work: impl AsyncFnOnce(&mut Conn) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.runtime()?.block_on(async { with(self.link.connect_inside().await?, work).await })
    }

    fn runtime(&self) -> Result<tokio::runtime::Runtime, DriverError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| self.link.connection_error(format!("an asynchronous runtime: {error}")))
    }

    fn own<'a>(&'a self, connection: &'a mut Conn) -> Namespace<'a> {
        Namespace { link: &self.link, connection }
    }
}

/// Does something and takes leave of the server.
async fn with<T>(mut connection: Conn, work: impl AsyncFnOnce(&mut Conn) -> Result<T, DriverError>) -> Result<T, DriverError> {
    let outcome = work(&mut connection).await;
    // Whether the server hears the farewell does not matter any more.
    let _ = connection.disconnect().await;
    outcome
}

impl Driver for WireDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.control(async |connection| self.link.dialect.describe(connection).await.map_err(|error| self.link.error(error)))
    }

    fn namespace(&self) -> String {
        format!("{}, database {}", self.link.server.shown(), self.link.server.namespace)
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.control(async |connection| self.own(connection).occupant().await)
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.control(async |connection| {
            self.own(connection).create(marker, admission).await?;
            run(parsed.create(), &self.link, connection).await?;
            check_tables(&parsed, &self.link, connection).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.inside(async |connection| check_tables(&parsed, &self.link, connection).await)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.control(async |connection| self.own(connection).write_marker(marker).await)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.control(async |connection| self.own(connection).remove().await)
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        self.control(async |connection| self.own(connection).all().await)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let columns = schema.table(table)?;
        self.inside(async |connection| load(&self.link, connection, table, columns, rows, progress).await)
    }

    /// Runs the schema's statements, then writes everything to disk.
    fn settle(&self) -> Result<(), DriverError> {
        let schema = self.schema()?;
        self.inside(async |connection| {
            run(schema.settle(), &self.link, connection).await?;
            let flushed = self.link.dialect.flush(&self.link.server.namespace, connection).await;
            flushed.map_err(|error| self.link.error(error))
        })
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.inside(async |connection| {
            let count = connection.query_first(format!("SELECT count(*) FROM {}", quoted(table))).await;
            Ok(count.map_err(|error| self.link.error(error))?.unwrap_or(0))
        })
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.inside(async |connection| {
            let size = self.link.dialect.size(&self.link.server.namespace, connection).await;
            size.map_err(|error| self.link.error(error))
        })
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.control(async |connection| self.link.dialect.status(connection).await.map_err(|error| self.link.error(error)))
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        Ok(Sessions::Asynchronous(Box::new(Connector::of(self.link.clone(), operations)?)))
    }

    fn replayer(&self, request: ReplayRequest) -> Result<Box<dyn ReplayConnector>, DriverError> {
        Ok(Box::new(Replayer::of(self.link.clone(), request)))
    }

    fn check_writes(&self, question: WriteQuestion) -> Result<Vec<WriteCheck>, DriverError> {
        self.runtime()?.block_on(async {
            let connection = self.link.connect_as_recorded(question.read_only).await?;
            with(connection, async |connection| check_writes(&self.link, connection, question).await).await
        })
    }
}
