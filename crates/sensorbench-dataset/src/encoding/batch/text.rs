//! Readable ASCII: values joined by commas, as the sensor-schema study stored its byte arrays, but so that every double and
//! every time comes back exactly.
//!
//! ```text
//! batch      = "" | regular | irregular
//! regular    = first "+" step ":" value *( "," value )
//! irregular  = first ":" value *( "," difference ":" value )
//! first      = [ "-" ] digits                  first time in µs since 1970
//! step       = digits                          µs from each time to the next one
//! difference = digits                          µs from the time before
//! value      = number | "inf" | "-inf" | "nan:" 16 hexadecimal digits, which are the bits of the NaN
//! number     = [ "-" ] digits [ "." digits ] [ "e" [ "-" ] digits ]
//! ```
//!
//! Two or more readings whose times have equal differences are written as regular, all others as irregular:
//! `1546300800000000+60000000:21.5,21.51,-0.0` and `0:21.5,60000000:21.51,61000000:inf`. Numbers have the fewest digits
//! that give the double back (Adams, "Ryū: fast float-to-string conversion", PLDI 2018).

use std::io::Write;

use super::error::BatchError;
use super::times::differences;

/// Appends readings whose times ascend.
pub(super) fn encode(times: &[i64], values: &[f64], bytes: &mut Vec<u8>) {
    let ([first_time, ..], [first_value, later_values @ ..]) = (times, values) else { return };
    append_integer(bytes, *first_time);
    let step = common_difference(times);
    if let Some(step) = step {
        bytes.push(b'+');
        append_integer(bytes, step);
    }
    bytes.push(b':');
    append_value(bytes, *first_value);
    for (difference, value) in differences(times).zip(later_values) {
        bytes.push(b',');
        if step.is_none() {
            append_integer(bytes, difference);
            bytes.push(b':');
        }
        append_value(bytes, *value);
    }
}

/// The difference that all neighbouring times have, if there are any.
fn common_difference(times: &[i64]) -> Option<u64> {
    let mut differences = differences(times);
    let step = differences.next()?;
    differences.all(|difference| difference == step).then_some(step)
}

fn append_integer(bytes: &mut Vec<u8>, number: impl itoa::Integer) {
    bytes.extend(itoa::Buffer::new().format(number).as_bytes());
}

fn append_value(bytes: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        write!(bytes, "nan:{:016x}", value.to_bits()).expect("a Vec takes all bytes");
    } else {
        bytes.extend(ryu::Buffer::new().format(value).as_bytes());
    }
}

#[inline]
pub(super) fn decode(bytes: &[u8], mut visit: impl FnMut(i64, f64)) -> Result<(), BatchError> {
    // Once for all values: checking each value by itself costs more than looking for its end.
    let mut rest = str::from_utf8(bytes).map_err(|_| BatchError::Malformed)?;
    if rest.is_empty() {
        return Ok(());
    }
    let mut time = take_first_time(&mut rest)?;
    let step = if took(&mut rest, '+') { Some(take_digits(&mut rest)?) } else { None };
    expect(&mut rest, ':')?;
    loop {
        visit(time, take_value(&mut rest)?);
        if rest.is_empty() {
            return Ok(());
        }
        expect(&mut rest, ',')?;
        let difference = match step {
            Some(step) => step,
            None => take_difference(&mut rest)?,
        };
        time = time.wrapping_add(difference as i64);
    }
}

fn took(rest: &mut &str, wanted: char) -> bool {
    let after = rest.strip_prefix(wanted);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

fn expect(rest: &mut &str, wanted: char) -> Result<(), BatchError> {
    if took(rest, wanted) { Ok(()) } else { Err(BatchError::Malformed) }
}

fn take_first_time(rest: &mut &str) -> Result<i64, BatchError> {
    let negative = took(rest, '-');
    let magnitude = i128::from(take_digits(rest)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).map_err(|_| BatchError::Malformed)
}

fn take_difference(rest: &mut &str) -> Result<u64, BatchError> {
    let difference = take_digits(rest)?;
    expect(rest, ':')?;
    Ok(difference)
}

fn take_digits(rest: &mut &str) -> Result<u64, BatchError> {
    take_until(rest, |byte| !byte.is_ascii_digit()).parse().map_err(|_| BatchError::Malformed)
}

fn take_value(rest: &mut &str) -> Result<f64, BatchError> {
    read_value(take_until(rest, |byte| byte == b',')).ok_or(BatchError::Malformed)
}

#[inline]
fn take_until<'a>(rest: &mut &'a str, is_end: impl Fn(u8) -> bool) -> &'a str {
    let length = rest.bytes().position(is_end).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(length);
    *rest = after;
    taken
}

fn read_value(written: &str) -> Option<f64> {
    match written.as_bytes() {
        // Else the standard library would also read "+1", ".5" and "infinity".
        [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] => written.parse().ok(),
        b"inf" => Some(f64::INFINITY),
        b"-inf" => Some(f64::NEG_INFINITY),
        [b'n', b'a', b'n', b':', digits @ ..] => read_nan(digits),
        _ => None,
    }
}

fn read_nan(digits: &[u8]) -> Option<f64> {
    let append = |bits: u64, digit: &u8| Some(bits << 4 | u64::from((*digit as char).to_digit(16)?));
    let bits = <&[u8; 16]>::try_from(digits).ok()?.iter().try_fold(0, append)?;
    Some(f64::from_bits(bits)).filter(|value| value.is_nan())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{checked, slow_day};
    use super::super::{BatchEncoding, BatchError, decode_batch};

    fn text(times: &[i64], values: &[f64]) -> String {
        String::from_utf8(checked(BatchEncoding::Text, times, values)).unwrap()
    }

    #[test]
    fn the_format_stays() {
        assert_eq!(text(&[], &[]), "");
        assert_eq!(text(&[-5], &[1e300]), "-5:1e300");
        let minutes = [1_546_300_800_000_000, 1_546_300_860_000_000, 1_546_300_920_000_000];
        assert_eq!(text(&minutes, &[21.5, 0.1 + 0.2, -0.0]), "1546300800000000+60000000:21.5,0.30000000000000004,-0.0");
        let nan = f64::from_bits(0x7ff8_0000_0000_0001);
        assert_eq!(
            text(&[0, 7, 15, 16], &[21.0, f64::INFINITY, f64::NEG_INFINITY, nan]),
            "0:21.0,7:inf,8:-inf,1:nan:7ff8000000000001"
        );
        assert_eq!(text(&[i64::MIN, i64::MAX], &[5e-324, 1.0]), "-9223372036854775808+18446744073709551615:5e-324,1.0");
    }

    #[test]
    fn a_regular_reading_costs_its_digits_and_a_comma() {
        let (times, values) = slow_day();
        let digits: usize = values.iter().map(|value| format!("{value:?}").len()).sum();
        let header = "1546300800000000+60000000:".len();
        assert_eq!(text(&times, &values).len(), header + digits + 1439);
    }

    #[test]
    fn broken_text_is_refused() {
        for broken in [
            "1",
            "1:",
            ":1.0",
            "1+:1.0",
            "1+2",
            "1+2:",
            "1+2:1.0,",
            "1+2:1.0,,2.0",
            "1+-2:1.0",
            "1:1.0,2.0",
            "1:1.0,2",
            "1:1.0,:2.0",
            "1:1.0,-2:2.0",
            "1:+1.0",
            "1:.5",
            "1:NaN",
            "1:infinity",
            "1:-",
            "1:1e",
            "1:1.0 ",
            "1:nan:",
            "1:nan:7ff800000000001",
            "1:nan:3ff0000000000000",
            "1:nan:7ff8000000000001f",
            "1:nan:7ff800000000000g",
            "9223372036854775808:1.0",
            "-9223372036854775809:1.0",
            "1+18446744073709551616:1.0",
            "1:\u{ff}",
        ] {
            assert_eq!(decode_batch(BatchEncoding::Text, broken.as_bytes(), |_, _| ()), Err(BatchError::Malformed), "{broken}");
        }
        assert_eq!(decode_batch(BatchEncoding::Text, b"1:1\xff", |_, _| ()), Err(BatchError::Malformed));
    }
}
