//! PostgreSQL's `numeric`, which averages and sums of integers come as, read as a double.

use std::fmt::Write;

/// The double nearest to a `numeric` in binary form, or None when the bytes are none.
///
/// The form, by `numeric_send` in PostgreSQL's sources: number of digits, weight of the first, sign, digits after the point,
/// each in two bytes; then the digits, to the base of 10,000.
pub fn to_double(bytes: &[u8]) -> Option<f64> {
    let mut words = bytes.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let (count, weight, sign, _scale) = (words.next()?, words.next()? as i16, words.next()?, words.next()?);
    let negative = match sign {
        0x0000 => false,
        0x4000 => true,
        0xC000 => return Some(f64::NAN),
        0xD000 => return Some(f64::INFINITY),
        0xF000 => return Some(f64::NEG_INFINITY),
        _ => return None,
    };
    // Written down in decimals, because the library's parser rounds correctly.
    let mut decimals = String::from(if negative { "-0" } else { "0" });
    for _ in 0..count {
        write!(decimals, "{:04}", words.next()?).ok()?;
    }
    let exponent = 4 * (i32::from(weight) - i32::from(count) + 1);
    write!(decimals, "e{exponent}").ok()?;
    decimals.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(words: &[i32]) -> Option<f64> {
        to_double(&words.iter().flat_map(|word| (*word as u16).to_be_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn digits_weight_and_sign_make_the_number() {
        assert_eq!(numeric(&[0, 0, 0, 0]), Some(0.0));
        assert_eq!(numeric(&[2, 0, 0, 1, 2, 5000]), Some(2.5));
        assert_eq!(numeric(&[1, -1, 0x4000, 4, 12]), Some(-0.0012));
        assert_eq!(numeric(&[1, 2, 0, 0, 7]), Some(700_000_000.0));
        assert_eq!(numeric(&[3, 0, 0, 10, 0, 3333, 3333]), Some(0.33333333));
        assert!(numeric(&[0, 0, 0xC000, 0]).unwrap().is_nan());
        assert_eq!(numeric(&[0, 0, 0xF000, 0]), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn what_is_cut_short_is_no_number() {
        assert_eq!(numeric(&[2, 0, 0, 0, 1]), None);
        assert_eq!(numeric(&[1, 0]), None);
        assert_eq!(numeric(&[0, 0, 1, 0]), None);
    }
}
