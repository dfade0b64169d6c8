//! Times as texts of a calendar: `2020-09-13T12:26:40.000001`, in UTC, as SQL and Flux write them.

use std::ops::Range;

/// Microseconds of a day.
pub const US_OF_DAY: i64 = 86_400_000_000;

/// A time in µs since 1970 as a date and a time of day, with all six digits of its fraction.
pub fn written(time_us: i64) -> String {
    let (days, rest) = (time_us.div_euclid(US_OF_DAY), time_us.rem_euclid(US_OF_DAY));
    let (year, month, day) = date_of(days);
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}")
}

/// A date and a time of day as µs since 1970; None of another text, and of a time between two µs. `Z` may follow.
pub fn read(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once('T').or_else(|| text.split_once(' '))?;
    let (sign, date) = date.strip_prefix('-').map_or((1, date), |date| (-1, date));
    let mut parts = date.split('-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.split(':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    if !is_time || parts.next().is_some() {
        return None;
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    let days = days_of(sign * year, month, day);
    days.checked_mul(US_OF_DAY)?.checked_add(seconds * 1_000_000 + fraction_us(fraction)?)
}

fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// The µs that a fraction of a second has.
fn fraction_us(text: &str) -> Option<i64> {
    const DIGITS: Range<usize> = 1..10;
    let (kept, rest) = text.split_at(text.len().min(6));
    if !DIGITS.contains(&text.len()) || rest.bytes().any(|byte| byte != b'0') {
        return None;
    }
    digits(kept).map(|number| number * 10_i64.pow(6 - kept.len() as u32))
}

/// Year, month and day of a number of days since 1970-01-01, by Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The number of days since 1970-01-01 of a date; the other way round.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = year - i64::from(month <= 2);
    let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_as_the_calendar_has_them() {
        for (time, text) in [
            (0, "1970-01-01T00:00:00.000000"),
            (-1, "1969-12-31T23:59:59.999999"),
            (1_600_000_000_000_001, "2020-09-13T12:26:40.000001"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000"),
            (-2_208_988_800_000_000, "1900-01-01T00:00:00.000000"),
        ] {
            assert_eq!((written(time).as_str(), read(text)), (text, Some(time)));
        }
        for day in (-200_000..200_000).step_by(37) {
            assert_eq!(read(&written(day * US_OF_DAY)), Some(day * US_OF_DAY));
        }
        assert_eq!(read("2020-09-13T12:26:40Z"), Some(1_600_000_000_000_000));
        assert_eq!(read("2020-09-13T12:26:40.5"), Some(1_600_000_000_500_000));
        assert_eq!(read("2020-09-13T12:26:40.000001000Z"), Some(1_600_000_000_000_001));
    }

    #[test]
    fn what_is_no_time_or_finer_than_a_microsecond_is_not_read() {
        for text in
            ["", "2020", "2020-09-13", "2020-13-01T00:00:00", "2020-09-13T24:00:00", "2020-09-13T12:26:40.0000001", "x-1-1T0:0:0"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
