//! Control of a target.

use std::collections::BTreeMap;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
};

use crate::control::Control;
use crate::load;
use crate::protocol::Protocol;
use crate::schema::HttpSchema;
use crate::session::Connector;
use crate::target::Target;

pub struct HttpDriver {
    protocol: &'static dyn Protocol,
    control: Control,
    schema: KeptSchema<HttpSchema>,
}

impl HttpDriver {
    pub fn new(protocol: &'static dyn Protocol, target: Target) -> Self {
        Self { protocol, control: Control::new(target), schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<HttpSchema, DriverError> {
        self.schema.get(format_args!("the server at {}", self.control.target.shown))
    }
}

impl Driver for HttpDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.protocol.describe(&self.control)
    }

    fn namespace(&self) -> String {
        format!("the server at {}, {}", self.control.target.shown, self.protocol.namespace(&self.control))
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.protocol.occupant(&self.control)
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = HttpSchema::of(schema, self.protocol)?;
        if admission.replaces() {
            self.protocol.remove(&self.control)?;
        }
        self.protocol.create(&self.control, schema, marker)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        self.schema.keep(HttpSchema::of(schema, self.protocol)?);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.protocol.write_marker(&self.control, marker)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.protocol.remove(&self.control)
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        self.protocol.namespaces(&self.control)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        load::load(self.protocol, &self.control, table, schema.table(table)?, rows, progress)
    }

    fn settle(&self) -> Result<(), DriverError> {
        self.protocol.settle(&self.control)
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let schema = self.schema()?;
        self.protocol.count(&self.control, schema.table(table)?)
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.protocol.size(&self.control)
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.protocol.status(&self.control)
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let schema = self.schema()?;
        let namespace = &self.control.target.namespace;
        let prepared = operations.iter().map(|operation| schema.prepare(self.protocol, namespace, operation));
        let operations = prepared.collect::<Result<_, DriverError>>()?;
        let connector = Connector { protocol: self.protocol, target: self.control.target.clone(), operations };
        Ok(Sessions::Asynchronous(Box::new(connector)))
    }
}
