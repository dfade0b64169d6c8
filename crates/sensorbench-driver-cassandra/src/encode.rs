//! Rows of a fill in CQL's binary form, on a thread of their own: chunks of rows, each row cell by cell with the cell's length
//! before it, as in a request. The SSTable loader reads the same.

use std::ops::Range;

use arrow_array::{RecordBatch, RecordBatchReader};
use scylla::client::session::Session;
use scylla::frame::response::result::ColumnSpec;
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::prepared::PreparedStatement;
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, Parameter, Progress, SchemaError, quoted};
use tokio::sync::mpsc::Sender;

use crate::target::Target;
use crate::wire::{Form, server_types, type_name};
use crate::{catalogue, errors};

/// The length of a cell that has no value.
const NO_VALUE: i32 = -1;
/// Chunks are handed over by this many, because a table whose partitions are rows has very small ones.
const CHUNKS_AT_A_TIME: usize = 256;

/// Some encoded rows.
#[derive(Debug, Default)]
pub struct Chunk {
    pub bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// One encoded row.
#[derive(Clone, Copy)]
pub struct EncodedRow<'a>(&'a [u8]);

/// How the rows of a table are written.
pub struct TableForm {
    pub table: String,
    pub columns: Vec<Parameter>,
    /// The write of one row: an insertion, or the raising of counters.
    pub write: PreparedStatement,
    /// Whether the table has counters. They can only be raised, and a write that is repeated raises them twice.
    pub counts: bool,
    forms: Vec<Form>,
    /// Numbers of the columns that are the partition key.
    key: Vec<usize>,
}

/// When a chunk ends.
#[derive(Clone, Copy)]
pub struct ChunkLimit {
    /// After this many bytes.
    pub bytes: usize,
    /// Where another partition begins.
    pub at_partitions: bool,
}

impl Chunk {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Every row.
    pub fn iter(&self) -> impl Iterator<Item = EncodedRow<'_>> {
        (0..self.ends.len()).map(|row| EncodedRow(&self.bytes[self.row(row)]))
    }

    fn row(&self, row: usize) -> Range<usize> {
        row.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[row]
    }
}

impl SerializeRow for EncodedRow<'_> {
    fn serialize(&self, _: &RowSerializationContext, writer: &mut RowWriter) -> Result<(), SerializationError> {
        let mut rest = self.0;
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let cell = writer.make_cell_writer();
            let length = i32::from_be_bytes(*length);
            // Not null, which would be stored as a deletion.
            if length == NO_VALUE {
                cell.set_unset();
                rest = after;
            } else {
                let (value, after) = after.split_at(length as usize);
                cell.set_value(value).map_err(SerializationError::new)?;
                rest = after;
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TableForm {
    /// Asks the server how a table's columns are written. Fails where they cannot hold the values of the fill.
    pub async fn of(session: &Session, target: &Target, table: &str, columns: &[Parameter]) -> Result<Self, DriverError> {
        let path = format!("fill.{table}");
        let known = catalogue::columns(session, target, table).await?;
        let is_counter = |column: &Parameter| known.iter().any(|found| found.name == column.name && found.of_type == "counter");
        // The statement that raises counters has their placeholders first.
        let (raised, others): (Vec<_>, Vec<_>) = columns.iter().cloned().partition(is_counter);
        let counts = !raised.is_empty();
        let text = if counts { raise(&quoted(table), &raised, &others) } else { insert_into(&quoted(table), columns) };
        let columns = [raised, others].concat();
        let mut write = session.prepare(text).await.map_err(|error| errors::prepare_error(&target.shown, &path, &error))?;
        write.set_is_idempotent(!counts);
        if let Some(consistency) = target.write_consistency {
            write.set_consistency(consistency);
        }
        let form = |(column, found): (&Parameter, &ColumnSpec)| {
            Form::of(column.value_type, found.typ()).ok_or_else(|| {
                let message = format!(
                    "column {} is {} in Cassandra, but the fill has {} values; declare it as {}",
                    column.name,
                    type_name(found.typ()),
                    column.value_type.name(),
                    server_types(column.value_type)
                );
                DriverError::from(SchemaError::at(&path, message))
            })
        };
        let forms = columns.iter().zip(write.get_variable_col_specs().iter()).map(form).collect::<Result<_, _>>()?;
        let key = write.get_variable_pk_indexes().iter().map(|key| usize::from(key.index)).collect();
        Ok(Self { table: table.to_owned(), columns, write, counts, forms, key })
    }

    /// The insertion of one row, for those who are in no keyspace.
    pub fn qualified_insert(&self, keyspace: &str) -> String {
        insert_into(&format!("{}.{}", quoted(keyspace), quoted(&self.table)), &self.columns)
    }

    /// How the values of a column are written; None for one that the table is not filled with.
    pub fn form(&self, column: &str) -> Option<Form> {
        self.columns.iter().position(|known| known.name == column).map(|place| self.forms[place])
    }

    /// Encodes every batch, until one cannot be encoded or nobody takes them any more.
    pub fn encode_all(
        &self,
        rows: Box<dyn RecordBatchReader + Send>,
        limit: ChunkLimit,
        progress: &Progress,
        encoded: &Sender<Result<Vec<Chunk>, DriverError>>,
    ) {
        for batch in rows {
            let done = progress
                .check()
                .and_then(|()| batch.map_err(|error| DriverError::Data(error.to_string())))
                .and_then(|batch| self.encode_batch(&batch, limit, encoded));
            if let Err(error) = done {
                // Where nobody takes it, the sender has an error of its own.
                let _ = encoded.blocking_send(Err(error));
                return;
            }
        }
    }

    fn encode_batch(
        &self,
        batch: &RecordBatch,
        limit: ChunkLimit,
        encoded: &Sender<Result<Vec<Chunk>, DriverError>>,
    ) -> Result<(), DriverError> {
        let hand_over = |chunks: Vec<Chunk>| encoded.blocking_send(Ok(chunks)).map_err(|_| DriverError::Cancelled);
        let refused = |what: String| DriverError::Data(format!("table {}{what}", self.table));
        let array = |column: &Parameter| Column::of(batch, &column.name).map_err(|error| refused(format!(": {error}")));
        let arrays: Vec<Column> = self.columns.iter().map(array).collect::<Result<_, _>>()?;
        let (mut chunks, mut chunk) = (Vec::new(), Chunk::default());
        for row in 0..batch.num_rows() {
            let is_elsewhere = limit.at_partitions
                && row > 0
                && self.key.iter().any(|key| arrays[*key].value(row) != arrays[*key].value(row - 1));
            if !chunk.bytes.is_empty() && (is_elsewhere || chunk.bytes.len() >= limit.bytes) {
                chunks.push(std::mem::take(&mut chunk));
                if chunks.len() == CHUNKS_AT_A_TIME {
                    hand_over(std::mem::take(&mut chunks))?;
                }
            }
            for (place, array) in arrays.iter().enumerate() {
                let written = self.forms[place].encode(array.value(row), |bytes| write(bytes, &mut chunk.bytes));
                written.map_err(|error| refused(format!(", column {}: {error}", self.columns[place].name)))?;
            }
            chunk.ends.push(chunk.bytes.len());
        }
        if !chunk.bytes.is_empty() {
            chunks.push(chunk);
        }
        hand_over(chunks)
    }
}

fn insert_into(table: &str, columns: &[Parameter]) -> String {
    let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
    let places = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "))
}

/// The statement that raises counters by the values of a row.
fn raise(table: &str, counters: &[Parameter], key: &[Parameter]) -> String {
    let raised: Vec<_> = counters.iter().map(|column| format!("{0} = {0} + ?", quoted(&column.name))).collect();
    let row: Vec<_> = key.iter().map(|column| format!("{} = ?", quoted(&column.name))).collect();
    format!("UPDATE {table} SET {} WHERE {}", raised.join(", "), row.join(" AND "))
}

fn write(value: Option<&[u8]>, into: &mut Vec<u8>) {
    into.extend_from_slice(&value.map_or(NO_VALUE, |value| value.len() as i32).to_be_bytes());
    into.extend_from_slice(value.unwrap_or_default());
}
