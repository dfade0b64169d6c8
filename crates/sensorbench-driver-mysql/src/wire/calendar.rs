//! Points in time as MySQL has them: year, month, day and time of day, in UTC.

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_A_DAY: i64 = 86_400 * MICROS_A_SECOND;

/// A point in time that a `DATETIME(6)` can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
}

impl Moment {
    /// From microseconds since 1970; None when the year has not four digits or is 0.
    pub fn of(micros_since_1970: i64) -> Option<Self> {
        let (year, month, day) = date_of(micros_since_1970.div_euclid(MICROS_A_DAY));
        let micros_of_day = micros_since_1970.rem_euclid(MICROS_A_DAY);
        let second_of_day = (micros_of_day / MICROS_A_SECOND) as u32;
        (1..=9999).contains(&year).then_some(Self {
            year: year as u16,
            month,
            day,
            hour: (second_of_day / 3600) as u8,
            minute: (second_of_day / 60 % 60) as u8,
            second: (second_of_day % 60) as u8,
            micros: (micros_of_day % MICROS_A_SECOND) as u32,
        })
    }

    /// Microseconds since 1970.
    pub fn micros_since_1970(self) -> i64 {
        let second_of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        days_of(self.year, self.month, self.day) * MICROS_A_DAY + second_of_day * MICROS_A_SECOND + i64::from(self.micros)
    }
}

// Both ways as in Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, eras have 400 years.

const DAYS_AN_ERA: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

fn date_of(days_since_1970: i64) -> (i64, u8, u8) {
    let days = days_since_1970 + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_AN_ERA), days.rem_euclid(DAYS_AN_ERA));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u8, day)
}

fn days_of(year: u16, month: u8, day: u8) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_AN_ERA + day_of_era - DAYS_BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(date: (u16, u8, u8), time: (u8, u8, u8), micros: u32) -> Moment {
        Moment { year: date.0, month: date.1, day: date.2, hour: time.0, minute: time.1, second: time.2, micros }
    }

    #[test]
    fn known_moments() {
        for (micros, expected) in [
            (0, moment((1970, 1, 1), (0, 0, 0), 0)),
            (-1, moment((1969, 12, 31), (23, 59, 59), 999_999)),
            (-123_456_789, moment((1969, 12, 31), (23, 57, 56), 543_211)),
            (951_782_400_000_000, moment((2000, 2, 29), (0, 0, 0), 0)),
            (1_546_300_800_123_456, moment((2019, 1, 1), (0, 0, 0), 123_456)),
            (253_402_300_799_999_999, moment((9999, 12, 31), (23, 59, 59), 999_999)),
            (-62_135_596_800_000_000, moment((1, 1, 1), (0, 0, 0), 0)),
        ] {
            assert_eq!(Moment::of(micros), Some(expected));
            assert_eq!(expected.micros_since_1970(), micros);
        }
        for beyond in [253_402_300_800_000_000, -62_135_596_800_000_001, i64::MAX, i64::MIN] {
            assert_eq!(Moment::of(beyond), None);
        }
    }

    #[test]
    fn every_day_there_and_back() {
        for day in -719_162..2_932_897 {
            let micros = day * MICROS_A_DAY + 12_345;
            assert_eq!(Moment::of(micros).map(Moment::micros_since_1970), Some(micros));
        }
    }
}
