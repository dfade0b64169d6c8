//! Ascending times of a batch as differences, and the unit that divides them.

/// From each time to the next one, in µs. Unsigned, so that even that from the first to the last of all times fits.
#[inline]
pub(super) fn differences(times: &[i64]) -> impl Iterator<Item = u64> {
    times.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as u64)
}

/// The greatest common divisor of the differences, in µs; 1 where there is no difference.
pub(super) fn unit(times: &[i64]) -> u64 {
    let mut unit = 0;
    // Divisions are what takes time here. Equal differences need only one, and a unit of 1 none any more.
    for difference in differences(times) {
        if difference != unit {
            unit = greatest_common_divisor(difference, unit);
        }
        if unit == 1 {
            break;
        }
    }
    unit.max(1)
}

/// A difference as a multiple of the unit.
#[inline]
pub(super) fn in_units(difference: u64, unit: u64) -> u64 {
    // Most differences are one unit, and a comparison costs less than a division.
    if difference == unit { 1 } else { difference / unit }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_divides_all_differences() {
        assert_eq!(unit(&[]), 1);
        assert_eq!(unit(&[-7]), 1);
        assert_eq!(unit(&[5, 20, 30]), 5);
        assert_eq!(unit(&[5, 20, 30, 31]), 1);
        assert_eq!(unit(&[i64::MIN, i64::MAX]), u64::MAX);
        assert_eq!([15, 5].map(|difference| in_units(difference, 5)), [3, 1]);
    }
}
