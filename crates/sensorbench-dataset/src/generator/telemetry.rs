//! Measurements of trucks as TSBS delivers them (Time Series Benchmark Suite): each truck has a row of each measurement each
//! interval, and on the way to the database rows are lost, come late, and lose a field or a tag.
//!
//! Rows are generated epoch by epoch, in each measurement by measurement, and in each truck by truck. One generator gives the rows of
//! one measurement, but numbers the rows of all of them in the order in which they arrive. A row that lost its truck's name belongs
//! to nobody: it is left out, and its number with it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::delivery::{Delivered, Delivery};
use super::fields::{FieldPlan, Fields};
use super::parallel::Parts;
use super::starts::Starts;
use super::trucks::site_of_truck;

/// Rows that make a part, roughly: those of whole epochs, of which some are lost and some come later.
const ROWS_A_PART: u64 = 16 * 1024;
/// The number of the tag that names a truck.
const NAME: usize = 0;

/// A measurement of all trucks, which they deliver with others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetryPlan {
    /// The time of the first epoch, in µs.
    pub start_us: i64,
    /// From one epoch to the next, in µs.
    pub interval_us: i64,
    /// How many rows a truck has of each measurement, as long as none is lost.
    pub epochs: u64,
    /// How many trucks there are.
    pub trucks: u64,
    /// How many measurements there are.
    pub measurements: u64,
    /// The number of this one, from 0 on.
    pub measurement: u64,
    /// The columns after site, zone, time and arrival; `Telemetry::MAX_FIELDS` at most.
    pub fields: Vec<FieldPlan>,
}

/// What the stream of a seed is used for besides tags of trucks: delivery, and from there on the fields of each measurement.
const DELIVERY: u64 = 1;
const FIELDS: u64 = 2;

/// The rows of a measurement, in the order in which they arrive.
pub struct Telemetry {
    plan: TelemetryPlan,
    sites: Vec<i32>,
    fields: Fields,
    delivery: Stream,
    starts: Starts<Position>,
}

/// A row on its way. It has values where it is of the measurement that is generated.
#[derive(Clone, Debug)]
struct Row {
    epoch: u64,
    measurement: u64,
    truck: usize,
    values: [f64; Telemetry::MAX_FIELDS],
}

/// How far rows are generated: the epoch, the place of the next row in it, and what the fields of all trucks are.
#[derive(Clone)]
struct Cursor {
    epoch: u64,
    place: u64,
    values: Vec<f64>,
}

/// What there is at the beginning of a part.
#[derive(Clone)]
struct Position {
    cursor: Cursor,
    delivery: Delivery<Row>,
    /// How many rows have arrived.
    arrived: i64,
}

/// Rows from a cursor on.
struct Rows<'a> {
    of: &'a Telemetry,
    cursor: &'a mut Cursor,
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let (plan, cursor) = (&self.of.plan, &mut *self.cursor);
        if cursor.place == plan.measurements * plan.trucks {
            self.of.fields.advance(&mut cursor.values, cursor.epoch);
            cursor.epoch += 1;
            cursor.place = 0;
        }
        if cursor.epoch >= plan.epochs {
            return None;
        }
        let (measurement, truck) = (cursor.place / plan.trucks, (cursor.place % plan.trucks) as usize);
        cursor.place += 1;
        let mut values = [0.0; Telemetry::MAX_FIELDS];
        if measurement == plan.measurement {
            let fields = self.of.fields.count();
            values[..fields].copy_from_slice(&cursor.values[truck * fields..][..fields]);
        }
        Some(Row { epoch: cursor.epoch, measurement, truck, values })
    }
}

impl Telemetry {
    /// As many fields as a row can have.
    pub const MAX_FIELDS: usize = 7;

    /// The rows of a plan from a seed. Panics if there are too many fields.
    pub fn new(plan: TelemetryPlan, seed: u64) -> Self {
        assert!(plan.fields.len() <= Self::MAX_FIELDS, "at most {} fields", Self::MAX_FIELDS);
        let stream = Stream::new(seed);
        let sites = (0..plan.trucks).map(|truck| site_of_truck(stream, truck)).collect();
        let fields = Fields::new(plan.fields.clone(), plan.trucks, stream.split(FIELDS + plan.measurement));
        Self { plan, sites, fields, delivery: stream.split(DELIVERY), starts: Starts::new() }
    }

    fn epochs_of(&self, part: usize) -> Range<u64> {
        let epochs_a_part = self.epochs_a_part();
        let first = part as u64 * epochs_a_part;
        first..(first + epochs_a_part).min(self.plan.epochs)
    }

    fn epochs_a_part(&self) -> u64 {
        ROWS_A_PART.div_ceil(self.plan.trucks.max(1))
    }

    fn first(&self) -> Position {
        let cursor = Cursor { epoch: 0, place: 0, values: self.fields.first() };
        Position { cursor, delivery: Delivery::new(self.delivery), arrived: 0 }
    }

    /// Takes a position through a part, and gives each row that arrives in it and has its truck's name to `taker`, with its number.
    fn through(&self, position: &mut Position, part: usize, mut taker: impl FnMut(i64, Delivered<Row>)) {
        let epochs = self.epochs_of(part);
        let Position { cursor, delivery, arrived } = position;
        let mut take = |units: Vec<Delivered<Row>>| {
            for delivered in units {
                *arrived += 1;
                if delivered.row.measurement == self.plan.measurement && delivered.lost_tag != Some(NAME) {
                    taker(*arrived, delivered);
                }
            }
        };
        while cursor.epoch < epochs.end {
            take(delivery.unit(&mut Rows { of: self, cursor: &mut *cursor }));
        }
        if epochs.end == self.plan.epochs {
            take(delivery.rest());
        }
    }
}

impl Parts for Telemetry {
    fn parts(&self) -> usize {
        self.plan.epochs.div_ceil(self.epochs_a_part()) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let (mut sites, mut zones, mut times, mut arrivals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); self.fields.count()];
        let mut position = self.starts.of(number, || self.first(), |position, part| self.through(position, part, |_, _| ()));
        self.through(&mut position, number, |arrival, Delivered { row, lost_field, .. }| {
            sites.push(self.sites[row.truck]);
            zones.push(row.truck as i32);
            times.push(self.plan.start_us + row.epoch as i64 * self.plan.interval_us);
            arrivals.push(arrival);
            let lost = lost_field.map(|lost| lost % self.fields.count());
            for (field, column) in columns.iter_mut().enumerate() {
                column.push((lost != Some(field)).then(|| self.fields.shown(field, row.values[field])));
            }
        });
        let keys: [ArrayRef; 4] = [
            Arc::new(Int32Array::from(sites)),
            Arc::new(Int32Array::from(zones)),
            Arc::new(TimestampMicrosecondArray::from(times)),
            Arc::new(Int64Array::from(arrivals)),
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
            Field::new("arrival", DataType::Int64, false),
        ];
        let values = self.fields.names().map(|name| Field::new(name, DataType::Float64, true));
        Arc::new(Schema::new(keys.into_iter().chain(values).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;
    use crate::generator::fields::Change;

    fn plan(trucks: u64, epochs: u64, measurement: u64) -> TelemetryPlan {
        let field = |number| FieldPlan {
            name: format!("field_{number}"),
            start: (0.0, 100.0),
            bounds: (0.0, 100.0),
            change: Change::Uniform { low: -5.0, high: 5.0 },
            refilled: false,
            decimals: 1,
        };
        let fields = (0..if measurement == 0 { 7 } else { 3 }).map(field).collect();
        TelemetryPlan { start_us: 1_000_000, interval_us: 10_000_000, epochs, trucks, measurements: 2, measurement, fields }
    }

    fn batches(plan: TelemetryPlan, threads: usize) -> Vec<RecordBatch> {
        GeneratedRows::new(Arc::new(Telemetry::new(plan, 42)), threads).map(Result::unwrap).collect()
    }

    /// Truck, time in µs, and number of arrival of all rows.
    fn rows(batches: &[RecordBatch]) -> Vec<(i32, i64, i64)> {
        let of = |batch: &RecordBatch| {
            let zones = batch.column(1).as_primitive::<Int32Type>().values().to_vec();
            let times = batch.column(2).as_primitive::<TimestampMicrosecondType>().values().to_vec();
            let arrivals = batch.column(3).as_primitive::<Int64Type>().values().to_vec();
            zones.into_iter().zip(times).zip(arrivals).map(|((zone, time), arrival)| (zone, time, arrival)).collect::<Vec<_>>()
        };
        batches.iter().flat_map(of).collect()
    }

    #[test]
    fn any_number_of_threads_and_any_order_of_parts_gives_the_same_rows() {
        let plan = plan(300, 1000, 0);
        let expected = batches(plan.clone(), 1);
        assert_eq!(expected.len(), 19);
        for threads in [3, 8] {
            assert_eq!(batches(plan.clone(), threads), expected);
        }
        let telemetry = Telemetry::new(plan, 42);
        for part in [12, 3, 3, 18, 0, 11] {
            assert_eq!(telemetry.part(part), expected[part], "part {part}");
        }
    }

    #[test]
    fn measurements_share_the_numbers_of_arrival_and_a_row_is_there_once() {
        let (readings, diagnostics) = (rows(&batches(plan(20, 3000, 0), 2)), rows(&batches(plan(20, 3000, 1), 2)));
        let mut arrivals = BTreeSet::new();
        for rows in [&readings, &diagnostics] {
            assert!(rows.windows(2).all(|pair| pair[0].2 < pair[1].2));
            assert_eq!(rows.iter().map(|(zone, time, _)| (zone, time)).collect::<BTreeSet<_>>().len(), rows.len());
            let first = rows.iter().map(|row| row.1).min();
            assert_eq!((first, rows.iter().all(|row| row.1 % 10_000_000 == 1_000_000)), (Some(1_000_000), true));
            arrivals.extend(rows.iter().map(|row| row.2));
        }
        assert_eq!(arrivals.len(), readings.len() + diagnostics.len());
        // Numbers that are missing are those of rows without a name.
        let arrived = *arrivals.last().unwrap();
        let nameless = (arrived - arrivals.len() as i64) as f64 / arrived as f64;
        assert!((nameless - 0.009 / 8.0).abs() < 0.0006, "{nameless}");
        let delivered = arrived as f64 / (2.0 * 20.0 * 3000.0);
        assert!((delivered - 0.9).abs() < 0.01, "{delivered}");
    }

    #[test]
    fn disorder_vanishes_in_time_when_there_are_many_trucks() {
        // Share of rows that are older than the newest one before, by trucks.
        for (trucks, epochs, expected, tolerance) in
            [(1, 40_000, 0.19, 0.01), (10, 8_000, 0.126, 0.01), (100, 1_000, 0.016, 0.003)]
        {
            let mut all = rows(&batches(plan(trucks, epochs, 0), 2));
            all.extend(rows(&batches(plan(trucks, epochs, 1), 2)));
            all.sort_unstable_by_key(|row| row.2);
            let mut newest = i64::MIN;
            let late = all.iter().filter(|row| {
                newest = newest.max(row.1);
                row.1 < newest
            });
            let share = late.count() as f64 / all.len() as f64;
            assert!((share - expected).abs() < tolerance, "{trucks} trucks: {share}");
        }
    }

    #[test]
    fn a_row_lacks_one_field_at_most_and_the_first_ones_of_three_more_often() {
        for (measurement, expected) in [(0, [1.0 / 7.0; 7].to_vec()), (1, [3.0 / 7.0, 2.0 / 7.0, 2.0 / 7.0].to_vec())] {
            let batches = batches(plan(50, 2000, measurement), 2);
            let mut nulls: BTreeMap<usize, usize> = BTreeMap::new();
            for batch in &batches {
                for row in 0..batch.num_rows() {
                    let lost: Vec<usize> = (0..expected.len()).filter(|field| batch.column(4 + field).is_null(row)).collect();
                    assert!(lost.len() <= 1);
                    lost.into_iter().for_each(|field| *nulls.entry(field).or_default() += 1);
                }
            }
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            let all: usize = nulls.values().sum();
            assert!((all as f64 / rows as f64 - 0.089).abs() < 0.005, "{all} of {rows}");
            for (field, expected) in expected.iter().enumerate() {
                let share = nulls[&field] as f64 / all as f64;
                assert!((share - expected).abs() < 0.02, "{field}: {share}");
            }
        }
    }

    #[test]
    fn the_first_rows_are_these_on_every_machine() {
        let batches = batches(plan(10, 1000, 0), 1);
        let values = batches.iter().flat_map(|batch| {
            let column = batch.column(5).as_primitive::<Float64Type>();
            (0..column.len())
                .map(|row| if column.is_null(row) { u64::MAX } else { column.value(row).to_bits() })
                .collect::<Vec<_>>()
        });
        let sum = values.fold(0u64, |sum, value| sum.rotate_left(1) ^ value);
        assert_eq!((rows(&batches).len(), sum), (9_013, 4_738_226_595_007_028_331));
    }
}
