//! Control of a ClickHouse server.

use std::collections::BTreeMap;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Column, Description, Driver, DriverError, Marker, Occupant, Operation, Progress, Rows, Schema, Sessions, Size,
    SqlSchema,
};

use super::client::{Client, Engine, literal};
use super::session::{Connector, read, reading, reading_path};
use super::statement::name;
use crate::connection::Call;
use crate::control::Control;
use crate::load;
use crate::target::Target;

/// Our own table, with the marker in it.
const MARKER_TABLE: &str = "sensorbench";
/// The marker that was written last holds.
const MARKER_COLUMNS: &str = "(n UInt64, mark String)";
/// From this main version on, the server gives up a query for which nobody waits any more.
const GIVES_UP: u64 = 19;
const GIVE_UP: &str = "&cancel_http_readonly_queries_on_client_close=1";
/// The status: gauges, counters since the start, and what is sampled now and then.
const STATUS: &str = "SELECT concat('metric.', metric), toFloat64(value) FROM system.metrics \
    UNION ALL SELECT concat('event.', event), toFloat64(value) FROM system.events \
    UNION ALL SELECT concat('asynchronous.', metric), toFloat64(value) FROM system.asynchronous_metrics";

/// A server over HTTP.
struct Server(Control);

impl Engine for Server {
    fn place(&self) -> String {
        format!("the server at {}", self.0.target.shown)
    }

    fn database(&self) -> &str {
        &self.0.target.namespace
    }

    fn run(&self, database: &str, statement: String) -> Result<(), DriverError> {
        self.0.answer(Call::post(format!("/?database={database}"), statement.into_bytes())).map(drop)
    }

    fn read(&self, statement: String, columns: &[Column], rows: &mut Rows) -> Result<(), DriverError> {
        let call = reading(reading_path("system", ""), statement);
        self.0.with(1, async |pool| read(pool, call, columns, rows).await)
    }
}

pub struct ClickhouseDriver(Client<Server>);

impl ClickhouseDriver {
    pub fn new(target: Target) -> Self {
        Self(Client::new(Server(Control::new(target))))
    }

    fn database(&self) -> &str {
        self.0.engine.database()
    }

    /// Whether the server is of this main version, or a later one.
    fn is_from(&self, version: u64) -> Result<bool, DriverError> {
        let found = self.0.version()?;
        Ok(found.split('.').next().and_then(|first| first.parse::<u64>().ok()).is_some_and(|found| found >= version))
    }

    /// Runs a statement that names its database itself.
    fn run(&self, statement: String) -> Result<(), DriverError> {
        self.0.engine.run("system", statement)
    }

    /// The text where a marker would be; None if a database has none.
    fn marker_text(&self, database: &str) -> Result<Option<String>, DriverError> {
        let wanted = format!("database = {} AND table = '{MARKER_TABLE}'", literal(database));
        let columns =
            self.0.texts(&format!("SELECT concat(name, ' ', type) FROM system.columns WHERE {wanted} ORDER BY name"))?;
        if format!("({})", [columns[1..].to_vec(), columns[..1].to_vec()].concat().join(", ")) != MARKER_COLUMNS {
            return Ok(None);
        }
        let last = format!("SELECT mark FROM {}.{MARKER_TABLE} ORDER BY n DESC LIMIT 1", name(database));
        Ok(self.0.texts(&last)?.into_iter().next())
    }

    /// Removes the database, the marker last, so that what is left of a removal that was cut short is still ours.
    fn remove_all(&self) -> Result<(), DriverError> {
        let database = self.database();
        let wanted = format!("database = {} AND name != '{MARKER_TABLE}'", literal(database));
        for table in self.0.texts(&format!("SELECT name FROM system.tables WHERE {wanted}"))? {
            self.run(format!("DROP TABLE IF EXISTS {}.{}", name(database), name(&table)))?;
        }
        self.run(format!("DROP DATABASE IF EXISTS {}", name(database)))
    }
}

impl Driver for ClickhouseDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        self.0.describe("ClickHouse")
    }

    fn namespace(&self) -> String {
        format!("{}, database {}", self.0.engine.place(), self.database())
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        let database = self.database();
        if self.0.number(&format!("SELECT count() FROM system.databases WHERE name = {}", literal(database)))? == 0 {
            return Ok(Occupant::Absent);
        }
        let text = self.marker_text(database)?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's database".to_owned()))
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        SqlSchema::of(schema)?;
        if admission.replaces() {
            self.remove_all()?;
        }
        let database = name(self.database());
        self.run(format!("CREATE DATABASE {database}"))?;
        self.run(format!("CREATE TABLE {database}.{MARKER_TABLE} {MARKER_COLUMNS} ENGINE = MergeTree() ORDER BY n"))?;
        self.write_marker(marker, admission)?;
        self.0.create(schema)
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        self.0.attach(schema)
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        let table = format!("{}.{MARKER_TABLE}", name(self.database()));
        self.run(format!("INSERT INTO {table} SELECT max(n) + 1, {} FROM {table}", literal(&marker.to_text())))
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.remove_all()
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        let databases =
            self.0.texts(&format!("SELECT database FROM system.tables WHERE name = '{MARKER_TABLE}' ORDER BY database"))?;
        let mut ours = Vec::new();
        for database in databases {
            if self.marker_text(&database)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(database);
            }
        }
        Ok(ours)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        load::load(&self.0.table(table)?, &self.0.engine.0, table, rows, progress)
    }

    fn settle(&self) -> Result<(), DriverError> {
        self.0.settle()
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.0.count(table)
    }

    fn size(&self) -> Result<Size, DriverError> {
        let parts = self.0.parts(MARKER_TABLE)?;
        Ok(Size { total_bytes: parts.values().sum(), parts, ..Size::default() })
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        self.0.figures(STATUS)
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let operations = self.0.prepare(operations)?.into();
        let settings = if self.is_from(GIVES_UP)? { GIVE_UP } else { "" };
        Ok(Sessions::Asynchronous(Box::new(Connector { target: self.0.engine.0.target.clone(), settings, operations })))
    }
}
