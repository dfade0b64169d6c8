//! Values on their way to the server and back.

use mysql_async::Column as Found;
use mysql_async::Value as MysqlValue;
use mysql_async::consts::ColumnType;
use sensorbench_driver::{Column, DriverError, Type, Value, ValueRef};
use serde::Deserialize;

use super::calendar::Moment;

/// How parameters of type timestamp are bound.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// As `DATETIME(6)`.
    #[default]
    Datetime,
    /// As `BIGINT`: microseconds since 1970.
    Microseconds,
}

/// The character set of values that are bytes and not text.
const BINARY: u16 = 63;

/// The value of the parameter called `name`, as the server takes it.
pub fn bound(value: &Value, timestamps: Timestamps, name: &str) -> Result<MysqlValue, DriverError> {
    let refused = |reason: String| DriverError::Data(format!("parameter {name}: {reason}"));
    Ok(match (value, timestamps) {
        (Value::Null, _) => MysqlValue::NULL,
        (Value::Boolean(value), _) => MysqlValue::Int(i64::from(*value)),
        (Value::Integer(value), _) | (Value::Timestamp(value), Timestamps::Microseconds) => MysqlValue::Int(*value),
        (Value::Double(value), _) => MysqlValue::Double(finite(*value).map_err(refused)?),
        (Value::Timestamp(value), Timestamps::Datetime) => {
            let Moment { year, month, day, hour, minute, second, micros } = moment(*value).map_err(refused)?;
            MysqlValue::Date(year, month, day, hour, minute, second, micros)
        }
        (Value::Text(value), _) => MysqlValue::Bytes(value.as_bytes().to_vec()),
        (Value::Bytes(value), _) => MysqlValue::Bytes(value.to_vec()),
    })
}

/// A double that can be stored, or the reason why not.
#[inline]
pub fn finite(value: f64) -> Result<f64, String> {
    if value.is_finite() {
        return Ok(value);
    }
    let name = if value.is_nan() { "NaN" } else { "infinity" };
    Err(format!("MySQL and MariaDB store no {name}; leave such values out, or write NULL instead"))
}

/// A time that a `DATETIME(6)` holds, or the reason why it holds it not.
#[inline]
pub fn moment(micros_since_1970: i64) -> Result<Moment, String> {
    Moment::of(micros_since_1970).ok_or_else(|| {
        format!(
            "{micros_since_1970} µs since 1970 is outside the years 1 to 9999 of DATETIME; \
             store microseconds as BIGINT, and bind them with timestamps = \"microseconds\""
        )
    })
}

/// A value of an answer. `found` is the column as the server describes it, `column` as the operation declares it.
#[inline]
pub fn canonical<'a>(value: &'a MysqlValue, found: &Found, column: &Column) -> Result<ValueRef<'a>, DriverError> {
    Ok(match (column.value_type, value) {
        (_, MysqlValue::NULL) => ValueRef::Null,
        (Type::Integer, MysqlValue::Int(value)) => ValueRef::Integer(*value),
        (Type::Double, MysqlValue::Double(value)) => ValueRef::Double(*value),
        (Type::Timestamp, MysqlValue::Date(year @ 1.., month @ 1.., day @ 1.., hour, minute, second, micros)) => {
            let (year, month, day, hour, minute, second, micros) = (*year, *month, *day, *hour, *minute, *second, *micros);
            ValueRef::Timestamp(Moment { year, month, day, hour, minute, second, micros }.micros_since_1970())
        }
        (Type::Timestamp, MysqlValue::Int(value)) if found.column_type() == ColumnType::MYSQL_TYPE_LONGLONG => {
            ValueRef::Timestamp(*value)
        }
        (Type::Text, MysqlValue::Bytes(value)) if is_text(found) => ValueRef::Text(
            std::str::from_utf8(value).map_err(|error| DriverError::Data(format!("column {}: {error}", column.name)))?,
        ),
        (Type::Bytes, MysqlValue::Bytes(value)) if is_bytes(found) => ValueRef::Bytes(value),
        (Type::Boolean, MysqlValue::Int(value)) => ValueRef::Boolean(*value != 0),
        (Type::Double, MysqlValue::Bytes(text)) if column.computed && is_decimal(found) => {
            ValueRef::Double(decimal(text).ok_or_else(|| mismatch(value, found, column))?)
        }
        _ => return Err(mismatch(value, found, column)),
    })
}

fn is_decimal(found: &Found) -> bool {
    matches!(found.column_type(), ColumnType::MYSQL_TYPE_NEWDECIMAL | ColumnType::MYSQL_TYPE_DECIMAL)
}

/// JSON is text, although MySQL describes it as binary.
fn is_text(found: &Found) -> bool {
    found.character_set() != BINARY || found.column_type() == ColumnType::MYSQL_TYPE_JSON
}

/// Numbers in decimal digits are described as binary, too.
fn is_bytes(found: &Found) -> bool {
    found.character_set() == BINARY && !is_decimal(found) && found.column_type() != ColumnType::MYSQL_TYPE_JSON
}

fn decimal(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cold]
fn mismatch(value: &MysqlValue, found: &Found, column: &Column) -> DriverError {
    let advice = match column.value_type {
        Type::Boolean | Type::Integer => "return CAST(… AS SIGNED)",
        Type::Double => "declare the column of the table DOUBLE, or return CAST(… AS DOUBLE)",
        Type::Timestamp => "return a DATETIME, or a BIGINT of microseconds since 1970",
        Type::Text => "return CAST(… AS CHAR)",
        Type::Bytes => "return CAST(… AS BINARY)",
    };
    DriverError::Data(format!(
        "column {} should be a {}, but the server returns {}; {advice}",
        column.name,
        column.value_type.name(),
        shown(value, found)
    ))
}

/// The type that came, as SQL has it, and the value where it is the reason.
fn shown(value: &MysqlValue, found: &Found) -> String {
    let name = format!("{:?}", found.column_type()).replace("MYSQL_TYPE_", "");
    match value {
        MysqlValue::Bytes(_) if is_decimal(found) => "a DECIMAL".to_owned(),
        MysqlValue::Bytes(_) if is_text(found) => format!("text ({name})"),
        MysqlValue::Bytes(_) => format!("bytes ({name})"),
        MysqlValue::UInt(value) => format!("{value}, which has no place in 64 bits with a sign"),
        MysqlValue::Date(0, 0, 0, ..) => "a zero date".to_owned(),
        _ => format!("a {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(value_type: Type, computed: bool) -> Column {
        Column { name: "c".to_owned(), value_type, computed }
    }

    fn read(value_type: Type, computed: bool, found: Found, value: MysqlValue) -> Result<Value, String> {
        canonical(&value, &found, &column(value_type, computed)).map(ValueRef::to_value).map_err(|error| error.to_string())
    }

    fn text(text: &str) -> MysqlValue {
        MysqlValue::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn what_is_not_the_declared_type_is_refused_with_advice() {
        let decimal = || Found::new(ColumnType::MYSQL_TYPE_NEWDECIMAL).with_character_set(BINARY);
        let refused = read(Type::Double, false, decimal(), text("1.50")).unwrap_err();
        assert_eq!(
            refused,
            "column c should be a double, but the server returns a DECIMAL; \
             declare the column of the table DOUBLE, or return CAST(… AS DOUBLE)"
        );
        assert_eq!(read(Type::Double, true, decimal(), text("1.50")), Ok(Value::Double(1.5)));
        assert!(read(Type::Bytes, false, decimal(), text("1.50")).is_err());
        let float = Found::new(ColumnType::MYSQL_TYPE_FLOAT);
        assert!(read(Type::Double, true, float, MysqlValue::Float(1.5)).unwrap_err().contains("returns a FLOAT"));
        let blob = || Found::new(ColumnType::MYSQL_TYPE_BLOB).with_character_set(BINARY);
        assert!(read(Type::Text, false, blob(), text("x")).unwrap_err().contains("returns bytes (BLOB)"));
        assert!(read(Type::Bytes, false, blob().with_character_set(45), text("x")).unwrap_err().contains("returns text (BLOB)"));
        let unsigned = Found::new(ColumnType::MYSQL_TYPE_LONGLONG);
        assert!(
            read(Type::Integer, false, unsigned.clone(), MysqlValue::UInt(u64::MAX)).unwrap_err().contains(&u64::MAX.to_string())
        );
        assert_eq!(read(Type::Timestamp, false, unsigned, MysqlValue::Int(-5)), Ok(Value::Timestamp(-5)));
        let int = Found::new(ColumnType::MYSQL_TYPE_LONG);
        assert!(read(Type::Timestamp, false, int, MysqlValue::Int(5)).is_err());
        let date = || Found::new(ColumnType::MYSQL_TYPE_DATETIME);
        assert_eq!(
            read(Type::Timestamp, false, date(), MysqlValue::Date(1970, 1, 2, 0, 0, 0, 7)),
            Ok(Value::Timestamp(86_400_000_007))
        );
        assert!(read(Type::Timestamp, false, date(), MysqlValue::Date(0, 0, 0, 0, 0, 0, 0)).unwrap_err().contains("zero date"));
        let json = Found::new(ColumnType::MYSQL_TYPE_JSON).with_character_set(BINARY);
        assert_eq!(read(Type::Text, false, json, text("{}")), Ok(Value::Text("{}".into())));
    }

    #[test]
    fn what_cannot_be_stored_is_not_bound() {
        let refused = |value: Value| bound(&value, Timestamps::Datetime, "p").unwrap_err().to_string();
        assert!(refused(Value::Double(f64::NAN)).starts_with("parameter p: MySQL and MariaDB store no NaN"));
        assert!(refused(Value::Double(f64::NEG_INFINITY)).contains("infinity"));
        assert!(refused(Value::Timestamp(i64::MAX)).contains("timestamps = \"microseconds\""));
        let micros = bound(&Value::Timestamp(i64::MAX), Timestamps::Microseconds, "p").unwrap();
        assert_eq!(micros, MysqlValue::Int(i64::MAX));
    }
}
