//! Loading: batches of new documents, several at a time, in no order. One thread makes documents while another sends those before.

use std::collections::BTreeMap;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use bson::RawDocumentBuf;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use mongodb::Database;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, Progress, ValueRef};
use tokio::sync::mpsc::{Sender, channel};

use crate::control::{Control, LOADING_CONNECTIONS};
use crate::documents::{Assembly, Documents, Ready};
use crate::target::Target;
use crate::{errors, observe};

/// A batch is sent when it has this many documents, or is so large. The library splits what a server does not take at once.
const BATCH_DOCUMENTS: usize = 2_000;
const BATCH_BYTES: usize = 4 << 20;
/// Batches that may wait to be sent.
const BATCHES_AHEAD: usize = 4;

/// Documents for one collection.
#[derive(Default)]
struct Batch {
    documents: Vec<RawDocumentBuf>,
    bytes: usize,
    rows: u64,
}

type Batches = BTreeMap<String, Batch>;

/// Loads rows into the collections of a table.
pub fn load(
    control: &Control,
    target: &Target,
    table: &str,
    documents: &Documents,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let keeps_nan = control.with(async |database| {
        observe::keeps_nan(database).await.map_err(|error| errors::statement_error(&target.shown, error))
    })?;
    let source = Source { table, documents, keeps_nan };
    let (made, mut batches) = channel(BATCHES_AHEAD);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(error) = source.make_all(rows, progress, &made) {
                // Where nobody takes it, the sender has an error of its own.
                let _ = made.blocking_send(Err(error));
            }
        });
        control.with(async |database| {
            let mut sending = FuturesUnordered::new();
            while let Some(batch) = batches.recv().await {
                let (collection, batch) = batch?;
                sending.push(send(database, target, table, collection, batch, progress));
                while sending.len() >= target.connections.unwrap_or(LOADING_CONNECTIONS) {
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
    database: &Database,
    target: &Target,
    table: &str,
    collection: String,
    batch: Batch,
    progress: &Progress,
) -> Result<(), DriverError> {
    let start = Instant::now();
    let collection = database.collection::<RawDocumentBuf>(&collection);
    let mut insert = collection.insert_many(batch.documents).ordered(false);
    if let Some(concern) = target.library_write_concern() {
        insert = insert.write_concern(concern);
    }
    insert.await.map_err(|error| errors::data_error(&target.shown, table, error))?;
    progress.add_batch(batch.rows, start.elapsed());
    Ok(())
}

type Made = Sender<Result<(String, Batch), DriverError>>;

/// A table, and how its rows become documents.
struct Source<'a> {
    table: &'a str,
    documents: &'a Documents,
    keeps_nan: bool,
}

impl Source<'_> {
    /// Makes documents of all rows, until one cannot be made or nobody takes them any more.
    fn make_all(&self, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress, made: &Made) -> Result<(), DriverError> {
        let mut assembly = Assembly::new(self.documents);
        let mut batches = Batches::new();
        for batch in rows {
            progress.check()?;
            let batch = batch.map_err(|error| DriverError::Data(error.to_string()))?;
            self.add_all(&batch, &mut assembly)?;
            hand_over(&mut assembly, &mut batches, made)?;
        }
        assembly.finish();
        hand_over(&mut assembly, &mut batches, made)?;
        let mut rest = batches.into_iter().filter(|(_, batch)| !batch.documents.is_empty());
        rest.try_for_each(|(collection, batch)| give(collection, batch, made))
    }

    fn add_all(&self, batch: &RecordBatch, assembly: &mut Assembly) -> Result<(), DriverError> {
        let columns = &self.documents.columns;
        let refused = |what: String| DriverError::Data(format!("table {}{what}", self.table));
        let array = |column: &Parameter| Column::of(batch, &column.name).map_err(|error| refused(format!(": {error}")));
        let arrays: Vec<Column> = columns.iter().map(array).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let is_nan = |array: &Column| matches!(array.value(row), ValueRef::Double(value) if value.is_nan());
            if !self.keeps_nan
                && let Some(place) = arrays.iter().position(is_nan)
            {
                return Err(refused(format!(", column {}: FerretDB does not take NaN; load null instead", columns[place].name)));
            }
            assembly.add(&|place| arrays[place].value(row)).map_err(|error| refused(format!(", {error}")))?;
        }
        Ok(())
    }
}

/// Puts documents into their batches, and gives away those that are full.
fn hand_over(assembly: &mut Assembly, batches: &mut Batches, made: &Made) -> Result<(), DriverError> {
    for Ready { collection, document, rows } in assembly.ready.drain(..) {
        let batch = batches.entry(collection.clone()).or_default();
        batch.bytes += document.as_bytes().len();
        batch.rows += rows;
        batch.documents.push(document);
        if batch.is_full() {
            give(collection, std::mem::take(batch), made)?;
        }
    }
    Ok(())
}

impl Batch {
    fn is_full(&self) -> bool {
        self.documents.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES
    }
}

fn give(collection: String, batch: Batch, made: &Made) -> Result<(), DriverError> {
    made.blocking_send(Ok((collection, batch))).map_err(|_| DriverError::Cancelled)
}
