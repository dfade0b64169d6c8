//! What is said to ClickHouse's engine besides operations, wherever the engine runs.

use std::collections::BTreeMap;
use std::time::Duration;

use sensorbench_driver::{
    Column, Description, DriverError, KeptSchema, Operation, Parameter, Rows, Schema, SchemaError, SqlSchema, Type, Value,
    ValueRef,
};

use super::session::Prepared;
use super::statement::{Statement, append_literal, name};
use super::table::Table;
use crate::sql::written;

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Settings that matter to speed and durability.
const SETTINGS: &str = "SELECT name, value FROM system.settings WHERE name IN ('async_insert', 'fsync_metadata', 'max_block_size', \
    'max_memory_usage', 'max_threads', 'optimize_move_to_prewhere', 'use_uncompressed_cache', 'wait_for_async_insert') \
    UNION ALL SELECT name, value FROM system.merge_tree_settings WHERE name IN ('fsync_after_insert', 'fsync_part_directory', \
    'index_granularity', 'parts_to_throw_insert')";

/// What executes statements: a server over HTTP, or a library in this process.
pub trait Engine {
    /// Where it is, as messages name it.
    fn place(&self) -> String;

    /// The database that is sensorbench's.
    fn database(&self) -> &str;

    /// Executes a statement in a database. A refusal is [`DriverError::Statement`].
    fn run(&self, database: &str, statement: String) -> Result<(), DriverError>;

    /// Appends the rows of a statement, which have these columns.
    fn read(&self, statement: String, columns: &[Column], rows: &mut Rows) -> Result<(), DriverError>;
}

/// An engine, and the schema of sensorbench's database there.
pub struct Client<E> {
    /// The engine.
    pub engine: E,
    schema: KeptSchema<SqlSchema>,
}

impl<E: Engine> Client<E> {
    /// Nothing is said yet.
    pub fn new(engine: E) -> Self {
        Self { engine, schema: KeptSchema::default() }
    }

    /// The rows of a statement, in whatever database.
    pub fn rows(&self, statement: &str, types: &[Type]) -> Result<Vec<Vec<Value>>, DriverError> {
        let column = |value_type: &Type| Column { name: "value".to_owned(), value_type: *value_type, computed: false };
        let columns: Vec<_> = types.iter().map(column).collect();
        let mut rows = Rows::new();
        self.engine.read(statement.to_owned(), &columns, &mut rows)?;
        Ok(rows.iter().map(|row| (0..row.columns()).map(|place| row.value(place).to_value()).collect()).collect())
    }

    /// The texts that a statement returns.
    pub fn texts(&self, statement: &str) -> Result<Vec<String>, DriverError> {
        Ok(self.rows(statement, &[Type::Text])?.into_iter().filter_map(|row| row.into_iter().next().and_then(text)).collect())
    }

    /// The number that a statement returns.
    pub fn number(&self, statement: &str) -> Result<u64, DriverError> {
        Ok(self.rows(statement, &[Type::Integer])?.first().and_then(|row| row.first()).map_or(0, whole))
    }

    /// The engine's version.
    pub fn version(&self) -> Result<String, DriverError> {
        Ok(self.texts("SELECT version()")?.into_iter().next().unwrap_or_default())
    }

    /// What answers, under a product's name.
    pub fn describe(&self, product: &str) -> Result<Description, DriverError> {
        let settings = self.rows(SETTINGS, &[Type::Text, Type::Text])?;
        Ok(Description {
            database: product.to_owned(),
            version: self.version()?,
            settings: settings.into_iter().filter_map(pair).collect(),
        })
    }

    /// Makes the tables of a schema, in the database that is there.
    pub fn create(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        self.run_all(parsed.create())?;
        self.keep(parsed)
    }

    /// Uses the tables of a schema that are there.
    pub fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        self.keep(SqlSchema::of(schema)?)
    }

    fn keep(&self, parsed: SqlSchema) -> Result<(), DriverError> {
        parsed.tables().iter().try_for_each(|(table, columns)| self.table_of(table, columns).map(drop))?;
        self.schema.keep(parsed);
        Ok(())
    }

    /// Runs statements of the schema, each with its place in the file.
    fn run_all<'a>(&self, statements: impl Iterator<Item = (String, &'a str)>) -> Result<(), DriverError> {
        for (place, statement) in statements {
            self.engine.run(self.engine.database(), statement.to_owned()).map_err(|error| at(place, error))?;
        }
        Ok(())
    }

    fn schema(&self) -> Result<SqlSchema, DriverError> {
        self.schema.get(self.engine.place())
    }

    /// A table that the schema fills.
    pub fn table(&self, table: &str) -> Result<Table, DriverError> {
        self.table_of(table, self.schema()?.table(table)?)
    }

    /// A table with these columns, as the engine has it.
    fn table_of(&self, table: &str, columns: &[Parameter]) -> Result<Table, DriverError> {
        let database = self.engine.database();
        let wanted = format!("database = {} AND table = {}", literal(database), literal(table));
        let found = self.rows(&format!("SELECT name, type FROM system.columns WHERE {wanted}"), &[Type::Text, Type::Text])?;
        let found: Vec<_> = found.into_iter().filter_map(pair).collect();
        Table::of(database, table, columns, &found).map_err(|problem| SchemaError::at(format!("fill.{table}"), problem).into())
    }

    /// Operations, ready to be executed.
    pub fn prepare(&self, operations: &[Operation]) -> Result<Vec<Prepared>, DriverError> {
        let needs_tables = operations.iter().map(written).collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some);
        // A measurement of the client alone has no schema.
        let schema = if needs_tables { self.schema()? } else { SqlSchema::of(&Schema::default())? };
        operations.iter().map(|operation| self.prepare_one(&schema, operation)).collect()
    }

    fn prepare_one(&self, schema: &SqlSchema, operation: &Operation) -> Result<Prepared, DriverError> {
        Prepared::of(operation, Statement::of, |text| {
            let table = match schema.table(&text.write) {
                Ok(columns) => self.table_of(&text.write, columns)?,
                // What the schema does not fill has the columns that are written.
                Err(_) => self.table_of(&text.write, &named_as_columns(&operation.parameters, &text.columns))?,
            };
            let place = |column: &str| operation.require_parameter(text.columns.get(column).map_or(column, String::as_str));
            let places = table.columns().map(place).collect::<Result<_, _>>()?;
            Ok((table, places))
        })
    }

    /// Runs the schema's statements, then waits until parts are no longer merged.
    pub fn settle(&self) -> Result<(), DriverError> {
        self.run_all(self.schema()?.settle())?;
        let merges = format!("SELECT count() FROM system.merges WHERE database = {}", literal(self.engine.database()));
        while self.number(&merges)? > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    /// The rows of a table.
    pub fn count(&self, table: &str) -> Result<u64, DriverError> {
        self.number(&format!("SELECT count() FROM {}.{}", name(self.engine.database()), name(table)))
    }

    /// The bytes of each table's parts, those included that merges have replaced and that are removed some minutes later.
    pub fn parts(&self, but: &str) -> Result<BTreeMap<String, u64>, DriverError> {
        let parts = format!(
            "SELECT table, sum(bytes) FROM system.parts WHERE database = {} AND table != {} GROUP BY table",
            literal(self.engine.database()),
            literal(but)
        );
        let part = |row: Vec<Value>| {
            let [table, bytes] = <[Value; 2]>::try_from(row).ok()?;
            Some((text(table)?, whole(&bytes)))
        };
        Ok(self.rows(&parts, &[Type::Text, Type::Integer])?.into_iter().filter_map(part).collect())
    }

    /// The figures that a statement returns, by name.
    pub fn figures(&self, statement: &str) -> Result<BTreeMap<String, f64>, DriverError> {
        let rows = self.rows(statement, &[Type::Text, Type::Double])?;
        let figure = |row: Vec<Value>| match <[Value; 2]>::try_from(row).ok()? {
            [Value::Text(name), Value::Double(value)] => Some((name.to_string(), value)),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(figure).collect())
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

/// A text as a literal.
pub fn literal(text: &str) -> String {
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
