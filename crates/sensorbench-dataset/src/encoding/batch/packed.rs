//! Times as differences in a unit, values as they lie in memory.
//!
//! Number of readings (LEB128) · first time in µs (8 bytes, least first; 0 in an empty batch) · unit in µs, the greatest common
//! divisor of the differences (LEB128) · each further time as its difference to the one before in units (LEB128) · values
//! (8 bytes each, least first).

use super::error::BatchError;
use super::times::{differences, in_units, unit};
use super::varint::{append_varint, read_varint};

/// Appends readings whose times ascend.
pub(super) fn encode(times: &[i64], values: &[f64], bytes: &mut Vec<u8>) {
    let unit = unit(times);
    append_varint(bytes, times.len() as u64);
    bytes.extend(times.first().copied().unwrap_or(0).to_le_bytes());
    append_varint(bytes, unit);
    differences(times).for_each(|difference| append_varint(bytes, in_units(difference, unit)));
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

#[inline]
pub(super) fn decode(bytes: &[u8], mut visit: impl FnMut(i64, f64)) -> Result<(), BatchError> {
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

#[cfg(test)]
mod tests {
    use super::super::tests::{checked, slow_day};
    use super::super::{BatchEncoding, BatchError, decode_batch};

    #[test]
    fn the_format_stays() {
        let bytes = checked(BatchEncoding::Packed, &[-1, 599, 1_199, 1_200_000_599], &[1.0, -2.5, 0.0, f64::INFINITY]);
        let expected = [
            &[4][..],
            &[0xff; 8],
            &[0xd8, 0x04],
            &[1, 1, 0xff, 0x88, 0x7a],
            &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            &[0, 0, 0, 0, 0, 0, 0x04, 0xc0],
            &[0; 8],
            &[0, 0, 0, 0, 0, 0, 0xf0, 0x7f],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(checked(BatchEncoding::Packed, &[], &[]), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_regular_reading_costs_nine_bytes() {
        let (times, values) = slow_day();
        assert_eq!(checked(BatchEncoding::Packed, &times, &values).len(), 1440 * 9 + 13);
    }

    #[test]
    fn broken_bytes_are_refused() {
        let bytes = checked(BatchEncoding::Packed, &[1, 2], &[0.0, 0.0]);
        let decoded = |bytes: &[u8]| decode_batch(BatchEncoding::Packed, bytes, |_, _| ());
        for end in 0..bytes.len() {
            assert_eq!(decoded(&bytes[..end]), Err(BatchError::Malformed), "{end}");
        }
        assert_eq!(decoded(&[bytes.as_slice(), &[0]].concat()), Err(BatchError::Malformed));
        let count_whose_bytes_overflow = [&[0x80; 8][..], &[0x20], &bytes[1..10]].concat();
        assert_eq!(decoded(&count_whose_bytes_overflow), Err(BatchError::Malformed));
    }
}
