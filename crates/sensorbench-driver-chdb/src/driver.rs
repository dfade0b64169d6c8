//! Control of a chDB target.

use std::sync::Arc;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Column, Description, Driver, DriverError, Marker, Occupant, Operation, Progress, Rows, Schema, Sessions, Size,
    SqlSchema, Watch,
};
use sensorbench_driver_http::clickhouse::{Client, Engine, name};

use crate::load;
use crate::session::Connector;
use crate::store::{Connection, DATABASE, Store};

impl Store {
    fn connect_to(&self, database: &str) -> Result<Arc<Connection>, DriverError> {
        let connection = self.connect()?;
        if database == DATABASE {
            connection.use_database()?;
        }
        Ok(connection)
    }
}

impl Engine for Store {
    fn place(&self) -> String {
        self.folder.path.display().to_string()
    }

    fn database(&self) -> &str {
        DATABASE
    }

    fn run(&self, database: &str, statement: String) -> Result<(), DriverError> {
        self.connect_to(database)?.run(&statement)
    }

    fn read(&self, statement: String, columns: &[Column], rows: &mut Rows) -> Result<(), DriverError> {
        self.connect()?.read(&statement, columns, rows)
    }
}

pub struct ChdbDriver(Client<Store>);

impl ChdbDriver {
    pub fn new(store: Store) -> Self {
        Self(Client::new(store))
    }

    fn store(&self) -> &Store {
        &self.0.engine
    }

    fn is_ours(&self) -> Result<bool, DriverError> {
        Ok(matches!(self.occupant()?, Occupant::Ours(_)))
    }

    /// Closes the folder and removes what is sensorbench's in it.
    fn remove_all(&self) -> Result<(), DriverError> {
        if !self.store().close() {
            return Err(DriverError::Namespace(format!("{}: somebody in this process uses the folder", self.namespace())));
        }
        self.store().folder.remove()
    }
}

impl Drop for ChdbDriver {
    fn drop(&mut self) {
        self.store().close();
    }
}

impl Driver for ChdbDriver {
    /// A folder that is not ours is not opened: the engine would write to it.
    fn describe(&self) -> Result<Description, DriverError> {
        let described = if self.is_ours()? { self.0.describe("chDB")? } else { Description::default() };
        let Description { version: clickhouse, mut settings, .. } = described;
        if !clickhouse.is_empty() {
            settings.insert("clickhouse".to_owned(), clickhouse);
        }
        Ok(Description { database: "chDB".to_owned(), version: self.store().library.version().to_owned(), settings })
    }

    fn namespace(&self) -> String {
        self.store().place()
    }

    fn elsewhere(&self) -> &'static str {
        "name another path"
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        self.store().folder.occupant()
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        SqlSchema::of(schema)?;
        if admission.replaces() {
            self.remove_all()?;
        }
        self.store().folder.write_marker(marker)?;
        self.store().run("system", format!("CREATE DATABASE {}", name(DATABASE)))?;
        self.0.create(schema)
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        self.0.attach(schema)
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        self.store().folder.write_marker(marker)
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.remove_all()
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        Ok(if self.is_ours()? { vec![self.namespace()] } else { Vec::new() })
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let found = self.0.table(table)?;
        load::load(&*self.store().connect()?, table, &found, rows, progress)
    }

    fn settle(&self) -> Result<(), DriverError> {
        self.0.settle()
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.0.count(table)
    }

    fn size(&self) -> Result<Size, DriverError> {
        Ok(Size { total_bytes: self.store().folder.bytes()?, parts: self.0.parts("")?, ..Size::default() })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let operations = self.0.prepare(operations)?.into();
        Ok(Sessions::Blocking(Box::new(Connector { store: self.store().clone(), operations, watch: Watch::start()? })))
    }
}
