//! Trucks with the tags that TSBS (Time Series Benchmark Suite) gives them, each tag evenly distributed. The model fixes what a
//! truck can carry, how much fuel it holds, and how much it should need.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use sensorbench_workload::Stream;

use super::parallel::Parts;

/// Trucks that make a part.
const TRUCKS_A_PART: u64 = 16 * 1024;

/// A site is the number of a fleet, from 1 on.
const FLEETS: [&str; 4] = ["East", "West", "North", "South"];
const DRIVERS: [&str; 6] = ["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"];
/// With load capacity, fuel capacity and nominal fuel consumption.
const MODELS: [(&str, [f64; 3]); 3] =
    [("F-150", [2000.0, 200.0, 15.0]), ("G-2000", [5000.0, 300.0, 19.0]), ("H-2", [1500.0, 150.0, 12.0])];
const DEVICE_VERSIONS: [&str; 4] = ["v1.0", "v1.5", "v2.0", "v2.3"];
const TEXTS: [&str; 5] = ["name", "fleet", "driver", "model", "device_version"];
const NUMBERS: [&str; 3] = ["load_capacity", "fuel_capacity", "nominal_fuel_consumption"];

/// What the stream of a seed is used for, besides readings.
const TAGS: u64 = 0;

/// Trucks as a generator: their tags are functions of the seed and their number.
pub struct Trucks {
    trucks: u64,
    stream: Stream,
}

impl Trucks {
    /// This many trucks from a seed.
    pub fn new(trucks: u64, seed: u64) -> Self {
        Self { trucks, stream: Stream::new(seed) }
    }

    fn choice<'v, T>(&self, truck: u64, tag: u64, values: &'v [T]) -> &'v T {
        &values[self.stream.split(TAGS).split(truck).below(tag, values.len() as u64) as usize]
    }

    fn texts(&self, truck: u64) -> [String; TEXTS.len()] {
        [
            format!("truck_{truck}"),
            FLEETS[fleet_of(self.stream, truck)].to_owned(),
            (*self.choice(truck, 1, &DRIVERS)).to_owned(),
            self.choice(truck, 2, &MODELS).0.to_owned(),
            (*self.choice(truck, 3, &DEVICE_VERSIONS)).to_owned(),
        ]
    }

    fn numbers_of(&self, part: usize) -> Range<u64> {
        let first = part as u64 * TRUCKS_A_PART;
        first..(first + TRUCKS_A_PART).min(self.trucks)
    }
}

fn fleet_of(stream: Stream, truck: u64) -> usize {
    stream.split(TAGS).split(truck).below(0, FLEETS.len() as u64) as usize
}

/// The site of a truck, the number of its fleet, by the stream of the seed.
pub(super) fn site_of_truck(stream: Stream, truck: u64) -> i32 {
    fleet_of(stream, truck) as i32 + 1
}

impl Parts for Trucks {
    fn parts(&self) -> usize {
        self.trucks.div_ceil(TRUCKS_A_PART) as usize
    }

    fn part(&self, number: usize) -> RecordBatch {
        let trucks = self.numbers_of(number);
        let sites: Int32Array = trucks.clone().map(|truck| site_of_truck(self.stream, truck)).collect();
        let zones: Int32Array = trucks.clone().map(|truck| truck as i32).collect();
        let tags: Vec<_> = trucks.clone().map(|truck| self.texts(truck)).collect();
        let texts = (0..TEXTS.len())
            .map(|column| Arc::new(tags.iter().map(|tags| Some(tags[column].as_str())).collect::<StringArray>()) as ArrayRef);
        let numbers = (0..NUMBERS.len()).map(|column| {
            Arc::new(trucks.clone().map(|truck| self.choice(truck, 2, &MODELS).1[column]).collect::<Float64Array>()) as ArrayRef
        });
        let columns = [Arc::new(sites) as ArrayRef, Arc::new(zones)].into_iter().chain(texts).chain(numbers).collect();
        RecordBatch::try_new(self.schema(), columns).expect("columns of the schema, of one length")
    }

    fn schema(&self) -> SchemaRef {
        let keys = ["site", "zone"].map(|name| Field::new(name, DataType::Int32, false));
        let texts = TEXTS.map(|name| Field::new(name, DataType::Utf8, false));
        let numbers = NUMBERS.map(|name| Field::new(name, DataType::Float64, false));
        Arc::new(Schema::new(keys.into_iter().chain(texts).chain(numbers).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type};

    use super::*;

    fn texts(batch: &RecordBatch, column: usize) -> Vec<&str> {
        batch.column(column).as_string::<i32>().iter().map(Option::unwrap).collect()
    }

    #[test]
    fn each_tag_has_all_its_values_about_equally_often_and_a_model_fixes_what_it_can_carry() {
        let trucks = Trucks::new(12_000, 42).part(0);
        for (column, values) in [(2, 12_000), (3, 4), (4, 6), (5, 3), (6, 4)] {
            let mut counts = BTreeMap::new();
            texts(&trucks, column).into_iter().for_each(|text| *counts.entry(text).or_insert(0) += 1);
            assert_eq!(counts.len(), values, "{}", TEXTS[column - 2]);
            assert!(counts.values().all(|count| *count >= 12_000 / values * 9 / 10), "{counts:?}");
        }
        let sites = trucks.column(0).as_primitive::<Int32Type>().values();
        let capacities = trucks.column(7).as_primitive::<Float64Type>().values();
        for (truck, (fleet, model)) in texts(&trucks, 3).into_iter().zip(texts(&trucks, 5)).enumerate() {
            assert_eq!(FLEETS[sites[truck] as usize - 1], fleet);
            assert_eq!(capacities[truck], MODELS.iter().find(|known| known.0 == model).unwrap().1[0]);
        }
    }

    #[test]
    fn trucks_of_a_later_part_are_those_of_one_large_part() {
        let trucks = Trucks::new(TRUCKS_A_PART + 3, 42);
        assert_eq!((trucks.parts(), trucks.part(1).num_rows()), (2, 3));
        assert_eq!(texts(&trucks.part(1), 2), ["truck_16384", "truck_16385", "truck_16386"]);
    }
}
