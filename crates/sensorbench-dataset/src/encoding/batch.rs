//! Readings of one sensor and one stretch of time as one array of bytes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How a batch of readings is written.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchEncoding {
    /// Number of readings, first time, unit, times as differences in units, then the values as 8 bytes each. Regular
    /// readings cost 9 bytes.
    Packed,
}

/// Readings that cannot be encoded, or bytes that cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BatchError {
    /// Times that do not ascend, or leave 2^63 µs.
    #[error("times in a batch must ascend; {later} µs comes after {earlier} µs")]
    Unsorted {
        /// The time before.
        earlier: i64,
        /// The time after it, which is not later.
        later: i64,
    },
    /// Bytes that are not a batch.
    #[error("the bytes are no packed batch of readings")]
    Malformed,
}

/// Appends a batch of readings: `times` in µs, strictly ascending, and as many `values`.
pub fn encode_batch(encoding: BatchEncoding, times: &[i64], values: &[f64], bytes: &mut Vec<u8>) -> Result<(), BatchError> {
    assert_eq!(times.len(), values.len(), "a reading has a time and a value");
    let BatchEncoding::Packed = encoding;
    let differences = differences(times)?;
    let unit = differences.iter().copied().fold(0, greatest_common_divisor).max(1);
    append_varint(bytes, times.len() as u64);
    bytes.extend(times.first().copied().unwrap_or(0).to_le_bytes());
    append_varint(bytes, unit);
    differences.iter().for_each(|difference| append_varint(bytes, difference / unit));
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    Ok(())
}

fn differences(times: &[i64]) -> Result<Vec<u64>, BatchError> {
    let difference = |pair: &[i64]| match pair[1].checked_sub(pair[0]) {
        Some(difference) if difference > 0 => Ok(difference as u64),
        _ => Err(BatchError::Unsorted { earlier: pair[0], later: pair[1] }),
    };
    times.windows(2).map(difference).collect()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Gives every reading of a batch, in order, to `visit`: its time in µs and its value.
#[inline]
pub fn decode_batch(encoding: BatchEncoding, bytes: &[u8], mut visit: impl FnMut(i64, f64)) -> Result<(), BatchError> {
    let BatchEncoding::Packed = encoding;
    let mut rest = bytes;
    let count = read_varint(&mut rest)? as usize;
    let (first, after_first) = rest.split_first_chunk().ok_or(BatchError::Malformed)?;
    rest = after_first;
    let unit = read_varint(&mut rest)?;
    let values_at = count.checked_mul(8).and_then(|length| rest.len().checked_sub(length)).ok_or(BatchError::Malformed)?;
    let (mut differences, values) = rest.split_at(values_at);
    let mut time = i64::from_le_bytes(*first);
    for (at, value) in values.chunks_exact(8).enumerate() {
        if at > 0 {
            time = time.wrapping_add(read_varint(&mut differences)?.wrapping_mul(unit) as i64);
        }
        visit(time, f64::from_le_bytes(value.try_into().expect("chunks of eight")));
    }
    if differences.is_empty() { Ok(()) } else { Err(BatchError::Malformed) }
}

/// Seven bits a byte, least first, the high bit telling that more follow (LEB128).
fn append_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn read_varint(bytes: &mut &[u8]) -> Result<u64, BatchError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(BatchError::Malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(BatchError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(times: &[i64], values: &[f64]) -> usize {
        let mut bytes = Vec::new();
        encode_batch(BatchEncoding::Packed, times, values, &mut bytes).unwrap();
        let mut decoded = Vec::new();
        decode_batch(BatchEncoding::Packed, &bytes, |time, value| decoded.push((time, value.to_bits()))).unwrap();
        let expected: Vec<_> = times.iter().zip(values).map(|(time, value)| (*time, value.to_bits())).collect();
        assert_eq!(decoded, expected);
        bytes.len()
    }

    #[test]
    fn batches_read_back_exactly() {
        check(&[], &[]);
        check(&[-5], &[f64::NAN]);
        check(&[0, 60_000_000, 180_000_000], &[-0.0, f64::INFINITY, 1e-300]);
        check(&[i64::MIN + 1, -1], &[1.0, 2.0]);
        check(&[1, 2, 1_000_003], &[1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_regular_reading_costs_nine_bytes() {
        let times: Vec<i64> = (0..1440).map(|minute| 1_546_300_800_000_000 + minute * 60_000_000).collect();
        let length = check(&times, &vec![21.5; 1440]);
        assert!(length <= 1440 * 9 + 16, "{length}");
    }

    #[test]
    fn unsorted_times_and_broken_bytes_are_refused() {
        let encode = |times: &[i64]| encode_batch(BatchEncoding::Packed, times, &[0.0, 0.0], &mut Vec::new());
        assert_eq!(encode(&[2, 1]), Err(BatchError::Unsorted { earlier: 2, later: 1 }));
        assert_eq!(encode(&[1, 1]), Err(BatchError::Unsorted { earlier: 1, later: 1 }));
        let mut bytes = Vec::new();
        encode_batch(BatchEncoding::Packed, &[1, 2], &[0.0, 0.0], &mut bytes).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(decode_batch(BatchEncoding::Packed, &bytes[..end], |_, _| ()), Err(BatchError::Malformed), "{end}");
        }
    }
}
