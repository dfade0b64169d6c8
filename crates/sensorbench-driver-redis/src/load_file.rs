//! A file of commands as `redis-cli --pipe` reads them: the protocol itself, one command a row.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatchReader;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Progress};

use crate::schema::Fill;

pub fn write(fill: &Fill, rows: Box<dyn RecordBatchReader + Send>, file: &Path, progress: &Progress) -> Result<(), DriverError> {
    let failed = |error: std::io::Error| DriverError::Data(format!("{}: {error}", file.display()));
    let mut output = BufWriter::with_capacity(1 << 20, File::create(file).map_err(failed)?);
    let mut command = Vec::new();
    for batch in rows {
        progress.check()?;
        let (batch, start) = (batch.map_err(|error| DriverError::Data(error.to_string()))?, Instant::now());
        let fields = &fill.fields;
        let column =
            |name: &str| Column::of(&batch, name).map_err(|error| DriverError::Data(format!("{}: {error}", fields.owner)));
        let columns: Vec<Column> = fields.list.iter().map(|field| column(&field.name)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            command.clear();
            fill.command.append(&mut command, |place: usize| columns[place].value(row)).map_err(|error| fields.error(error))?;
            output.write_all(&command).map_err(failed)?;
        }
        progress.add_batch(batch.num_rows() as u64, start.elapsed());
    }
    output.flush().map_err(failed)
}
