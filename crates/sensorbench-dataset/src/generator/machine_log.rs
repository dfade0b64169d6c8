//! The log of a factory's machines: each sensor is read once a tick, in turn, and what it measures drifts upward as the log
//! grows. So the beginning of the log is not a sample of the whole: ranges of values lie in certain pieces of it.
//!
//! A log consists of *pieces* one after the other, and each has a distribution of values of its own, which is given as bands
//! from the lowest to the highest. The quantile that a record takes is its position in the piece, wavered by up to a half and
//! folded back at both ends. Folding keeps an evenly spread quantile evenly spread, so the bands have their shares, and the
//! level rises within a piece, too.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::parallel::Parts;

/// Records that make a part, roughly: a part consists of whole ticks.
const RECORDS_A_PART: usize = 64 * 1024;
/// Values have six decimals.
const DECIMALS: f64 = 1e6;

/// Values of a piece that lie side by side, evenly spread from `low` to below `high`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// How many of the piece's records, in proportion to the other bands.
    pub records: f64,
    /// The lowest value.
    pub low: f64,
    /// The end of the values.
    pub high: f64,
}

/// A range of the log.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// How many ticks it lasts.
    pub ticks: u64,
    /// Its values, from the lowest band to the highest.
    pub bands: Vec<Band>,
}

/// What a log looks like.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MachineLogPlan {
    /// When it begins, in µs.
    pub start_us: i64,
    /// From one reading of a sensor to the next, in µs.
    pub tick_us: i64,
    /// From one sensor's turn to the next one's, in µs; a reading begins at some time of its turn.
    pub turn_us: u64,
    /// The shortest and the longest time that a reading takes, in ms.
    pub reading_ms: (u64, u64),
    /// How many sensors a machine has.
    pub sensors_a_machine: u64,
    /// How many sensors there are on all machines.
    pub sensors: u64,
    /// Its pieces, one after the other.
    pub pieces: Vec<Piece>,
}

// What the streams of a sensor are used for.
const BEGIN: u64 = 0;
const DURATION: u64 = 1;
const VALUE: u64 = 2;

/// A log as a generator. Fewer pieces give the beginning of a log; fewer sensors give the records of the first ones.
pub struct MachineLog {
    plan: MachineLogPlan,
    stream: Stream,
    pieces: Vec<Quantiles>,
}

/// A piece with its place in the log.
struct Quantiles {
    ticks: Range<u64>,
    /// Share of the values below the end of each band, and the band.
    bands: Vec<(f64, Band)>,
}

impl Quantiles {
    fn new(first_tick: u64, piece: &Piece) -> Self {
        let all: f64 = piece.bands.iter().map(|band| band.records).sum();
        let mut below = 0.0;
        let bands = piece.bands.iter().map(|band| {
            below += band.records / all;
            (below, band.clone())
        });
        Self { ticks: first_tick..first_tick + piece.ticks, bands: bands.collect() }
    }

    /// The value below which a share of the piece's values lies.
    fn value(&self, share: f64) -> f64 {
        let mut start = 0.0;
        for (end, band) in &self.bands {
            if share < *end {
                return band.low + (band.high - band.low) * (share - start) / (end - start);
            }
            start = *end;
        }
        self.bands.last().map_or(0.0, |(_, band)| band.high)
    }
}

impl MachineLog {
    /// The log of a plan.
    pub fn new(plan: MachineLogPlan, seed: u64) -> Self {
        let mut next_tick = 0;
        let pieces = plan.pieces.iter().map(|piece| {
            let quantiles = Quantiles::new(next_tick, piece);
            next_tick = quantiles.ticks.end;
            quantiles
        });
        Self { pieces: pieces.collect(), stream: Stream::new(seed), plan }
    }

    fn ticks(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.ticks.end)
    }

    fn ticks_a_part(&self) -> u64 {
        (RECORDS_A_PART as u64).div_ceil(self.plan.sensors.max(1))
    }

    fn value(&self, piece: &Quantiles, tick: u64, random: Stream) -> f64 {
        let position = (tick - piece.ticks.start) as f64 + 0.5;
        let wavered = position / (piece.ticks.end - piece.ticks.start) as f64 + random.split(VALUE).unit(tick) - 0.5;
        let folded = if wavered < 0.0 { -wavered } else { wavered.min(2.0 - wavered) };
        (piece.value(folded) * DECIMALS).floor() / DECIMALS
    }
}

/// The columns of a log: machine, sensor, begin_time, end_time, value.
pub fn log_schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    Arc::new(Schema::new(vec![
        Field::new("machine", DataType::Int32, false),
        Field::new("sensor", DataType::Int32, false),
        Field::new("begin_time", time.clone(), false),
        Field::new("end_time", time, false),
        Field::new("value", DataType::Float64, false),
    ]))
}

impl Parts for MachineLog {
    fn parts(&self) -> usize {
        self.ticks().div_ceil(self.ticks_a_part()) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let plan = &self.plan;
        let first_tick = number as u64 * self.ticks_a_part();
        let ticks = first_tick..(first_tick + self.ticks_a_part()).min(self.ticks());
        let records = ((ticks.end - ticks.start) * plan.sensors) as usize;
        let (mut machines, mut sensors) = (Vec::with_capacity(records), Vec::with_capacity(records));
        let (mut begins, mut ends) = (Vec::with_capacity(records), Vec::with_capacity(records));
        let mut values = Vec::with_capacity(records);
        let randoms: Vec<Stream> = (0..plan.sensors).map(|turn| self.stream.split(turn)).collect();
        let (shortest_ms, longest_ms) = plan.reading_ms;
        for piece in &self.pieces {
            for tick in ticks.start.max(piece.ticks.start)..ticks.end.min(piece.ticks.end) {
                for (turn, random) in (0..plan.sensors).zip(&randoms) {
                    let in_tick_us = turn * plan.turn_us + random.split(BEGIN).below(tick, plan.turn_us);
                    let begin_us = plan.start_us + tick as i64 * plan.tick_us + in_tick_us as i64;
                    let reading_ms = shortest_ms + random.split(DURATION).below(tick, longest_ms - shortest_ms + 1);
                    machines.push((turn / plan.sensors_a_machine) as i32 + 1);
                    sensors.push((turn % plan.sensors_a_machine) as i32 + 1);
                    begins.push(begin_us);
                    ends.push(begin_us + reading_ms as i64 * 1000);
                    values.push(self.value(piece, tick, *random));
                }
            }
        }
        let columns: [ArrayRef; 5] = [
            Arc::new(Int32Array::from(machines)),
            Arc::new(Int32Array::from(sensors)),
            Arc::new(TimestampMicrosecondArray::from(begins)),
            Arc::new(TimestampMicrosecondArray::from(ends)),
            Arc::new(Float64Array::from(values)),
        ];
        RecordBatch::try_new(self.schema(), columns.to_vec()).expect("columns of the schema, of one length")
    }

    fn schema(&self) -> SchemaRef {
        log_schema()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;

    fn band(records: f64, low: f64, high: f64) -> Band {
        Band { records, low, high }
    }

    fn plan(sensors: u64, pieces: usize) -> MachineLogPlan {
        let first = Piece { ticks: 700, bands: vec![band(1.0, -1.0, 0.0), band(3.0, 5.0, 6.0)] };
        let second = Piece { ticks: 300, bands: vec![band(1.0, 6.0, 7.0)] };
        MachineLogPlan {
            start_us: 1_000_000,
            tick_us: 60_000_000,
            turn_us: 2_000,
            reading_ms: (1_000, 59_000),
            sensors_a_machine: 10,
            sensors,
            pieces: [first, second].into_iter().take(pieces).collect(),
        }
    }

    /// Machine, sensor, begin, end and value.
    type Record = (i32, i32, i64, i64, f64);

    fn records(plan: MachineLogPlan, threads: usize) -> Vec<Record> {
        let mut records = Vec::new();
        for batch in GeneratedRows::new(Arc::new(MachineLog::new(plan, 42)), threads).map(Result::unwrap) {
            let whole = |column: usize| batch.column(column).as_primitive::<Int32Type>().values();
            let times = |column: usize| batch.column(column).as_primitive::<TimestampMicrosecondType>().values();
            let values = batch.column(4).as_primitive::<Float64Type>().values();
            records.extend(
                (0..batch.num_rows()).map(|row| (whole(0)[row], whole(1)[row], times(2)[row], times(3)[row], values[row])),
            );
        }
        records
    }

    #[test]
    fn the_same_seed_gives_the_same_records_with_any_number_of_threads() {
        let expected = records(plan(200, 2), 1);
        assert_eq!(expected.len(), 200_000);
        for threads in [2, 3, 16] {
            assert_eq!(records(plan(200, 2), threads), expected);
        }
    }

    #[test]
    fn fewer_pieces_are_the_beginning_and_fewer_sensors_are_the_first_ones() {
        let whole = records(plan(35, 2), 1);
        let beginning = records(plan(35, 1), 1);
        assert_eq!(beginning, whole[..700 * 35]);
        let of_the_first: Vec<Record> = whole.into_iter().filter(|(machine, ..)| *machine <= 2).collect();
        assert_eq!(records(plan(20, 2), 1), of_the_first);
    }

    #[test]
    fn records_come_in_the_order_of_their_begin_and_end_before_their_sensor_is_read_again() {
        let records = records(plan(35, 2), 1);
        assert!(records.windows(2).all(|pair| pair[0].2 < pair[1].2));
        assert!(records.windows(36).all(|next| (next[0].0, next[0].1) == (next[35].0, next[35].1) && next[0].3 < next[35].2));
    }

    #[test]
    fn bands_have_their_shares_and_the_level_rises() {
        let records = records(plan(200, 2), 1);
        let share = |records: &[Record], low: f64, high: f64| {
            records.iter().filter(|record| low <= record.4 && record.4 < high).count() as f64 / records.len() as f64
        };
        let (first, second) = records.split_at(700 * 200);
        assert!((share(first, -1.0, 0.0) - 0.25).abs() < 0.005 && (share(first, 5.0, 6.0) - 0.75).abs() < 0.005);
        assert!((share(first, 5.0, 5.5) - 0.375).abs() < 0.005);
        assert!((share(second, 6.0, 7.0) - 1.0).abs() < f64::EPSILON);
        let mean = |records: &[Record]| records.iter().map(|record| record.4).sum::<f64>() / records.len() as f64;
        let means: Vec<f64> = records.chunks(20_000).map(mean).collect();
        assert!(means.windows(2).all(|pair| pair[0] < pair[1]), "{means:?}");
    }

    #[test]
    fn the_first_records_are_these_on_every_machine() {
        let records = records(plan(10, 2), 1);
        let sum = records.iter().fold(0u64, |sum, record| {
            sum.rotate_left(1) ^ record.2 as u64 ^ (record.3 as u64).rotate_left(20) ^ record.4.to_bits()
        });
        assert_eq!((records.len(), sum), (10_000, 17_665_867_560_955_418_922));
    }
}
