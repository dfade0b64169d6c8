//! Readings of one sensor and one time bucket as one array of bytes, in one of three encodings.
//!
//! Readings may come in any order. They are stored sorted by time, and of those with equal times the one that came last
//! stays, as if each had been upserted as a row whose key is its time. What is stored comes back bit for bit: any 64-bit
//! time, and any double with its sign of zero and its NaN payload.

mod bits;
mod cost;
mod error;
mod gorilla;
mod packed;
mod text;
mod times;
mod varint;

pub use cost::{BatchCost, batch_cost};
pub use error::BatchError;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// How a batch of readings is written.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchEncoding {
    /// Values as readable digits, joined by commas. Regular readings cost as many bytes as their digits and a comma.
    Text,
    /// Number of readings, first time, unit, times as differences in units, then the values as 8 bytes each. Regular
    /// readings cost 9 bytes.
    Packed,
    /// Bits that say how the interval and the value differ from those before, as in Gorilla. A regular reading whose value
    /// stays costs 2 bits, one with a random value about 8 bytes.
    Gorilla,
}

/// Appends a batch of readings: `times` in µs and as many `values`, in any order. They are sorted by time, and of equal times
/// the last one stays.
pub fn encode_batch(encoding: BatchEncoding, times: &[i64], values: &[f64], bytes: &mut Vec<u8>) -> Result<(), BatchError> {
    if times.len() != values.len() {
        return Err(BatchError::Uneven { times: times.len(), values: values.len() });
    }
    let (times, values) = ascending(times, values);
    match encoding {
        BatchEncoding::Text => text::encode(&times, &values, bytes),
        BatchEncoding::Packed => packed::encode(&times, &values, bytes),
        BatchEncoding::Gorilla => gorilla::encode(&times, &values, bytes),
    }
    Ok(())
}

/// Gives every reading of a batch, in ascending order of time, to `visit`: its time in µs and its value.
///
/// Malformed bytes may be noticed only after readings were given.
#[inline]
pub fn decode_batch(encoding: BatchEncoding, bytes: &[u8], visit: impl FnMut(i64, f64)) -> Result<(), BatchError> {
    match encoding {
        BatchEncoding::Text => text::decode(bytes, visit),
        BatchEncoding::Packed => packed::decode(bytes, visit),
        BatchEncoding::Gorilla => gorilla::decode(bytes, visit),
    }
}

/// The readings sorted by time, of equal times the last one. Where they are so already, they are only looked at.
fn ascending<'a>(times: &'a [i64], values: &'a [f64]) -> (Cow<'a, [i64]>, Cow<'a, [f64]>) {
    if times.is_sorted_by(|earlier, later| earlier < later) {
        return (times.into(), values.into());
    }
    let mut readings: Vec<(i64, f64)> = times.iter().copied().zip(values.iter().copied()).collect();
    // Stable, so that readings with equal times stay in the order in which they came.
    readings.sort_by_key(|(time, _)| *time);
    let last_of = |equal: &[(i64, f64)]| equal[equal.len() - 1];
    let (times, values): (Vec<_>, Vec<_>) = readings.chunk_by(|one, other| one.0 == other.0).map(last_of).unzip();
    (times.into(), values.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a batch, after checking that they decode to the times and the bits of the values.
    pub fn checked(encoding: BatchEncoding, times: &[i64], values: &[f64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_batch(encoding, times, values, &mut bytes).unwrap();
        let mut decoded = Vec::new();
        decode_batch(encoding, &bytes, |time, value| decoded.push((time, value.to_bits()))).unwrap();
        let expected: Vec<_> = times.iter().zip(values).map(|(time, value)| (*time, value.to_bits())).collect();
        assert_eq!(decoded, expected);
        bytes
    }

    /// A day of readings, one a minute, whose values change slowly in steps of 0.01.
    pub fn slow_day() -> (Vec<i64>, Vec<f64>) {
        let hundredths = |minute: i64| 2_150 + minute / 30 - (minute * 7 % 5) / 4;
        (0..1440).map(|minute| (1_546_300_800_000_000 + minute * 60_000_000, hundredths(minute) as f64 / 100.0)).unzip()
    }

    const ENCODINGS: [BatchEncoding; 3] = [BatchEncoding::Text, BatchEncoding::Packed, BatchEncoding::Gorilla];

    #[test]
    fn batches_read_back_exactly() {
        for encoding in ENCODINGS {
            checked(encoding, &[], &[]);
            checked(encoding, &[-5], &[f64::NAN]);
            checked(encoding, &[0, 60_000_000, 180_000_000], &[-0.0, f64::INFINITY, 1e-300]);
            checked(encoding, &[i64::MIN, i64::MAX], &[f64::NEG_INFINITY, f64::from_bits(0xfff8_dead_beef_0001)]);
            checked(encoding, &[i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX], &[f64::MAX, 5e-324, -5e-324, f64::MIN]);
            checked(encoding, &[1, 2, 1_000_003], &[1.0, 2.0, 3.0]);
        }
    }

    #[test]
    fn readings_are_sorted_and_of_equal_times_the_last_stays() {
        for encoding in ENCODINGS {
            let (mut shuffled, mut sorted) = (Vec::new(), Vec::new());
            encode_batch(encoding, &[30, 10, 20, 10, 30, 10], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut shuffled).unwrap();
            encode_batch(encoding, &[10, 20, 30], &[6.0, 3.0, 5.0], &mut sorted).unwrap();
            assert_eq!(shuffled, sorted, "{encoding:?}");
        }
    }

    #[test]
    fn batches_are_appended() {
        for encoding in ENCODINGS {
            let alone = checked(encoding, &[1, 2], &[3.0, 4.0]);
            let mut appended = b"before".to_vec();
            encode_batch(encoding, &[1, 2], &[3.0, 4.0], &mut appended).unwrap();
            assert_eq!(appended, [b"before", alone.as_slice()].concat(), "{encoding:?}");
        }
    }

    #[test]
    fn uneven_readings_are_refused() {
        let uneven = encode_batch(BatchEncoding::Packed, &[1, 2], &[0.0], &mut Vec::new());
        assert_eq!(uneven, Err(BatchError::Uneven { times: 2, values: 1 }));
    }
}
