//! A schema in DuckDB's words.

use std::sync::Arc;

use sensorbench_driver::{DriverError, Operation, Parameter, SchemaError, SqlSchema, quoted};

use crate::errors::statement_error;
use crate::library::{Connection, Instance, Library, Statement};
use crate::session::Prepared;

/// Creates the tables in memory and prepares every statement there.
pub fn check(library: &'static Library, schema: &SqlSchema, operations: &[Operation]) -> Result<(), DriverError> {
    let instance = Instance::alone(library, None, &Default::default()).map_err(statement_error)?;
    let connection = Connection::to(&instance).map_err(statement_error)?;
    run(schema.create(), &connection)?;
    check_tables(schema, &connection)?;
    run(schema.settle(), &connection)?;
    operations.iter().try_for_each(|operation| Prepared::of(&connection, operation).map(drop))
}

/// Every table that is filled exists, with the columns of its fill.
pub fn check_tables(schema: &SqlSchema, connection: &Arc<Connection>) -> Result<(), SchemaError> {
    for (table, columns) in schema.tables() {
        Statement::of(connection, &insert_statement(table, columns))
            .map_err(|refusal| SchemaError::at(format!("fill.{table}"), refusal.message))?;
    }
    Ok(())
}

/// Runs statements, each with its place in the schema file.
pub fn run<'a>(statements: impl Iterator<Item = (String, &'a str)>, connection: &Connection) -> Result<(), SchemaError> {
    for (place, statement) in statements {
        connection.query(statement).map_err(|refusal| SchemaError::at(place, refusal.message))?;
    }
    Ok(())
}

fn insert_statement(table: &str, columns: &[Parameter]) -> String {
    let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
    let places: Vec<_> = (1..=columns.len()).map(|place| format!("${place}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", quoted(table), names.join(", "), places.join(", "))
}
