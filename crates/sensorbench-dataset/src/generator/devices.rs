//! Readings of devices as iot-benchmark has them: each sensor has a hundred values prepared, and each device takes them one after the
//! other, every this many steps of its own.
//!
//! A reading is a function of the seed and its number, so that any number of threads makes the same rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use libm::sin;
use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::parallel::{Parts, measurement_schema};

/// Readings that make a part.
const READINGS_A_PART: u64 = 128 * 1024;
/// This many values of each sensor are prepared.
const PREPARED: u64 = 100;

/// The readings of all devices.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DevicesPlan {
    /// The time before the first reading, in µs.
    pub start_us: i64,
    /// From one reading to the next, in µs.
    pub interval_us: i64,
    /// How many readings each sensor of a device has.
    pub steps: u64,
    /// How many groups the devices are in.
    pub groups: u64,
    /// How many devices there are.
    pub devices: u64,
    /// How many sensors each device has.
    pub sensors: u64,
}

// What the stream of a sensor is used for.
const LOW: u64 = 0;
const HIGH: u64 = 1;
const PERIOD: u64 = 2;
const VALUE: u64 = 3;

/// The readings of a plan: device by device, in a device sensor by sensor, and in a sensor in the order of time.
pub struct Devices {
    plan: DevicesPlan,
    /// The prepared values of the sensors, one sensor after the other.
    values: Vec<f64>,
    names: Arc<StringArray>,
}

impl Devices {
    /// The readings of a plan from a seed.
    pub fn new(plan: DevicesPlan, seed: u64) -> Self {
        let stream = Stream::new(seed);
        let values = (0..plan.sensors).flat_map(|sensor| prepared(sensor, stream.split(sensor))).collect();
        let names = Arc::new(StringArray::from_iter_values((0..plan.sensors).map(|sensor| format!("s_{sensor}"))));
        Self { plan, values, names }
    }

    fn readings(&self) -> u64 {
        self.plan.devices * self.plan.sensors * self.plan.steps
    }

    fn numbers_of(&self, part: usize) -> Range<u64> {
        let first = part as u64 * READINGS_A_PART;
        first..(first + READINGS_A_PART).min(self.readings())
    }
}

impl Parts for Devices {
    fn parts(&self) -> usize {
        self.readings().div_ceil(READINGS_A_PART) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let numbers = self.numbers_of(number);
        let rows = (numbers.end - numbers.start) as usize;
        let (mut sites, mut zones, mut sensors) = (Vec::with_capacity(rows), Vec::with_capacity(rows), Vec::with_capacity(rows));
        let (mut times, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for number in numbers {
            let (series, step) = (number / self.plan.steps, number % self.plan.steps);
            let (device, sensor) = (series / self.plan.sensors, series % self.plan.sensors);
            sites.push((device % self.plan.groups) as i32);
            zones.push(device as i32);
            sensors.push(sensor as i32);
            times.push(self.plan.start_us + self.plan.interval_us * (step as i64 + 1));
            values.push(self.values[(sensor * PREPARED + step * (device + 1) % PREPARED) as usize]);
        }
        let sensors = DictionaryArray::<Int32Type>::new(Int32Array::from(sensors), self.names.clone());
        let columns: [ArrayRef; 5] = [
            Arc::new(Int32Array::from(sites)),
            Arc::new(Int32Array::from(zones)),
            Arc::new(sensors),
            Arc::new(TimestampMicrosecondArray::from(times)),
            Arc::new(Float64Array::from(values)),
        ];
        RecordBatch::try_new(measurement_schema(), columns.to_vec()).expect("columns of the schema, of one length")
    }
}

/// The prepared values of a sensor, with two decimals: its kind of function by its number, in equal shares.
fn prepared(sensor: u64, stream: Stream) -> impl Iterator<Item = f64> {
    let (low, high) = (-20.0 * stream.unit(LOW), 100.0 * stream.unit(HIGH));
    // Of waves, from 5 to 50 values long.
    let period = 5.0 + (46.0 * stream.unit(PERIOD)).floor();
    (0..PREPARED).map(move |place| {
        let place_in_period = (place as f64 % period) / period;
        let share = match sensor % 5 {
            0 => place as f64 / (PREPARED - 1) as f64,
            1 => 0.5 + 0.5 * sin(std::f64::consts::TAU * place_in_period),
            2 => f64::from(u8::from(place_in_period >= 0.5)),
            3 => stream.split(VALUE).unit(place),
            _ => 1.0,
        };
        // There is no zero with a sign.
        ((low + (high - low) * share) * 100.0).round() / 100.0 + 0.0
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, TimestampMicrosecondType};

    use super::*;
    use crate::generator::GeneratedRows;

    fn plan() -> DevicesPlan {
        DevicesPlan { start_us: 1_000_000, interval_us: 5_000_000, steps: 3000, groups: 2, devices: 7, sensors: 10 }
    }

    fn batches(threads: usize) -> Vec<RecordBatch> {
        GeneratedRows::new(Arc::new(Devices::new(plan(), 42)), threads).map(Result::unwrap).collect()
    }

    fn ints(batches: &[RecordBatch], column: usize) -> Vec<i32> {
        batches.iter().flat_map(|batch| batch.column(column).as_primitive::<Int32Type>().values().to_vec()).collect()
    }

    fn values(batches: &[RecordBatch]) -> Vec<f64> {
        batches.iter().flat_map(|batch| batch.column(4).as_primitive::<Float64Type>().values().to_vec()).collect()
    }

    #[test]
    fn any_number_of_threads_gives_the_same_readings_of_all_series_at_exact_times() {
        let expected = batches(1);
        assert_eq!((expected.len(), batches(3)), (2, expected.clone()));
        let (sites, zones) = (ints(&expected, 0), ints(&expected, 1));
        assert_eq!(zones.len(), 7 * 10 * 3000);
        assert!(sites.iter().zip(&zones).all(|(site, zone)| *site == zone % 2));
        let times: Vec<i64> = expected
            .iter()
            .flat_map(|batch| batch.column(3).as_primitive::<TimestampMicrosecondType>().values().to_vec())
            .collect();
        assert!((0..).zip(times).all(|(number, time)| time == 1_000_000 + 5_000_000 * (number % 3000 + 1)));
    }

    #[test]
    fn each_device_takes_the_prepared_values_in_steps_of_its_own() {
        let values = values(&batches(1));
        let of = |device: usize, sensor: usize, step: usize| values[(device * 10 + sensor) * 3000 + step];
        for sensor in 0..10 {
            assert!((0..3000).all(|step| of(0, sensor, step) == of(0, sensor, step % 100)), "sensor {sensor}");
            assert!((0..3000).all(|step| of(3, sensor, step) == of(0, sensor, step * 4 % 100)), "sensor {sensor}");
        }
    }

    #[test]
    fn kinds_of_functions_have_equal_shares() {
        let values = values(&batches(1));
        let prepared: Vec<&[f64]> = (0..10).map(|sensor| &values[sensor * 3000..sensor * 3000 + 100]).collect();
        for (sensor, values) in prepared.iter().enumerate() {
            let mut distinct: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            distinct.sort_unstable();
            distinct.dedup();
            let expected = match sensor % 5 {
                0 => values.is_sorted() && distinct.len() > 90,
                1 => (3..=51).contains(&distinct.len()),
                2 => distinct.len() == 2,
                3 => distinct.len() > 90,
                _ => distinct.len() == 1,
            };
            assert!(expected, "sensor {sensor}: {} values", distinct.len());
            assert!(values.iter().all(|value| (value * 100.0 - (value * 100.0).round()).abs() < 1e-6));
        }
    }

    #[test]
    fn the_first_readings_are_these_on_every_machine() {
        let sum = values(&batches(1)).iter().fold(0u64, |sum, value| sum.rotate_left(1) ^ value.to_bits());
        assert_eq!(sum, 13_154_102_508_867_425_056);
    }
}
