//! A schema in PostgreSQL's words.

use sensorbench_driver::{
    Column, DriverError, Operation, Parameter, Placeholder, Positional, SchemaError, SqlSchema, SqlStatement, parse_part, quoted,
};
use tokio_postgres::Client;

use crate::errors;
use crate::wire::{Form, server_types};

/// An operation's statement as the server is asked to prepare it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Place of the statement in the schema file.
    pub path: String,
    /// The statement and which parameters its placeholders stand for.
    pub positional: Positional,
    /// Parameters of the operation.
    pub parameters: Vec<Parameter>,
    /// Columns of the operation.
    pub columns: Vec<Column>,
}

/// Every table that is filled exists, with columns that hold the values of its fill.
pub async fn check_tables(schema: &SqlSchema, client: &Client, server: &str) -> Result<(), DriverError> {
    for (table, columns) in schema.tables() {
        table_forms(client, server, table, columns).await?;
    }
    Ok(())
}

/// Runs statements, each with its place in the schema file.
pub async fn run<'a>(
    statements: impl Iterator<Item = (String, &'a str)>,
    client: &Client,
    server: &str,
) -> Result<(), DriverError> {
    for (place, statement) in statements {
        let done = client.batch_execute(statement).await;
        done.map_err(|error| errors::schema_error(server, place, error))?;
    }
    Ok(())
}

/// In which form the columns of a table take the values of its fill.
pub async fn table_forms(client: &Client, server: &str, table: &str, columns: &[Parameter]) -> Result<Vec<Form>, DriverError> {
    let path = format!("fill.{table}");
    let statement = format!("SELECT {} FROM {}", column_list(columns), quoted(table));
    let described = client.prepare(&statement).await.map_err(|error| errors::schema_error(server, &path, error))?;
    let form = |(column, found): (&Parameter, &tokio_postgres::Column)| {
        Form::of(column.value_type, found.type_()).ok_or_else(|| {
            let (expected, _) = server_types(column.value_type);
            let message = format!(
                "column {} is {} in PostgreSQL, but the fill has {} values; declare it as {expected}",
                column.name,
                found.type_(),
                column.value_type.name()
            );
            SchemaError::at(&path, message).into()
        })
    };
    columns.iter().zip(described.columns()).map(form).collect()
}

/// Names of columns, quoted.
pub fn column_list(columns: &[Parameter]) -> String {
    columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

impl Asked {
    pub fn of(operation: &Operation) -> Result<Self, DriverError> {
        let path = format!("operation.{}", operation.name);
        let text: SqlStatement = parse_part(&path, &operation.statement)?;
        Ok(Self {
            path: format!("{path}.statement"),
            positional: Positional::of(operation, &text.statement, Placeholder::Dollar)?,
            parameters: operation.parameters.clone(),
            columns: operation.columns.clone(),
        })
    }

    /// An error about the statement.
    pub fn error(&self, message: String) -> DriverError {
        SchemaError::at(&self.path, message).into()
    }
}
