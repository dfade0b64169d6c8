//! Loading by ordinary inserts, for databases that have no COPY, or tables that their own means cannot fill.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use arrow_array::RecordBatch;
use futures::future::try_join_all;
use sensorbench_dataset::Column;
use sensorbench_driver::DriverError;
use tokio_postgres::{Client, Error, Statement};

use super::copy::{LoadOrder, Rows};
use super::errors;
use super::prepared::Bound;
use super::tables::{column_list, table_forms};
use super::values::Form;
use crate::dialect::retried;

/// Rows that are on their way at a time, in one transaction.
const ROWS_IN_FLIGHT: usize = 500;
/// Rows of one statement, where statements have many.
const ROWS_OF_STATEMENT: usize = 1_000;
/// Parameters of one statement at most: the protocol counts them in 16 bits, which some servers take for a number with a sign.
const MAX_PARAMETERS: usize = i16::MAX as usize;
/// Statements of many rows that are on their way at a time.
const STATEMENTS_IN_FLIGHT: usize = 4;

/// Loads rows into a table by prepared inserts of one row each, many on their way at a time.
pub fn insert(order: &LoadOrder, rows: Rows) -> Result<(), DriverError> {
    order.control.with(async |client| {
        let forms = table_forms(client, order.target, order.table, order.columns).await?;
        let statement = client.prepare(&order.target.fresh(&statement(order, 1))).await.map_err(|error| refused(order, error))?;
        for batch in rows {
            order.progress.check()?;
            let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
            insert_batch(order, client, &statement, &forms, &batch).await?;
        }
        Ok(())
    })
}

/// Loads rows into a table by prepared inserts of many rows each, some on their way at a time and none in a transaction.
pub fn insert_many(order: &LoadOrder, rows: Rows) -> Result<(), DriverError> {
    let max_rows = (MAX_PARAMETERS / order.columns.len().max(1)).clamp(1, ROWS_OF_STATEMENT);
    order.control.with(async |client| {
        let forms = table_forms(client, order.target, order.table, order.columns).await?;
        // By their number of rows: batches end with fewer.
        let mut statements = BTreeMap::new();
        for batch in rows {
            order.progress.check()?;
            let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
            let arrays = order.arrays(&batch)?;
            let starts: Vec<usize> = (0..batch.num_rows()).step_by(max_rows).collect();
            for several in starts.chunks(STATEMENTS_IN_FLIGHT) {
                let mut sending = Vec::with_capacity(several.len());
                for first in several {
                    let rows = *first..(first + max_rows).min(batch.num_rows());
                    let statement = prepared(order, client, &forms, rows.len(), &mut statements).await?;
                    sending.push(send_many(order, client, statement, &arrays, &forms, rows));
                }
                try_join_all(sending).await?;
            }
        }
        Ok(())
    })
}

/// An insert of this many rows.
fn statement(order: &LoadOrder, rows: usize) -> String {
    let columns = order.columns.len();
    let row = |row: usize| {
        let placeholders: Vec<String> = (1..=columns).map(|number| format!("${}", row * columns + number)).collect();
        format!("({})", placeholders.join(", "))
    };
    let table = order.target.dialect.table(&order.target.namespace, order.table);
    let values: Vec<String> = (0..rows).map(row).collect();
    format!("INSERT INTO {table} ({}) VALUES {}", column_list(order.columns), values.join(", "))
}

async fn prepared(
    order: &LoadOrder<'_>,
    client: &Client,
    forms: &[Form],
    rows: usize,
    statements: &mut BTreeMap<usize, Statement>,
) -> Result<Statement, DriverError> {
    if let Some(found) = statements.get(&rows) {
        return Ok(found.clone());
    }
    let types: Vec<_> = (0..rows).flat_map(|_| forms).map(|form| form.server_type()).collect();
    let made = client.prepare_typed(&order.target.fresh(&statement(order, rows)), &types).await;
    let made = made.map_err(|error| refused(order, error))?;
    statements.insert(rows, made.clone());
    Ok(made)
}

async fn insert_batch(
    order: &LoadOrder<'_>,
    client: &Client,
    statement: &Statement,
    forms: &[Form],
    batch: &RecordBatch,
) -> Result<(), DriverError> {
    let arrays = order.arrays(batch)?;
    for first in (0..batch.num_rows()).step_by(ROWS_IN_FLIGHT) {
        let rows = first..(first + ROWS_IN_FLIGHT).min(batch.num_rows());
        let number = rows.len() as u64;
        let values: Vec<Vec<Bound>> = rows.map(|row| bound(order, &arrays, forms, row)).collect::<Result<_, _>>()?;
        let start = Instant::now();
        let inserted = retried(order.target.dialect, async || insert_together(client, statement, &values).await).await;
        inserted.map_err(|error| refused(order, error))?;
        order.progress.add_batch(number, start.elapsed());
    }
    Ok(())
}

/// Inserts rows in one transaction: all of them, or none.
async fn insert_together(client: &Client, statement: &Statement, rows: &[Vec<Bound<'_>>]) -> Result<(), Error> {
    client.batch_execute("BEGIN").await?;
    match try_join_all(rows.iter().map(|values| client.execute_raw(statement, values))).await {
        Ok(_) => client.batch_execute("COMMIT").await,
        Err(error) => client.batch_execute("ROLLBACK").await.and(Err(error)),
    }
}

/// Sends rows in one statement. The server says how many it took, which may be fewer without an error.
async fn send_many(
    order: &LoadOrder<'_>,
    client: &Client,
    statement: Statement,
    arrays: &[Column<'_>],
    forms: &[Form],
    rows: Range<usize>,
) -> Result<(), DriverError> {
    let sent = rows.len() as u64;
    let mut values = Vec::with_capacity(rows.len() * forms.len());
    for row in rows {
        values.extend(bound(order, arrays, forms, row)?);
    }
    let start = Instant::now();
    let taken = client.execute_raw(&statement, values).await.map_err(|error| refused(order, error))?;
    order.progress.add_batch(taken, start.elapsed());
    if taken == sent {
        return Ok(());
    }
    let (table, place) = (order.table, &order.target.place);
    Err(DriverError::Data(format!("table {table}: {place} took {taken} of {sent} rows, and does not say why")))
}

fn refused(order: &LoadOrder, error: Error) -> DriverError {
    errors::data_error(&order.target.place, order.table, error)
}

fn bound<'a>(order: &LoadOrder, arrays: &[Column<'a>], forms: &[Form], row: usize) -> Result<Vec<Bound<'a>>, DriverError> {
    let limits = order.target.dialect.limits();
    let value = |((array, form), column): ((&Column<'a>, &Form), &sensorbench_driver::Parameter)| {
        let value = array.value(row);
        let checked = form.encode(value).and_then(|_| limits.check(*form, value));
        checked.map_err(|refused| order.refused(&column.name, &refused))?;
        Ok(Bound { value, form: *form })
    };
    arrays.iter().zip(forms).zip(order.columns).map(value).collect()
}
