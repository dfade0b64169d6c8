//! Sensors of an office building, minute by minute: power of air conditioning, light and plugs, temperature, humidity and
//! ambient light, in the shape of CU-BEMS (Pipattanasomporn et al., Scientific Data 7, 2020).
//!
//! What the values follow: office hours on weekdays, half as much on Saturdays, next to nothing on Sundays; a slow random
//! drift from hour to hour and noise from minute to minute. What is missing: drop-outs of each sensor (a share of
//! [`DROPOUT_DAYS`] of its days has one of up to two hours) and outages that all sensors share.

use std::sync::Arc;

use arrow_array::RecordBatch;
use libm::{cos, exp};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::parallel::{Parts, measurements};

const MINUTE_US: i64 = 60_000_000;
const MINUTES_A_DAY: usize = 1440;
/// Minutes of one sensor that make a part.
const MINUTES_A_PART: usize = 64 * 1024;
/// Share of a sensor's days with a drop-out.
pub const DROPOUT_DAYS: f64 = 0.05;
const LONGEST_DROPOUT_MIN: u64 = 120;
/// The shared outage: from 01:00 to 04:00 on the third day, and again every 91 days.
const OUTAGE_FIRST_DAY: i64 = 2;
const OUTAGE_EVERY_DAYS: i64 = 91;
const OUTAGE_MINUTES: std::ops::Range<usize> = 60..240;

/// What a sensor measures, and with it the pattern of its values.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Power of an air-conditioning unit, kW.
    AirConditioning,
    /// Power of the lights of a zone, kW.
    Light,
    /// Power of the plugs of a zone, kW.
    Plug,
    /// Indoor temperature, °C.
    Temperature,
    /// Relative humidity, %.
    Humidity,
    /// Ambient light, lux.
    Illuminance,
}

/// One sensor.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BuildingSeries {
    /// Site: a floor.
    pub site: i32,
    /// Zone of the floor.
    pub zone: i32,
    /// Name, unique in the zone.
    pub sensor: String,
    /// What it measures.
    pub kind: SeriesKind,
}

/// A building's sensors over a span of time.
pub struct Building {
    series: Vec<BuildingSeries>,
    stream: Stream,
    start_us: i64,
    minutes: usize,
    occupancy: Arc<[Occupancy; 3]>,
}

/// For each minute of a kind of day, how much of the building is in use (0 to 1) and how much daylight there is.
struct Occupancy {
    in_use: Vec<f64>,
    daylight: Vec<f64>,
}

impl Building {
    /// `series` over `minutes` from `start_us`, which is a midnight. A shorter span gives the first rows of a longer one.
    pub fn new(series: Vec<BuildingSeries>, seed: u64, start_us: i64, minutes: usize) -> Self {
        let occupancy = Arc::new([1.0, 0.5, 0.05].map(Occupancy::with_share));
        Self { series, stream: Stream::new(seed), start_us, minutes, occupancy }
    }

    fn parts_a_series(&self) -> usize {
        self.minutes.div_ceil(MINUTES_A_PART)
    }

    /// 0 for weekdays, 1 for Saturdays, 2 for Sundays. 1970-01-01 was a Thursday.
    fn kind_of_day(day: i64) -> usize {
        match (day + 3).rem_euclid(7) {
            5 => 1,
            6 => 2,
            _ => 0,
        }
    }
}

impl Occupancy {
    fn with_share(share: f64) -> Self {
        let logistic = |x: f64| 1.0 / (1.0 + exp(-x));
        let minute = |minute: usize| minute as f64 / 60.0;
        // People come around 8:00 and leave around 18:00.
        let in_use = |hour: f64| share * logistic(3.0 * (hour - 8.0)) * logistic(3.0 * (18.0 - hour));
        let daylight = |hour: f64| (-cos((hour - 0.5) / 24.0 * std::f64::consts::TAU)).max(0.0);
        Self {
            in_use: (0..MINUTES_A_DAY).map(|number| in_use(minute(number))).collect(),
            daylight: (0..MINUTES_A_DAY).map(|number| daylight(minute(number))).collect(),
        }
    }
}

/// How the values of one sensor are put together: base + use × in_use + day × daylight, wavered by drift and noise.
struct Pattern {
    base: f64,
    in_use: f64,
    daylight: f64,
    drift: f64,
    noise: f64,
    /// Share of the minutes in use in which it stands still, as a compressor does.
    pauses: f64,
}

impl Pattern {
    /// `size` (0 to 1) makes sensors of one kind different from one another.
    fn of(kind: SeriesKind, size: f64) -> Self {
        match kind {
            SeriesKind::AirConditioning => {
                Pattern { base: 0.0, in_use: 2.0 + 8.0 * size, daylight: 1.0 + size, drift: 0.5, noise: 0.4, pauses: 0.2 }
            }
            SeriesKind::Light => {
                Pattern { base: 0.2 + 0.3 * size, in_use: 3.0 + 9.0 * size, daylight: 0.0, drift: 0.2, noise: 0.1, pauses: 0.0 }
            }
            SeriesKind::Plug => {
                Pattern { base: 0.5 + size, in_use: 2.0 + 6.0 * size, daylight: 0.0, drift: 0.4, noise: 0.3, pauses: 0.0 }
            }
            SeriesKind::Temperature => {
                Pattern { base: 28.0 + size, in_use: -3.5, daylight: 1.5, drift: 0.6, noise: 0.1, pauses: 0.0 }
            }
            SeriesKind::Humidity => {
                Pattern { base: 66.0 + 4.0 * size, in_use: -9.0, daylight: -3.0, drift: 3.0, noise: 0.5, pauses: 0.0 }
            }
            SeriesKind::Illuminance => {
                Pattern { base: 1.0, in_use: 20.0 + 30.0 * size, daylight: 25.0 * size, drift: 2.0, noise: 1.0, pauses: 0.0 }
            }
        }
    }
}

// What the streams of a series are used for.
const SIZE: u64 = 0;
const DRIFT: u64 = 1;
const NOISE: u64 = 2;
const DROPOUTS: u64 = 3;
const DROPOUT_STARTS: u64 = 4;
const DROPOUT_LENGTHS: u64 = 5;

/// One sensor's share of the generator.
struct SeriesRows {
    pattern: Pattern,
    drift: Stream,
    noise: Stream,
    dropouts: [Stream; 3],
}

impl SeriesRows {
    fn new(kind: SeriesKind, stream: Stream) -> Self {
        Self {
            pattern: Pattern::of(kind, stream.split(SIZE).unit(0)),
            drift: stream.split(DRIFT),
            noise: stream.split(NOISE),
            dropouts: [DROPOUTS, DROPOUT_STARTS, DROPOUT_LENGTHS].map(|purpose| stream.split(purpose)),
        }
    }

    /// Minutes of the day in which this sensor, or every sensor, says nothing.
    fn missing(&self, day_of_span: i64) -> [std::ops::Range<usize>; 2] {
        let [happens, starts, lengths] = &self.dropouts;
        let day = day_of_span as u64;
        let dropout = if happens.unit(day) < DROPOUT_DAYS {
            let start = starts.below(day, MINUTES_A_DAY as u64) as usize;
            start..start + 1 + lengths.below(day, LONGEST_DROPOUT_MIN) as usize
        } else {
            0..0
        };
        let is_outage = (day_of_span - OUTAGE_FIRST_DAY).rem_euclid(OUTAGE_EVERY_DAYS) == 0;
        [dropout, if is_outage { OUTAGE_MINUTES } else { 0..0 }]
    }

    /// −1 to 1, moving evenly from one random value an hour to the next.
    fn drift_at(&self, hour: u64) -> f64 {
        2.0 * self.drift.unit(hour) - 1.0
    }

    #[inline]
    fn value(&self, minute: u64, in_use: f64, daylight: f64, drift: f64) -> f64 {
        let pattern = &self.pattern;
        let random = self.noise.unit(minute);
        let busy = if random < pattern.pauses { 0.0 } else { 1.0 };
        let swing = pattern.drift * drift + pattern.noise * (2.0 * random - 1.0);
        let value = pattern.base + busy * (pattern.in_use * in_use + pattern.daylight * daylight + swing);
        // Two decimals, as the original has them; nothing here is negative.
        (value.max(0.0) * 100.0 + 0.5) as i64 as f64 / 100.0
    }
}

impl Parts for Building {
    fn parts(&self) -> usize {
        self.series.len() * self.parts_a_series()
    }

    fn part(&self, number: usize) -> RecordBatch {
        let (series_number, part) = (number / self.parts_a_series(), number % self.parts_a_series());
        let series = &self.series[series_number];
        let rows = SeriesRows::new(series.kind, self.stream.split(series_number as u64));
        let minutes = part * MINUTES_A_PART..((part + 1) * MINUTES_A_PART).min(self.minutes);
        let (mut times, mut values) = (Vec::with_capacity(minutes.len()), Vec::with_capacity(minutes.len()));
        let first_day = self.start_us.div_euclid(MINUTE_US * MINUTES_A_DAY as i64);
        let mut minute = minutes.start;
        while minute < minutes.end {
            // One hour at a time: what is the same for all its minutes is found out once.
            let (day_of_span, minute_of_day) = ((minute / MINUTES_A_DAY) as i64, minute % MINUTES_A_DAY);
            let hour_end = (minute + 60 - minute % 60).min(minutes.end);
            let occupancy = &self.occupancy[Self::kind_of_day(first_day + day_of_span)];
            let hour = (minute / 60) as u64;
            let (drift_start, drift_end) = (rows.drift_at(hour), rows.drift_at(hour + 1));
            let missing = rows.missing(day_of_span);
            for (offset, minute) in (minute..hour_end).enumerate() {
                let minute_of_day = minute_of_day + offset;
                if missing.iter().any(|missing| missing.contains(&minute_of_day)) {
                    continue;
                }
                let drift = drift_start + (drift_end - drift_start) * ((minute % 60) as f64 / 60.0);
                times.push(self.start_us + minute as i64 * MINUTE_US);
                values.push(rows.value(minute as u64, occupancy.in_use[minute_of_day], occupancy.daylight[minute_of_day], drift));
            }
            minute = hour_end;
        }
        measurements(series.site, series.zone, &series.sensor, times, values)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;

    const START_US: i64 = 1_546_300_800_000_000; // 2019-01-01, a Tuesday

    fn series() -> Vec<BuildingSeries> {
        let kinds = [SeriesKind::AirConditioning, SeriesKind::Light, SeriesKind::Temperature];
        let series = |(number, kind)| BuildingSeries { site: 1, zone: number as i32, sensor: format!("S{number}"), kind };
        kinds.into_iter().enumerate().map(series).collect()
    }

    fn rows(minutes: usize, threads: usize) -> Vec<RecordBatch> {
        GeneratedRows::new(Arc::new(Building::new(series(), 42, START_US, minutes)), threads).map(Result::unwrap).collect()
    }

    /// Times and values of one sensor.
    fn readings(batches: &[RecordBatch], zone: i32) -> Vec<(i64, f64)> {
        let mut readings = Vec::new();
        for batch in batches {
            if batch.column(1).as_primitive::<arrow_array::types::Int32Type>().value(0) == zone {
                let times = batch.column(3).as_primitive::<TimestampMicrosecondType>().values().iter();
                readings.extend(times.copied().zip(batch.column(4).as_primitive::<Float64Type>().values().iter().copied()));
            }
        }
        readings
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_with_any_number_of_threads() {
        let expected = rows(200_000, 1);
        for threads in [2, 3, 16] {
            assert_eq!(rows(200_000, threads), expected);
        }
    }

    #[test]
    fn ranges_of_its_parts_are_those_of_the_whole() {
        let whole = rows(200_000, 1);
        let building: Arc<dyn Parts> = Arc::new(Building::new(series(), 42, START_US, 200_000));
        let range = |numbers| GeneratedRows::range(building.clone(), numbers, 3).map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(whole.len(), building.parts());
        assert_eq!([range(0..5), range(5..6), range(6..100)].concat(), whole);
        assert_eq!(range(100..110), []);
    }

    #[test]
    fn a_shorter_span_is_the_beginning_of_a_longer_one() {
        let (short, long) = (readings(&rows(5_256, 1), 1), readings(&rows(100_000, 1), 1));
        assert_eq!(short, long[..short.len()]);
    }

    #[test]
    fn the_first_values_are_these_on_every_machine() {
        let readings = readings(&rows(1_440, 1), 0);
        let bits: Vec<u64> = readings.iter().map(|(_, value)| value.to_bits()).collect();
        let sum = bits.iter().fold(0u64, |sum, bits| sum.rotate_left(1) ^ bits);
        assert_eq!((readings.len(), sum), FIRST_DAY);
    }

    const FIRST_DAY: (usize, u64) = (1_344, 6_123_909_536_340_597_868);

    #[test]
    fn office_hours_draw_more_power_than_nights_and_sundays() {
        let readings = readings(&rows(7 * 1440, 1), 1);
        let mean = |day: i64, hours: std::ops::Range<i64>| {
            let hour_us = 60 * MINUTE_US;
            let of_hours: Vec<f64> = readings
                .iter()
                .filter(|(time, _)| hours.contains(&((time - START_US) / hour_us - day * 24)))
                .map(|(_, value)| *value)
                .collect();
            of_hours.iter().sum::<f64>() / of_hours.len() as f64
        };
        let (tuesday_noon, tuesday_night, sunday_noon) = (mean(0, 11..13), mean(0, 0..3), mean(5, 11..13));
        assert!(
            tuesday_noon > 4.0 * tuesday_night && tuesday_noon > 4.0 * sunday_noon,
            "{tuesday_noon} {tuesday_night} {sunday_noon}"
        );
    }

    #[test]
    fn the_outage_is_shared_and_drop_outs_are_not() {
        let batches = rows(90 * 1440, 1);
        let outage = START_US + OUTAGE_FIRST_DAY * 1440 * MINUTE_US + 60 * MINUTE_US
            ..START_US + OUTAGE_FIRST_DAY * 1440 * MINUTE_US + 240 * MINUTE_US;
        let counts: Vec<usize> = (0..3)
            .map(|zone| {
                let readings = readings(&batches, zone);
                assert!(readings.iter().all(|(time, _)| !outage.contains(time)));
                readings.len()
            })
            .collect();
        assert!(counts.iter().all(|count| *count < 90 * 1440 - 180 && *count > 88 * 1440), "{counts:?}");
        assert!(counts[0] != counts[1] && counts[1] != counts[2], "{counts:?}");
    }
}
