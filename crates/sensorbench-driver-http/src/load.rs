//! Loading: batches of lines, several at a time. One thread writes lines while another sends those before.

use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Progress};
use tokio::sync::mpsc::{Sender, channel};

use crate::control::Control;
use crate::points::Points;
use crate::pool::Pool;
use crate::protocol::Protocol;

/// A batch is sent when it has so many rows, or is so large.
const BATCH_ROWS: u64 = 10_000;
const BATCH_BYTES: usize = 4 << 20;
/// Batches that are sent at the same time if the URL does not say how many connections there are, and those that may wait.
const BATCHES_IN_FLIGHT: usize = 4;

#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    rows: u64,
}

/// Loads rows into the points of a table.
pub fn load(
    protocol: &dyn Protocol,
    control: &Control,
    table: &str,
    points: &Points,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let prefix = protocol.prefix(&control.target.namespace);
    let source = Source { table, points, prefix: &prefix };
    let (made, mut batches) = channel(BATCHES_IN_FLIGHT);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(error) = source.make_all(rows, progress, &made) {
                // Where nobody takes it, the sender has an error of its own.
                let _ = made.blocking_send(Err(error));
            }
        });
        let in_flight = control.target.connections.unwrap_or(BATCHES_IN_FLIGHT);
        control.with(in_flight, async |pool| {
            // Moved, so that whoever writes lines ends when the sender has given up.
            let mut batches = std::mem::replace(&mut batches, channel(1).1);
            let mut sending = FuturesUnordered::new();
            while let Some(batch) = batches.recv().await {
                sending.push(send(protocol, pool, control, table, batch?, progress));
                while sending.len() >= in_flight {
                    sending.next().await.expect("something is being sent")?;
                }
            }
            while let Some(sent) = sending.next().await {
                sent?;
            }
            Ok(())
        })
    })
}

async fn send(
    protocol: &dyn Protocol,
    pool: &Pool,
    control: &Control,
    table: &str,
    batch: Batch,
    progress: &Progress,
) -> Result<(), DriverError> {
    let start = Instant::now();
    let reply = pool.ask(protocol.write(&control.target.namespace, batch.lines)).await?;
    if reply.status.is_success() {
        progress.add_batch(batch.rows, start.elapsed());
        return Ok(());
    }
    let accounted = match protocol.kept_of_refused(batch.rows, &reply) {
        Some(kept) => {
            progress.add_batch(kept, start.elapsed());
            format!("{kept} of the batch's {} rows are in", batch.rows)
        }
        None => format!("how many of the batch's {} rows are in is unknown", batch.rows),
    };
    Err(DriverError::Data(format!("table {table}: {}; {accounted}", reply.shown())))
}

type Made = Sender<Result<Batch, DriverError>>;

/// A table, and how its rows become lines.
struct Source<'a> {
    table: &'a str,
    points: &'a Points,
    prefix: &'a str,
}

impl Source<'_> {
    /// Writes the lines of all rows, until one cannot be written or nobody takes them any more.
    fn make_all(&self, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress, made: &Made) -> Result<(), DriverError> {
        let mut batch = Batch::default();
        for record_batch in rows {
            progress.check()?;
            self.add_all(&record_batch.map_err(|error| DriverError::Data(error.to_string()))?, &mut batch, made)?;
        }
        if batch.rows > 0 { give(batch, made) } else { Ok(()) }
    }

    fn add_all(&self, record_batch: &RecordBatch, batch: &mut Batch, made: &Made) -> Result<(), DriverError> {
        let refused = |what: String| DriverError::Data(format!("table {}: {what}", self.table));
        let columns: Vec<Column> = self
            .points
            .columns
            .iter()
            .map(|column| Column::of(record_batch, &column.name).map_err(|error| refused(error.to_string())))
            .collect::<Result<_, _>>()?;
        for row in 0..record_batch.num_rows() {
            let appended = self.points.append(&mut batch.lines, self.prefix, |place| columns[place].value(row));
            appended.map_err(|error| refused(error.to_string()))?;
            batch.rows += 1;
            if batch.rows >= BATCH_ROWS || batch.lines.len() >= BATCH_BYTES {
                give(std::mem::take(batch), made)?;
            }
        }
        Ok(())
    }
}

fn give(batch: Batch, made: &Made) -> Result<(), DriverError> {
    made.blocking_send(Ok(batch)).map_err(|_| DriverError::Cancelled)
}
