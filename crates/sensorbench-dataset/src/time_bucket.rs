//! Time buckets: what every microsecond lies in exactly one of, all equally long or as long as the calendar says.

use serde::{Deserialize, Serialize};

/// Length of the time buckets that time is divided into, counted from the beginning of 1970 in UTC.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// This many microseconds.
    Microseconds(i64),
    /// This many months of the calendar.
    Months(u32),
}

impl Every {
    /// True for a length that time can be divided by. All else here asks for it.
    pub fn is_above_zero(self) -> bool {
        match self {
            Every::Microseconds(length) => length > 0,
            Every::Months(length) => length > 0,
        }
    }

    /// Number of the time bucket that a time lies in; number 0 begins with 1970.
    #[inline]
    fn number(self, time_us: i64) -> i64 {
        match self {
            Every::Microseconds(length) => time_us.div_euclid(length),
            Every::Months(length) => month_of(time_us.div_euclid(MICROSECONDS_A_DAY)).div_euclid(length.into()),
        }
    }

    /// When a time bucket begins; the first of all times, for one that began earlier.
    #[inline]
    fn start(self, number: i64) -> i64 {
        match self {
            Every::Microseconds(length) => number.saturating_mul(length),
            Every::Months(length) => first_day_of(number * i64::from(length)).saturating_mul(MICROSECONDS_A_DAY),
        }
    }

    /// The start of the time bucket that a time lies in.
    #[inline]
    pub fn floor(self, time_us: i64) -> i64 {
        self.start(self.number(time_us))
    }

    /// Starts of the time buckets that `from_us`..`to_us` (`to_us` excluded) meets.
    pub fn starts(self, from_us: i64, to_us: i64) -> impl DoubleEndedIterator<Item = i64> {
        let first = self.number(from_us);
        let end = if from_us < to_us { self.number(to_us - 1) + 1 } else { first };
        (first..end).map(move |number| self.start(number))
    }
}

// Both ways as in Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that the leap day is
// the last of its year, and eras have 400 years. Days and months count from the beginning of 1970.

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;
const DAYS_AN_ERA: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;
const MONTHS_BEFORE_1970: i64 = 1969 * 12 + 10;

/// The month that a day lies in.
fn month_of(day: i64) -> i64 {
    let days = day + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_AN_ERA), days.rem_euclid(DAYS_AN_ERA));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - days_before(year_of_era);
    let month_from_march = (5 * day_of_year + 2) / 153;
    (era * 400 + year_of_era) * 12 + month_from_march - MONTHS_BEFORE_1970
}

/// The day that a month begins with.
fn first_day_of(month: i64) -> i64 {
    let months = month + MONTHS_BEFORE_1970;
    let (year, month_from_march) = (months.div_euclid(12), months.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * DAYS_AN_ERA + days_before(year_of_era) + (153 * month_from_march + 2) / 5 - DAYS_BEFORE_1970
}

/// From the beginning of an era to that of one of its years.
fn days_before(year_of_era: i64) -> i64 {
    365 * year_of_era + year_of_era / 4 - year_of_era / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = MICROSECONDS_A_DAY;

    #[test]
    fn known_months_begin_when_they_do() {
        // What `SELECT epoch_us(date_trunc('month', TIMESTAMP '…'))` gives in DuckDB.
        for (time, month) in [
            (0, 0),
            (-1, -2_678_400_000_000),
            (951_868_799_999_999, 949_363_200_000_000),
            (951_868_800_000_000, 951_868_800_000_000),
            (-2_203_891_200_000_000, -2_203_891_200_000_000),
            (-2_203_891_200_000_001, -2_206_310_400_000_000),
            (1_456_790_399_000_000, 1_454_284_800_000_000),
        ] {
            assert_eq!(Every::Months(1).floor(time), month, "{time}");
        }
    }

    #[test]
    fn quarters_and_years_begin_when_they_do() {
        let (may_2016, quarter, year) = (1_463_270_400_000_000, 1_459_468_800_000_000, 1_451_606_400_000_000);
        assert_eq!(Every::Months(3).floor(may_2016), quarter);
        assert_eq!(Every::Months(12).floor(may_2016), year);
        assert_eq!(Every::Months(3).floor(-1), -92 * DAY);
        assert_eq!(Every::Months(12).floor(-1), -365 * DAY);
    }

    #[test]
    fn every_day_of_four_eras_lies_in_its_month() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = |year: i64, month: usize| match month {
            1 => 28 + i64::from(is_leap(year)),
            _ => [31, 0, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month],
        };
        let (mut number, mut day) = (-800 * 12, -2 * DAYS_AN_ERA);
        for year in 1170..2770 {
            for month in 0..12 {
                assert_eq!(first_day_of(number), day, "{year}, month {month} from 0");
                let last = day + length(year, month) - 1;
                assert_eq!([month_of(day), month_of(last)], [number, number], "{year}, month {month} from 0");
                (number, day) = (number + 1, last + 1);
            }
        }
        assert_eq!((number, day), (800 * 12, 2 * DAYS_AN_ERA));
    }

    #[test]
    fn a_range_meets_the_time_buckets_that_its_times_lie_in() {
        let check = |every: Every, from: i64, to: i64, step: usize| {
            let mut expected: Vec<i64> = (from..to).step_by(step).map(|time| every.floor(time)).collect();
            expected.dedup();
            assert_eq!(every.starts(from, to).collect::<Vec<_>>(), expected, "{every:?} {from}..{to}");
            expected.reverse();
            assert_eq!(every.starts(from, to).rev().collect::<Vec<_>>(), expected);
        };
        for from in -20..20 {
            for to in from - 2..25 {
                check(Every::Microseconds(7), from, to, 1);
            }
        }
        for from in -100..100 {
            for days in [-1, 0, 1, 28, 29, 30, 31, 32, 90, 400] {
                check(Every::Months(1), from * DAY, (from + days) * DAY, DAY as usize);
                check(Every::Months(5), from * DAY, (from + days) * DAY, DAY as usize);
            }
        }
    }

    #[test]
    fn the_ends_of_time_are_no_trap() {
        for every in [Every::Microseconds(7), Every::Microseconds(i64::MAX), Every::Months(1), Every::Months(u32::MAX)] {
            assert!(every.starts(i64::MIN, i64::MIN + 1).eq([i64::MIN]), "{every:?}");
            assert!(every.starts(i64::MAX - 1, i64::MAX).eq([every.floor(i64::MAX - 1)]), "{every:?}");
            assert_eq!(every.starts(i64::MAX, i64::MIN).count(), 0);
        }
    }
}
