//! Loading: sorted rows are written straight into sorted tables on disk, past journal and memtables.

use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use fjall::Keyspace;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Progress};

use crate::errors::fjall_error;
use crate::table::Table;

pub fn load(
    keyspace: &Keyspace,
    table_name: &str,
    table: &Table,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let mut ingestion = keyspace.start_ingestion().map_err(fjall_error)?;
    let (mut key, mut previous, mut record) = (Vec::new(), Vec::new(), Vec::new());
    for batch in rows {
        progress.check()?;
        let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let start = Instant::now();
        let columns = columns(table_name, table, &batch)?;
        for row in 0..batch.num_rows() {
            key.clear();
            record.clear();
            let value = |place: usize| columns[place].value(row);
            let encoded = table.append_key(&mut key, value).and_then(|()| table.append_record(&mut record, value));
            encoded.map_err(|error| DriverError::Data(format!("table {table_name}: {error}")))?;
            if key <= previous && !previous.is_empty() {
                let problem =
                    if key == previous { "two rows have the same key" } else { "the rows do not come sorted by the key" };
                return Err(DriverError::Data(format!("table {table_name}: {problem}; see order and query of its fill")));
            }
            ingestion.write(key.as_slice(), record.as_slice()).map_err(fjall_error)?;
            std::mem::swap(&mut key, &mut previous);
        }
        progress.add_batch(batch.num_rows() as u64, start.elapsed());
    }
    ingestion.finish().map_err(fjall_error)
}

fn columns<'a>(table_name: &str, table: &Table, batch: &'a RecordBatch) -> Result<Vec<Column<'a>>, DriverError> {
    let column = |name: &str| Column::of(batch, name).map_err(|error| DriverError::Data(format!("table {table_name}: {error}")));
    table.columns().map(|declared| column(&declared.name)).collect()
}
