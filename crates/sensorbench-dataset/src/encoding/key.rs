//! Composite keys whose bytes sort like their values, in the manner of FoundationDB's tuple layer
//! (<https://github.com/apple/foundationdb/blob/main/design/tuple.md>): integers in as few bytes as they need, text and
//! bytes ended by a zero byte with zeros inside escaped. Changed here: the types are known from the schema, so that only
//! integers carry a leading byte.

use std::borrow::Cow;

use super::EncodingError;
use super::record::taken;
use crate::{Type, ValueRef};

/// The leading byte of the integer zero. Longer integers lead with a byte further away from it, negative ones below.
const INTEGER_ZERO: u8 = 0x14;
const END: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xff;

/// Appends `value` of a key column declared as `column_type`. Null has no place in a key.
#[inline]
pub fn append_key(key: &mut Vec<u8>, column_type: Type, value: ValueRef) -> Result<(), EncodingError> {
    match (column_type, value) {
        (Type::Boolean, ValueRef::Boolean(value)) => key.push(u8::from(value)),
        (Type::Integer, ValueRef::Integer(value)) => append_integer(key, value),
        (Type::Timestamp, ValueRef::Timestamp(value)) => key.extend(sortable_integer(value).to_be_bytes()),
        (Type::Double, ValueRef::Double(value)) => key.extend(sortable_double(value).to_be_bytes()),
        (Type::Text, ValueRef::Text(value)) => append_terminated(key, value.as_bytes()),
        (Type::Bytes, ValueRef::Bytes(value)) => append_terminated(key, value),
        (expected, found) => return Err(EncodingError::Mismatch { expected, found: found.to_string() }),
    }
    Ok(())
}

fn append_integer(key: &mut Vec<u8>, value: i64) {
    let magnitude = value.unsigned_abs();
    let length = (64 - magnitude.leading_zeros() as usize).div_ceil(8);
    if value >= 0 {
        key.push(INTEGER_ZERO + length as u8);
        key.extend(&magnitude.to_be_bytes()[8 - length..]);
    } else {
        key.push(INTEGER_ZERO - length as u8);
        key.extend(&(!magnitude).to_be_bytes()[8 - length..]);
    }
}

fn append_terminated(key: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        key.push(*byte);
        if *byte == END {
            key.push(ESCAPED_ZERO);
        }
    }
    key.push(END);
}

fn sortable_integer(value: i64) -> u64 {
    value as u64 ^ (1 << 63)
}

/// The order of IEEE 754 totalOrder: negative numbers have all bits inverted, others the sign bit.
fn sortable_double(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

/// A value read from a key: borrowed from it, but for text and bytes with zeros inside.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyPart<'a> {
    /// A value that lies in the key as it is.
    Borrowed(ValueRef<'a>),
    /// Text whose escaped zeros were put back.
    Text(String),
    /// Bytes whose escaped zeros were put back.
    Bytes(Vec<u8>),
}

impl KeyPart<'_> {
    /// The value.
    #[inline]
    pub fn value(&self) -> ValueRef<'_> {
        match self {
            KeyPart::Borrowed(value) => *value,
            KeyPart::Text(text) => ValueRef::Text(text),
            KeyPart::Bytes(bytes) => ValueRef::Bytes(bytes),
        }
    }
}

/// Reads the next column from the front of `key`.
#[inline]
pub fn read_key<'a>(key: &mut &'a [u8], column_type: Type) -> Result<KeyPart<'a>, EncodingError> {
    Ok(KeyPart::Borrowed(match column_type {
        Type::Boolean => ValueRef::Boolean(taken::<1>(key, column_type)?[0] != 0),
        Type::Integer => ValueRef::Integer(read_integer(key)?),
        Type::Timestamp => ValueRef::Timestamp((u64::from_be_bytes(taken(key, column_type)?) ^ (1 << 63)) as i64),
        Type::Double => ValueRef::Double(read_sortable_double(u64::from_be_bytes(taken(key, column_type)?))),
        Type::Text => match read_terminated(key, column_type)? {
            Cow::Borrowed(bytes) => {
                ValueRef::Text(std::str::from_utf8(bytes).map_err(|_| EncodingError::Malformed(column_type))?)
            }
            Cow::Owned(bytes) => {
                return Ok(KeyPart::Text(String::from_utf8(bytes).map_err(|_| EncodingError::Malformed(column_type))?));
            }
        },
        Type::Bytes => match read_terminated(key, column_type)? {
            Cow::Borrowed(bytes) => ValueRef::Bytes(bytes),
            Cow::Owned(bytes) => return Ok(KeyPart::Bytes(bytes)),
        },
    }))
}

fn read_integer(key: &mut &[u8]) -> Result<i64, EncodingError> {
    let [lead] = taken(key, Type::Integer)?;
    let negative = lead < INTEGER_ZERO;
    let length = usize::from(lead.abs_diff(INTEGER_ZERO));
    if length > 8 {
        return Err(EncodingError::Malformed(Type::Integer));
    }
    let (digits, rest) = key.split_at_checked(length).ok_or(EncodingError::Truncated(Type::Integer))?;
    *key = rest;
    let padding = if negative { 0xff } else { 0x00 };
    let mut bytes = [padding; 8];
    bytes[8 - length..].copy_from_slice(digits);
    let number = u64::from_be_bytes(bytes);
    Ok(if negative { (!number).wrapping_neg() as i64 } else { number as i64 })
}

fn read_sortable_double(number: u64) -> f64 {
    f64::from_bits(if number >> 63 == 1 { number ^ (1 << 63) } else { !number })
}

fn read_terminated<'a>(key: &mut &'a [u8], column_type: Type) -> Result<Cow<'a, [u8]>, EncodingError> {
    let bytes: &'a [u8] = key;
    let next_zero = |from: usize| {
        bytes[from..].iter().position(|byte| *byte == END).map(|at| from + at).ok_or(EncodingError::Truncated(column_type))
    };
    let mut unescaped = Cow::Borrowed(&[][..]);
    let mut start = 0;
    loop {
        let zero = next_zero(start)?;
        if bytes.get(zero + 1) != Some(&ESCAPED_ZERO) {
            *key = &bytes[zero + 1..];
            if start == 0 {
                return Ok(Cow::Borrowed(&bytes[..zero]));
            }
            unescaped.to_mut().extend(&bytes[start..zero]);
            return Ok(unescaped);
        }
        unescaped.to_mut().extend(&bytes[start..=zero]);
        start = zero + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(column_type: Type, value: ValueRef) -> Vec<u8> {
        let mut key = Vec::new();
        append_key(&mut key, column_type, value).unwrap();
        key
    }

    /// Keys of ascending values ascend, even if another column follows, and read back as they were.
    fn check(column_type: Type, ascending: &[ValueRef]) {
        for pair in ascending.windows(2) {
            let (mut low, mut high) = (key(column_type, pair[0]), key(column_type, pair[1]));
            low.push(0xfe);
            high.push(0x01);
            assert!(low < high, "{pair:?}: {low:x?} {high:x?}");
        }
        for value in ascending {
            let bytes = key(column_type, *value);
            let mut rest = bytes.as_slice();
            assert_eq!(read_key(&mut rest, column_type).unwrap().value(), *value);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn integers_sort_and_read_back() {
        let numbers = [i64::MIN, -65_536, -65_535, -256, -255, -1, 0, 1, 255, 256, 65_535, 65_536, i64::MAX];
        check(Type::Integer, &numbers.map(ValueRef::Integer));
        check(Type::Timestamp, &numbers.map(ValueRef::Timestamp));
    }

    #[test]
    fn doubles_sort_and_read_back() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-9, 2.0, f64::INFINITY];
        check(Type::Double, &numbers.map(ValueRef::Double));
    }

    #[test]
    fn text_and_bytes_sort_and_read_back() {
        check(Type::Text, &["", "\0", "\0a", "AC1", "AC10", "AC2", "été", "日本"].map(ValueRef::Text));
        check(Type::Bytes, &[&b""[..], b"\0", b"\0\0", b"\0\xff", b"a", b"\xff"].map(ValueRef::Bytes));
        check(Type::Boolean, &[false, true].map(ValueRef::Boolean));
    }

    #[test]
    fn bytes_that_are_no_key_are_refused() {
        for (column_type, bytes) in [(Type::Integer, &[0x16, 1][..]), (Type::Text, b"abc"), (Type::Timestamp, &[1, 2])] {
            assert_eq!(read_key(&mut &bytes[..], column_type), Err(EncodingError::Truncated(column_type)));
        }
        assert_eq!(read_key(&mut &[0xee][..], Type::Integer), Err(EncodingError::Malformed(Type::Integer)));
        assert!(append_key(&mut Vec::new(), Type::Integer, ValueRef::Null).is_err());
    }
}
