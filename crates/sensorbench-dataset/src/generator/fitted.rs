//! Sensors like those of somebody's own data: with the same intervals and gaps, the same distribution of values at each hour
//! of the day, and the same likeness of neighbouring values; more of them, and for longer.
//!
//! A reading's value is the quantile, in the table of its hour, of a random position that moves like a first-order
//! autoregressive process seen through the normal distribution (a Gaussian copula; Nelsen, "An Introduction to Copulas", 2006,
//! section 2.3). So values of one sensor have the fitted distribution hour by hour, and neighbours are as alike as they were.

use arrow_array::RecordBatch;
use libm::{cos, erfc, log, sqrt};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::parallel::{Parts, measurements};

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
/// Days of one sensor that make a part; each part starts over, so that it is a function of its number alone.
const DAYS_A_PART: i64 = 30;

/// What was found out about one sensor.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FittedSeries {
    /// Site.
    pub site: i32,
    /// Zone.
    pub zone: i32,
    /// Name of the sensor.
    pub sensor: String,
    /// Time between neighbouring readings in µs: evenly spaced quantiles of it, a single one if it is always the same.
    pub interval_us: Vec<f64>,
    /// Share of the readings after which there is a gap.
    pub gap_share: f64,
    /// Evenly spaced quantiles of the length of gaps in µs.
    pub gap_us: Vec<f64>,
    /// For each hour of the day, evenly spaced quantiles of the values from the smallest to the greatest.
    pub values_by_hour: Vec<Vec<f64>>,
    /// Correlation of a reading's position in its hour's distribution with that of the reading before.
    pub persistence: f64,
    /// Share of the readings that repeat the one before exactly.
    pub repeat_share: f64,
    /// Decimals that values are rounded to; none if not given.
    pub decimals: Option<u8>,
}

/// Fitted sensors over a span of time, each this many times.
pub struct Fitted {
    series: Vec<FittedSeries>,
    stream: Stream,
    start_us: i64,
    end_us: i64,
    copies: usize,
    /// By how much the zones of one copy are numbered higher than those of the copy before.
    zone_step: i32,
}

impl Fitted {
    /// `copies` of all series from `start_us` until before `end_us`.
    pub fn new(series: Vec<FittedSeries>, seed: u64, start_us: i64, end_us: i64, copies: usize) -> Self {
        let zone_step = series.iter().map(|one| one.zone).max().unwrap_or(0).max(1);
        Self { series, stream: Stream::new(seed), start_us, end_us, copies, zone_step }
    }

    fn parts_a_series(&self) -> usize {
        ((self.end_us - self.start_us).max(0) as u64).div_ceil((DAYS_A_PART * DAY_US) as u64) as usize
    }
}

impl Parts for Fitted {
    fn parts(&self) -> usize {
        self.copies * self.series.len() * self.parts_a_series()
    }

    fn part(&self, number: usize) -> RecordBatch {
        let (of_series, part) = (number / self.parts_a_series(), number % self.parts_a_series());
        let (copy, series_number) = (of_series / self.series.len(), of_series % self.series.len());
        let series = &self.series[series_number];
        let start_us = self.start_us + part as i64 * DAYS_A_PART * DAY_US;
        let end_us = (start_us + DAYS_A_PART * DAY_US).min(self.end_us);
        let mut walk =
            Walk { series, stream: self.stream.split(of_series as u64).split(part as u64), drawn: 0, position: 0.0, value: None };
        walk.position = walk.normal();
        let (mut times, mut values) = (Vec::new(), Vec::new());
        let mut time_us = start_us;
        while time_us < end_us {
            times.push(time_us);
            values.push(walk.next_value(time_us));
            time_us += walk.next_interval();
        }
        measurements(series.site, series.zone + copy as i32 * self.zone_step, &series.sensor, times, values)
    }
}

/// One sensor's way through one part.
struct Walk<'a> {
    series: &'a FittedSeries,
    stream: Stream,
    drawn: u64,
    /// Where the current reading is in the distribution of its hour, on the normal scale.
    position: f64,
    value: Option<f64>,
}

impl Walk<'_> {
    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        self.stream.unit(self.drawn)
    }

    /// A standard normal number (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.unit(), self.unit());
        sqrt(-2.0 * log(radius)) * cos(std::f64::consts::TAU * angle)
    }

    fn next_value(&mut self, time_us: i64) -> f64 {
        let series = self.series;
        let innovation = self.normal();
        self.position = series.persistence * self.position + sqrt(1.0 - series.persistence * series.persistence) * innovation;
        if let Some(value) = self.value
            && self.unit() < series.repeat_share
        {
            return value;
        }
        let share = 0.5 * erfc(-self.position / std::f64::consts::SQRT_2);
        let hour = (time_us.rem_euclid(DAY_US) / HOUR_US) as usize;
        let value = rounded(quantile(&series.values_by_hour[hour], share), series.decimals);
        self.value = Some(value);
        value
    }

    fn next_interval(&mut self) -> i64 {
        let series = self.series;
        let is_gap = !series.gap_us.is_empty() && self.unit() < series.gap_share;
        let quantiles = if is_gap { &series.gap_us } else { &series.interval_us };
        let share = if quantiles.len() > 1 { self.unit() } else { 0.0 };
        let interval_us = quantile(quantiles, share) as i64;
        // Gaps of a regular series are whole numbers of its interval.
        match series.interval_us.as_slice() {
            [interval] if is_gap => (interval_us as f64 / interval).round().max(2.0) as i64 * *interval as i64,
            _ => interval_us.max(1),
        }
    }
}

/// The value at a share (0 to 1) of evenly spaced quantiles.
fn quantile(quantiles: &[f64], share: f64) -> f64 {
    let place = share * (quantiles.len() - 1) as f64;
    let below = (place as usize).min(quantiles.len() - 1);
    let above = (below + 1).min(quantiles.len() - 1);
    quantiles[below] + (quantiles[above] - quantiles[below]) * (place - below as f64)
}

fn rounded(value: f64, decimals: Option<u8>) -> f64 {
    match decimals {
        None => value,
        Some(decimals) => {
            let scale = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6][usize::from(decimals.min(6))];
            (value * scale).round() / scale
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;

    fn series() -> FittedSeries {
        FittedSeries {
            site: 1,
            zone: 2,
            sensor: "speed".to_owned(),
            interval_us: vec![600e6],
            gap_share: 0.01,
            gap_us: vec![1200e6, 7200e6],
            // Values of hour h lie evenly between h and h + 1.
            values_by_hour: (0..24).map(|hour| vec![f64::from(hour), f64::from(hour) + 1.0]).collect(),
            persistence: 0.8,
            repeat_share: 0.0,
            decimals: Some(2),
        }
    }

    fn rows(copies: usize, threads: usize) -> Vec<RecordBatch> {
        GeneratedRows::new(Arc::new(Fitted::new(vec![series()], 1, 0, 100 * DAY_US, copies)), threads)
            .map(Result::unwrap)
            .collect()
    }

    fn readings(batches: &[RecordBatch]) -> Vec<(i64, f64)> {
        let of = |batch: &RecordBatch| {
            let times = batch.column(3).as_primitive::<TimestampMicrosecondType>().values().to_vec();
            times.into_iter().zip(batch.column(4).as_primitive::<Float64Type>().values().to_vec()).collect::<Vec<_>>()
        };
        batches.iter().flat_map(of).collect()
    }

    #[test]
    fn values_follow_their_hour_and_are_as_alike_as_requested() {
        let readings = readings(&rows(1, 1));
        assert!(
            readings
                .iter()
                .all(|(time, value)| (*time / HOUR_US % 24) as f64 <= *value && *value <= (*time / HOUR_US % 24 + 1) as f64)
        );
        let positions: Vec<f64> = readings.iter().map(|(time, value)| value - (*time / HOUR_US % 24) as f64 - 0.5).collect();
        let product: f64 = positions.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let square: f64 = positions.iter().map(|position| position * position).sum();
        assert!((product / square - 0.79).abs() < 0.03, "{}", product / square);
    }

    #[test]
    fn gaps_come_as_often_as_requested_and_in_whole_intervals() {
        let readings = readings(&rows(1, 1));
        let intervals: Vec<i64> = readings.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(intervals.iter().all(|interval| interval % 600_000_000 == 0));
        let share = intervals.iter().filter(|interval| **interval > 600_000_000).count() as f64 / intervals.len() as f64;
        assert!((share - 0.01).abs() < 0.004, "{share}");
    }

    #[test]
    fn copies_have_zones_of_their_own_and_threads_change_nothing() {
        let one_thread = rows(3, 1);
        assert_eq!(rows(3, 4), one_thread);
        let mut zones: Vec<i32> = one_thread.iter().map(|batch| batch.column(1).as_primitive::<Int32Type>().value(0)).collect();
        zones.dedup();
        assert_eq!(zones, [2, 4, 6]);
    }
}
