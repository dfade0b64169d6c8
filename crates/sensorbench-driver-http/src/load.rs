//! Loading: batches of rows, several at a time. One thread writes rows while another sends those before.

use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use sensorbench_dataset::Column;
use sensorbench_driver::{ConversionError, DriverError, Progress, ValueRef};
use tokio::sync::mpsc::{Sender, channel};

use crate::connection::{Call, Reply};
use crate::control::Control;
use crate::pool::Pool;

/// Batches that are sent at the same time if the URL does not say how many connections there are, and those that may wait.
const BATCHES_IN_FLIGHT: usize = 4;

/// How the rows of a table are written.
pub trait Form: Sync {
    /// Names of the columns of a row, in order.
    fn columns(&self) -> impl Iterator<Item = &str>;

    /// Appends a row whose column of each number has this value. Fails with what cannot be written.
    fn append<'v>(&self, data: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) -> Result<(), ConversionError>;

    /// The request that writes rows.
    fn call(&self, data: Vec<u8>) -> Call;

    /// What the server says where it refused a write, which some servers do with a status of success.
    fn refusal(&self, reply: &Reply) -> Option<String> {
        (!reply.status.is_success()).then(|| reply.shown())
    }

    /// How many rows of a refused batch are in all the same; None if the server does not report it.
    fn kept_of_refused(&self, rows: u64, reply: &Reply) -> Option<u64>;

    /// A batch is sent when it has this many rows, or this many bytes, and where a batch of the rows that are handed over ends.
    fn full_batch(&self) -> (u64, usize);

    /// Whether batches must arrive in the order of their rows, one after the other.
    fn keeps_order(&self) -> bool {
        false
    }
}

#[derive(Default)]
struct Batch {
    data: Vec<u8>,
    rows: u64,
}

/// Loads rows into a table, whose name stands in messages.
pub fn load(
    form: &impl Form,
    control: &Control,
    table: &str,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let source = Source { table, form };
    let (made, mut batches) = channel(BATCHES_IN_FLIGHT);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(error) = source.make_all(rows, progress, &made) {
                // Where nobody takes it, the sender has an error of its own.
                let _ = made.blocking_send(Err(error));
            }
        });
        let in_flight = if form.keeps_order() { 1 } else { control.target.connections.unwrap_or(BATCHES_IN_FLIGHT) };
        control.with(in_flight, async |pool| {
            // Moved, so that whoever writes rows ends when the sender has given up.
            let mut batches = std::mem::replace(&mut batches, channel(1).1);
            let mut sending = FuturesUnordered::new();
            let mut outcome = Ok(());
            while outcome.is_ok()
                && let Some(batch) = batches.recv().await
            {
                match batch {
                    Ok(batch) => sending.push(send(form, pool, table, batch, progress)),
                    Err(DriverError::Cancelled) => return Err(DriverError::Cancelled),
                    Err(error) => outcome = Err(error),
                }
                while outcome.is_ok() && sending.len() >= in_flight {
                    outcome = sending.next().await.expect("something is being sent");
                }
            }
            // What is on its way when something is refused may be taken, and counts.
            drop(batches);
            while let Some(sent) = sending.next().await {
                outcome = outcome.and(sent);
            }
            outcome
        })
    })
}

async fn send(form: &impl Form, pool: &Pool, table: &str, batch: Batch, progress: &Progress) -> Result<(), DriverError> {
    let start = Instant::now();
    let reply = pool.ask(form.call(batch.data)).await?;
    let Some(refusal) = form.refusal(&reply) else {
        progress.add_batch(batch.rows, start.elapsed());
        return Ok(());
    };
    let accounted = match form.kept_of_refused(batch.rows, &reply) {
        Some(kept) => {
            progress.add_batch(kept, start.elapsed());
            format!("{kept} of the batch's {} rows are in", batch.rows)
        }
        None => format!("how many of the batch's {} rows are in is unknown", batch.rows),
    };
    Err(DriverError::Data(format!("table {table}: {refusal}; {accounted}")))
}

type Made = Sender<Result<Batch, DriverError>>;

/// A table, and how its rows are written.
struct Source<'a, F> {
    table: &'a str,
    form: &'a F,
}

impl<F: Form> Source<'_, F> {
    /// Writes all rows into batches, until one cannot be written or nobody takes them any more.
    fn make_all(&self, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress, made: &Made) -> Result<(), DriverError> {
        let mut batch = Batch::default();
        for record_batch in rows {
            progress.check()?;
            self.add_all(&record_batch.map_err(|error| DriverError::Data(error.to_string()))?, &mut batch, made)?;
            if batch.rows > 0 {
                give(std::mem::take(&mut batch), made)?;
            }
        }
        Ok(())
    }

    fn add_all(&self, record_batch: &RecordBatch, batch: &mut Batch, made: &Made) -> Result<(), DriverError> {
        let refused = |what: String| DriverError::Data(format!("table {}: {what}", self.table));
        let (full_rows, full_bytes) = self.form.full_batch();
        let columns: Vec<Column> = self
            .form
            .columns()
            .map(|name| Column::of(record_batch, name).map_err(|error| refused(error.to_string())))
            .collect::<Result<_, _>>()?;
        for row in 0..record_batch.num_rows() {
            let appended = self.form.append(&mut batch.data, |place| columns[place].value(row));
            appended.map_err(|error| refused(error.to_string()))?;
            batch.rows += 1;
            if batch.rows >= full_rows || batch.data.len() >= full_bytes {
                give(std::mem::take(batch), made)?;
            }
        }
        Ok(())
    }
}

fn give(batch: Batch, made: &Made) -> Result<(), DriverError> {
    made.blocking_send(Ok(batch)).map_err(|_| DriverError::Cancelled)
}
