//! Answers: JSON with a code, which shows a refusal, whatever the status.

use std::borrow::Cow;

use sensorbench_driver::{Column, ConversionError, DriverError, Rows, Type};
use serde::Deserialize;

use super::precision::Precision;
use crate::answer::push_next;
use crate::connection::Reply;
use crate::json::Reader;

const SUCCESS: i64 = 200;

/// What a statement that returns nothing is answered, and one that is refused.
#[derive(Deserialize)]
struct Outcome<'a> {
    code: i64,
    #[serde(default, borrow)]
    message: Cow<'a, str>,
}

/// What the server says where it refused something; None if it did not.
pub fn refusal(reply: &Reply) -> Option<String> {
    if !reply.status.is_success() {
        return Some(reply.shown());
    }
    match serde_json::from_slice::<Outcome>(&reply.body) {
        Ok(Outcome { code: SUCCESS, .. }) => None,
        Ok(Outcome { code, message }) => Some(format!("code {code}: {message}")),
        Err(_) => Some(format!("an answer without a code came: {}", reply.shown())),
    }
}

/// Appends the rows of an answer of these columns.
pub fn read(reply: &Reply, columns: &[Column], precision: Precision, rows: &mut Rows) -> Result<(), DriverError> {
    if !reply.status.is_success() {
        return Err(DriverError::Statement(reply.shown()));
    }
    let mut has_values = false;
    let mut units = Vec::new();
    let read = Reader::new(&reply.body).object(|reader, key| match key.as_ref() {
        // It stands before the values.
        "data_types" => reader.list(|reader| {
            units.push(if reader.string()? == "TIMESTAMP" { precision.unit_us() } else { 1 });
            Ok(())
        }),
        "values" => {
            has_values = true;
            reader.list(|reader| row(reader, columns, &units, rows))
        }
        _ => reader.skip(),
    });
    if let Err(error) = read {
        return Err(if has_values { DriverError::Data(error.to_string()) } else { refused(reply) });
    }
    if has_values { Ok(()) } else { Err(refused(reply)) }
}

fn refused(reply: &Reply) -> DriverError {
    DriverError::Statement(refusal(reply).unwrap_or_else(|| "the statement returns no rows".to_owned()))
}

fn row(reader: &mut Reader, columns: &[Column], units: &[i64], rows: &mut Rows) -> Result<(), ConversionError> {
    let mut place = 0;
    reader.list(|reader| {
        let column = columns.get(place).ok_or_else(|| other_count(units.len(), columns))?;
        let unit = units.get(place).copied().filter(|_| column.value_type == Type::Timestamp).unwrap_or(1);
        push_next(rows, column.value_type, reader, unit).map_err(|error| error.at("column", &column.name))?;
        place += 1;
        Ok(())
    })?;
    if place != columns.len() {
        return Err(other_count(place, columns));
    }
    rows.end_row();
    Ok(())
}

fn other_count(found: usize, columns: &[Column]) -> ConversionError {
    ConversionError(format!("the statement returns {found} columns; the operation has {}", columns.len()))
}
