//! Control of a ClickHouse target.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Column, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Parameter, Progress, Rows,
    Schema, SchemaError, Sessions, Size, SqlSchema, Type, Value, ValueRef,
};

use super::session::{Connector, Prepared, read, reading};
use super::statement::{Statement, append_literal, name};
use super::table::Table;
use crate::connection::Call;
use crate::control::Control;
use crate::load::{self, Form};
use crate::sql::written;
use crate::target::Target;

/// Our own table, with the marker in it.
const MARKER_TABLE: &str = "sensorbench";
/// The marker that was written last holds.
const MARKER_COLUMNS: &str = "(n UInt64, mark String)";
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// From this main version on, the server gives up a query for which nobody waits any more.
const GIVES_UP: u64 = 19;
const GIVE_UP: &str = "&cancel_http_readonly_queries_on_client_close=1";
/// Settings that matter to speed and durability.
const SETTINGS: &str = "SELECT name, value FROM system.settings WHERE name IN ('async_insert', 'fsync_metadata', 'max_block_size', \
    'max_memory_usage', 'max_threads', 'optimize_move_to_prewhere', 'use_uncompressed_cache', 'wait_for_async_insert') \
    UNION ALL SELECT name, value FROM system.merge_tree_settings WHERE name IN ('fsync_after_insert', 'fsync_part_directory', \
    'index_granularity', 'parts_to_throw_insert')";
/// The status: gauges, counters since the start, and what is sampled now and then.
const STATUS: &str = "SELECT concat('metric.', metric), toFloat64(value) FROM system.metrics \
    UNION ALL SELECT concat('event.', event), toFloat64(value) FROM system.events \
    UNION ALL SELECT concat('asynchronous.', metric), toFloat64(value) FROM system.asynchronous_metrics";

pub struct ClickhouseDriver {
    control: Control,
    schema: KeptSchema<SqlSchema>,
}

impl ClickhouseDriver {
    pub fn new(target: Target) -> Self {
        Self { control: Control::new(target), schema: KeptSchema::default() }
    }

    fn database(&self) -> &str {
        &self.control.target.namespace
    }

    /// The rows of a statement, in whatever database.
    fn rows(&self, statement: &str, types: &[Type]) -> Result<Vec<Vec<Value>>, DriverError> {
        let column = |value_type: &Type| Column { name: "value".to_owned(), value_type: *value_type, computed: false };
        let columns: Vec<_> = types.iter().map(column).collect();
        let mut rows = Rows::new();
        let call = reading("system", "", statement.to_owned());
        self.control.with(1, async |pool| read(pool, call, &columns, &mut rows).await)?;
        Ok(rows.iter().map(|row| (0..row.columns()).map(|place| row.value(place).to_value()).collect()).collect())
    }

    fn texts(&self, statement: &str) -> Result<Vec<String>, DriverError> {
        Ok(self.rows(statement, &[Type::Text])?.into_iter().filter_map(|row| row.into_iter().next().and_then(text)).collect())
    }

    fn number(&self, statement: &str) -> Result<u64, DriverError> {
        Ok(self.rows(statement, &[Type::Integer])?.first().and_then(|row| row.first()).map_or(0, whole))
    }

    fn version(&self) -> Result<String, DriverError> {
        Ok(self.texts("SELECT version()")?.into_iter().next().unwrap_or_default())
    }

    /// Whether the server is of this main version, or a later one.
    fn is_from(&self, version: u64) -> Result<bool, DriverError> {
        let found = self.version()?;
        Ok(found.split('.').next().and_then(|first| first.parse::<u64>().ok()).is_some_and(|found| found >= version))
    }

    /// Runs a statement in a database.
    fn run(&self, database: &str, statement: String) -> Result<(), DriverError> {
        self.control.answer(Call::post(format!("/?database={database}"), statement.into_bytes())).map(drop)
    }

    /// Runs statements of the schema, each with its place in the file.
    fn run_all<'a>(&self, statements: impl Iterator<Item = (String, &'a str)>) -> Result<(), DriverError> {
        for (place, statement) in statements {
            self.run(self.database(), statement.to_owned()).map_err(|error| at(place, error))?;
        }
        Ok(())
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(format_args!("the server at {}", self.control.target.shown))
    }

    /// A table with these columns, as the server has it.
    fn table(&self, table: &str, columns: &[Parameter]) -> Result<Table, DriverError> {
        let database = self.database();
        let wanted = format!("database = {} AND table = {}", literal(database), literal(table));
        let found = self.rows(&format!("SELECT name, type FROM system.columns WHERE {wanted}"), &[Type::Text, Type::Text])?;
        let found: Vec<_> = found.into_iter().filter_map(pair).collect();
        Table::of(database, table, columns, &found).map_err(|problem| SchemaError::at(format!("fill.{table}"), problem).into())
    }

    /// The text where a marker would be; None where a database has none.
    fn marker_text(&self, database: &str) -> Result<Option<String>, DriverError> {
        let wanted = format!("database = {} AND table = '{MARKER_TABLE}'", literal(database));
        let columns = self.texts(&format!("SELECT concat(name, ' ', type) FROM system.columns WHERE {wanted} ORDER BY name"))?;
        if format!("({})", [columns[1..].to_vec(), columns[..1].to_vec()].concat().join(", ")) != MARKER_COLUMNS {
            return Ok(None);
        }
        let last = format!("SELECT mark FROM {}.{MARKER_TABLE} ORDER BY n DESC LIMIT 1", name(database));
        Ok(self.texts(&last)?.into_iter().next())
    }

    /// Removes the database, the marker last, so that what is left of a removal that was cut short is still ours.
    fn remove_all(&self) -> Result<(), DriverError> {
        let database = self.database();
        let wanted = format!("database = {} AND name != '{MARKER_TABLE}'", literal(database));
        for table in self.texts(&format!("SELECT name FROM system.tables WHERE {wanted}"))? {
            self.run("system", format!("DROP TABLE IF EXISTS {}.{}", name(database), name(&table)))?;
        }
        self.run("system", format!("DROP DATABASE IF EXISTS {}", name(database)))
    }

    fn check_tables(&self, schema: &SqlSchema) -> Result<(), DriverError> {
        schema.tables().iter().try_for_each(|(table, columns)| self.table(table, columns).map(drop))
    }

    fn prepare(&self, schema: &SqlSchema, operation: &Operation) -> Result<Prepared, DriverError> {
        Prepared::of(operation, Statement::of, |text| {
            let table = match schema.table(&text.write) {
                Ok(columns) => self.table(&text.write, columns)?,
                // What the schema does not fill has the columns that are written.
                Err(_) => self.table(&text.write, &named_as_columns(&operation.parameters, &text.columns))?,
            };
            let place = |column: &str| operation.require_parameter(text.columns.get(column).map_or(column, String::as_str));
            let places = table.columns().map(place).collect::<Result<_, _>>()?;
            Ok((table, places))
        })
    }
}

impl Driver for ClickhouseDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        let settings = self.rows(SETTINGS, &[Type::Text, Type::Text])?;
        Ok(Description {
            database: "ClickHouse".to_owned(),
            version: self.version()?,
            settings: settings.into_iter().filter_map(pair).collect(),
        })
    }

    fn namespace(&self) -> String {
        format!("the server at {}, database {}", self.control.target.shown, self.database())
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        let database = self.database();
        if self.number(&format!("SELECT count() FROM system.databases WHERE name = {}", literal(database)))? == 0 {
            return Ok(Occupant::Absent);
        }
        let text = self.marker_text(database)?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's database".to_owned()))
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        if admission.replaces() {
            self.remove_all()?;
        }
        let database = name(self.database());
        self.run("system", format!("CREATE DATABASE {database}"))?;
        self.run("system", format!("CREATE TABLE {database}.{MARKER_TABLE} {MARKER_COLUMNS} ENGINE = MergeTree() ORDER BY n"))?;
        self.write_marker(marker, admission)?;
        self.run_all(parsed.create())?;
        self.check_tables(&parsed)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.check_tables(&parsed)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        let table = format!("{}.{MARKER_TABLE}", name(self.database()));
        self.run("system", format!("INSERT INTO {table} SELECT max(n) + 1, {} FROM {table}", literal(&marker.to_text())))
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        self.remove_all()
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        let databases =
            self.texts(&format!("SELECT database FROM system.tables WHERE name = '{MARKER_TABLE}' ORDER BY database"))?;
        let mut ours = Vec::new();
        for database in databases {
            if self.marker_text(&database)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(database);
            }
        }
        Ok(ours)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        let form = self.table(table, schema.table(table)?)?;
        load::load(&form, &self.control, table, rows, progress)
    }

    /// Runs the schema's statements, then waits until parts are no longer merged.
    fn settle(&self) -> Result<(), DriverError> {
        self.run_all(self.schema()?.settle())?;
        let merges = format!("SELECT count() FROM system.merges WHERE database = {}", literal(self.database()));
        while self.number(&merges)? > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.number(&format!("SELECT count() FROM {}.{}", name(self.database()), name(table)))
    }

    /// All parts, those included that merges have replaced and that are removed some minutes later.
    fn size(&self) -> Result<Size, DriverError> {
        let parts = format!(
            "SELECT table, sum(bytes) FROM system.parts WHERE database = {} AND table != '{MARKER_TABLE}' GROUP BY table",
            literal(self.database())
        );
        let parts: BTreeMap<String, u64> = self
            .rows(&parts, &[Type::Text, Type::Integer])?
            .into_iter()
            .filter_map(|row| {
                let [table, bytes] = <[Value; 2]>::try_from(row).ok()?;
                Some((text(table)?, whole(&bytes)))
            })
            .collect();
        Ok(Size { total_bytes: parts.values().sum(), parts, ..Size::default() })
    }

    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        let rows = self.rows(STATUS, &[Type::Text, Type::Double])?;
        let sample = |row: Vec<Value>| match <[Value; 2]>::try_from(row).ok()? {
            [Value::Text(name), Value::Double(value)] => Some((name.to_string(), value)),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(sample).collect())
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let needs_tables = operations.iter().map(written).collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some);
        // A measurement of the client alone has no schema.
        let schema = if needs_tables { self.schema()? } else { SqlSchema::of(&Schema::default())? };
        let prepared = operations.iter().map(|operation| self.prepare(&schema, operation));
        let operations = prepared.collect::<Result<_, DriverError>>()?;
        let settings = if self.is_from(GIVES_UP)? { GIVE_UP } else { "" };
        Ok(Sessions::Asynchronous(Box::new(Connector { target: self.control.target.clone(), settings, operations })))
    }
}

/// Parameters under the names of the columns that they are written into.
fn named_as_columns(parameters: &[Parameter], columns: &BTreeMap<String, String>) -> Vec<Parameter> {
    let column_of =
        |name: &str| columns.iter().find(|(_, parameter)| *parameter == name).map_or(name, |(column, _)| column).to_owned();
    parameters.iter().map(|parameter| Parameter { name: column_of(&parameter.name), ..parameter.clone() }).collect()
}

/// A refused statement of the schema at its place; other errors stay what they are.
fn at(place: String, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(message) => SchemaError::at(place, message).into(),
        other => other,
    }
}

fn literal(text: &str) -> String {
    let mut literal = String::new();
    append_literal(&mut literal, ValueRef::Text(text));
    literal
}

fn text(value: Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.to_string()) } else { None }
}

fn pair(row: Vec<Value>) -> Option<(String, String)> {
    let [first, second] = <[Value; 2]>::try_from(row).ok()?;
    Some((text(first)?, text(second)?))
}

fn whole(value: &Value) -> u64 {
    if let Value::Integer(number) = value { *number as u64 } else { 0 }
}
