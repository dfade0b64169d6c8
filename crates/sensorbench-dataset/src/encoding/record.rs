//! The columns of a row that are not in its key, as the value of a key-value pair. Their types are known from the schema.

use super::EncodingError;
use crate::{Type, ValueRef};

const NULL: u8 = 0;
const PRESENT: u8 = 1;

/// Appends `value` of a column declared as `column_type`: one byte that marks null, then the value in little-endian
/// bytes, text and bytes led by their length.
#[inline]
pub fn append_record(record: &mut Vec<u8>, column_type: Type, value: ValueRef) -> Result<(), EncodingError> {
    if value == ValueRef::Null {
        record.push(NULL);
        return Ok(());
    }
    record.push(PRESENT);
    match (column_type, value) {
        (Type::Boolean, ValueRef::Boolean(value)) => record.push(u8::from(value)),
        (Type::Integer, ValueRef::Integer(value)) => record.extend(value.to_le_bytes()),
        (Type::Timestamp, ValueRef::Timestamp(value)) => record.extend(value.to_le_bytes()),
        (Type::Double, ValueRef::Double(value)) => record.extend(value.to_le_bytes()),
        (Type::Text, ValueRef::Text(value)) => append_long(record, value.as_bytes()),
        (Type::Bytes, ValueRef::Bytes(value)) => append_long(record, value),
        (expected, found) => return Err(EncodingError::Mismatch { expected, found: found.to_string() }),
    }
    Ok(())
}

fn append_long(record: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a value is shorter than 4 GiB");
    record.extend(length.to_le_bytes());
    record.extend(bytes);
}

/// Reads the next column from the front of `record`.
#[inline]
pub fn read_record<'a>(record: &mut &'a [u8], column_type: Type) -> Result<ValueRef<'a>, EncodingError> {
    let [present] = taken(record, column_type)?;
    if present == NULL {
        return Ok(ValueRef::Null);
    }
    Ok(match column_type {
        Type::Boolean => ValueRef::Boolean(taken::<1>(record, column_type)?[0] != 0),
        Type::Integer => ValueRef::Integer(i64::from_le_bytes(taken(record, column_type)?)),
        Type::Timestamp => ValueRef::Timestamp(i64::from_le_bytes(taken(record, column_type)?)),
        Type::Double => ValueRef::Double(f64::from_le_bytes(taken(record, column_type)?)),
        Type::Text => {
            let bytes = taken_long(record, column_type)?;
            ValueRef::Text(std::str::from_utf8(bytes).map_err(|_| EncodingError::Malformed(column_type))?)
        }
        Type::Bytes => ValueRef::Bytes(taken_long(record, column_type)?),
    })
}

pub(super) fn taken<const N: usize>(bytes: &mut &[u8], column_type: Type) -> Result<[u8; N], EncodingError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(EncodingError::Truncated(column_type))?;
    *bytes = rest;
    Ok(*first)
}

fn taken_long<'a>(record: &mut &'a [u8], column_type: Type) -> Result<&'a [u8], EncodingError> {
    let length = u32::from_le_bytes(taken(record, column_type)?) as usize;
    let (bytes, rest) = record.split_at_checked(length).ok_or(EncodingError::Truncated(column_type))?;
    *record = rest;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_nulls_read_back() {
        let columns = [
            (Type::Double, ValueRef::Double(f64::MIN_POSITIVE)),
            (Type::Double, ValueRef::Null),
            (Type::Text, ValueRef::Text("日本")),
            (Type::Bytes, ValueRef::Bytes(b"\0\xff")),
            (Type::Integer, ValueRef::Integer(i64::MIN)),
            (Type::Timestamp, ValueRef::Timestamp(-1)),
            (Type::Boolean, ValueRef::Boolean(true)),
        ];
        let mut record = Vec::new();
        columns.iter().for_each(|(column_type, value)| append_record(&mut record, *column_type, *value).unwrap());
        let mut rest = record.as_slice();
        for (column_type, value) in columns {
            assert_eq!(read_record(&mut rest, column_type).unwrap(), value);
        }
        assert!(rest.is_empty());
        assert_eq!(read_record(&mut rest, Type::Text), Err(EncodingError::Truncated(Type::Text)));
    }
}
