//! Bits that say how each reading differs from the one before, in the manner of Gorilla (Pelkonen et al., "Gorilla: A Fast,
//! Scalable, In-Memory Time Series Database", PVLDB 8(12), 2015, sections 4.1.1 and 4.1.2).
//!
//! Number of readings (LEB128); then, unless it is 0, first time in µs (8 bytes, least first) · unit in µs, the greatest
//! common divisor of the differences of the times (LEB128) · bits, high ones first: the 64 of the first value, then for each
//! further reading those of its time and of its value, then zeros up to the end of the byte.
//!
//! **Time**: D = the difference to the time before, less the difference before that, in units.
//!
//! | D                 | bits                                  |
//! |-------------------|---------------------------------------|
//! | 0                 | `0`                                   |
//! | -63 to 64         | `10`, D + 63 in 7 bits                |
//! | -255 to 256       | `110`, D + 255 in 9 bits              |
//! | -2047 to 2048     | `1110`, D + 2047 in 12 bits           |
//! | 1 − 2^31 to 2^31  | `11110`, D + 2^31 − 1 in 32 bits      |
//! | any other         | `11111`, D modulo 2^64 in 64 bits     |
//!
//! **Value**: X = its bits XORed with those of the value before.
//!
//! - X = 0: `0`.
//! - X is zero outside of the block of meaningful bits that was last declared: `10`, the bits of that block.
//! - Else: `11`, number of leading zeros of X (31 where there are more) in 5 bits, length of the block, which ends with the
//!   last one of X, less 1 in 6 bits, the bits of the block.
//!
//! What differs from the paper:
//! - Times are in µs and divided by their unit; there they are in seconds.
//! - A batch is as long as its caller wants, not two hours, so that its first time stands whole, not as an offset (in 14 bits)
//!   to the aligned start of a block. The difference before the first one counts as one unit: regular times cost one bit each.
//! - The last row of the table is new, because differences may be as long as all of time. The one above it is
//!   `1111` and 32 bits there.
//! - The number of readings stands ahead, where the paper appends to a stream.
//! - The paper does not say how D lies in its bits, nor how 6 bits hold a length of 64. Here, a bias and the less 1 do it.

use super::bits::{BitReader, BitWriter};
use super::error::BatchError;
use super::times::{differences, in_units, unit};
use super::varint::{append_varint, read_varint};

/// How a delta of deltas is written that is not 0.
struct Bucket {
    /// What stands before it.
    prefix: u64,
    prefix_width: u32,
    /// Bits that it takes itself.
    width: u32,
    /// What is added, so that no number of the bucket is below 0.
    bias: u64,
}

/// Narrow ones first.
const BUCKETS: [Bucket; 5] = [
    Bucket { prefix: 0b10, prefix_width: 2, width: 7, bias: 63 },
    Bucket { prefix: 0b110, prefix_width: 3, width: 9, bias: 255 },
    Bucket { prefix: 0b1110, prefix_width: 4, width: 12, bias: 2047 },
    Bucket { prefix: 0b11110, prefix_width: 5, width: 32, bias: (1 << 31) - 1 },
    Bucket { prefix: 0b11111, prefix_width: 5, width: 64, bias: 0 },
];

const MAX_LEADING_ZEROS: u32 = 31;

/// The part of a XOR that is written.
#[derive(Clone, Copy)]
struct Block {
    leading_zeros: u32,
    /// 1 to 64; 0 before the first one was declared.
    length: u32,
}

impl Block {
    const NONE: Self = Self { leading_zeros: 0, length: 0 };

    fn of(xor: u64) -> Self {
        let leading_zeros = xor.leading_zeros().min(MAX_LEADING_ZEROS);
        Self { leading_zeros, length: 64 - leading_zeros - xor.trailing_zeros() }
    }

    #[inline]
    fn trailing_zeros(self) -> u32 {
        64 - self.leading_zeros - self.length
    }

    #[inline]
    fn has_all_of(self, xor: u64) -> bool {
        xor.leading_zeros() >= self.leading_zeros && xor.trailing_zeros() >= self.trailing_zeros()
    }
}

/// Appends readings whose times ascend.
pub(super) fn encode(times: &[i64], values: &[f64], bytes: &mut Vec<u8>) {
    append_varint(bytes, times.len() as u64);
    let ([first_time, ..], [first_value, later_values @ ..]) = (times, values) else { return };
    let unit = unit(times);
    bytes.extend(first_time.to_le_bytes());
    append_varint(bytes, unit);
    let mut bits = BitWriter::new(bytes);
    bits.write(first_value.to_bits(), 64);
    let (mut delta, mut value, mut block) = (1, first_value.to_bits(), Block::NONE);
    for (difference, later_value) in differences(times).zip(later_values) {
        let later_delta = in_units(difference, unit);
        write_delta_of_deltas(&mut bits, later_delta.wrapping_sub(delta));
        write_xor(&mut bits, later_value.to_bits() ^ value, &mut block);
        (delta, value) = (later_delta, later_value.to_bits());
    }
    bits.finish();
}

#[inline]
fn write_delta_of_deltas(bits: &mut BitWriter, delta_of_deltas: u64) {
    if delta_of_deltas == 0 {
        return bits.write(0, 1);
    }
    let fits = |bucket: &&Bucket| delta_of_deltas.wrapping_add(bucket.bias).unbounded_shr(bucket.width) == 0;
    let bucket = BUCKETS.iter().find(fits).expect("64 bits hold them all");
    bits.write(bucket.prefix, bucket.prefix_width);
    bits.write(delta_of_deltas.wrapping_add(bucket.bias), bucket.width);
}

#[inline]
fn write_xor(bits: &mut BitWriter, xor: u64, block: &mut Block) {
    if xor == 0 {
        return bits.write(0, 1);
    }
    if block.has_all_of(xor) {
        bits.write(0b10, 2);
    } else {
        *block = Block::of(xor);
        bits.write(0b11 << 11 | u64::from(block.leading_zeros << 6 | (block.length - 1)), 13);
    }
    bits.write(xor >> block.trailing_zeros(), block.length);
}

#[inline]
pub(super) fn decode(bytes: &[u8], mut visit: impl FnMut(i64, f64)) -> Result<(), BatchError> {
    let mut rest = bytes;
    let count = read_varint(&mut rest)?;
    if count == 0 {
        return if rest.is_empty() { Ok(()) } else { Err(BatchError::Malformed) };
    }
    let (first, after_first) = rest.split_first_chunk().ok_or(BatchError::Malformed)?;
    rest = after_first;
    let unit = read_varint(&mut rest)?;
    let mut bits = BitReader::new(rest);
    let mut value = bits.window();
    bits.skip(64);
    bits.left().ok_or(BatchError::Malformed)?;
    let (mut time, mut delta, mut block) = (i64::from_le_bytes(*first), 1u64, Block::NONE);
    visit(time, f64::from_bits(value));
    for _ in 1..count {
        delta = delta.wrapping_add(read_delta_of_deltas(&mut bits));
        value ^= read_xor(&mut bits, &mut block)?;
        // Each reading takes bits, so that this also ends a count that is larger than the number of readings.
        bits.left().ok_or(BatchError::Malformed)?;
        time = time.wrapping_add(delta.wrapping_mul(unit) as i64);
        visit(time, f64::from_bits(value));
    }
    if bits.is_finished() { Ok(()) } else { Err(BatchError::Malformed) }
}

#[inline]
fn read_delta_of_deltas(bits: &mut BitReader) -> u64 {
    let window = bits.window();
    if window >> 63 == 0 {
        bits.skip(1);
        return 0;
    }
    let begins = |bucket: &&Bucket| window >> (64 - bucket.prefix_width) == bucket.prefix;
    let bucket = BUCKETS.iter().find(begins).expect("one of them");
    bits.skip(bucket.prefix_width);
    let biased = bits.window() >> (64 - bucket.width);
    bits.skip(bucket.width);
    biased.wrapping_sub(bucket.bias)
}

#[inline]
fn read_xor(bits: &mut BitReader, block: &mut Block) -> Result<u64, BatchError> {
    let window = bits.window();
    match window >> 62 {
        0b00 | 0b01 => {
            bits.skip(1);
            return Ok(0);
        }
        0b10 => bits.skip(2),
        _ => {
            *block = Block { leading_zeros: (window >> 57 & 0x1f) as u32, length: (window >> 51 & 0x3f) as u32 + 1 };
            bits.skip(13);
        }
    }
    if block.length == 0 || block.leading_zeros + block.length > 64 {
        return Err(BatchError::Malformed);
    }
    let meaningful = bits.window() >> (64 - block.length);
    bits.skip(block.length);
    Ok(meaningful << block.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{checked, slow_day};
    use super::super::{BatchEncoding, decode_batch};
    use super::*;

    /// Bits as digits, with spaces between, as bytes.
    fn from_digits(digits: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut bits = BitWriter::new(&mut bytes);
        digits.bytes().filter(|digit| *digit != b' ').for_each(|digit| bits.write(u64::from(digit - b'0'), 1));
        bits.finish();
        bytes
    }

    fn decoded(parts: &[&[u8]]) -> Result<(), BatchError> {
        decode_batch(BatchEncoding::Gorilla, &parts.concat(), |_, _| ())
    }

    /// Two readings at 0 µs and 1 µs; the value of the first is 0.
    const TWO_READINGS: &[u8] = &[2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn the_format_stays() {
        assert_eq!(checked(BatchEncoding::Gorilla, &[], &[]), [0]);
        let bytes = checked(BatchEncoding::Gorilla, &[-600, 0, 600, 1_800, 1_200_000_000], &[1.0, 1.0, 2.0, 1.0, 1.5]);
        // 1 and 2 differ in the 11 bits of the exponent, 1 and 1.5 in the bit after it.
        let bits = "0 0 \
                    0 11 00001 001010 11111111111 \
                    10 1000000 10 11111111111 \
                    11110 10000000000111101000010001111010 11 01100 000000 1";
        let expected = [&[5][..], &(-600i64).to_le_bytes(), &[0xd8, 0x04], &1.0f64.to_be_bytes(), &from_digits(bits)];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn deltas_of_deltas_take_the_bits_of_their_bucket() {
        let last = 1 << 31;
        for (bits, deltas_of_deltas) in [
            (1, vec![0i64]),
            (9, vec![-63, -1, 1, 64]),
            (12, vec![-255, -64, 65, 256]),
            (16, vec![-2047, -256, 257, 2048]),
            (37, vec![1 - last, -2048, 2049, last]),
            (69, vec![i64::MIN, -last, last + 1, i64::MAX]),
        ] {
            for delta_of_deltas in deltas_of_deltas {
                let mut bytes = Vec::new();
                let mut writer = BitWriter::new(&mut bytes);
                write_delta_of_deltas(&mut writer, delta_of_deltas as u64);
                writer.finish();
                let mut reader = BitReader::new(&bytes);
                let before = reader.left().unwrap();
                assert_eq!(read_delta_of_deltas(&mut reader) as i64, delta_of_deltas);
                assert_eq!(before - reader.left().unwrap(), bits, "{delta_of_deltas}");
            }
        }
    }

    #[test]
    fn all_blocks_read_back() {
        let (mut bytes, mut xors) = (Vec::new(), Vec::new());
        let mut writer = BitWriter::new(&mut bytes);
        let mut block = Block::NONE;
        for highest in 0..64 {
            for lowest in 0..=highest {
                let xor = 1 << highest | 1 << lowest;
                // The second time in the block of the first one, or in one that is larger.
                (0..2).for_each(|_| write_xor(&mut writer, xor, &mut block));
                xors.extend([xor, xor]);
            }
        }
        writer.finish();
        let (mut reader, mut block) = (BitReader::new(&bytes), Block::NONE);
        xors.iter().for_each(|xor| assert_eq!(read_xor(&mut reader, &mut block), Ok(*xor), "{xor:x}"));
        assert!(reader.is_finished());
    }

    #[test]
    fn a_regular_reading_costs_what_its_value_changes() {
        let (times, values) = slow_day();
        let header = 2 + 8 + 4 + 8;
        assert_eq!(checked(BatchEncoding::Gorilla, &times, &vec![21.5; 1440]).len(), header + (2 * 1439usize).div_ceil(8));
        assert_eq!(checked(BatchEncoding::Gorilla, &times, &values).len(), 4199);
    }

    #[test]
    fn broken_bytes_are_refused() {
        let (times, values) = slow_day();
        let bytes = checked(BatchEncoding::Gorilla, &times, &values);
        (0..bytes.len()).for_each(|end| assert_eq!(decoded(&[&bytes[..end]]), Err(BatchError::Malformed), "{end}"));
        assert_eq!(decoded(&[&bytes, &[0]]), Err(BatchError::Malformed));
        assert_eq!(decoded(&[&[0, 0]]), Err(BatchError::Malformed));
        let endless_count = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(decoded(&[&endless_count, &bytes[2..]]), Err(BatchError::Malformed));
    }

    #[test]
    fn blocks_that_cannot_be_are_refused() {
        let decoded_with = |digits: &str| decoded(&[TWO_READINGS, &from_digits(digits)]);
        assert_eq!(decoded_with("0 0"), Ok(()));
        assert_eq!(decoded_with("0 0 1"), Err(BatchError::Malformed), "not filled with zeros");
        assert_eq!(decoded_with("0 10"), Err(BatchError::Malformed), "no block was declared");
        assert_eq!(decoded_with("0 11 00001 111110 1"), Err(BatchError::Malformed), "the bits of the block are missing");
        let ones = "1".repeat(64);
        assert_eq!(decoded_with(&format!("0 11 00000 111111 {ones}")), Ok(()));
        assert_eq!(decoded_with(&format!("0 11 00001 111111 {ones}")), Err(BatchError::Malformed), "a block of 65 bits");
    }
}
