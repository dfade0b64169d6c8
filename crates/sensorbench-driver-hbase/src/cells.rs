//! Values in cells: text and bytes as they are, all else in bytes that sort like the values, so that region servers can compare them.

use sensorbench_dataset::encoding::{EncodingError, append_key, read_key};
use sensorbench_driver::{Rows, Type, Value, ValueRef};

use crate::bindings::{TColumnValue, TResult};
use crate::table::{FAMILY, Offset};

/// Length of a qualifier that is an offset. Its bytes sort like the number.
const OFFSET_BYTES: usize = 4;

/// The bytes of a value that is not null.
pub fn encoded(column_type: Type, value: ValueRef) -> Result<Vec<u8>, EncodingError> {
    Ok(match (column_type, value) {
        (Type::Text, ValueRef::Text(text)) => text.as_bytes().to_vec(),
        (Type::Bytes, ValueRef::Bytes(bytes)) => bytes.to_vec(),
        (Type::Integer, ValueRef::Integer(number)) => sorted(Type::Timestamp, ValueRef::Timestamp(number))?,
        (column_type, value) => sorted(column_type, value)?,
    })
}

fn sorted(column_type: Type, value: ValueRef) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::with_capacity(8);
    append_key(&mut bytes, column_type, value)?;
    Ok(bytes)
}

/// Appends the value of a cell to a row.
#[inline]
pub fn push(column_type: Type, bytes: &[u8], rows: &mut Rows) -> Result<(), EncodingError> {
    let mut rest = bytes;
    match column_type {
        Type::Text => rows.push(ValueRef::Text(std::str::from_utf8(bytes).map_err(|_| EncodingError::Malformed(column_type))?)),
        Type::Bytes => rows.push(ValueRef::Bytes(bytes)),
        Type::Integer => match read_key(&mut rest, Type::Timestamp)?.value() {
            ValueRef::Timestamp(number) => rows.push(ValueRef::Integer(number)),
            other => unreachable!("a timestamp was read, not {other:?}"),
        },
        other => rows.push(read_key(&mut rest, other)?.value()),
    }
    if matches!(column_type, Type::Text | Type::Bytes) || rest.is_empty() {
        Ok(())
    } else {
        Err(EncodingError::Malformed(column_type))
    }
}

/// The value of a cell that holds an integer, as a double.
pub fn number(mut bytes: &[u8]) -> Result<ValueRef<'static>, EncodingError> {
    match read_key(&mut bytes, Type::Timestamp)?.value() {
        ValueRef::Timestamp(number) => Ok(ValueRef::Double(number as f64)),
        other => unreachable!("a timestamp was read, not {other:?}"),
    }
}

/// A cell to be written.
pub fn cell(qualifier: Vec<u8>, value: Vec<u8>, version: Option<i64>) -> TColumnValue {
    TColumnValue { family: FAMILY.to_vec(), qualifier, value, timestamp: version, tags: None, type_: None }
}

/// The cell of a row that has no other: a row of HBase is nothing but its cells.
pub fn presence() -> TColumnValue {
    cell(Vec::new(), Vec::new(), None)
}

/// The qualifier of a number of units.
pub fn offset_qualifier(unit: i64) -> Vec<u8> {
    let unit = u32::try_from(unit.max(0)).unwrap_or(u32::MAX);
    unit.to_be_bytes().to_vec()
}

/// The number of units that a cell stands for.
#[inline]
pub fn unit_of(cell: &TColumnValue, is_qualifier: bool) -> Result<i64, String> {
    if !is_qualifier {
        return cell.timestamp.ok_or_else(|| "a cell came without its version".to_owned());
    }
    let bytes: [u8; OFFSET_BYTES] = cell
        .qualifier
        .as_slice()
        .try_into()
        .map_err(|_| format!("a qualifier has {} bytes where {OFFSET_BYTES} were expected", cell.qualifier.len()))?;
    Ok(u32::from_be_bytes(bytes).into())
}

/// The cell of a row in a column.
#[inline]
pub fn find<'a>(result: &'a TResult, qualifier: &str) -> Option<&'a [u8]> {
    result.column_values.iter().find(|cell| cell.qualifier == qualifier.as_bytes()).map(|cell| cell.value.as_slice())
}

/// A bound for comparing bytes in the place of values: of the two zeros, which are equal as values, the one that leaves both out of a
/// range (or in it) that the bound is to leave out (or in).
pub fn bound(value: &Value, leaves_zeros_above: bool) -> Value {
    match value {
        Value::Double(0.0) => Value::Double(if leaves_zeros_above { -0.0 } else { 0.0 }),
        other => other.clone(),
    }
}

/// The cells of one reading where the time is kept apart; `start_us` is the beginning of the period that `time_us` lies in.
pub fn cell_at(offset: &Offset, is_qualifier: bool, start_us: i64, time_us: i64, value: Vec<u8>) -> Result<TColumnValue, String> {
    let unit = offset.unit(start_us, time_us).ok_or_else(|| offset.refused(time_us))?;
    Ok(if is_qualifier { cell(offset_qualifier(unit), value, None) } else { cell(Vec::new(), value, Some(unit)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_back_and_sort_like_themselves() {
        let read = |column_type, bytes: &[u8]| {
            let mut rows = Rows::new();
            push(column_type, bytes, &mut rows)?;
            rows.end_row();
            let row = rows.iter().next().unwrap().value(0).to_value();
            Ok::<_, EncodingError>(row)
        };
        let ascending = [i64::MIN, -1, 0, i64::MAX].map(|number| encoded(Type::Integer, ValueRef::Integer(number)).unwrap());
        assert!(ascending.is_sorted());
        assert_eq!(read(Type::Integer, &ascending[1]).unwrap(), Value::Integer(-1));
        for value in
            [Value::Text("a\0é".into()), Value::Bytes(b"\0\xff".as_slice().into()), Value::Boolean(true), Value::Double(-0.5)]
        {
            let column_type = value.as_ref().value_type().unwrap();
            assert_eq!(read(column_type, &encoded(column_type, value.as_ref()).unwrap()).unwrap(), value);
        }
        assert_eq!(read(Type::Double, &[1, 2]), Err(EncodingError::Truncated(Type::Double)));
        assert_eq!(read(Type::Boolean, &[1, 2]), Err(EncodingError::Malformed(Type::Boolean)));
        assert!(encoded(Type::Text, ValueRef::Integer(1)).is_err());
    }

    #[test]
    fn bounds_take_both_zeros_for_one() {
        let bytes = |value: &Value| encoded(Type::Double, value.as_ref()).unwrap();
        for zero in [0.0, -0.0].map(Value::Double) {
            assert!(bytes(&bound(&zero, false)) >= bytes(&Value::Double(0.0)), "what is above it is above both");
            assert!(bytes(&bound(&zero, true)) <= bytes(&Value::Double(-0.0)), "what is below it is below both");
        }
    }
}
