//! Values as text, which is how Redis holds them: integers in decimal, doubles in the shortest form that reads back
//! exactly, times in µs since 1970, truth values as 0 and 1, text and bytes as they are.

use sensorbench_driver::{Type, ValueRef};

/// Scores are doubles: whole numbers up to here are exact in them.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Appends a value's text; false, with nothing appended, for null, which has none.
#[inline]
pub fn append_text(bytes: &mut Vec<u8>, value: ValueRef) -> bool {
    match value {
        ValueRef::Null => return false,
        ValueRef::Boolean(value) => bytes.push(b'0' + u8::from(value)),
        ValueRef::Integer(value) | ValueRef::Timestamp(value) => append_integer(bytes, value),
        ValueRef::Double(value) if value.is_nan() => bytes.extend_from_slice(b"nan"),
        ValueRef::Double(value) => bytes.extend_from_slice(ryu::Buffer::new().format(value).as_bytes()),
        ValueRef::Text(value) => bytes.extend_from_slice(value.as_bytes()),
        ValueRef::Bytes(value) => bytes.extend_from_slice(value),
    }
    true
}

/// Appends an integer in decimal.
#[inline]
pub fn append_integer(bytes: &mut Vec<u8>, value: impl itoa::Integer) {
    bytes.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Reads a value of a type from its text, or None when it is not one.
#[inline]
pub fn read_text(value_type: Type, bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(match value_type {
        Type::Bytes => ValueRef::Bytes(bytes),
        Type::Text => ValueRef::Text(std::str::from_utf8(bytes).ok()?),
        Type::Double => ValueRef::Double(read_double(bytes)?),
        Type::Integer => ValueRef::Integer(read_integer(bytes)?),
        Type::Timestamp => ValueRef::Timestamp(read_integer(bytes)?),
        Type::Boolean => match bytes {
            b"0" => ValueRef::Boolean(false),
            b"1" => ValueRef::Boolean(true),
            _ => return None,
        },
    })
}

fn read_double(bytes: &[u8]) -> Option<f64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// An integer, also one that a score brings in the form of a double.
fn read_integer(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.parse().ok().or_else(|| {
        let double: f64 = text.parse().ok()?;
        (double.fract() == 0.0 && double.abs() <= MAX_EXACT).then_some(double as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_exactly() {
        for (value, text) in [
            (ValueRef::Integer(i64::MIN), "-9223372036854775808"),
            (ValueRef::Timestamp(-1), "-1"),
            (ValueRef::Double(0.1 + 0.2), "0.30000000000000004"),
            (ValueRef::Double(-1.797e308), "-1.797e308"),
            (ValueRef::Double(f64::NEG_INFINITY), "-inf"),
            (ValueRef::Boolean(true), "1"),
            (ValueRef::Text("été"), "été"),
            (ValueRef::Bytes(b"a b"), "a b"),
        ] {
            let mut bytes = Vec::new();
            assert!(append_text(&mut bytes, value));
            assert_eq!(String::from_utf8(bytes.clone()).unwrap(), text);
            assert_eq!(read_text(value.value_type().unwrap(), &bytes), Some(value));
        }
        assert!(!append_text(&mut Vec::new(), ValueRef::Null));
    }

    #[test]
    fn scores_are_read_as_integers_where_they_are_whole() {
        assert_eq!(read_text(Type::Timestamp, b"1.5463008e+15"), Some(ValueRef::Timestamp(1_546_300_800_000_000)));
        for (value_type, text) in [(Type::Integer, "1.5"), (Type::Integer, "1e300"), (Type::Boolean, "yes"), (Type::Double, "")] {
            assert_eq!(read_text(value_type, text.as_bytes()), None, "{text}");
        }
    }
}
