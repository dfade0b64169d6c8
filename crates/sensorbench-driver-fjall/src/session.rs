//! Executing operations.

use std::ops::Bound;
use std::sync::Arc;

use fjall::{Keyspace, PersistMode};
use sensorbench_dataset::encoding::{EncodingError, KeyPart, append_key};
use sensorbench_driver::{BlockingConnector, BlockingSession, Deadline, DriverError, Request, Rows, Value, ValueRef};

use crate::errors::fjall_error;
use crate::locks::RowLocks;
use crate::operation::{Prepared, PreparedPut, PreparedScan};
use crate::table::MAX_COLUMNS;

/// After how many rows of a scan the deadline is looked at.
const ROWS_BETWEEN_DEADLINE_CHECKS: u64 = 256;

pub struct Connector {
    pub database: fjall::Database,
    pub operations: Vec<(Keyspace, Prepared)>,
    /// What puts hold their row by, where some of them merge.
    pub locks: Option<Arc<RowLocks>>,
    pub durability: Option<PersistMode>,
}

impl BlockingConnector for Connector {
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError> {
        Ok(Box::new(FjallSession {
            database: self.database.clone(),
            operations: self.operations.clone(),
            locks: self.locks.clone(),
            durability: self.durability,
            deadline,
            key: Vec::new(),
            end: Vec::new(),
        }))
    }
}

struct FjallSession {
    database: fjall::Database,
    operations: Vec<(Keyspace, Prepared)>,
    locks: Option<Arc<RowLocks>>,
    durability: Option<PersistMode>,
    deadline: Arc<Deadline>,
    /// Where keys are put together, kept from call to call.
    key: Vec<u8>,
    end: Vec<u8>,
}

impl BlockingSession for FjallSession {
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError> {
        let Request { operation, parameters, rows } = request;
        let (keyspace, prepared) = &self.operations[*operation];
        match prepared {
            Prepared::Scan(scan) => execute_scan(keyspace, scan, parameters, rows, &self.deadline, &mut self.key, &mut self.end),
            Prepared::Put(put) => {
                execute_put(keyspace, put, parameters, self.locks.as_deref(), &mut self.key, &mut self.end)?;
                self.durability.map_or(Ok(()), |durability| self.database.persist(durability).map_err(fjall_error))
            }
        }
    }
}

fn data_error(error: EncodingError) -> DriverError {
    DriverError::Data(error.to_string())
}

fn execute_scan(
    keyspace: &Keyspace,
    scan: &PreparedScan,
    parameters: &[Value],
    rows: &mut Rows,
    deadline: &Deadline,
    start: &mut Vec<u8>,
    end: &mut Vec<u8>,
) -> Result<(), DriverError> {
    start.clear();
    for (place, parameter) in scan.prefix.iter().enumerate() {
        append_key(start, scan.table.key[place].value_type, parameters[*parameter].as_ref()).map_err(data_error)?;
    }
    let prefix_length = start.len();
    let read = |key: &[u8], record: &[u8], rows: &mut Rows| push_row(scan, parameters, &key[prefix_length..], record, rows);
    if scan.prefix.len() == scan.table.key.len() {
        if let Some(record) = keyspace.get(start.as_slice()).map_err(fjall_error)? {
            read(start, &record, rows)?;
        }
        return Ok(());
    }
    end.clear();
    end.extend_from_slice(start);
    let next_type = scan.table.key[scan.prefix.len()].value_type;
    if let Some(from) = scan.from {
        append_key(start, next_type, parameters[from].as_ref()).map_err(data_error)?;
    }
    if let Some(after) = scan.after {
        append_key(start, next_type, parameters[after].as_ref()).map_err(data_error)?;
        make_successor(start);
        if start.is_empty() {
            return Ok(());
        }
    }
    match scan.to {
        Some(to) => append_key(end, next_type, parameters[to].as_ref()).map_err(data_error)?,
        None => make_successor(end),
    }
    let upper = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end.as_slice()) };
    if matches!(upper, Bound::Excluded(end) if end <= start.as_slice()) {
        return Ok(());
    }
    let limit = scan.limit.map_or(Ok(usize::MAX), |limit| limit_of(&parameters[limit]))?;
    let range = keyspace.range::<&[u8], _>((Bound::Included(start.as_slice()), upper));
    let drain = |guard: fjall::Guard, rows: &mut Rows| {
        let (key, record) = guard.into_inner().map_err(fjall_error)?;
        read(&key, &record, rows)?;
        if rows.len().is_multiple_of(ROWS_BETWEEN_DEADLINE_CHECKS) { deadline.check() } else { Ok(()) }
    };
    if scan.reverse {
        range.rev().take(limit).try_for_each(|guard| drain(guard, rows))
    } else {
        range.take(limit).try_for_each(|guard| drain(guard, rows))
    }
}

/// The most rows that a scan may return.
fn limit_of(value: &Value) -> Result<usize, DriverError> {
    match value {
        Value::Integer(rows) if *rows >= 0 => Ok(usize::try_from(*rows).unwrap_or(usize::MAX)),
        other => Err(DriverError::Data(format!("the limit of a scan is {other}, expected a number of rows"))),
    }
}

/// Makes the smallest bytes that are greater than all bytes that begin with `prefix`; empty when there are none.
fn make_successor(prefix: &mut Vec<u8>) {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return;
        }
    }
}

#[inline]
fn push_row(scan: &PreparedScan, parameters: &[Value], key: &[u8], record: &[u8], rows: &mut Rows) -> Result<(), DriverError> {
    let mut row = [const { KeyPart::Borrowed(ValueRef::Null) }; MAX_COLUMNS];
    scan.table.read(scan.prefix.len(), key, record, &mut row).map_err(data_error)?;
    for place in &scan.columns {
        match scan.prefix.get(*place) {
            Some(parameter) => rows.push(parameters[*parameter].as_ref()),
            None => rows.push(row[*place].value()),
        }
    }
    rows.end_row();
    Ok(())
}

fn execute_put(
    keyspace: &Keyspace,
    put: &PreparedPut,
    parameters: &[Value],
    locks: Option<&RowLocks>,
    key: &mut Vec<u8>,
    record: &mut Vec<u8>,
) -> Result<(), DriverError> {
    let value = |place: usize| put.values[place].map_or(ValueRef::Null, |parameter| parameters[parameter].as_ref());
    key.clear();
    record.clear();
    put.table.append_key(key, value).map_err(data_error)?;
    let _held = locks.map(|locks| locks.lock(key));
    let stored = if put.merge { keyspace.get(key.as_slice()).map_err(fjall_error)? } else { None };
    match stored {
        Some(stored) => append_merged(put, &stored, value, record).map_err(data_error)?,
        None => put.table.append_record(record, value).map_err(data_error)?,
    }
    keyspace.insert(key.as_slice(), record.as_slice()).map_err(fjall_error)
}

/// The values that are given, and in the place of others those that are stored.
fn append_merged<'v>(
    put: &PreparedPut,
    stored: &[u8],
    value: impl Fn(usize) -> ValueRef<'v>,
    record: &mut Vec<u8>,
) -> Result<(), EncodingError> {
    let mut row = [const { KeyPart::Borrowed(ValueRef::Null) }; MAX_COLUMNS];
    put.table.read(put.table.key.len(), &[], stored, &mut row)?;
    put.table.append_record(record, |place| if put.values[place].is_some() { value(place) } else { row[place].value() })
}
