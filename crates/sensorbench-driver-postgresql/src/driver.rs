//! Control of a target.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, ReplayConnector,
    ReplayRequest, Schema, Sessions, Size, SqlSchema, WriteCheck, WriteQuestion,
};
use tokio_postgres::{Client, Error};

use crate::dialect::BulkLoad;
use crate::lines;
use crate::namespace::Namespace;
use crate::statement::OperationStatement;
use crate::wire::{
    Connector, Control, LoadOrder, Replayer, Target, check_reads, check_tables, check_writes, copy, errors, insert_many, run,
};

/// A target of whichever dialect.
pub struct WireDriver {
    target: Arc<Target>,
    control: Control,
    schema: KeptSchema<SqlSchema>,
}

impl WireDriver {
    pub fn new(target: Arc<Target>) -> Self {
        Self { control: Control::new(target.clone()), target, schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(&self.target.place)
    }

    fn in_namespace<T>(&self, work: impl AsyncFnOnce(Namespace<'_>) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.control.with(async |client| work(Namespace { target: &self.target, client }).await)
    }

    async fn catch_up(&self, client: &Client) -> Result<(), DriverError> {
        let Target { dialect, place, namespace, .. } = &*self.target;
        dialect.catch_up(client, place, namespace).await
    }

    fn refused(&self) -> impl Fn(Error) -> DriverError {
        |error| errors::statement_error(&self.target.place, error)
    }
}

impl Driver for WireDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.control.with(async |client| self.target.dialect.describe(client, &self.target.url).await.map_err(self.refused()))
    }

    fn namespace(&self) -> String {
        format!("{}, {}", self.target.place, self.target.dialect.namespace(&self.target.namespace))
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.in_namespace(async |namespace| namespace.occupant().await)
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.in_namespace(async |namespace| {
            namespace.create(marker, admission).await?;
            run(parsed.create(), namespace.client, &self.target).await?;
            check_tables(&parsed, namespace.client, &self.target).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.control.with(async |client| check_tables(&parsed, client, &self.target).await)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.in_namespace(async |namespace| namespace.write_marker(marker).await)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.in_namespace(async |namespace| namespace.remove().await)
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        self.in_namespace(async |namespace| namespace.all().await)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let columns = schema.table(table)?;
        let order = LoadOrder { control: &self.control, target: &self.target, table, columns, progress };
        match self.target.dialect.bulk_load() {
            BulkLoad::Copy => copy(&order, rows),
            BulkLoad::Lines => lines::load(&order, rows),
            BulkLoad::Inserts => insert_many(&order, rows),
        }
    }

    /// Waits until all rows can be read, runs the schema's statements, then has the server write everything to its tables' files, where the user may ask for that.
    fn settle(&self) -> Result<(), DriverError> {
        let schema = self.schema()?;
        self.control.with(async |client| {
            self.catch_up(client).await?;
            run(schema.settle(), client, &self.target).await?;
            self.catch_up(client).await?;
            self.target.dialect.flush(client, &self.target.namespace).await.map_err(self.refused())
        })
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let query = format!("SELECT count(*) FROM {}", self.target.dialect.table(&self.target.namespace, table));
        let rows: i64 = self.control.with(async |client| {
            self.catch_up(client).await?;
            client.query_one(&query, &[]).await.and_then(|row| row.try_get(0)).map_err(self.refused())
        })?;
        Ok(rows as u64)
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.control.with(async |client| self.target.dialect.size(client, &self.target.namespace).await.map_err(self.refused()))
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.control.with(async |client| self.target.dialect.status(client).await.map_err(self.refused()))
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let operations = operations.iter().map(OperationStatement::of).collect::<Result<_, _>>()?;
        Ok(Sessions::Asynchronous(Box::new(Connector { target: self.target.clone(), operations })))
    }

    fn replayer(&self, request: ReplayRequest) -> Result<Box<dyn ReplayConnector>, DriverError> {
        Ok(Box::new(Replayer::of(self.target.clone(), request)?))
    }

    fn check_writes(&self, question: WriteQuestion) -> Result<Vec<WriteCheck>, DriverError> {
        let WriteQuestion { templates, writes, reads, read_only } = question;
        let namespace = &self.target.namespace;
        self.control.with(async |client| {
            if read_only {
                // The server itself refuses what they would change.
                return Ok(Vec::new());
            }
            let mut checks = check_writes(client, namespace, templates, writes).await.map_err(self.refused())?;
            checks.extend(check_reads(client, namespace, templates, reads).await.map_err(self.refused())?);
            Ok(checks)
        })
    }
}
