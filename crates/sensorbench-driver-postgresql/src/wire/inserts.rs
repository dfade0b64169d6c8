//! Loading by ordinary inserts, for databases that have no COPY, or tables that their own means cannot fill.

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
use super::values::{Form, Nulls};

/// Rows that are on their way at a time, in one transaction.
const ROWS_IN_FLIGHT: usize = 500;

/// Loads rows into a table by prepared inserts, many on their way at a time.
pub fn insert(order: &LoadOrder, rows: Rows) -> Result<(), DriverError> {
    order.control.with(async |client| {
        let forms = table_forms(client, order.target, order.table, order.columns).await?;
        let table = order.target.dialect.table(&order.target.namespace, order.table);
        let placeholders: Vec<String> = (1..=forms.len()).map(|number| format!("${number}")).collect();
        let text = format!("INSERT INTO {table} ({}) VALUES ({})", column_list(order.columns), placeholders.join(", "));
        let statement = client
            .prepare(&order.target.fresh(&text))
            .await
            .map_err(|error| errors::data_error(&order.target.place, order.table, error))?;
        for batch in rows {
            order.progress.check()?;
            let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
            insert_batch(order, client, &statement, &forms, &batch).await?;
        }
        Ok(())
    })
}

async fn insert_batch(
    order: &LoadOrder<'_>,
    client: &Client,
    statement: &Statement,
    forms: &[Form],
    batch: &RecordBatch,
) -> Result<(), DriverError> {
    let refused = |error: Error| errors::data_error(&order.target.place, order.table, error);
    let arrays = order.arrays(batch)?;
    for first in (0..batch.num_rows()).step_by(ROWS_IN_FLIGHT) {
        let rows = first..(first + ROWS_IN_FLIGHT).min(batch.num_rows());
        let number = rows.len() as u64;
        let start = Instant::now();
        client.batch_execute("BEGIN").await.map_err(refused)?;
        let mut sent = Vec::with_capacity(rows.len());
        for row in rows {
            let values = bound(order, &arrays, forms, row)?;
            sent.push(client.execute_raw(statement, values));
        }
        try_join_all(sent).await.map_err(refused)?;
        client.batch_execute("COMMIT").await.map_err(refused)?;
        order.progress.add_batch(number, start.elapsed());
    }
    Ok(())
}

fn bound<'a>(order: &LoadOrder, arrays: &[Column<'a>], forms: &[Form], row: usize) -> Result<Vec<Bound<'a>>, DriverError> {
    let nulls: Nulls = order.target.dialect.nulls();
    let value = |((array, form), column): ((&Column<'a>, &Form), &sensorbench_driver::Parameter)| {
        let value = array.value(row);
        let checked = form.encode(value).and_then(|_| nulls.check(*form, value));
        checked.map_err(|refused| order.refused(&column.name, &refused))?;
        Ok(Bound { value, form: *form })
    };
    arrays.iter().zip(forms).zip(order.columns).map(value).collect()
}
