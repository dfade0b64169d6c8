//! Control of a target.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
};

use crate::command::Prepared;
use crate::control::Control;
use crate::namespace::Namespace;
use crate::schema::MongodbSchema;
use crate::session::Connector;
use crate::target::Target;
use crate::{errors, load, observe};

pub struct MongodbDriver {
    target: Arc<Target>,
    control: Control,
    schema: KeptSchema<MongodbSchema>,
}

impl MongodbDriver {
    pub fn new(target: Arc<Target>) -> Self {
        Self { control: Control::new(target.clone()), target, schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<MongodbSchema, DriverError> {
        self.schema.get(format_args!("the server at {}", self.target.shown))
    }

    fn in_namespace<T>(&self, work: impl AsyncFnOnce(Namespace<'_>) -> Result<T, DriverError>) -> Result<T, DriverError> {
        self.control.with(async |database| work(Namespace { target: &self.target, database }).await)
    }
}

impl Driver for MongodbDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.control.with(async |database| {
            let described = observe::describe(database, &self.target).await;
            described.map_err(|error| errors::statement_error(&self.target.shown, error))
        })
    }

    fn namespace(&self) -> String {
        format!("the server at {}, database {}", self.target.shown, self.target.namespace)
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.in_namespace(async |namespace| namespace.occupant().await)
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = MongodbSchema::of(schema)?;
        self.in_namespace(async |namespace| {
            namespace.create(marker, admission).await?;
            parsed.create(namespace.database, &self.target).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = MongodbSchema::of(schema)?;
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
        load::load(&self.control, &self.target, table, schema.table(table)?, rows, progress)
    }

    /// Runs the schema's commands. Nothing is forced to disk: what the server does about that is its own setting.
    fn settle(&self) -> Result<(), DriverError> {
        let schema = self.schema()?;
        self.control.with(async |database| schema.settle(database, &self.target).await)
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let schema = self.schema()?;
        let documents = schema.table(table)?;
        self.control.with(async |database| observe::count(database, &self.target, documents).await)
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.control.with(async |database| observe::size(database, &self.target).await)
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.control.with(async |database| {
            observe::status(database).await.map_err(|error| errors::statement_error(&self.target.shown, error))
        })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let prepared = operations.iter().map(|operation| Ok(Prepared::of(operation)?.at(&self.target)));
        let operations = prepared.collect::<Result<_, DriverError>>()?;
        Ok(Sessions::Asynchronous(Box::new(Connector { target: self.target.clone(), operations })))
    }
}
