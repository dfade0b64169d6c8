//! Loading: one transaction, one prepared statement, no journal while nothing else is there to lose.

use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use rusqlite::types::{ToSqlOutput, ValueRef as SqlValue};
use rusqlite::{Connection, Statement};
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, Progress, ValueRef};

use crate::errors::statement_error;
use crate::schema::insert_statement;

pub fn load(
    connection: &mut Connection,
    table: &str,
    columns: &[Parameter],
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    connection
        .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
        .map_err(statement_error)?;
    let transaction = connection.transaction().map_err(statement_error)?;
    {
        let mut insert = transaction.prepare(&insert_statement(table, columns)).map_err(statement_error)?;
        for batch in rows {
            progress.check()?;
            let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
            let start = Instant::now();
            insert_batch(&mut insert, table, columns, &batch)?;
            progress.add_batch(batch.num_rows() as u64, start.elapsed());
        }
    }
    transaction.commit().map_err(statement_error)
}

fn insert_batch(insert: &mut Statement, table: &str, columns: &[Parameter], batch: &RecordBatch) -> Result<(), DriverError> {
    let column = |column: &Parameter| {
        Column::of(batch, &column.name).map_err(|error| DriverError::Data(format!("table {table}: {error}")))
    };
    let arrays: Vec<Column> = columns.iter().map(column).collect::<Result<_, _>>()?;
    for row in 0..batch.num_rows() {
        for (place, array) in arrays.iter().enumerate() {
            let value = array.value(row);
            if matches!(value, ValueRef::Double(value) if value.is_nan()) {
                return Err(DriverError::Data(format!(
                    "table {table}, column {}: SQLite stores NaN as NULL, so the value would be lost; leave such rows out in the fill query",
                    columns[place].name
                )));
            }
            insert.raw_bind_parameter(place + 1, sql_value(value)).map_err(statement_error)?;
        }
        insert.raw_execute().map_err(|error| DriverError::Data(format!("table {table}: {error}")))?;
    }
    Ok(())
}

/// Truth values and times are integers in SQLite.
pub fn sql_value(value: ValueRef) -> ToSqlOutput {
    ToSqlOutput::Borrowed(match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Boolean(value) => SqlValue::Integer(i64::from(value)),
        ValueRef::Integer(value) | ValueRef::Timestamp(value) => SqlValue::Integer(value),
        ValueRef::Double(value) => SqlValue::Real(value),
        ValueRef::Text(value) => SqlValue::Text(value.as_bytes()),
        ValueRef::Bytes(value) => SqlValue::Blob(value),
    })
}
