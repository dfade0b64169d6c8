//! Reading values out of documents.

use bson::{RawBsonRef, RawDocument};
use sensorbench_driver::{ConversionError, Type, ValueRef};

/// Doubles hold every whole number up to this one.
const EXACT_IN_DOUBLE: i64 = 1 << 53;

/// A field of documents, or a field of a document in a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(Vec<String>);

impl Path {
    pub fn of(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// Its value in a document; None when it is not there.
    #[inline]
    pub fn find<'d>(&self, document: &'d RawDocument) -> Result<Option<RawBsonRef<'d>>, ConversionError> {
        let (last, before) = self.0.split_last().expect("a path has at least one part");
        let get = |document: &'d RawDocument, key: &String| document.get(key).map_err(|error| ConversionError(error.to_string()));
        let mut document = document;
        for key in before {
            match get(document, key)? {
                Some(RawBsonRef::Document(below)) => document = below,
                _ => return Ok(None),
            }
        }
        get(document, last)
    }
}

/// A value of a document as one of a type. What is not there is null.
#[inline]
pub fn read(value_type: Type, value: Option<RawBsonRef<'_>>) -> Result<ValueRef<'_>, ConversionError> {
    let Some(value) = value else { return Ok(ValueRef::Null) };
    Ok(match (value_type, value) {
        (_, RawBsonRef::Null) => ValueRef::Null,
        (Type::Boolean, RawBsonRef::Boolean(value)) => ValueRef::Boolean(value),
        (Type::Integer, RawBsonRef::Int32(value)) => ValueRef::Integer(value.into()),
        (Type::Integer, RawBsonRef::Int64(value)) => ValueRef::Integer(value),
        // Counts and sums may come as doubles.
        (Type::Integer, RawBsonRef::Double(value)) if value.trunc() == value && value.abs() <= EXACT_IN_DOUBLE as f64 => {
            ValueRef::Integer(value as i64)
        }
        (Type::Double, RawBsonRef::Double(value)) => ValueRef::Double(value),
        (Type::Double, RawBsonRef::Int32(value)) => ValueRef::Double(value.into()),
        (Type::Double, RawBsonRef::Int64(value)) if value.abs() <= EXACT_IN_DOUBLE => ValueRef::Double(value as f64),
        (Type::Timestamp, RawBsonRef::Int64(value)) => ValueRef::Timestamp(value),
        (Type::Timestamp, RawBsonRef::Int32(value)) => ValueRef::Timestamp(value.into()),
        (Type::Timestamp, RawBsonRef::DateTime(value)) => {
            let time = value.timestamp_millis().checked_mul(1000);
            ValueRef::Timestamp(time.ok_or_else(|| ConversionError(format!("the date {value} is beyond the year 294,247")))?)
        }
        (Type::Text, RawBsonRef::String(value)) => ValueRef::Text(value),
        (Type::Bytes, RawBsonRef::Binary(value)) => ValueRef::Bytes(value.bytes),
        (value_type, other) => {
            return Err(ConversionError(format!(
                "expected {}, found a value of the type {:?}",
                value_type.name(),
                other.element_type()
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, rawdoc};

    use super::*;

    #[test]
    fn values_are_found_by_their_path() {
        let document = rawdoc! {"a": {"b": 1, "c": {"d": 2}}, "e": 3};
        let found = |path: &str| read(Type::Integer, Path::of(path).find(&document).unwrap()).unwrap();
        assert_eq!(found("a.c.d"), ValueRef::Integer(2));
        assert_eq!(found("e"), ValueRef::Integer(3));
        for path in ["f", "a.f", "e.f", "a.b.c"] {
            assert_eq!(found(path), ValueRef::Null, "{path}");
        }
    }

    #[test]
    fn numbers_keep_their_value_or_are_refused() {
        let of = |value_type, value| read(value_type, Some(value));
        assert_eq!(of(Type::Integer, RawBsonRef::Double(3.0)), Ok(ValueRef::Integer(3)));
        assert_eq!(of(Type::Double, RawBsonRef::Int32(3)), Ok(ValueRef::Double(3.0)));
        assert_eq!(of(Type::Timestamp, RawBsonRef::DateTime(DateTime::from_millis(-2))), Ok(ValueRef::Timestamp(-2000)));
        assert!(of(Type::Integer, RawBsonRef::Double(3.5)).is_err());
        assert!(of(Type::Double, RawBsonRef::Int64((1 << 53) + 1)).is_err());
        assert!(of(Type::Timestamp, RawBsonRef::DateTime(DateTime::from_millis(i64::MAX))).is_err());
        assert!(of(Type::Text, RawBsonRef::Int32(3)).unwrap_err().to_string().contains("expected text, found"));
    }
}
