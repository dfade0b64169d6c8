//! Control of an IoTDB target.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Column, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Parameter, Progress, Rows,
    Schema, SchemaError, Sessions, Size, Type, Value, quoted,
};

use super::answer;
use super::place::Place;
use super::precision::Precision;
use super::session::{Connector, Prepared, reading, running};
use super::statement::{Statement, literal};
use super::table::{Found, IotdbSchema, Table};
use super::tree::{self, Series};
use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::load::{self, Form};
use crate::sql::written;
use crate::target::Target;

/// Our own table, with the marker in it: that of the latest time holds.
const MARKER_TABLE: &str = "sensorbench";
/// Where statements go that need no database; the server wants one named.
const NO_DATABASE: &str = "information_schema";
/// What the server says while it has no place for new data.
const NOWHERE_YET: &str = "There are no available";
const READY_WITHIN: Duration = Duration::from_secs(60);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// The option of the URL that says how the server keeps its write-ahead log.
pub const WAL_MODE: &str = "wal_mode";

pub struct IotdbDriver {
    control: Control,
    wal_mode: Option<String>,
    schema: KeptSchema<IotdbSchema>,
}

impl IotdbDriver {
    pub fn new(target: Target, wal_mode: Option<String>) -> Self {
        Self { control: Control::new(target), wal_mode, schema: KeptSchema::default() }
    }

    fn database(&self) -> &str {
        &self.control.target.namespace
    }

    /// The rows of a statement.
    fn rows(&self, database: &str, statement: &str, types: &[Type]) -> Result<Vec<Vec<Value>>, DriverError> {
        let column = |value_type: &Type| Column { name: "value".to_owned(), value_type: *value_type, computed: false };
        let columns: Vec<_> = types.iter().map(column).collect();
        let reply = self.ask(reading(database, statement))?;
        let mut rows = Rows::new();
        answer::read(&reply, &columns, Precision::Micros, &mut rows)?;
        Ok(rows.iter().map(|row| (0..row.columns()).map(|place| row.value(place).to_value()).collect()).collect())
    }

    fn texts<const COUNT: usize>(&self, database: &str, statement: &str) -> Result<Vec<[String; COUNT]>, DriverError> {
        let rows = self.rows(database, statement, &[Type::Text; COUNT])?;
        let text = |value: Value| if let Value::Text(text) = value { text.to_string() } else { String::new() };
        Ok(rows.into_iter().filter_map(|row| row.into_iter().map(text).collect::<Vec<_>>().try_into().ok()).collect())
    }

    fn run(&self, database: &str, statement: &str) -> Result<(), DriverError> {
        self.send(running(database, statement))
    }

    /// A new database has nowhere for its data for a moment, and so has a server that was busy: such a refusal is waited out.
    fn ask(&self, call: Call) -> Result<Reply, DriverError> {
        let start = Instant::now();
        loop {
            let reply = self.control.ask(call.clone())?;
            let is_early = answer::refusal(&reply).is_some_and(|refusal| refusal.contains(NOWHERE_YET));
            if !is_early || start.elapsed() >= READY_WITHIN {
                return Ok(reply);
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }

    fn send(&self, call: Call) -> Result<(), DriverError> {
        answer::refusal(&self.ask(call)?).map_or(Ok(()), |refusal| Err(DriverError::Statement(refusal)))
    }

    /// Runs statements of the schema, each with its place in the file.
    fn run_all<'a>(&self, is_tree: bool, statements: impl Iterator<Item = (String, &'a str)>) -> Result<(), DriverError> {
        for (place, statement) in statements {
            let call = if is_tree {
                tree::running(&tree::placed(statement, self.database()))
            } else {
                running(self.database(), statement)
            };
            self.send(call).map_err(|error| match error {
                DriverError::Statement(message) => SchemaError::at(place, message).into(),
                other => other,
            })?;
        }
        Ok(())
    }

    fn variables(&self) -> Result<BTreeMap<String, String>, DriverError> {
        let variables = self.texts(NO_DATABASE, "SHOW VARIABLES")?;
        Ok(variables.into_iter().map(|[name, value]| (name, value)).collect())
    }

    fn precision(&self) -> Result<Precision, DriverError> {
        let name = self.variables()?.remove("TimestampPrecision").unwrap_or_default();
        Precision::of(&name).map_err(|problem| self.control.target.unreachable(problem))
    }

    fn schema(&self) -> Result<IotdbSchema, DriverError> {
        self.schema.get(format_args!("the server at {}", self.control.target.shown))
    }

    /// All databases of the table model.
    fn databases(&self) -> Result<Vec<String>, DriverError> {
        let columns = [Type::Text, Type::Text, Type::Integer, Type::Integer, Type::Integer];
        let rows = self.rows(NO_DATABASE, "SHOW DATABASES", &columns)?;
        Ok(rows.into_iter().filter_map(|row| text(row.into_iter().next()?)).filter(|name| name != NO_DATABASE).collect())
    }

    /// The columns of a table; none where there is no such table.
    fn columns(&self, database: &str, table: &str) -> Result<Vec<Found>, DriverError> {
        if !self.tables(database)?.iter().any(|found| found == table) {
            return Ok(Vec::new());
        }
        let found = self.texts(database, &format!("DESCRIBE {}", quoted(table)))?;
        Ok(found.into_iter().map(|[name, type_name, category]| Found { name, type_name, category }).collect())
    }

    fn tables(&self, database: &str) -> Result<Vec<String>, DriverError> {
        Ok(self.texts(database, "SHOW TABLES")?.into_iter().map(|[name, _ttl]| name).collect())
    }

    /// Where rows of a table with these columns are written.
    fn place(
        &self,
        schema: &IotdbSchema,
        table: &str,
        columns: &[Parameter],
        names: &BTreeMap<String, String>,
    ) -> Result<Place, DriverError> {
        let (whole, precision) = ((self.database(), table), self.precision()?);
        let place = match &schema.paths {
            None => Table::of(whole, columns, names, &self.columns(self.database(), table)?, precision).map(Place::Table),
            Some(paths) => match paths.get(table) {
                Some(nodes) => Series::of(whole, nodes, columns, names, precision).map(Place::Series),
                None => Err(format!("[create] has no paths.{table}, which names the columns that are nodes")),
            },
        };
        place.map_err(|problem| SchemaError::at(format!("fill.{table}"), problem).into())
    }

    /// Where rows of a table that the schema fills are written.
    fn filled(&self, schema: &IotdbSchema, table: &str) -> Result<Place, DriverError> {
        self.place(schema, table, schema.sql.table(table)?, &schema.server_names(table))
    }

    fn check_tables(&self, schema: &IotdbSchema) -> Result<(), DriverError> {
        schema.sql.tables().iter().try_for_each(|(table, _)| self.filled(schema, table).map(drop))
    }

    /// The values in the first column of what a statement of the tree model returns.
    fn of_tree(&self, statement: &str, types: &[Type]) -> Result<Vec<Value>, DriverError> {
        let column = |value_type: &Type| Column { name: "value".to_owned(), value_type: *value_type, computed: false };
        let columns: Vec<_> = types.iter().map(column).collect();
        let mut rows = Rows::new();
        tree::read(&self.ask(tree::reading(statement))?, &columns, Precision::Micros, &mut rows)?;
        Ok(rows.iter().map(|row| row.value(0).to_value()).collect())
    }

    /// Whether sensorbench's database of the tree model is there; one without a marker is somebody's, and is an error. So is a database of tables
    /// with the same name, whose tables would go, too.
    fn has_tree(&self) -> Result<bool, DriverError> {
        let (root, same) = (tree::root(self.database()), tree::database(self.database()));
        if self.databases()?.contains(&same) {
            let tables = format!("the server would delete the tables of database {same} with {root}; rename one of them");
            return Err(DriverError::Namespace(format!("{}: {tables}", self.namespace())));
        }
        if self.of_tree(&format!("SHOW CHILD PATHS {root}"), &[Type::Text; 2])?.is_empty() {
            return Ok(false);
        }
        let mark = self.of_tree(&format!("SELECT mark FROM {root}.{MARKER_TABLE}"), &[Type::Text])?;
        if !mark.into_iter().filter_map(text).any(|mark| Marker::parse(&mark).is_some()) {
            return Err(DriverError::Namespace(format!("{}: {root} is somebody's database of the tree model", self.namespace())));
        }
        Ok(true)
    }

    fn remove_tree(&self) -> Result<(), DriverError> {
        if self.has_tree()? {
            self.send(tree::running(&format!("DELETE DATABASE {}", tree::root(self.database()))))?;
        }
        Ok(())
    }

    /// Makes sensorbench's database of the tree model, with a marker.
    fn create_tree(&self, marker: &Marker) -> Result<(), DriverError> {
        let root = tree::root(self.database());
        self.send(tree::running(&format!("CREATE DATABASE {root}")))?;
        let mark = literal(&marker.to_text());
        self.send(tree::running(&format!("INSERT INTO {root}.{MARKER_TABLE}(timestamp, mark) VALUES (0, {mark})")))
    }

    /// The text where a marker would be; None if a database has none.
    fn marker_text(&self, database: &str) -> Result<Option<String>, DriverError> {
        let columns = self.columns(database, MARKER_TABLE)?;
        if columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>() != ["time", "mark"] {
            return Ok(None);
        }
        let last = format!("SELECT mark FROM {MARKER_TABLE} ORDER BY time DESC LIMIT 1");
        Ok(self.texts(database, &last)?.into_iter().next().map(|[mark]| mark))
    }

    /// Whether the database is there.
    fn is_there(&self) -> Result<bool, DriverError> {
        Ok(self.databases()?.iter().any(|found| found == self.database()))
    }

    /// Removes everything but the marker from the database, and what is sensorbench's in the tree model.
    fn empty(&self) -> Result<(), DriverError> {
        let database = self.database();
        for table in self.tables(database)?.iter().filter(|table| *table != MARKER_TABLE) {
            self.run(database, &format!("DROP TABLE IF EXISTS {}", quoted(table)))?;
        }
        self.remove_tree()
    }

    fn prepare(&self, schema: &IotdbSchema, operation: &Operation) -> Result<Prepared, DriverError> {
        let tree = schema.paths.is_some().then(|| self.database());
        let statement = |operation: &Operation| Statement::of(operation, tree);
        Prepared::of(operation, statement, |text| {
            let mut names = schema.server_names(&text.write);
            names.extend(text.columns.iter().map(|(server, parameter)| (parameter.clone(), server.clone())));
            let place = match schema.sql.table(&text.write) {
                Ok(columns) if text.columns.is_empty() => self.place(schema, &text.write, columns, &names)?,
                // What the schema does not fill has the columns that are written.
                _ => self.place(schema, &text.write, &operation.parameters, &names)?,
            };
            let places = place.columns().map(|name| operation.require_parameter(name)).collect::<Result<_, _>>()?;
            Ok((place, places))
        })
    }
}

impl Driver for IotdbDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        let mut settings = self.variables()?;
        self.precision()?;
        settings.extend(self.wal_mode.clone().map(|mode| (WAL_MODE.to_owned(), mode)));
        let version = self.texts(NO_DATABASE, "SHOW VERSION")?.into_iter().next().map(|[version, _build]| version);
        Ok(Description { database: "Apache IoTDB".to_owned(), version: version.unwrap_or_default(), settings })
    }

    fn namespace(&self) -> String {
        format!("the server at {}, database {}", self.control.target.shown, self.database())
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        if !self.is_there()? {
            return Ok(Occupant::Absent);
        }
        let text = self.marker_text(self.database())?;
        Ok(Occupant::by_text(text.as_deref(), || "it is somebody's database".to_owned()))
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = IotdbSchema::of(schema)?;
        if parsed.paths.is_some() {
            // Of the tree model's databases, the occupant of the namespace says nothing.
            self.has_tree()?;
        }
        // The server makes places for a new database's data, which takes it a second or more: one that is replaced keeps its own.
        if admission.replaces() && self.is_there()? {
            self.empty()?;
        } else {
            self.run(self.database(), &format!("CREATE DATABASE {}", quoted(self.database())))?;
            self.run(self.database(), &format!("CREATE TABLE {MARKER_TABLE} (mark STRING FIELD)"))?;
        }
        self.write_marker(marker, admission)?;
        if parsed.paths.is_some() {
            self.remove_tree()?;
            self.create_tree(marker)?;
        }
        self.run_all(parsed.paths.is_some(), parsed.sql.create())?;
        self.check_tables(&parsed)?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = IotdbSchema::of(schema)?;
        self.check_tables(&parsed)?;
        self.schema.keep(parsed);
        Ok(())
    }

    /// The marker takes the place of the one before.
    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        let mark = literal(&marker.to_text());
        self.run(self.database(), &format!("INSERT INTO {MARKER_TABLE} (time, mark) VALUES (0, {mark})"))
    }

    /// The marker goes last, so that what is left of a removal that was cut short is still ours.
    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        if !self.is_there()? {
            return Ok(());
        }
        self.empty()?;
        self.run(self.database(), &format!("DROP DATABASE IF EXISTS {}", quoted(self.database())))
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        let mut ours = Vec::new();
        for database in self.databases()? {
            if self.marker_text(&database)?.is_some_and(|text| Marker::parse(&text).is_some()) {
                ours.push(database);
            }
        }
        ours.sort_unstable();
        Ok(ours)
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        load::load(&self.filled(&schema, table)?, &self.control, table, rows, progress)
    }

    /// Runs the schema's statements, then has the server write what it holds in memory into its files.
    fn settle(&self) -> Result<(), DriverError> {
        let schema = self.schema()?;
        self.run_all(schema.paths.is_some(), schema.sql.settle())?;
        self.run(self.database(), "FLUSH")
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let schema = self.schema()?;
        if schema.paths.is_some()
            && let Place::Series(series) = self.filled(&schema, table)?
        {
            let counts = self.of_tree(&series.count(), &[Type::Integer])?;
            return Ok(counts.iter().map(|count| if let Value::Integer(count) = count { *count as u64 } else { 0 }).sum());
        }
        let rows = self.rows(self.database(), &format!("SELECT count(*) FROM {}", quoted(table)), &[Type::Integer])?;
        Ok(match rows.first().and_then(|row| row.first()) {
            Some(Value::Integer(count)) => *count as u64,
            _ => 0,
        })
    }

    fn size(&self) -> Result<Size, DriverError> {
        let unknown = "the server does not report the size of a database over REST; the lab measures its folder";
        Ok(Size { unknown: Some(unknown.to_owned()), ..Size::default() })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let needs_tables = operations.iter().map(written).collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some);
        let schema = match self.schema() {
            // A measurement of the client alone has no schema.
            Err(_) if !needs_tables => IotdbSchema::of(&Schema::default())?,
            known => known?,
        };
        let prepared = operations.iter().map(|operation| self.prepare(&schema, operation));
        let operations = prepared.collect::<Result<_, DriverError>>()?;
        let connector = Connector { target: self.control.target.clone(), precision: self.precision()?, operations };
        Ok(Sessions::Asynchronous(Box::new(connector)))
    }
}

fn text(value: Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.to_string()) } else { None }
}
