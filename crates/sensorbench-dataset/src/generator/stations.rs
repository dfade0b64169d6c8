//! Readings of stations as TSM-Bench has them: each station has a row each interval, with a value of each of its sensors.
//!
//! Each sensor evolves from one interval to the next as a field does (`fields.rs`). Of what is shown, a share can be replaced by outliers
//! and a share can be missing, which changes nothing in what follows. A row is a function of the seed and its number, however many threads
//! make rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::Float64Builder;
use arrow_array::{ArrayRef, Int32Array, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::fields::{FieldPlan, Fields};
use super::normal::normal_quantile;
use super::parallel::Parts;
use super::starts::Starts;

/// Values that make a part, roughly: a part consists of whole epochs.
const VALUES_A_PART: u64 = 512 * 1024;

/// Values that are replaced where they are shown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outliers {
    /// How often a value is one.
    pub probability: f64,
    /// Mean of the values in their place.
    pub mean: f64,
    /// Standard deviation of the values in their place.
    pub deviation: f64,
}

/// The readings of all stations.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StationsPlan {
    /// The time of the first epoch, in µs.
    pub start_us: i64,
    /// From one epoch to the next, in µs.
    pub interval_us: i64,
    /// How many rows a station has.
    pub epochs: u64,
    /// How many stations there are.
    pub stations: u64,
    /// The columns after station and time.
    pub fields: Vec<FieldPlan>,
    /// Values that are replaced by others.
    #[serde(default)]
    pub outliers: Option<Outliers>,
    /// How often a value is missing.
    #[serde(default)]
    pub missing: f64,
}

// What the stream of a seed is used for, besides what other generators use.
const VALUES: u64 = 3;
const IS_OUTLIER: u64 = 4;
const OUTLIER: u64 = 5;
const IS_MISSING: u64 = 6;

/// The rows of a plan, epoch by epoch, and in an epoch station by station.
pub struct Stations {
    plan: StationsPlan,
    fields: Fields,
    stream: Stream,
    /// Where all sensors stand when a part begins, by station and field.
    starts: Starts<Vec<f64>>,
}

impl Stations {
    /// The rows of a plan from a seed.
    pub fn new(plan: StationsPlan, seed: u64) -> Self {
        let stream = Stream::new(seed);
        let fields = Fields::new(plan.fields.clone(), plan.stations, stream.split(VALUES));
        Self { plan, fields, stream, starts: Starts::new() }
    }

    fn epochs_of(&self, part: usize) -> Range<u64> {
        let epochs_a_part = self.epochs_a_part();
        let first = part as u64 * epochs_a_part;
        first..(first + epochs_a_part).min(self.plan.epochs)
    }

    fn epochs_a_part(&self) -> u64 {
        VALUES_A_PART.div_ceil((self.plan.stations * self.fields.count() as u64).max(1))
    }

    /// Where all sensors stand when a part begins.
    fn start_of(&self, part: usize) -> Vec<f64> {
        let through = |values: &mut Vec<f64>, part| self.epochs_of(part).for_each(|epoch| self.fields.advance(values, epoch));
        self.starts.of(part, || self.fields.first(), through)
    }

    /// What is shown of a value, by its number among all values of all rows.
    fn shown(&self, number: u64, field: usize, value: f64) -> Option<f64> {
        if self.plan.missing > 0.0 && self.stream.split(IS_MISSING).unit(number) < self.plan.missing {
            return None;
        }
        match &self.plan.outliers {
            Some(outliers) if self.stream.split(IS_OUTLIER).unit(number) < outliers.probability => {
                Some(outliers.mean + outliers.deviation * normal_quantile(self.stream.split(OUTLIER).unit(number)))
            }
            _ => Some(self.fields.shown(field, value)),
        }
    }
}

impl Parts for Stations {
    fn parts(&self) -> usize {
        self.plan.epochs.div_ceil(self.epochs_a_part()) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let epochs = self.epochs_of(number);
        let (stations, fields) = (self.plan.stations as usize, self.fields.count());
        let rows = (epochs.end - epochs.start) as usize * stations;
        let (mut sites, mut times) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut columns: Vec<Float64Builder> = (0..fields).map(|_| Float64Builder::with_capacity(rows)).collect();
        let mut values = self.start_of(number);
        for epoch in epochs {
            sites.extend(0..stations as i32);
            times.extend(std::iter::repeat_n(self.plan.start_us + epoch as i64 * self.plan.interval_us, stations));
            let before = epoch * values.len() as u64;
            for (numbers, of_station) in (before..).step_by(fields.max(1)).zip(values.chunks_exact(fields)) {
                for (field, (column, value)) in columns.iter_mut().zip(of_station).enumerate() {
                    column.append_option(self.shown(numbers + field as u64, field, *value));
                }
            }
            self.fields.advance(&mut values, epoch);
        }
        let keys: [ArrayRef; 2] = [Arc::new(Int32Array::from(sites)), Arc::new(TimestampMicrosecondArray::from(times))];
        let values = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let columns = keys.into_iter().chain(values).collect();
        RecordBatch::try_new(self.schema(), columns).expect("columns of the schema, of one length")
    }

    fn schema(&self) -> SchemaRef {
        let keys = [
            Field::new("site", DataType::Int32, false),
            Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        ];
        let values = self.fields.names().map(|name| Field::new(name, DataType::Float64, true));
        Arc::new(Schema::new(keys.into_iter().chain(values).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;
    use crate::generator::fields::Change;

    fn plan(stations: u64, epochs: u64, change: Change) -> StationsPlan {
        let field = |number| FieldPlan {
            name: format!("s{number}"),
            start: (0.0, 1.0),
            bounds: (-1e9, 1e9),
            change: change.clone(),
            refilled: false,
            decimals: 17,
        };
        StationsPlan {
            start_us: 1_000_000,
            interval_us: 10_000_000,
            epochs,
            stations,
            fields: (0..3).map(field).collect(),
            outliers: None,
            missing: 0.0,
        }
    }

    fn uniform() -> Change {
        Change::Drawn { probability: 1.0, low: 0.0, high: 1.0 }
    }

    fn batches(plan: StationsPlan, threads: usize) -> Vec<RecordBatch> {
        GeneratedRows::new(Arc::new(Stations::new(plan, 42)), threads).map(Result::unwrap).collect()
    }

    fn values(batches: &[RecordBatch], column: usize) -> Vec<Option<f64>> {
        batches.iter().flat_map(|batch| batch.column(column).as_primitive::<Float64Type>().iter().collect::<Vec<_>>()).collect()
    }

    #[test]
    fn any_number_of_threads_and_any_order_of_parts_gives_the_same_rows() {
        let plan = StationsPlan { missing: 0.3, ..plan(100, 4000, Change::Normal { mean: 0.0, deviation: 0.01 }) };
        let expected = batches(plan.clone(), 1);
        assert!(expected.len() > 2, "{}", expected.len());
        assert_eq!(batches(plan.clone(), 3), expected);
        let stations = Stations::new(plan, 42);
        for part in [1, 0, expected.len() - 1] {
            assert_eq!(stations.part(part), expected[part], "part {part}");
        }
    }

    #[test]
    fn rows_come_epoch_by_epoch_and_station_by_station_at_exact_times() {
        let batches = batches(plan(7, 500, uniform()), 2);
        let mut row = 0;
        for batch in &batches {
            let sites = batch.column(0).as_primitive::<Int32Type>().values();
            let times = batch.column(1).as_primitive::<TimestampMicrosecondType>().values();
            for (site, time) in sites.iter().zip(times) {
                assert_eq!((i64::from(*site), *time), (row % 7, 1_000_000 + row / 7 * 10_000_000));
                row += 1;
            }
        }
        assert_eq!(row, 3500);
    }

    #[test]
    fn so_many_values_are_missing_and_the_others_are_what_they_would_be() {
        let whole = values(&batches(plan(1, 20_000, uniform()), 1), 2);
        let some = values(&batches(StationsPlan { missing: 0.3, ..plan(1, 20_000, uniform()) }, 1), 2);
        let missing = some.iter().filter(|value| value.is_none()).count();
        assert!((5_700..6_300).contains(&missing), "{missing}");
        assert!(some.iter().zip(&whole).all(|(value, whole)| value.is_none() || value == whole));
        assert_eq!(whole.iter().flatten().count(), 20_000);
    }

    #[test]
    fn so_many_values_are_outliers_of_their_distribution() {
        let outliers = Some(Outliers { probability: 0.2, mean: 0.0, deviation: 15.0 });
        let found = values(&batches(StationsPlan { outliers, ..plan(1, 50_000, uniform()) }, 1), 4);
        let outside: Vec<f64> = found.iter().flatten().copied().filter(|value| !(0.0..1.0).contains(value)).collect();
        // A normal value lies within 0 and 1 in 2.7 % of all cases.
        let share = outside.len() as f64 / 50_000.0;
        assert!((share - 0.2 * 0.973).abs() < 0.01, "{share}");
        let mean_square = outside.iter().map(|value| value * value).sum::<f64>() / outside.len() as f64;
        assert!((mean_square.sqrt() - 15.2).abs() < 0.6, "{mean_square}");
    }

    #[test]
    fn values_repeat_as_often_as_they_are_not_drawn_anew() {
        let found = values(&batches(plan(1, 20_000, Change::Drawn { probability: 0.1, low: 0.0, high: 1.0 }), 1), 3);
        let repeats = found.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((17_800..18_200).contains(&repeats), "{repeats}");
    }

    #[test]
    fn the_first_rows_are_these_on_every_machine() {
        let outliers = Some(Outliers { probability: 0.1, mean: 0.0, deviation: 15.0 });
        let walk = Change::Normal { mean: 0.0, deviation: 0.01 };
        let batch = &batches(StationsPlan { outliers, missing: 0.1, ..plan(10, 1000, walk) }, 1)[0];
        assert_eq!(batch.num_columns(), 5);
        let column = batch.column(4);
        let sum = column
            .as_primitive::<Float64Type>()
            .iter()
            .fold(0u64, |sum, value| sum.rotate_left(1) ^ value.map_or(1, f64::to_bits));
        assert_eq!((column.len(), sum), (10_000, 9_083_844_292_306_479_697));
    }
}
