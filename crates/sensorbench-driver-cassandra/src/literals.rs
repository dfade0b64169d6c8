//! Literals of recorded statements in CQL's binary form: of the type that the server prepared their placeholder for, or as bytes (0x…), which
//! is how the full query log has what was bound, whatever its type.

use std::net::IpAddr;

use scylla::frame::response::result::{ColumnType, NativeType};
use sensorbench_driver::{ConversionError, Literal, calendar};

use crate::wire::type_name;

const US_PER_MS: i64 = 1000;
/// A `date` counts its days from this many before 1970.
const DAYS_BEFORE_1970: i64 = 1 << 31;

/// The bytes of a literal that is written as CQL writes it; None for null.
pub fn encoded(literal: &Literal, server: &ColumnType) -> Result<Option<Vec<u8>>, ConversionError> {
    let Some(text) = literal.text() else { return Ok(None) };
    if let Some(bytes) = text.strip_prefix("0x").and_then(hexadecimal) {
        return Ok(Some(bytes));
    }
    let ColumnType::Native(native) = server else {
        return Err(ConversionError(format!("a placeholder is {}, which a trace has as bytes alone (0x…)", type_name(server))));
    };
    let bytes = match native {
        NativeType::Ascii | NativeType::Text => Some(text.as_bytes().to_vec()),
        NativeType::Boolean => text.parse().ok().map(|value: bool| vec![value.into()]),
        NativeType::TinyInt => text.parse().ok().map(|value: i8| value.to_be_bytes().to_vec()),
        NativeType::SmallInt => text.parse().ok().map(|value: i16| value.to_be_bytes().to_vec()),
        NativeType::Int => text.parse().ok().map(|value: i32| value.to_be_bytes().to_vec()),
        NativeType::BigInt | NativeType::Counter => text.parse().ok().map(|value: i64| value.to_be_bytes().to_vec()),
        NativeType::Varint => text.parse().ok().map(varint),
        NativeType::Decimal => decimal(text),
        NativeType::Float => text.parse().ok().map(|value: f32| value.to_be_bytes().to_vec()),
        NativeType::Double => text.parse().ok().map(|value: f64| value.to_be_bytes().to_vec()),
        NativeType::Timestamp => milliseconds(text).map(|value| value.to_be_bytes().to_vec()),
        NativeType::Date => date(text).map(|value| value.to_be_bytes().to_vec()),
        NativeType::Time => nanoseconds(text).map(|value| value.to_be_bytes().to_vec()),
        NativeType::Uuid | NativeType::Timeuuid => hexadecimal(&text.replace('-', "")).filter(|bytes| bytes.len() == 16),
        NativeType::Inet => text.parse().ok().map(|address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }),
        _ => None,
    };
    bytes.map(Some).ok_or_else(|| ConversionError(format!("{text:?} is not a literal of the type {}", type_name(server))))
}

/// The time of a batch in µs: its literal, or the number that its text ends with. None if it names none.
pub fn timestamp_us(text: &str, literals: &[Literal]) -> Option<i64> {
    let Some(literal) = literals.first() else { return text.split_whitespace().last()?.parse().ok() };
    let bytes = encoded(literal, &ColumnType::Native(NativeType::BigInt)).ok()??;
    bytes.try_into().ok().map(i64::from_be_bytes)
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|place| u8::from_str_radix(&digits[place..place + 2], 16).ok()).collect()
}

/// In two's complement, without bytes that say nothing.
fn varint(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let says_nothing = |pair: &[u8]| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == 0xff && pair[1] >= 0x80);
    let from = bytes.windows(2).take_while(|pair| says_nothing(pair)).count();
    bytes[from..].to_vec()
}

/// Digits after the point, then all digits as one number.
fn decimal(text: &str) -> Option<Vec<u8>> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some([scale.to_be_bytes().to_vec(), varint(digits)].concat())
}

/// Of a number of them since 1970, a time of the calendar in UTC, or a date.
fn milliseconds(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let time = text.strip_suffix("+0000").or_else(|| text.strip_suffix("+00:00")).unwrap_or(text);
    let time_us = calendar::read(time).or_else(|| calendar::read(&format!("{time}T00:00:00")))?;
    (time_us % US_PER_MS == 0).then_some(time_us / US_PER_MS)
}

fn date(text: &str) -> Option<u32> {
    let day = calendar::read(&format!("{text}T00:00:00"))?.div_euclid(calendar::US_OF_DAY);
    u32::try_from(day + DAYS_BEFORE_1970).ok()
}

/// Of a number of them since midnight, or a time of day.
fn nanoseconds(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || fraction.len() > 9 {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<9}").parse().ok()?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, native: NativeType) -> Option<Vec<u8>> {
        encoded(&Literal::Text(text.to_owned()), &ColumnType::Native(native)).ok().flatten()
    }

    #[test]
    fn literals_are_written_as_the_column_has_them() {
        for (text, native, expected) in [
            ("a", NativeType::Text, vec![b'a']),
            ("0x00fF", NativeType::Blob, vec![0, 255]),
            ("true", NativeType::Boolean, vec![1]),
            ("-1", NativeType::TinyInt, vec![255]),
            ("258", NativeType::Int, vec![0, 0, 1, 2]),
            ("0x00000102", NativeType::Int, vec![0, 0, 1, 2]),
            ("1.5", NativeType::Float, 1.5_f32.to_be_bytes().to_vec()),
            ("128", NativeType::Varint, vec![0, 128]),
            ("-128", NativeType::Varint, vec![128]),
            ("0", NativeType::Varint, vec![0]),
            ("-1.50", NativeType::Decimal, vec![0, 0, 0, 2, 255, 106]),
            ("2e3", NativeType::Decimal, vec![255, 255, 255, 253, 2]),
            ("1600000000000", NativeType::Timestamp, 1_600_000_000_000_i64.to_be_bytes().to_vec()),
            ("2020-09-13 12:26:40.000+0000", NativeType::Timestamp, 1_600_000_000_000_i64.to_be_bytes().to_vec()),
            ("1970-01-02", NativeType::Timestamp, 86_400_000_i64.to_be_bytes().to_vec()),
            ("1970-01-02", NativeType::Date, vec![128, 0, 0, 1]),
            ("00:00:01.5", NativeType::Time, 1_500_000_000_i64.to_be_bytes().to_vec()),
            ("00112233-4455-6677-8899-aabbccddeeff", NativeType::Uuid, (0..16).map(|byte| byte * 17).collect()),
            ("127.0.0.1", NativeType::Inet, vec![127, 0, 0, 1]),
        ] {
            assert_eq!(read(text, native), Some(expected), "{text}");
        }
        assert_eq!(encoded(&Literal::Null, &ColumnType::Native(NativeType::Int)), Ok(None));
    }

    #[test]
    fn a_batch_may_have_a_time() {
        assert_eq!(timestamp_us("BEGIN BATCH", &[]), None);
        assert_eq!(timestamp_us("BEGIN BATCH USING TIMESTAMP 17", &[]), Some(17));
        let as_bytes = Literal::Text("0x0000000000000011".to_owned());
        assert_eq!(timestamp_us("BEGIN BATCH USING TIMESTAMP $1", &[as_bytes]), Some(17));
    }

    #[test]
    fn what_is_no_value_of_the_column_is_refused_with_its_type() {
        for (text, native) in [
            ("x", NativeType::Int),
            ("128", NativeType::TinyInt),
            ("00", NativeType::Blob),
            ("0x0", NativeType::Blob),
            ("0xä0", NativeType::Blob),
            ("today", NativeType::Timestamp),
            ("12:30", NativeType::Time),
            ("0011", NativeType::Uuid),
            ("1d", NativeType::Duration),
        ] {
            assert_eq!(read(text, native), None, "{text}");
        }
        let refused = encoded(&Literal::Text("x".to_owned()), &ColumnType::Native(NativeType::Int)).unwrap_err().to_string();
        assert_eq!(refused, "\"x\" is not a literal of the type int");
    }
}
