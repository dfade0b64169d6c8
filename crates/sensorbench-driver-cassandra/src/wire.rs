//! Values in CQL's binary form.

use scylla::frame::response::result::{ColumnType, NativeType};
use scylla::serialize::SerializationError;
use scylla::serialize::writers::RowWriter;
use sensorbench_driver::{ConversionError, Type, ValueRef, fixed, narrowed};

const US_PER_MS: i64 = 1000;

/// How the values of a column or parameter are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Double,
    /// A double in a `text`, as the fewest digits that are read as the same double again.
    Digits,
    /// A `timestamp`, which counts milliseconds.
    Milliseconds,
    /// A time in a `bigint`, which counts microseconds.
    Microseconds,
    Text,
    Blob,
}

impl Form {
    /// The form in which a type of the server holds exactly the values of a canonical type; None when it does not. `float` is
    /// none for doubles, because it keeps half of their digits.
    pub fn of(canonical: Type, server: &ColumnType) -> Option<Self> {
        let ColumnType::Native(server) = server else { return None };
        Some(match (canonical, server) {
            (Type::Boolean, NativeType::Boolean) => Form::Boolean,
            (Type::Integer, NativeType::TinyInt) => Form::TinyInt,
            (Type::Integer, NativeType::SmallInt) => Form::SmallInt,
            (Type::Integer, NativeType::Int) => Form::Int,
            (Type::Integer, NativeType::BigInt | NativeType::Counter) => Form::BigInt,
            (Type::Double, NativeType::Double) => Form::Double,
            (Type::Double, NativeType::Text | NativeType::Ascii) => Form::Digits,
            (Type::Timestamp, NativeType::Timestamp) => Form::Milliseconds,
            (Type::Timestamp, NativeType::BigInt) => Form::Microseconds,
            (Type::Text, NativeType::Text | NativeType::Ascii) => Form::Text,
            (Type::Bytes, NativeType::Blob) => Form::Blob,
            // What no canonical type holds goes in CQL's binary form, as bytes that the server checks.
            (
                Type::Bytes,
                NativeType::Date
                | NativeType::Decimal
                | NativeType::Float
                | NativeType::Inet
                | NativeType::Time
                | NativeType::Timeuuid
                | NativeType::Uuid
                | NativeType::Varint,
            ) => Form::Blob,
            _ => return None,
        })
    }

    /// Hands over a value's bytes, or None for null.
    #[inline]
    pub fn encode<R>(self, value: ValueRef, hand_over: impl FnOnce(Option<&[u8]>) -> R) -> Result<R, ConversionError> {
        Ok(match (self, value) {
            (_, ValueRef::Null) => hand_over(None),
            (Form::Boolean, ValueRef::Boolean(value)) => hand_over(Some(&[value.into()])),
            (Form::TinyInt, ValueRef::Integer(value)) => hand_over(Some(&narrowed::<i8>(value, "tinyint")?.to_be_bytes())),
            (Form::SmallInt, ValueRef::Integer(value)) => hand_over(Some(&narrowed::<i16>(value, "smallint")?.to_be_bytes())),
            (Form::Int, ValueRef::Integer(value)) => hand_over(Some(&narrowed::<i32>(value, "int")?.to_be_bytes())),
            (Form::BigInt, ValueRef::Integer(value)) => hand_over(Some(&value.to_be_bytes())),
            (Form::Double, ValueRef::Double(value)) => hand_over(Some(&value.to_be_bytes())),
            (Form::Digits, ValueRef::Double(value)) => hand_over(Some(value.to_string().as_bytes())),
            (Form::Milliseconds, ValueRef::Timestamp(value)) => hand_over(Some(&milliseconds(value)?.to_be_bytes())),
            (Form::Microseconds, ValueRef::Timestamp(value)) => hand_over(Some(&value.to_be_bytes())),
            (Form::Text, ValueRef::Text(value)) => hand_over(Some(value.as_bytes())),
            (Form::Blob, ValueRef::Bytes(value)) => hand_over(Some(value)),
            (_, value) => return Err(ConversionError(format!("the value {value} is not of the column's type"))),
        })
    }

    /// Writes a value as the next cell of a row.
    #[inline]
    pub fn write(self, value: ValueRef, writer: &mut RowWriter) -> Result<(), ConversionError> {
        self.encode(value, |bytes| write_cell(bytes, writer))?.map_err(|error| ConversionError(error.to_string()))
    }

    /// Reads a value that is not null.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Result<ValueRef<'_>, ConversionError> {
        Ok(match self {
            Form::Boolean => ValueRef::Boolean(fixed::<1>(bytes)? != [0]),
            Form::TinyInt => ValueRef::Integer(i8::from_be_bytes(fixed(bytes)?).into()),
            Form::SmallInt => ValueRef::Integer(i16::from_be_bytes(fixed(bytes)?).into()),
            Form::Int => ValueRef::Integer(i32::from_be_bytes(fixed(bytes)?).into()),
            Form::BigInt => ValueRef::Integer(i64::from_be_bytes(fixed(bytes)?)),
            Form::Double => ValueRef::Double(f64::from_be_bytes(fixed(bytes)?)),
            Form::Digits => ValueRef::Double(from_digits(bytes)?),
            Form::Milliseconds => ValueRef::Timestamp(microseconds(i64::from_be_bytes(fixed(bytes)?))?),
            Form::Microseconds => ValueRef::Timestamp(i64::from_be_bytes(fixed(bytes)?)),
            Form::Text => ValueRef::Text(std::str::from_utf8(bytes).map_err(|error| ConversionError(error.to_string()))?),
            Form::Blob => ValueRef::Bytes(bytes),
        })
    }
}

/// Writes bytes as the next cell of a row.
#[inline]
fn write_cell(bytes: Option<&[u8]>, writer: &mut RowWriter) -> Result<(), SerializationError> {
    let cell = writer.make_cell_writer();
    match bytes {
        None => cell.set_null(),
        Some(bytes) => cell.set_value(bytes).map_err(SerializationError::new)?,
    };
    Ok(())
}

/// What a canonical type is called in CQL.
pub fn server_types(canonical: Type) -> &'static str {
    match canonical {
        Type::Boolean => "boolean",
        Type::Integer => "tinyint, smallint, int or bigint",
        Type::Double => "double, or text (as digits)",
        Type::Timestamp => "timestamp (milliseconds) or bigint (microseconds)",
        Type::Text => "text or ascii",
        Type::Bytes => "blob, or in their binary form date, decimal, float, inet, time, timeuuid, uuid and varint",
    }
}

/// A type of the server in CQL's words.
pub fn type_name(server: &ColumnType) -> String {
    match server {
        ColumnType::Native(native) => format!("{native:?}").to_lowercase(),
        _ => "a collection, a tuple or a type of the user's own".to_owned(),
    }
}

#[inline]
fn from_digits(bytes: &[u8]) -> Result<f64, ConversionError> {
    let number = std::str::from_utf8(bytes).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| ConversionError(format!("{:?} is not a number", String::from_utf8_lossy(bytes))))
}

#[inline]
pub fn milliseconds(time_us: i64) -> Result<i64, ConversionError> {
    if time_us % US_PER_MS != 0 {
        return Err(ConversionError(format!(
            "the time {time_us} µs is not a whole number of milliseconds, which is all that a timestamp of Cassandra holds; declare \
             it as bigint, which counts microseconds"
        )));
    }
    Ok(time_us / US_PER_MS)
}

#[inline]
fn microseconds(time_ms: i64) -> Result<i64, ConversionError> {
    time_ms.checked_mul(US_PER_MS).ok_or_else(|| ConversionError(format!("the time {time_ms} ms is beyond the year 294,247")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(form: Form, value: ValueRef) {
        let bytes = form.encode(value, |bytes| bytes.unwrap().to_vec()).unwrap();
        assert_eq!(form.read(&bytes), Ok(value));
    }

    #[test]
    fn values_come_back_as_they_were() {
        there_and_back(Form::Boolean, ValueRef::Boolean(true));
        there_and_back(Form::TinyInt, ValueRef::Integer(-128));
        there_and_back(Form::SmallInt, ValueRef::Integer(-32_768));
        there_and_back(Form::Int, ValueRef::Integer(i32::MAX.into()));
        there_and_back(Form::BigInt, ValueRef::Integer(i64::MIN));
        there_and_back(Form::Double, ValueRef::Double(f64::MIN_POSITIVE));
        for value in [19.52, 0.1 + 0.2, f64::MIN_POSITIVE, -f64::MAX, f64::INFINITY, -0.0] {
            there_and_back(Form::Digits, ValueRef::Double(value));
        }
        assert_eq!(Form::Digits.encode(ValueRef::Double(19.52), |bytes| bytes.unwrap().to_vec()), Ok(b"19.52".to_vec()));
        there_and_back(Form::Milliseconds, ValueRef::Timestamp(-1000));
        there_and_back(Form::Microseconds, ValueRef::Timestamp(i64::MAX));
        there_and_back(Form::Text, ValueRef::Text("日本"));
        there_and_back(Form::Blob, ValueRef::Bytes(&[0, 255]));
        assert_eq!(Form::Int.encode(ValueRef::Null, |bytes| bytes.is_none()), Ok(true));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |form: Form, value| form.encode(value, |_| ()).unwrap_err().to_string();
        assert!(refused(Form::TinyInt, ValueRef::Integer(128)).contains("128 does not fit into tinyint"));
        assert!(refused(Form::Int, ValueRef::Integer(1 << 31)).contains("declare it as bigint"));
        assert!(refused(Form::Milliseconds, ValueRef::Timestamp(1)).contains("counts microseconds"));
        assert!(refused(Form::BigInt, ValueRef::Text("x")).contains("not of the column's type"));
        assert!(Form::Milliseconds.read(&i64::MAX.to_be_bytes()).is_err());
        assert!(Form::BigInt.read(&[0; 4]).is_err());
        assert!(Form::Text.read(&[0xff]).is_err());
        assert_eq!(Form::Digits.read(b"19,5").unwrap_err().to_string(), "\"19,5\" is not a number");
    }

    #[test]
    fn only_exact_types_have_a_form() {
        let of = |canonical, native| Form::of(canonical, &ColumnType::Native(native));
        assert_eq!(of(Type::Double, NativeType::Float), None);
        assert_eq!(of(Type::Double, NativeType::Decimal), None);
        assert_eq!(of(Type::Timestamp, NativeType::Date), None);
        assert_eq!(of(Type::Integer, NativeType::Counter), Some(Form::BigInt));
        assert_eq!(of(Type::Bytes, NativeType::Uuid), Some(Form::Blob));
        assert_eq!(of(Type::Bytes, NativeType::Text), None);
    }
}
