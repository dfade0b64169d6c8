//! Control of a target.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, ConversionError, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema,
    Sessions, Size, ValueRef,
};

use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::load::{self, Form};
use crate::point_form;
use crate::points::Points;
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
        let form = PointsOfTable {
            protocol: self.protocol,
            points: schema.table(table)?,
            target: &self.control.target,
            prefix: self.protocol.scope(&self.control)?.prefix,
        };
        load::load(&form, &self.control, table, rows, progress)
    }

    fn write_load_file(
        &self,
        table: &str,
        rows: Box<dyn RecordBatchReader + Send>,
        file: &Path,
        progress: &Progress,
    ) -> Result<(), DriverError> {
        self.protocol.write_load_file(&self.control, self.schema()?.table(table)?, rows, file, progress)
    }

    fn settle(&self) -> Result<(), DriverError> {
        self.protocol.settle(&self.control)
    }

    fn show(&self) -> Result<(), DriverError> {
        self.protocol.show(&self.control)
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.count_incomplete(table, &BTreeMap::new())
    }

    fn count_incomplete(&self, table: &str, missing: &BTreeMap<String, u64>) -> Result<u64, DriverError> {
        let schema = self.schema()?;
        let points = schema.table(table)?;
        points.count_rows(missing, |field| self.protocol.count(&self.control, points, field))
    }

    fn size(&self) -> Result<Size, DriverError> {
        self.protocol.size(&self.control)
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.protocol.status(&self.control)
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let schema = self.schema()?;
        let scope = self.protocol.scope(&self.control)?;
        let prepared = operations.iter().map(|operation| schema.prepare(self.protocol, &scope, operation));
        let operations = prepared.collect::<Result<_, DriverError>>()?;
        let connector =
            Connector { protocol: self.protocol, prefix: scope.prefix, target: self.control.target.clone(), operations };
        Ok(Sessions::Asynchronous(Box::new(connector)))
    }
}

/// A batch of points is sent when it has this many, or is so large.
const FULL_BATCH: (u64, usize) = (10_000, 4 << 20);

/// Rows as points.
struct PointsOfTable<'a> {
    protocol: &'static dyn Protocol,
    points: &'a Points,
    target: &'a Target,
    prefix: String,
}

impl Form for PointsOfTable<'_> {
    fn columns(&self) -> impl Iterator<Item = &str> {
        self.points.columns.iter().map(|column| column.name.as_str())
    }

    fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError> {
        point_form::append(self.points, data, &self.prefix, value)
    }

    fn call(&self, data: Vec<u8>) -> Call {
        self.protocol.write_batch(self.target, data)
    }

    fn refusal(&self, reply: &Reply) -> Option<String> {
        self.protocol.refusal(reply)
    }

    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64> {
        self.protocol.kept_of_refused(rows, reply)
    }

    fn full_batch(&self) -> (u64, usize) {
        FULL_BATCH
    }

    fn keeps_order(&self) -> bool {
        self.protocol.loads_in_order()
    }
}
