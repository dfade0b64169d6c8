//! What the encodings of batches cost on three kinds of series: bytes a reading, and processor time a reading of either
//! direction. The ratios are to the packed encoding.

use sensorbench_dataset::encoding::{BatchCost, BatchEncoding, batch_cost};
use sensorbench_workload::Stream;

/// A year of minutes, as batches of a day.
const READINGS: i64 = 525_600;
const BATCH: usize = 1440;
const START_US: i64 = 1_546_300_800_000_000;
const MINUTE_US: i64 = 60_000_000;
/// Repeated, of which the fastest counts: what disturbs a measurement only makes it slower.
const REPEATS: usize = 5;

const ENCODINGS: [(&str, BatchEncoding); 3] =
    [("packed", BatchEncoding::Packed), ("text", BatchEncoding::Text), ("gorilla", BatchEncoding::Gorilla)];

struct Series {
    name: &'static str,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl Series {
    fn new(name: &'static str, time: impl Fn(i64) -> i64, value: impl Fn(i64) -> f64) -> Self {
        Self { name, times: (0..READINGS).map(time).collect(), values: (0..READINGS).map(value).collect() }
    }

    fn cost(&self, encoding: BatchEncoding) -> BatchCost {
        let costs = (0..REPEATS).map(|_| batch_cost(encoding, &self.times, &self.values, BATCH));
        let faster = |one: BatchCost, other: BatchCost| BatchCost {
            encode_ns: one.encode_ns.min(other.encode_ns),
            decode_ns: one.decode_ns.min(other.decode_ns),
            ..one
        };
        costs.reduce(faster).expect("repeated at least once")
    }
}

fn series() -> [Series; 3] {
    let (noise, jitter) = (Stream::new(1), Stream::new(2));
    let regular = |k: i64| START_US + k * MINUTE_US;
    let irregular = move |k: i64| regular(k) + jitter.below(k as u64, 1_000_000) as i64;
    // A daily wave of 3 and noise of 0.03, to 2 decimals: about one of four readings is as the one before.
    let slow = move |k: i64| ((21.5 + 3.0 * (k as f64 / 229.0).sin() + 0.03 * noise.unit(k as u64)) * 100.0).round() / 100.0;
    [
        Series::new("slow", regular, slow),
        Series::new("random", regular, move |k| noise.unit(k as u64)),
        Series::new("irregular", irregular, slow),
    ]
}

fn figures(cost: &BatchCost) -> [f64; 3] {
    [cost.bytes as f64 / cost.readings as f64, cost.encode_ns, cost.decode_ns]
}

fn main() {
    println!("{:<10} {:<8} {:>7} {:>12} {:>12}   ratios to packed", "series", "encoding", "bytes", "encode ns", "decode ns");
    for series in series() {
        let packed = figures(&series.cost(BatchEncoding::Packed));
        for (name, encoding) in ENCODINGS {
            let [bytes, encode_ns, decode_ns] = figures(&series.cost(encoding));
            let [bytes_ratio, encode_ratio, decode_ratio] = [bytes / packed[0], encode_ns / packed[1], decode_ns / packed[2]];
            println!(
                "{:<10} {name:<8} {bytes:>7.2} {encode_ns:>12.2} {decode_ns:>12.2}   \
                 bytes {bytes_ratio:.2}, encode {encode_ratio:.2}, decode {decode_ratio:.2}",
                series.name
            );
        }
    }
}
