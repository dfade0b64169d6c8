//! Loading: inserts of many rows.

use std::time::Instant;

use arrow_array::RecordBatchReader;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Progress};
use sensorbench_driver_http::clickhouse::{FULL_BATCH, Table};

use crate::store::Connection;

/// Loads rows into a table, whose name stands in messages.
pub fn load(
    connection: &Connection,
    name: &str,
    table: &Table,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let refused = |what: String| DriverError::Data(format!("table {name}: {what}"));
    let (mut data, mut count) = (Vec::new(), 0);
    let send = |data: &mut Vec<u8>, count: &mut u64| {
        let start = Instant::now();
        connection.insert(table.insert(), data).map_err(|error| match error {
            DriverError::Statement(problem) => refused(problem),
            other => other,
        })?;
        progress.add_batch(*count, start.elapsed());
        data.clear();
        *count = 0;
        Ok::<(), DriverError>(())
    };
    let (full_rows, full_bytes) = FULL_BATCH;
    for batch in rows {
        progress.check()?;
        let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let columns = table.columns().map(|column| Column::of(&batch, column)).collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|error| refused(error.to_string()))?;
        for row in 0..batch.num_rows() {
            let appended = table.append(&mut data, |place| columns[place].value(row));
            appended.map_err(|error| refused(error.to_string()))?;
            count += 1;
            if count >= full_rows || data.len() >= full_bytes {
                send(&mut data, &mut count)?;
            }
        }
    }
    if count > 0 { send(&mut data, &mut count) } else { Ok(()) }
}
