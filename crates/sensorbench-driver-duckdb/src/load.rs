//! Loading: one transaction, and an appender that takes chunks of columns.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, Progress, Type};

use crate::errors::statement_error;
use crate::library::{Appender, Chunk, Connection, Refusal, type_for};

pub fn load(
    connection: &Arc<Connection>,
    chunk_rows: usize,
    table: &str,
    columns: &[Parameter],
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let refused = |refusal: Refusal| DriverError::Data(format!("table {table}: {}", refusal.message));
    connection.query("BEGIN TRANSACTION").map_err(statement_error)?;
    let appended = append(connection, chunk_rows, table, columns, rows, progress);
    let closed = appended.and_then(|()| connection.query("COMMIT").map(drop).map_err(refused));
    if closed.is_err() {
        // A commit that failed has rolled back already, and DuckDB then refuses this; what went wrong is reported in any case.
        let _ = connection.query("ROLLBACK");
    }
    closed
}

fn append(
    connection: &Arc<Connection>,
    chunk_rows: usize,
    table: &str,
    columns: &[Parameter],
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let refused = |refusal: Refusal| DriverError::Data(format!("table {table}: {}", refusal.message));
    let names = columns.iter().map(|column| column.name.clone());
    let appender = Appender::to(connection, table, names).map_err(refused)?;
    let types: Vec<u32> = columns.iter().map(|column| type_for(column.value_type)).collect();
    let mut chunk = Chunk::of(connection, &types);
    for batch in rows {
        progress.check()?;
        let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let arrays = arrays(table, columns, &batch)?;
        let start = Instant::now();
        for first in (0..batch.num_rows()).step_by(chunk_rows) {
            let rows = first..(first + chunk_rows).min(batch.num_rows());
            chunk.begin(rows.len());
            arrays.iter().enumerate().for_each(|(place, array)| fill(&mut chunk, place, array, rows.clone()));
            appender.append(&chunk).map_err(refused)?;
        }
        progress.add_batch(batch.num_rows() as u64, start.elapsed());
    }
    appender.close().map_err(refused)
}

fn arrays<'a>(table: &str, columns: &[Parameter], batch: &'a RecordBatch) -> Result<Vec<Column<'a>>, DriverError> {
    let array = |column: &Parameter| {
        let array = Column::of(batch, &column.name).map_err(|error| DriverError::Data(format!("table {table}: {error}")))?;
        if type_of(&array) == column.value_type {
            return Ok(array);
        }
        Err(DriverError::Data(format!(
            "table {table}, column {}: the rows have the type {}, the schema {}",
            column.name,
            type_of(&array).name(),
            column.value_type.name()
        )))
    };
    columns.iter().map(array).collect()
}

fn type_of(array: &Column) -> Type {
    match array {
        Column::Boolean(_) => Type::Boolean,
        Column::Integer(_) => Type::Integer,
        Column::Double(_) => Type::Double,
        Column::Timestamp(_) => Type::Timestamp,
        Column::Text(_) => Type::Text,
        Column::Bytes(_) => Type::Bytes,
    }
}

fn fill(chunk: &mut Chunk, place: usize, array: &Column, rows: std::ops::Range<usize>) {
    match array {
        Column::Boolean(array) => {
            chunk.fill(place, rows.clone().map(|row| u8::from(array.value(row))));
            set_nulls(chunk, place, *array, rows);
        }
        Column::Integer(array) => {
            chunk.copy(place, &array.values()[rows.clone()]);
            set_nulls(chunk, place, *array, rows);
        }
        Column::Double(array) => {
            chunk.copy(place, &array.values()[rows.clone()]);
            set_nulls(chunk, place, *array, rows);
        }
        Column::Timestamp(array) => {
            chunk.copy(place, &array.values()[rows.clone()]);
            set_nulls(chunk, place, *array, rows);
        }
        Column::Text(array) => {
            rows.clone().enumerate().for_each(|(at, row)| chunk.set_bytes(place, at, array.value(row).as_bytes()));
            set_nulls(chunk, place, *array, rows);
        }
        Column::Bytes(array) => {
            rows.clone().enumerate().for_each(|(at, row)| chunk.set_bytes(place, at, array.value(row)));
            set_nulls(chunk, place, *array, rows);
        }
    }
}

fn set_nulls(chunk: &mut Chunk, place: usize, array: &dyn Array, rows: std::ops::Range<usize>) {
    if array.null_count() > 0 {
        chunk.set_nulls(place, rows.enumerate().filter(|(_, row)| array.is_null(*row)).map(|(at, _)| at));
    }
}
