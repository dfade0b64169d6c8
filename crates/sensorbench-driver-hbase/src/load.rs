//! Loading: rows in large batches, over several connections at a time.

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchReader};
use sensorbench_dataset::Column;
use sensorbench_driver::{DriverError, KeyedTable, Progress, ValueRef};

use crate::bindings::{TColumnValue, TPut, TTHBaseServiceSyncClient};
use crate::cells;
use crate::pool::any_gateway;
use crate::requests::put_of;
use crate::table::Table;
use crate::target::Target;
use crate::wire::Gateway;

/// Connections to each gateway, so that one batch is written while another is on the way.
const CONNECTIONS_A_GATEWAY: usize = 2;
/// What goes into one call at most. A gateway with framed transport takes messages of 2 MB.
const CELLS_A_BATCH: usize = 10_000;
const BYTES_A_BATCH: usize = 1 << 20;
/// What a cell takes in a message beside its value and qualifier, about.
const BYTES_A_CELL: usize = 40;

/// Rows of a table that are written by one call.
#[derive(Default)]
struct Batch {
    puts: Vec<TPut>,
    rows: u64,
    cells: usize,
    bytes: usize,
}

/// Loads rows into a table.
pub fn load(
    target: &Target,
    name: &str,
    table: &Table,
    rows: Box<dyn RecordBatchReader + Send>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let connections = target.hosts.len() * CONNECTIONS_A_GATEWAY;
    let gateways = (0..connections).map(|number| any_gateway(target, number).map(|(_, gateway)| gateway));
    let gateways = gateways.collect::<Result<Vec<_>, _>>()?;
    let (sender, receiver) = sync_channel(connections);
    let (receiver, failure) = (Mutex::new(Some(receiver)), Mutex::new(None));
    let table_name = target.table(name);
    let read = thread::scope(|scope| {
        for mut gateway in gateways {
            let (receiver, failure, table_name) = (&receiver, &failure, &table_name);
            scope.spawn(move || {
                if let Err(error) = write_all(&mut gateway, table_name, receiver, progress) {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    // A closed channel stops the reader.
                    receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
                }
            });
        }
        read_all(Filling { name, table, target, sender }, rows, progress)
    });
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(read, Err)
}

/// Writes batches until there are no more.
fn write_all(
    gateway: &mut Gateway,
    table: &[u8],
    batches: &Mutex<Option<Receiver<Batch>>>,
    progress: &Progress,
) -> Result<(), DriverError> {
    loop {
        let received = batches.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|batches| batches.recv().ok());
        let Some(batch) = received else { return Ok(()) };
        let start = Instant::now();
        gateway.call(|calls| calls.put_multiple(table.to_vec(), batch.puts))?;
        progress.add_batch(batch.rows, start.elapsed());
    }
}

/// A table that is being filled.
struct Filling<'a> {
    name: &'a str,
    table: &'a Table,
    target: &'a Target,
    sender: SyncSender<Batch>,
}

fn read_all(filling: Filling, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
    let mut batch = Batch::default();
    let mut previous = None;
    for record_batch in rows {
        progress.check()?;
        let record_batch = record_batch.map_err(|error| DriverError::Data(error.to_string()))?;
        let columns = filling.columns(&record_batch)?;
        for row in 0..record_batch.num_rows() {
            let (key, cells) = filling.row(&columns, row)?;
            filling.check_repeated(&key, &cells, &mut previous)?;
            batch.add(key, cells, filling.target);
            if (batch.cells >= CELLS_A_BATCH || batch.bytes >= BYTES_A_BATCH) && !filling.send(&mut batch) {
                return Ok(());
            }
        }
    }
    if batch.rows > 0 {
        filling.send(&mut batch);
    }
    Ok(())
}

impl Batch {
    /// Adds a row's cells, to the put before where that is of the same row of HBase.
    fn add(&mut self, key: Vec<u8>, cells: Vec<TColumnValue>, target: &Target) {
        let cell_bytes = |cell: &TColumnValue| cell.qualifier.len() + cell.value.len() + BYTES_A_CELL;
        self.rows += 1;
        self.cells += cells.len();
        self.bytes += cells.iter().map(cell_bytes).sum::<usize>();
        match self.puts.last_mut().filter(|put| put.row == key) {
            Some(put) => put.column_values.extend(cells),
            None => {
                self.bytes += key.len() + BYTES_A_CELL;
                self.puts.push(put_of(key, cells, target.load_durability.word));
            }
        }
    }
}

impl Filling<'_> {
    fn columns<'b>(&self, batch: &'b RecordBatch) -> Result<Vec<Column<'b>>, DriverError> {
        let columns = self.table.row_columns();
        let found = columns.iter().map(|column| Column::of(batch, &column.name));
        found.collect::<Result<_, _>>().map_err(|error| self.error(error))
    }

    /// The key and the cells of a row, whose columns come in the order of the table's.
    fn row(&self, columns: &[Column], row: usize) -> Result<(Vec<u8>, Vec<TColumnValue>), DriverError> {
        let value = |place: usize| columns[place].value(row);
        let keys = self.table.given_key().count();
        let mut key = Vec::new();
        let Some(offset) = self.table.offset() else {
            self.table.append_key(&mut key, None, value).map_err(|problem| self.error(problem))?;
            return Ok((key, self.cells(keys, value)?));
        };
        let ValueRef::Timestamp(time_us) = value(keys) else {
            return Err(self.error(format_args!("column {} is {}, expected a timestamp", offset.name, value(keys))));
        };
        let start_us = offset.floor(time_us);
        self.table.append_key(&mut key, Some(start_us), value).map_err(|problem| self.error(problem))?;
        let bytes = cells::encoded(self.table.columns[0].value_type, value(keys + 1)).map_err(|problem| self.error(problem))?;
        let cell = cells::cell_at(offset, self.table.qualifier.is_some(), start_us, time_us, bytes);
        Ok((key, vec![cell.map_err(|problem| self.error(problem))?]))
    }

    /// The cells of the columns of the value, the first of which has this place.
    fn cells<'v>(&self, first: usize, value: impl Fn(usize) -> ValueRef<'v>) -> Result<Vec<TColumnValue>, DriverError> {
        let mut written = Vec::new();
        for (place, column) in self.table.columns.iter().enumerate() {
            let value = value(first + place);
            if value != ValueRef::Null {
                let bytes = cells::encoded(column.value_type, value)
                    .map_err(|problem| self.error(format_args!("column {}: {problem}", column.name)))?;
                written.push(cells::cell(column.name.as_bytes().to_vec(), bytes, None));
            }
        }
        if written.is_empty() {
            written.push(cells::presence());
        }
        Ok(written)
    }

    /// Refuses a row that would silently take the place of the one before.
    fn check_repeated(&self, key: &[u8], cells: &[TColumnValue], previous: &mut Option<Previous>) -> Result<(), DriverError> {
        let of_row = self.table.offset().map(|_| (cells[0].qualifier.clone(), cells[0].timestamp));
        let this = Previous { key: key.to_vec(), of_row };
        if previous.as_ref() == Some(&this) {
            return Err(self.error("two rows have the same key; see the query of its fill"));
        }
        *previous = Some(this);
        Ok(())
    }

    /// Hands a batch over; false when nobody takes it any more.
    fn send(&self, batch: &mut Batch) -> bool {
        self.sender.send(mem::take(batch)).is_ok()
    }

    fn error(&self, problem: impl std::fmt::Display) -> DriverError {
        DriverError::Data(format!("table {}: {problem}", self.name))
    }
}

/// What distinguishes a row from the one before.
#[derive(PartialEq)]
struct Previous {
    key: Vec<u8>,
    of_row: Option<(Vec<u8>, Option<i64>)>,
}
