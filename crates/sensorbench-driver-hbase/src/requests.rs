//! What gateways are asked: prepared operations and their parameters, in the gateway's words.

use sensorbench_dataset::encoding::append_key;
use sensorbench_driver::{DriverError, Value, ValueRef};

use crate::bindings::{
    TColumn, TColumnValue, TDelete, TDeleteType, TDurability, TGet, TMutation, TPut, TRowMutations, TScan, TTimeRange,
};
use crate::cells;
use crate::filter::{Comparison, Filter};
use crate::operation::{PreparedGet, PreparedPut, PreparedScan, Times};
use crate::table::{FAMILY, Offset, Table};

fn data_error(table: &str, problem: impl std::fmt::Display) -> DriverError {
    DriverError::Data(format!("table {table}: {problem}"))
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

/// A scan of everything.
pub fn whole_scan(caching: i32) -> TScan {
    TScan {
        start_row: None,
        stop_row: None,
        columns: None,
        caching: Some(caching),
        max_versions: Some(1),
        time_range: None,
        filter_string: None,
        batch_size: None,
        attributes: None,
        authorizations: None,
        reversed: None,
        cache_blocks: None,
        col_fam_time_range_map: None,
        read_type: None,
        limit: None,
        consistency: None,
        target_replica_id: None,
        filter_bytes: None,
    }
}

/// A scan that meets every row and answers with as little of it as there can be.
pub fn counting_scan(table: &Table, page: i32) -> TScan {
    let is_cell_each = table.offset().is_some();
    let filter = if is_cell_each { Filter::key_only() } else { Filter::all(vec![Filter::first_key_only(), Filter::key_only()]) };
    TScan {
        cache_blocks: Some(false),
        max_versions: Some(if table.version.is_some() { i32::MAX } else { 1 }),
        filter_bytes: Some(filter.0),
        ..whole_scan(page)
    }
}

/// What a scan asks for; None if nothing can lie in its range.
pub fn scan(scan: &PreparedScan, parameters: &[Value], caching: i32) -> Result<Option<TScan>, DriverError> {
    let (table, name) = (&scan.reading.table, &scan.reading.table_name);
    let append = |key: &mut Vec<u8>, place: usize, parameter: usize| {
        let column = &table.key[place];
        append_key(key, column.value_type, parameters[parameter].as_ref())
            .map_err(|error| data_error(name, format_args!("column {} of the key: {error}", column.name)))
    };
    let mut start = Vec::new();
    for (place, parameter) in scan.prefix.iter().enumerate() {
        append(&mut start, place, *parameter)?;
    }
    let (mut end, next) = (start.clone(), scan.prefix.len());
    if let Some(from) = scan.from {
        append(&mut start, next, from)?;
    }
    if let Some(after) = scan.after {
        append(&mut start, next, after)?;
        make_successor(&mut start);
        if start.is_empty() {
            return Ok(None);
        }
    }
    match scan.to {
        Some(to) => append(&mut end, next, to)?,
        None => make_successor(&mut end),
    }
    if !end.is_empty() && end <= start {
        return Ok(None);
    }
    let filters = scan.bounds.iter().map(|(column, comparison, parameter)| {
        let column = &table.columns[*column];
        let value = cells::bound(&parameters[*parameter], *comparison != Comparison::Greater);
        let bytes = cells::encoded(column.value_type, value.as_ref()).map_err(|error| data_error(name, error))?;
        Ok(Filter::column(FAMILY, column.name.as_bytes(), *comparison, &bytes))
    });
    let filters = filters.collect::<Result<Vec<_>, DriverError>>()?;
    let limit = scan.limit.map(|limit| limit_of(&parameters[limit])).transpose()?;
    if limit == Some(0) {
        return Ok(None);
    }
    Ok(Some(TScan {
        start_row: Some(start),
        stop_row: Some(end),
        columns: scan.reading.columns(),
        limit,
        filter_bytes: (!filters.is_empty()).then(|| Filter::all(filters).0),
        ..whole_scan(limit.unwrap_or(caching).min(caching))
    }))
}

/// The most rows that a scan may return.
fn limit_of(value: &Value) -> Result<i32, DriverError> {
    match value {
        Value::Integer(rows) if *rows >= 0 => Ok(i32::try_from(*rows).unwrap_or(i32::MAX)),
        other => Err(DriverError::Data(format!("the limit of a scan is {other}, expected a number of rows"))),
    }
}

fn whole_get(row: Vec<u8>) -> TGet {
    TGet {
        row,
        columns: None,
        timestamp: None,
        time_range: None,
        max_versions: None,
        filter_string: None,
        attributes: None,
        authorizations: None,
        consistency: None,
        target_replica_id: None,
        cache_blocks: None,
        store_limit: None,
        store_offset: None,
        existence_only: None,
        filter_bytes: None,
    }
}

/// The rows that a get asks for.
pub fn gets(get: &PreparedGet, parameters: &[Value]) -> Result<Vec<TGet>, DriverError> {
    let table = &get.reading.table;
    let row = |start_us: Option<i64>| {
        let mut key = Vec::new();
        let appended = table.append_key(&mut key, start_us, |place| parameters[get.key[place]].as_ref());
        appended.map_err(|problem| data_error(&get.reading.table_name, problem))?;
        Ok::<_, DriverError>(whole_get(key))
    };
    let offset = || table.offset().expect("was checked");
    match get.times {
        Times::None => Ok(vec![TGet { columns: get.reading.columns(), ..row(None)? }]),
        Times::Range(from, to) => {
            let (from_us, to_us) = (time_of(&parameters[from])?, time_of(&parameters[to])?);
            let of_period =
                |start_us: i64| row(Some(start_us)).map(|get| within(table, offset(), get, start_us, from_us, to_us)).transpose();
            offset().periods(from_us, to_us).filter_map(of_period).collect()
        }
        Times::At(at) => {
            let time_us = time_of(&parameters[at])?;
            let start_us = offset().floor(time_us);
            Ok(within(table, offset(), row(Some(start_us))?, start_us, time_us, time_us + 1).into_iter().collect())
        }
    }
}

/// A get of those cells of a period that lie in `from_us`..`to_us` (`to_us` excluded); None if that is between two units.
fn within(table: &Table, offset: &Offset, get: TGet, start_us: i64, from_us: i64, to_us: i64) -> Option<TGet> {
    let (first, end) = (offset.first_unit(start_us, from_us), offset.first_unit(start_us, to_us));
    if first >= end {
        return None;
    }
    let is_whole = first == 0 && end >= offset.units();
    Some(if table.version.is_some() {
        let time_range = (!is_whole).then_some(TTimeRange { min_stamp: first, max_stamp: end });
        TGet { time_range, max_versions: Some(i32::MAX), ..get }
    } else if is_whole {
        get
    } else if end == first + 1 {
        let column = TColumn { family: FAMILY.to_vec(), qualifier: Some(cells::offset_qualifier(first)), timestamp: None };
        TGet { columns: Some(vec![column]), ..get }
    } else {
        let filter = Filter::qualifiers(&cells::offset_qualifier(first), &cells::offset_qualifier(end));
        TGet { filter_bytes: Some(filter.0), ..get }
    })
}

fn time_of(value: &Value) -> Result<i64, DriverError> {
    match value {
        Value::Timestamp(time_us) => Ok(*time_us),
        other => Err(DriverError::Data(format!("a time is {other}, expected a timestamp"))),
    }
}

/// A put of cells.
pub fn put_of(row: Vec<u8>, column_values: Vec<TColumnValue>, durability: TDurability) -> TPut {
    TPut { row, column_values, timestamp: None, attributes: None, durability: Some(durability), cell_visibility: None }
}

/// How one row is written.
pub enum Write {
    Put(TPut),
    /// All at once, or nothing.
    Mutations(TRowMutations),
}

/// What writing a row asks for.
pub fn write(put: &PreparedPut, parameters: &[Value], durability: TDurability) -> Result<Write, DriverError> {
    let error = |problem: String| data_error(&put.table_name, problem);
    let (mut row, mut written, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    let time_us = put.time.map(|time| time_of(&parameters[time])).transpose()?;
    let start_us = put.table.offset().zip(time_us).map(|(offset, time_us)| offset.floor(time_us));
    put.table.append_key(&mut row, start_us, |place| parameters[put.key[place]].as_ref()).map_err(error)?;
    for (place, parameter) in &put.columns {
        let (column, value) = (&put.table.columns[*place], parameters[*parameter].as_ref());
        let qualifier = column.name.as_bytes().to_vec();
        match (value, put.table.offset().zip(time_us)) {
            (ValueRef::Null, None) => {
                deleted.push(TColumn { family: FAMILY.to_vec(), qualifier: Some(qualifier), timestamp: None });
            }
            (value, offset) => {
                let value = cells::encoded(column.value_type, value)
                    .map_err(|problem| error(format!("column {}: {problem}", column.name)))?;
                written.push(match offset {
                    None => cells::cell(qualifier, value, None),
                    Some((offset, time_us)) => {
                        let start_us = offset.floor(time_us);
                        cells::cell_at(offset, put.table.qualifier.is_some(), start_us, time_us, value).map_err(error)?
                    }
                });
            }
        }
    }
    if written.is_empty() {
        written.push(cells::presence());
    }
    let put = put_of(row.clone(), written, durability);
    if deleted.is_empty() {
        return Ok(Write::Put(put));
    }
    let deletes = TDelete {
        row: row.clone(),
        columns: Some(deleted),
        timestamp: None,
        delete_type: Some(TDeleteType::DELETE_COLUMNS),
        attributes: None,
        durability: Some(durability),
    };
    Ok(Write::Mutations(TRowMutations { row, mutations: vec![TMutation::Put(put), TMutation::DeleteSingle(deletes)] }))
}
