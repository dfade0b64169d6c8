//! Tables of the namespace: which columns they have, and in which form those take values.

use sensorbench_driver::{DriverError, Parameter, SchemaError, SqlSchema, quoted};
use tokio_postgres::Client;

use super::errors;
use super::target::Target;
use super::values::Form;

/// Every table that is filled exists, with columns that hold the values of its fill.
pub async fn check_tables(schema: &SqlSchema, client: &Client, target: &Target) -> Result<(), DriverError> {
    for (table, columns) in schema.tables() {
        table_forms(client, target, table, columns).await?;
    }
    Ok(())
}

/// Runs statements, each with its place in the schema file.
pub async fn run<'a>(
    statements: impl Iterator<Item = (String, &'a str)>,
    client: &Client,
    target: &Target,
) -> Result<(), DriverError> {
    for (place, statement) in statements {
        let done = client.batch_execute(&target.dialect.place(&target.namespace, statement)).await;
        done.map_err(|error| errors::schema_error(&target.place, place, error))?;
    }
    Ok(())
}

/// In which form the columns of a table take the values of its fill.
pub async fn table_forms(client: &Client, target: &Target, table: &str, columns: &[Parameter]) -> Result<Vec<Form>, DriverError> {
    let path = format!("fill.{table}");
    let statement = format!("SELECT {} FROM {}", column_list(columns), target.dialect.table(&target.namespace, table));
    let described =
        client.prepare(&target.fresh(&statement)).await.map_err(|error| errors::schema_error(&target.place, &path, error))?;
    let form = |(column, found): (&Parameter, &tokio_postgres::Column)| {
        Form::of(column.value_type, found.type_()).ok_or_else(|| {
            let (expected, _) = target.dialect.type_words(column.value_type);
            let message = format!(
                "column {} is {} in {}, but the fill has {} values; declare it as {expected}",
                column.name,
                found.type_(),
                target.dialect.product(),
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
