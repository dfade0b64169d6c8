//! Measurements of hosts as TSBS makes them (Time Series Benchmark Suite): each host has a row each interval, and each field of
//! a row is a random walk, cut to a whole number. Columns are the fields, or what follows from them.
//!
//! A step is a function of the seed, the host, the field and the epoch (the number of the interval); where a walk stands is the
//! sum of its steps so far, held within the bounds after each. So a row is a function of the seed and its number, however many
//! threads make rows. A part needs where the walks stand at its beginning: `Starts` goes there once, and on from there to the
//! parts that follow.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::columns::{ColumnPlan, Columns};
use super::fields::{FieldPlan, Fields};
use super::hosts::site_of;
use super::parallel::Parts;
use super::starts::Starts;

/// Rows that make a part, roughly: a part consists of whole epochs.
const ROWS_A_PART: u64 = 16 * 1024;

/// A measurement of all hosts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WalksPlan {
    /// The time of the first epoch, in µs.
    pub start_us: i64,
    /// From one epoch to the next, in µs.
    pub interval_us: i64,
    /// How many rows a host has.
    pub epochs: u64,
    /// How many hosts there are.
    pub hosts: u64,
    /// The number of the measurement, from 0 on; each draws for itself.
    #[serde(default)]
    pub measurement: u64,
    /// What walks.
    pub fields: Vec<FieldPlan>,
    /// The columns after site, zone and time; the fields themselves if there are none.
    #[serde(default)]
    pub columns: Vec<ColumnPlan>,
}

/// What the stream of a seed is used for besides tags of hosts: from here on the walks of each measurement.
const WALKS: u64 = 1;

/// The rows of a plan, epoch by epoch, and in an epoch host by host.
pub struct Walks {
    plan: WalksPlan,
    sites: Vec<i32>,
    fields: Fields,
    columns: Columns,
    /// Where all walks stand when a part begins, by host and field.
    starts: Starts<Vec<f64>>,
}

impl Walks {
    /// The rows of a plan from a seed. Panics where a column names what there is not.
    pub fn new(plan: WalksPlan, seed: u64) -> Self {
        let stream = Stream::new(seed);
        let sites = (0..plan.hosts).map(|host| site_of(stream, host)).collect();
        let fields = Fields::new(plan.fields.clone(), plan.hosts, stream.split(WALKS + plan.measurement));
        let columns = Columns::new(&plan.columns, &fields);
        Self { plan, sites, fields, columns, starts: Starts::new() }
    }

    fn epochs_of(&self, part: usize) -> Range<u64> {
        let epochs_a_part = self.epochs_a_part();
        let first = part as u64 * epochs_a_part;
        first..(first + epochs_a_part).min(self.plan.epochs)
    }

    fn epochs_a_part(&self) -> u64 {
        ROWS_A_PART.div_ceil(self.plan.hosts.max(1))
    }

    /// Where all walks stand when a part begins.
    fn start_of(&self, part: usize) -> Vec<f64> {
        let through = |walks: &mut Vec<f64>, part| self.epochs_of(part).for_each(|epoch| self.fields.advance(walks, epoch));
        self.starts.of(part, || self.fields.first(), through)
    }
}

impl Parts for Walks {
    fn parts(&self) -> usize {
        self.plan.epochs.div_ceil(self.epochs_a_part()) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let epochs = self.epochs_of(number);
        let (hosts, fields) = (self.plan.hosts as usize, self.fields.count());
        let rows = (epochs.end - epochs.start) as usize * hosts;
        let (mut sites, mut zones) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut times = Vec::with_capacity(rows);
        let mut row = vec![0.0; self.columns.names().count()];
        let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(rows); row.len()];
        let mut walks = self.start_of(number);
        for epoch in epochs {
            sites.extend_from_slice(&self.sites);
            zones.extend(0..hosts as i32);
            times.extend(std::iter::repeat_n(self.plan.start_us + epoch as i64 * self.plan.interval_us, hosts));
            for walks in walks.chunks_exact(fields) {
                self.columns.show(&self.fields, walks, &mut row);
                columns.iter_mut().zip(&row).for_each(|(column, value)| column.push(*value));
            }
            self.fields.advance(&mut walks, epoch);
        }
        let keys: [ArrayRef; 3] = [
            Arc::new(Int32Array::from(sites)),
            Arc::new(Int32Array::from(zones)),
            Arc::new(TimestampMicrosecondArray::from(times)),
        ];
        let values = columns.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef);
        let columns = keys.into_iter().chain(values).collect();
        RecordBatch::try_new(self.schema(), columns).expect("columns of the schema, of one length")
    }

    fn schema(&self) -> SchemaRef {
        let keys = [
            Field::new("site", DataType::Int32, false),
            Field::new("zone", DataType::Int32, false),
            Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        ];
        let values = self.columns.names().map(|name| Field::new(name, DataType::Float64, false));
        Arc::new(Schema::new(keys.into_iter().chain(values).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;
    use crate::generator::fields::Change;
    use crate::generator::starts::REMEMBERED_PARTS;

    fn plan(hosts: u64, epochs: u64, fields: usize) -> WalksPlan {
        let field = |number| FieldPlan {
            name: format!("field_{number}"),
            start: (0.0, 100.0),
            bounds: (0.0, 100.0),
            change: Change::Normal { mean: 0.0, deviation: 1.0 },
            refilled: false,
            decimals: 0,
        };
        let fields = (0..fields).map(field).collect();
        WalksPlan { start_us: 1_000_000, interval_us: 10_000_000, epochs, hosts, measurement: 0, fields, columns: Vec::new() }
    }

    fn batches(plan: WalksPlan, threads: usize) -> Vec<RecordBatch> {
        GeneratedRows::new(Arc::new(Walks::new(plan, 42)), threads).map(Result::unwrap).collect()
    }

    /// The values of a column of all batches.
    fn values(batches: &[RecordBatch], column: usize) -> Vec<f64> {
        batches.iter().flat_map(|batch| batch.column(column).as_primitive::<Float64Type>().values().to_vec()).collect()
    }

    #[test]
    fn any_number_of_threads_and_any_order_of_parts_gives_the_same_rows() {
        let plan = plan(1000, 1000, 2);
        let expected = batches(plan.clone(), 1);
        assert_eq!(expected.len(), 59);
        assert_eq!(expected.iter().map(RecordBatch::num_rows).sum::<usize>(), 1_000_000);
        for threads in [3, 8] {
            assert_eq!(batches(plan.clone(), threads), expected);
        }
        let walks = Walks::new(plan, 42);
        for part in [40, 7, 7, 58, 0, 39] {
            assert_eq!(walks.part(part), expected[part], "part {part}");
        }
    }

    #[test]
    fn more_than_the_remembered_parts_can_be_passed() {
        let plan = plan(20_000, 200, 1);
        let walks = Walks::new(plan.clone(), 42);
        assert_eq!(walks.parts(), 200);
        let far = walks.part(199);
        assert_eq!(walks.starts.remembered(), REMEMBERED_PARTS);
        assert_eq!((walks.part(3), far), (Walks::new(plan.clone(), 42).part(3), batches(plan, 4)[199].clone()));
    }

    #[test]
    fn rows_come_epoch_by_epoch_and_host_by_host_at_exact_times() {
        let batches = batches(plan(7, 5000, 1), 2);
        let mut row = 0;
        for batch in &batches {
            let zones = batch.column(1).as_primitive::<Int32Type>().values();
            let times = batch.column(2).as_primitive::<TimestampMicrosecondType>().values();
            for (zone, time) in zones.iter().zip(times) {
                assert_eq!((i64::from(*zone), *time), (row % 7, 1_000_000 + row / 7 * 10_000_000));
                row += 1;
            }
        }
        assert_eq!(row, 35_000);
    }

    #[test]
    fn fewer_hosts_and_fewer_epochs_are_a_part_of_more() {
        let (many, few) = (values(&batches(plan(10, 3000, 1), 1), 3), values(&batches(plan(4, 1000, 1), 1), 3));
        let of_the_first: Vec<f64> = many.chunks(10).take(1000).flat_map(|epoch| epoch[..4].to_vec()).collect();
        assert_eq!(few, of_the_first);
    }

    #[test]
    fn measurements_draw_for_themselves() {
        let first = values(&batches(plan(10, 100, 2), 1), 3);
        let second = values(&batches(WalksPlan { measurement: 1, ..plan(10, 100, 2) }, 1), 3);
        let equal = first.iter().zip(&second).filter(|(first, second)| first == second).count();
        assert!(equal < 100, "{equal} of {}", first.len());
    }

    #[test]
    fn walks_stay_within_their_bounds_and_have_the_shares_of_tsbs() {
        let (hosts, epochs) = (300, 25_920);
        let values = values(&batches(plan(hosts, epochs, 1), 2), 3);
        let share = |holds: fn(&f64) -> bool| values.iter().filter(|value| holds(value)).count() as f64 / values.len() as f64;
        assert!((share(|value| *value > 90.0) - 0.0965).abs() < 0.01, "{}", share(|value| *value > 90.0));
        assert!((share(|value| *value == 0.0) - 0.016).abs() < 0.003, "{}", share(|value| *value == 0.0));
        assert!((share(|value| *value == 100.0) - 0.007).abs() < 0.002, "{}", share(|value| *value == 100.0));
        assert!(share(|value| (0.0..=100.0).contains(value) && value.fract() == 0.0) == 1.0);
        // Within twelve hours, of which these are six.
        let mut hot = 0;
        for twelve_hours in values.chunks(4320 * hosts as usize) {
            let above = |host| twelve_hours.iter().skip(host).step_by(hosts as usize).any(|value| *value > 90.0);
            hot += (0..hosts as usize).filter(|host| above(*host)).count();
        }
        let hot = hot as f64 / (6 * hosts) as f64;
        assert!((hot - 0.6).abs() < 0.05, "{hot}");
    }

    #[test]
    fn the_first_rows_are_these_on_every_machine() {
        let values = values(&batches(plan(10, 1000, 2), 1), 4);
        let sum = values.iter().fold(0u64, |sum, value| sum.rotate_left(1) ^ value.to_bits());
        assert_eq!((values.len(), sum), (10_000, 6_194_990_653_499_434_753));
    }
}
