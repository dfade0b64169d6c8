//! Values of answers as values of the declared types.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sensorbench_driver::{ConversionError, Rows, Type, ValueRef};

use crate::json::{Reader, Scalar};

/// Doubles hold every whole number up to this one.
const EXACT_IN_DOUBLE: f64 = (1_u64 << 53) as f64;

/// Appends the next value of a JSON text, which is read at once where it is a plain number. As [`push`] else.
#[inline]
pub fn push_next(rows: &mut Rows, value_type: Type, reader: &mut Reader, time_unit_us: i64) -> Result<(), ConversionError> {
    let value = match value_type {
        Type::Integer => reader.whole_number().map(ValueRef::Integer),
        Type::Double => reader.double().map(ValueRef::Double),
        Type::Timestamp => match reader.whole_number() {
            Some(number) => {
                let us = number.checked_mul(time_unit_us);
                Some(ValueRef::Timestamp(us.ok_or_else(|| ConversionError(format!("expected a timestamp, found {number}")))?))
            }
            None => None,
        },
        Type::Boolean | Type::Text | Type::Bytes => None,
    };
    match value {
        Some(value) => rows.push(value),
        None => push(rows, value_type, &reader.scalar()?, time_unit_us)?,
    }
    Ok(())
}

/// Appends a value as one of a type to the row that is being written. `time_unit_us` is the unit of numbers that are times.
#[inline]
pub fn push(rows: &mut Rows, value_type: Type, scalar: &Scalar, time_unit_us: i64) -> Result<(), ConversionError> {
    let other = || ConversionError(format!("expected {}, found {scalar}", value_type.name()));
    let text = match scalar {
        Scalar::Null => {
            rows.push(ValueRef::Null);
            return Ok(());
        }
        Scalar::Boolean(value) if value_type == Type::Boolean => {
            rows.push(ValueRef::Boolean(*value));
            return Ok(());
        }
        Scalar::Boolean(_) => return Err(other()),
        Scalar::Number(text) if !matches!(value_type, Type::Text | Type::Bytes) => *text,
        Scalar::Number(_) => return Err(other()),
        // What tags have is text whatever it was, and so are values in answers of PromQL.
        Scalar::Text(text) => text.as_ref(),
    };
    match value_type {
        Type::Integer => rows.push(ValueRef::Integer(integer(text).ok_or_else(other)?)),
        Type::Double => rows.push(ValueRef::Double(text.parse().map_err(|_| other())?)),
        Type::Timestamp => {
            let time = integer(text).and_then(|time| time.checked_mul(time_unit_us));
            rows.push(ValueRef::Timestamp(time.ok_or_else(other)?));
        }
        Type::Boolean => rows.push(ValueRef::Boolean(match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Err(other()),
        })),
        Type::Text => rows.push(ValueRef::Text(text)),
        Type::Bytes => rows.push(ValueRef::Bytes(&STANDARD.decode(text).map_err(|_| other())?)),
    }
    Ok(())
}

/// A whole number, which may come as a double.
#[inline]
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        (value.trunc() == value && value.abs() <= EXACT_IN_DOUBLE).then_some(value as i64)
    })
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Value;

    use super::*;

    fn read(value_type: Type, scalar: Scalar) -> Result<Value, String> {
        let mut rows = Rows::new();
        push(&mut rows, value_type, &scalar, 1000).map_err(|error| error.to_string())?;
        rows.end_row();
        Ok(rows.iter().next().expect("a row").value(0).to_value())
    }

    /// The same of the first value of a list, which must be a list to its end.
    fn read_next(value_type: Type, text: &str) -> Result<Value, String> {
        let (mut rows, mut places) = (Rows::new(), 0..);
        Reader::new(text.as_bytes())
            .list(|reader| match places.next() {
                Some(0) => push_next(&mut rows, value_type, reader, 1000),
                _ => reader.skip(),
            })
            .map_err(|error| error.to_string())?;
        rows.end_row();
        Ok(rows.iter().next().expect("a row").value(0).to_value())
    }

    #[test]
    fn the_next_value_is_read_alike_and_the_one_after_it_is_left() {
        for (value_type, text, expected) in [
            (Type::Integer, "[12, 13]", Value::Integer(12)),
            (Type::Integer, "[1e3,13]", Value::Integer(1000)),
            (Type::Timestamp, "[12 ,13]", Value::Timestamp(12_000)),
            (Type::Timestamp, "[-12,13]", Value::Timestamp(-12_000)),
            (Type::Timestamp, "[null,13]", Value::Null),
            (Type::Double, "[12,13]", Value::Double(12.0)),
            (Type::Double, "[0.30000000000000004,13]", Value::Double(0.1 + 0.2)),
            (Type::Double, "[\"0.5\",13]", Value::Double(0.5)),
            (Type::Double, "[null,13]", Value::Null),
        ] {
            assert_eq!(read_next(value_type, text), Ok(expected), "{text}");
        }
        assert!(read_next(Type::Timestamp, "[999999999999999999,13]").unwrap_err().contains("expected a timestamp"));
    }

    #[test]
    fn values_keep_their_type_and_their_value_or_are_refused() {
        let text = |text: &'static str| Scalar::Text(text.into());
        for (value_type, scalar, expected) in [
            (Type::Integer, Scalar::Number("-9223372036854775808"), Value::Integer(i64::MIN)),
            (Type::Integer, Scalar::Number("1e3"), Value::Integer(1000)),
            (Type::Integer, text("7"), Value::Integer(7)),
            (Type::Double, Scalar::Number("0.30000000000000004"), Value::Double(0.1 + 0.2)),
            (Type::Double, Scalar::Number("5"), Value::Double(5.0)),
            (Type::Timestamp, Scalar::Number("-3"), Value::Timestamp(-3000)),
            (Type::Boolean, Scalar::Number("0"), Value::Boolean(false)),
            (Type::Boolean, Scalar::Boolean(true), Value::Boolean(true)),
            (Type::Text, text("é"), Value::Text("é".into())),
            (Type::Bytes, text("AP8="), Value::Bytes((b"\0\xff" as &[u8]).into())),
            (Type::Double, Scalar::Null, Value::Null),
        ] {
            assert_eq!(read(value_type, scalar), Ok(expected));
        }
        for (value_type, scalar) in [
            (Type::Integer, Scalar::Number("1.5")),
            (Type::Integer, Scalar::Number("9223372036854775808")),
            (Type::Boolean, Scalar::Number("2")),
            (Type::Text, Scalar::Number("1")),
            (Type::Double, Scalar::Boolean(true)),
            (Type::Timestamp, Scalar::Number("9223372036854775807")),
            (Type::Bytes, text("?")),
        ] {
            assert!(read(value_type, scalar).unwrap_err().contains("expected"));
        }
    }
}
