//! A schema in SQLite's words.

use rusqlite::Connection;
use sensorbench_driver::{DriverError, Parameter, Schema, SchemaError, parse_part};
use serde::Deserialize;

use crate::quoted;

/// `[create]` and `[settle]` of a schema file: statements, one after the other.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statements {
    #[serde(default)]
    statements: Vec<String>,
}

/// `[operation.NAME]` of a schema file: one statement with `:named` parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub statement: String,
}

/// A schema whose parts are known to be statements.
#[derive(Clone, Debug)]
pub struct SqliteSchema {
    create: Statements,
    settle: Statements,
    tables: Vec<(String, Vec<Parameter>)>,
}

impl SqliteSchema {
    pub fn of(schema: &Schema) -> Result<Self, SchemaError> {
        Ok(Self {
            create: parse_part("create", &schema.create)?,
            settle: parse_part("settle", &schema.settle)?,
            tables: schema.tables.clone().into_iter().collect(),
        })
    }

    /// The columns of a table that the schema fills.
    pub fn table(&self, name: &str) -> Result<&[Parameter], DriverError> {
        let table = self.tables.iter().find(|(table, _)| table == name);
        table.map(|(_, columns)| columns.as_slice()).ok_or_else(|| DriverError::Data(format!("the schema fills no table {name}")))
    }

    pub fn run_create(&self, connection: &Connection) -> Result<(), SchemaError> {
        run("create.statements", &self.create.statements, connection)
    }

    pub fn run_settle(&self, connection: &Connection) -> Result<(), SchemaError> {
        run("settle.statements", &self.settle.statements, connection)
    }

    /// Every table that is filled exists, with the columns of its fill.
    pub fn check_tables(&self, connection: &Connection) -> Result<(), SchemaError> {
        for (table, columns) in &self.tables {
            connection
                .prepare(&insert_statement(table, columns))
                .map_err(|error| SchemaError::at(format!("fill.{table}"), error.to_string()))?;
        }
        Ok(())
    }
}

fn run(path: &str, statements: &[String], connection: &Connection) -> Result<(), SchemaError> {
    for (number, statement) in statements.iter().enumerate() {
        connection.execute_batch(statement).map_err(|error| SchemaError::at(format!("{path}[{number}]"), error.to_string()))?;
    }
    Ok(())
}

pub fn insert_statement(table: &str, columns: &[Parameter]) -> String {
    let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
    let places: Vec<_> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", quoted(table), names.join(", "), places.join(", "))
}
