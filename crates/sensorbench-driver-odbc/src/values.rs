//! Values on their way to a driver and back.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};
use sensorbench_driver::{Column, ConversionError, DriverError, Type, ValueRef};
use serde::Deserialize;

use crate::odbc::{Cell, Described, Form, Input, Kind, Moment, Text};

/// Up to here, doubles have all whole numbers.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// How values of type timestamp go to a driver.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// As date and time of day.
    #[default]
    Datetime,
    /// As integers: microseconds since 1970.
    Microseconds,
}

/// The form in which values of a type go to a driver.
pub fn form_of(value_type: Type, timestamps: Timestamps, text: Text) -> Form {
    match (value_type, timestamps) {
        (Type::Boolean, _) => Form::Bit,
        (Type::Integer, _) | (Type::Timestamp, Timestamps::Microseconds) => Form::Integer,
        (Type::Double, _) => Form::Double,
        (Type::Timestamp, Timestamps::Datetime) => Form::Moment,
        (Type::Text, _) => Form::Text(text),
        (Type::Bytes, _) => Form::Bytes,
    }
}

/// A value in this form.
#[inline]
pub fn input(value: ValueRef, form: Form) -> Result<Input, ConversionError> {
    Ok(match (value, form) {
        (ValueRef::Null, _) => Input::Null,
        (ValueRef::Boolean(value), Form::Bit) => Input::Bit(value),
        (ValueRef::Integer(value) | ValueRef::Timestamp(value), Form::Integer) => Input::Integer(value),
        (ValueRef::Double(value), Form::Double) => Input::Double(value),
        (ValueRef::Timestamp(value), Form::Moment) => Input::Moment(moment(value)?),
        (ValueRef::Text(value), Form::Text(_)) => Input::Text(value),
        (ValueRef::Bytes(value), Form::Bytes) => Input::Bytes(value),
        (value, _) => return Err(ConversionError(format!("the value {value} is not of the column's type"))),
    })
}

/// Bytes that a value takes in a buffer of variable width.
#[inline]
pub fn width(value: ValueRef) -> usize {
    match value {
        ValueRef::Text(value) => value.len(),
        ValueRef::Bytes(value) => value.len(),
        _ => 0,
    }
}

#[inline]
fn moment(micros_since_1970: i64) -> Result<Moment, ConversionError> {
    let time = DateTime::from_timestamp_micros(micros_since_1970).filter(|time| (1..=9999).contains(&time.year()));
    let time = time.ok_or_else(|| {
        ConversionError(format!(
            "{micros_since_1970} µs since 1970 is outside the years 1 to 9999; \
             store microseconds as BIGINT, and bind them with timestamps = \"microseconds\""
        ))
    })?;
    Ok(Moment {
        year: time.year() as i16,
        month: time.month() as u16,
        day: time.day() as u16,
        hour: time.hour() as u16,
        minute: time.minute() as u16,
        second: time.second() as u16,
        nanoseconds: time.nanosecond(),
    })
}

fn micros_since_1970(moment: Moment) -> Option<i64> {
    let Moment { year, month, day, hour, minute, second, nanoseconds } = moment;
    let date = NaiveDate::from_ymd_opt(year.into(), month.into(), day.into())?;
    let time = date.and_hms_nano_opt(hour.into(), minute.into(), second.into(), nanoseconds)?;
    (nanoseconds % 1000 == 0).then(|| time.and_utc().timestamp_micros())
}

/// The form in which a column of an answer is asked for, or why it is not what the operation says.
pub fn requested_form(column: &Column, described: &Described, text: Text) -> Result<Form, String> {
    let is_whole = matches!(described.kind, Kind::Integer) || (described.kind == Kind::Decimal && described.digits <= 0);
    match (column.value_type, described.kind) {
        // Drivers of databases that know no types of expressions call them text; what is in it is looked at when it comes.
        (_, Kind::Text { .. }) if column.value_type != Type::Bytes => Ok(Form::Text(text)),
        (Type::Boolean | Type::Integer | Type::Timestamp, _) if is_whole => Ok(Form::Integer),
        (Type::Boolean | Type::Integer, Kind::Bit) => Ok(Form::Bit),
        (Type::Double, Kind::Double) => Ok(Form::Double),
        // Oracle has no integers; what comes is looked at, too.
        (Type::Integer, Kind::Double) => Ok(Form::Double),
        (Type::Double, Kind::Decimal) if column.computed => Ok(Form::Double),
        (Type::Timestamp, Kind::Timestamp) => Ok(Form::Moment),
        (Type::Bytes, Kind::Bytes { .. }) => Ok(Form::Bytes),
        _ => Err(mismatch(column, &described.kind.name())),
    }
}

/// A value of an answer. Text is put together in `scratch`.
#[inline]
pub fn canonical<'a>(cell: Cell<'a>, column: &Column, scratch: &'a mut String) -> Result<ValueRef<'a>, DriverError> {
    Ok(match (column.value_type, cell) {
        (_, Cell::Null) => ValueRef::Null,
        (Type::Integer, Cell::Integer(value)) => ValueRef::Integer(value),
        (Type::Double, Cell::Double(value)) => ValueRef::Double(value),
        (Type::Timestamp, Cell::Moment(moment)) => {
            let micros = micros_since_1970(moment);
            ValueRef::Timestamp(micros.ok_or_else(|| refused(column, "a time that has no microseconds"))?)
        }
        (Type::Timestamp, Cell::Integer(value)) => ValueRef::Timestamp(value),
        (Type::Boolean, Cell::Bit(value)) => ValueRef::Boolean(value),
        (Type::Boolean, Cell::Integer(value)) => ValueRef::Boolean(value != 0),
        (Type::Integer, Cell::Bit(value)) => ValueRef::Integer(value.into()),
        (Type::Integer, Cell::Double(value)) if value.fract() == 0.0 && value.abs() <= LARGEST_WHOLE => {
            ValueRef::Integer(value as i64)
        }
        (Type::Bytes, Cell::Narrow(value)) => ValueRef::Bytes(value),
        (_, Cell::Wide(units)) => {
            scratch.clear();
            for character in char::decode_utf16(units.iter().copied()) {
                scratch.push(character.map_err(|_| refused(column, "text that is not UTF-16"))?);
            }
            of_text(scratch, column)?
        }
        (_, Cell::Narrow(bytes)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| refused(column, "text that is not UTF-8"))?;
            of_text(text, column)?
        }
        (_, Cell::Cut) => return Err(refused(column, "a value that is longer than it said before")),
        (_, other) => return Err(refused(column, other.kind())),
    })
}

/// What a text says. Numbers, and all that is kept as such, come as text from databases whose expressions have no types.
pub fn of_text<'a>(text: &'a str, column: &Column) -> Result<ValueRef<'a>, DriverError> {
    let value = match column.value_type {
        Type::Text => Some(ValueRef::Text(text)),
        Type::Integer => text.trim().parse().ok().map(ValueRef::Integer),
        Type::Double => text.trim().parse().ok().map(ValueRef::Double),
        Type::Timestamp => text.trim().parse().ok().map(ValueRef::Timestamp),
        Type::Boolean => truth(text.trim()).map(ValueRef::Boolean),
        Type::Bytes => None,
    };
    value.ok_or_else(|| refused(column, "other text"))
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    }
}

#[cold]
fn refused(column: &Column, found: &str) -> DriverError {
    DriverError::Data(mismatch(column, found))
}

fn mismatch(column: &Column, found: &str) -> String {
    let advice = match column.value_type {
        Type::Boolean => "return a BOOLEAN, or an integer",
        Type::Integer => "return CAST(… AS BIGINT)",
        Type::Double => "declare the column of the table DOUBLE PRECISION, or return CAST(… AS DOUBLE PRECISION)",
        Type::Timestamp => "return a TIMESTAMP, or a BIGINT of microseconds since 1970",
        Type::Text => "return CAST(… AS VARCHAR(…))",
        Type::Bytes => "return CAST(… AS VARBINARY(…))",
    };
    format!("column {} should be a {}, but the driver returns {found}; {advice}", column.name, column.value_type.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(value_type: Type, computed: bool) -> Column {
        Column { name: "c".to_owned(), value_type, computed }
    }

    fn described(kind: Kind, digits: i16) -> Described {
        Described { kind, size: 10, digits }
    }

    #[test]
    fn times_there_and_back() {
        for micros in [0, -1, -123_456_789, 951_782_400_000_000, 1_546_300_800_123_456, 253_402_300_799_999_999] {
            assert_eq!(micros_since_1970(moment(micros).unwrap()), Some(micros));
        }
        assert_eq!(moment(-1).unwrap().nanoseconds, 999_999_000);
        for beyond in [253_402_300_800_000_000, i64::MAX, i64::MIN] {
            assert!(moment(beyond).unwrap_err().0.contains("timestamps = \"microseconds\""));
        }
        let finer = Moment { year: 2000, month: 1, day: 1, nanoseconds: 1, ..Moment::default() };
        assert_eq!(micros_since_1970(finer), None);
        assert_eq!(micros_since_1970(Moment::default()), None, "a zero date is none");
    }

    #[test]
    fn columns_are_requested_as_what_they_are() {
        let requested = |value_type, computed, kind, digits| {
            requested_form(&column(value_type, computed), &described(kind, digits), Text::Wide)
        };
        assert_eq!(requested(Type::Integer, false, Kind::Decimal, 0), Ok(Form::Integer));
        assert!(requested(Type::Integer, false, Kind::Decimal, 6).unwrap_err().contains("CAST(… AS BIGINT)"));
        assert!(requested(Type::Double, false, Kind::Decimal, 2).unwrap_err().contains("returns a decimal"));
        assert_eq!(requested(Type::Double, true, Kind::Decimal, 2), Ok(Form::Double));
        assert!(requested(Type::Double, false, Kind::Real, 0).is_err());
        assert_eq!(requested(Type::Timestamp, false, Kind::Integer, 0), Ok(Form::Integer));
        assert_eq!(requested(Type::Double, false, Kind::Text { is_long: false }, 0), Ok(Form::Text(Text::Wide)));
        assert!(requested(Type::Bytes, false, Kind::Text { is_long: false }, 0).is_err());
        assert!(requested(Type::Text, false, Kind::Bytes { is_long: true }, 0).is_err());
    }

    #[test]
    fn whole_numbers_may_come_as_doubles() {
        let read = |value: f64| {
            canonical(Cell::Double(value), &column(Type::Integer, false), &mut String::new()).map(ValueRef::to_value)
        };
        assert_eq!(read(-3.0).unwrap(), sensorbench_driver::Value::Integer(-3));
        for beyond in [1.5, 1e17, f64::NAN, f64::INFINITY] {
            assert!(read(beyond).unwrap_err().to_string().contains("should be a integer, but the driver returns a double"));
        }
    }

    #[test]
    fn text_stands_for_what_it_says_and_nothing_else() {
        let read = |value_type, text: &str| of_text(text, &column(value_type, false)).map(ValueRef::to_value).ok();
        use sensorbench_driver::Value;
        assert_eq!(read(Type::Integer, "-9223372036854775808"), Some(Value::Integer(i64::MIN)));
        assert_eq!(read(Type::Integer, "1.5"), None);
        assert_eq!(read(Type::Double, "0.30000000000000004441"), Some(Value::Double(0.1 + 0.2)));
        assert_eq!(read(Type::Double, "9.0e+999"), Some(Value::Double(f64::INFINITY)));
        assert_eq!(read(Type::Boolean, "1"), Some(Value::Boolean(true)));
        assert_eq!(read(Type::Boolean, "yes"), None);
        assert_eq!(read(Type::Timestamp, "2000-01-01"), None);
    }
}
