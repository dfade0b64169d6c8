//! Control of a target. Each call makes a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, Schema, Sessions, Size,
    SqlSchema,
};

use crate::control::Control;
use crate::dbms::Dbms;
use crate::layout::Layout;
use crate::link::Link;
use crate::load;
use crate::names::MARK;
use crate::namespace::{Namespace, with_place};
use crate::odbc::{Fact, Text};
use crate::operation_statement::OperationStatement;
use crate::pool::Pool;
use crate::session::Connector;

pub struct OdbcDriver {
    link: Arc<Link>,
    schema: KeptSchema<SqlSchema>,
}

impl OdbcDriver {
    pub fn new(link: Link) -> Self {
        Self { link: Arc::new(link), schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(&self.link.target.shown)
    }

    fn control(&self) -> Result<Control<'_>, DriverError> {
        Control::of(&self.link)
    }

    /// Who takes part, and how rows and text go to and fro.
    fn settings(&self, control: &Control) -> BTreeMap<String, String> {
        let text = if self.link.target.text == Text::Wide { "utf16" } else { "utf8" };
        let facts = [
            ("driver", Fact::DriverName),
            ("driver version", Fact::DriverVersion),
            ("driver's version of ODBC", Fact::DriverStandard),
            ("driver manager's version of ODBC", Fact::ManagerVersion),
        ];
        let facts = facts.map(|(name, fact)| (name.to_owned(), control.connection.fact(fact)));
        let own = [("rows", self.link.target.rows.to_string()), ("text", text.to_owned())];
        facts.into_iter().chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
    }
}

/// Every table that is filled exists, with columns for its fill.
fn check_tables(schema: &SqlSchema, control: &Control) -> Result<(), DriverError> {
    schema.tables().iter().try_for_each(|(table, columns)| Layout::of(table, columns, control).map(drop))
}

impl Driver for OdbcDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        let control = self.control()?;
        let mut settings = self.settings(&control);
        if let Some(operation_statement) = self.link.dbms().settings() {
            settings.extend(control.pairs(operation_statement)?);
        }
        let (database, version) = (control.connection.fact(Fact::DatabaseName), control.connection.fact(Fact::DatabaseVersion));
        Ok(Description { database, version, settings })
    }

    fn namespace(&self) -> String {
        format!("{}, namespace {}", self.link.target.shown, self.link.names.namespace())
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        Namespace { control: &self.control()? }.occupant()
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        let control = self.control()?;
        Namespace { control: &control }.create(&parsed, marker, admission)?;
        check_tables(&parsed, &control)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        let control = self.control()?;
        check_tables(&parsed, &control)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        Namespace { control: &self.control()? }.write_marker(marker)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        Namespace { control: &self.control()? }.remove()
    }

    /// Only the namespace that the URL names: its tables lie among others', and ODBC cannot ask for what is in them all.
    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        let name = self.link.names.namespace().to_owned();
        Ok(if matches!(self.occupant()?, Occupant::Ours(_)) { vec![name] } else { Vec::new() })
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        load::load(&self.control()?, table, schema.table(table)?, rows, progress)
    }

    /// Runs the schema's statements, then has databases that are known count what their tables hold: one schema is for all of
    /// them, and cannot say it in each one's words. The standard has no way to have everything written to disk.
    fn settle(&self) -> Result<(), DriverError> {
        let (schema, control) = (self.schema()?, self.control()?);
        for (place, statement) in schema.settle() {
            control.run(&self.link.names.place(statement).text).map_err(|error| with_place(place, error))?;
        }
        let tables = Namespace { control: &control }.tables()?;
        let mut counting = tables.iter().filter_map(|table| self.link.dbms().statistics(&self.link.names.table(table)));
        counting.try_for_each(|statement| control.run(&statement))
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let count = self.control()?.number(format!("SELECT count(*) FROM {}", self.link.names.table(table)))?;
        Ok(count.unwrap_or(0).max(0) as u64)
    }

    fn size(&self) -> Result<Size, DriverError> {
        let control = self.control()?;
        let mut size = Size::default();
        let tables = Namespace { control: &control }.tables()?;
        for name in tables.iter().map(String::as_str).chain([MARK]) {
            let Some(operation_statement) = self.link.dbms().table_bytes(&self.link.names.table(name)) else { break };
            let bytes = control.number(operation_statement)?.unwrap_or(0).max(0) as u64;
            size.total_bytes += bytes;
            if name != MARK {
                size.parts.insert(name.to_owned(), bytes);
            }
        }
        if let Some(operation_statement) = self.link.dbms().all_bytes() {
            size.total_bytes = control.number(operation_statement.to_owned())?.unwrap_or(0).max(0) as u64;
        } else if self.link.dbms() == Dbms::Other {
            let database = control.connection.fact(Fact::DatabaseName);
            size.unknown = Some(format!("ODBC has no way to ask for it, and sensorbench knows none for {database}"));
        }
        Ok(size)
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let operation_statements =
            operations.iter().map(|operation| OperationStatement::of(operation, &self.link.names)).collect::<Result<_, _>>()?;
        Ok(Sessions::Blocking(Box::new(Connector { pool: Pool::of(self.link.clone(), operation_statements)? })))
    }
}
