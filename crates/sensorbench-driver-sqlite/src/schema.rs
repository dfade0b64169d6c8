//! A schema in SQLite's words.

use rusqlite::Connection;
use sensorbench_driver::{Parameter, SchemaError, SqlSchema, quoted};

/// Every table that is filled exists, with the columns of its fill.
pub fn check_tables(schema: &SqlSchema, connection: &Connection) -> Result<(), SchemaError> {
    for (table, columns) in schema.tables() {
        connection
            .prepare(&insert_statement(table, columns))
            .map_err(|error| SchemaError::at(format!("fill.{table}"), error.to_string()))?;
    }
    Ok(())
}

/// Runs statements, each with its place in the schema file.
pub fn run<'a>(statements: impl Iterator<Item = (String, &'a str)>, connection: &Connection) -> Result<(), SchemaError> {
    for (place, statement) in statements {
        connection.execute_batch(statement).map_err(|error| SchemaError::at(place, error.to_string()))?;
    }
    Ok(())
}

pub fn insert_statement(table: &str, columns: &[Parameter]) -> String {
    let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
    let places: Vec<_> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", quoted(table), names.join(", "), places.join(", "))
}
