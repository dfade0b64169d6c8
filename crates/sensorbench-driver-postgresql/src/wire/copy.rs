//! Loading: binary COPY. One thread encodes rows while another sends those before them.

use std::pin::pin;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use bytes::{BufMut, Bytes};
use futures::SinkExt;
use sensorbench_dataset::Column;
use sensorbench_driver::{ConversionError, DriverError, Parameter, Progress};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_postgres::{Client, Error, Statement, Transaction};

use super::control::Control;
use super::errors;
use super::tables::{column_list, table_forms};
use super::target::Target;
use super::values::Form;

/// What goes before the rows of a binary COPY: its signature, no flags, no more header.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What goes after them.
const TRAILER: &[u8] = &(-1_i16).to_be_bytes();
/// A chunk of rows is sent when it is as large as this.
const CHUNK_BYTES: usize = 1 << 18;
/// Chunks that may wait to be sent.
const CHUNKS_AHEAD: usize = 4;
/// One COPY takes in as much as this. The library reports a refused row only at the end of a COPY, and that should not be the
/// end of a long load.
const COPY_BYTES: usize = 1 << 26;

/// Some encoded rows.
struct Chunk {
    bytes: Bytes,
    rows: u64,
}

/// A table and how its columns are written.
struct Encoder<'a> {
    order: &'a LoadOrder<'a>,
    forms: Vec<Form>,
}

/// Rows that are to be loaded.
pub type Rows = Box<dyn RecordBatchReader + Send>;

/// Where rows are to be loaded.
pub struct LoadOrder<'a> {
    pub control: &'a Control,
    pub target: &'a Target,
    pub table: &'a str,
    pub columns: &'a [Parameter],
    pub progress: &'a Progress,
}

impl LoadOrder<'_> {
    /// The columns of a batch, in the order of the table's.
    pub fn arrays<'b>(&self, batch: &'b RecordBatch) -> Result<Vec<Column<'b>>, DriverError> {
        let array = |column: &Parameter| {
            Column::of(batch, &column.name).map_err(|error| DriverError::Data(format!("table {}: {error}", self.table)))
        };
        self.columns.iter().map(array).collect()
    }

    /// A value of a column that cannot be loaded.
    pub fn refused(&self, column: &str, error: &ConversionError) -> DriverError {
        DriverError::Data(format!("table {}, column {column}: {error}", self.table))
    }
}

/// Loads rows into a table by binary COPY, in one transaction.
pub fn copy(order: &LoadOrder, rows: Rows) -> Result<(), DriverError> {
    let &LoadOrder { control, target, table, columns, progress } = order;
    let forms = control.with(async |client| table_forms(client, target, table, columns).await)?;
    let encoder = Encoder { order, forms };
    let (encoded, chunks) = channel(CHUNKS_AHEAD);
    std::thread::scope(|scope| {
        scope.spawn(move || encoder.encode_all(rows, progress, &encoded));
        let statement = target.dialect.copy_into(&target.dialect.table(&target.namespace, table), &column_list(columns));
        let loading = Loading { target, table, chunks, progress };
        control.with(async |client| loading.send_all(client, &statement).await)
    })
}

impl Encoder<'_> {
    /// Encodes every batch, until one cannot be encoded or nobody takes them any more.
    fn encode_all(&self, rows: Rows, progress: &Progress, encoded: &Sender<Result<Chunk, DriverError>>) {
        for batch in rows {
            let done = progress
                .check()
                .and_then(|()| batch.map_err(|error| DriverError::Data(error.to_string())))
                .and_then(|batch| self.encode_batch(&batch, encoded));
            if let Err(error) = done {
                // Where nobody takes it, the sender has an error of its own.
                let _ = encoded.blocking_send(Err(error));
                return;
            }
        }
    }

    fn encode_batch(&self, batch: &RecordBatch, encoded: &Sender<Result<Chunk, DriverError>>) -> Result<(), DriverError> {
        let arrays = self.order.arrays(batch)?;
        let mut chunk = empty_chunk();
        let mut rows = 0;
        for row in 0..batch.num_rows() {
            chunk.put_i16(arrays.len() as i16);
            for (place, array) in arrays.iter().enumerate() {
                let value = self.forms[place].encode(array.value(row));
                let value = value.map_err(|error| self.order.refused(&self.order.columns[place].name, &error))?;
                chunk.put_i32(value.length());
                value.put(&mut chunk);
            }
            rows += 1;
            if chunk.len() >= CHUNK_BYTES || row + 1 == batch.num_rows() {
                let bytes = std::mem::replace(&mut chunk, empty_chunk()).into();
                let taken = encoded.blocking_send(Ok(Chunk { bytes, rows: std::mem::take(&mut rows) }));
                taken.map_err(|_| DriverError::Cancelled)?;
            }
        }
        Ok(())
    }
}

/// Room for a chunk and the row that makes it full.
fn empty_chunk() -> Vec<u8> {
    Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4)
}

/// The side that sends.
struct Loading<'a> {
    target: &'a Target,
    table: &'a str,
    chunks: Receiver<Result<Chunk, DriverError>>,
    progress: &'a Progress,
}

impl Loading<'_> {
    async fn send_all(mut self, client: &mut Client, statement: &str) -> Result<(), DriverError> {
        let (server, table) = (&self.target.place, self.table);
        let refused = |error: Error| errors::data_error(server, table, error);
        let transaction = client.transaction().await.map_err(refused)?;
        let statement = transaction.prepare(statement).await.map_err(refused)?;
        while let Some(chunk) = self.chunks.recv().await {
            self.copy_from(chunk?, &transaction, &statement).await?;
        }
        transaction.commit().await.map_err(refused)
    }

    /// Sends this chunk and those after it, until they are enough for one COPY.
    async fn copy_from(&mut self, first: Chunk, transaction: &Transaction<'_>, statement: &Statement) -> Result<(), DriverError> {
        let refused = |error: Error| errors::data_error(&self.target.place, self.table, error);
        let mut copy = pin!(transaction.copy_in(statement).await.map_err(refused)?);
        copy.send(Bytes::from_static(HEADER)).await.map_err(refused)?;
        let (mut next, mut sent) = (Some(first), 0);
        while let Some(chunk) = next {
            let start = Instant::now();
            sent += chunk.bytes.len();
            copy.send(chunk.bytes).await.map_err(refused)?;
            self.progress.add_batch(chunk.rows, start.elapsed());
            next = if sent < COPY_BYTES { self.chunks.recv().await.transpose()? } else { None };
        }
        copy.send(Bytes::from_static(TRAILER)).await.map_err(refused)?;
        copy.finish().await.map(|_| ()).map_err(refused)
    }
}
