//! What an encoding costs: bytes, and processor time of either direction.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::{BatchEncoding, ascending, decode_batch, encode_batch};

/// What an encoding costs for some readings. All but `bytes` is per reading that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BatchCost {
    /// Number of readings that were stored: those that were given, but of equal times in a batch only one.
    pub readings: u64,
    /// Length of all batches.
    pub bytes: u64,
    /// Processor time of encoding a reading, in ns.
    pub encode_ns: f64,
    /// Processor time of decoding a reading, in ns.
    pub decode_ns: f64,
}

/// Processor time that each direction is given at the least, in ns.
const MIN_NS: u64 = 20_000_000;

/// Encodes and decodes readings of one sensor, each `batch` that follow one another as a batch, again and again on this
/// thread. The last batch may be shorter.
///
/// Panics when there is no reading, when there are not as many `times` (in µs) as `values`, when `batch` is 0, and when
/// decoding does not give back what was encoded.
pub fn batch_cost(encoding: BatchEncoding, times: &[i64], values: &[f64], batch: usize) -> BatchCost {
    assert!(!times.is_empty(), "the cost of no reading is unknown");
    let mut encoded = Batches::default();
    let encode_ns = processor_ns(|| encoded.encode(encoding, times, values, batch));
    encoded.check(encoding, times, values, batch);
    let decode_ns = processor_ns(|| {
        encoded.visit(encoding, |time, value| {
            black_box((time, value));
        })
    });
    let mut readings = 0;
    encoded.visit(encoding, |_, _| readings += 1);
    BatchCost {
        readings,
        bytes: encoded.bytes.len() as u64,
        encode_ns: encode_ns / readings as f64,
        decode_ns: decode_ns / readings as f64,
    }
}

/// Batches one after the other, in memory that is reused, so that encoding is measured and not the allocator.
#[derive(Default)]
struct Batches {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batches {
    fn encode(&mut self, encoding: BatchEncoding, times: &[i64], values: &[f64], batch: usize) {
        self.bytes.clear();
        self.ends.clear();
        for (times, values) in times.chunks(batch).zip(values.chunks(batch)) {
            encode_batch(encoding, times, values, &mut self.bytes).expect("as many times as values");
            self.ends.push(self.bytes.len());
        }
    }

    fn visit(&self, encoding: BatchEncoding, mut visit: impl FnMut(i64, f64)) {
        let mut start = 0;
        for end in &self.ends {
            decode_batch(encoding, &self.bytes[start..*end], &mut visit).expect("was encoded");
            start = *end;
        }
    }

    fn check(&self, encoding: BatchEncoding, times: &[i64], values: &[f64], batch: usize) {
        let mut decoded = Vec::with_capacity(times.len());
        self.visit(encoding, |time, value| decoded.push((time, value.to_bits())));
        let mut decoded = decoded.into_iter();
        for (times, values) in times.chunks(batch).zip(values.chunks(batch)) {
            let (times, values) = ascending(times, values);
            for (time, value) in times.iter().zip(values.iter()) {
                assert_eq!(decoded.next(), Some((*time, value.to_bits())), "decoded is not what was encoded");
            }
        }
        assert_eq!(decoded.next(), None, "more was decoded than encoded");
    }
}

/// Processor time of this thread that `work` takes, in ns: the mean of as many repetitions as fill the least time.
fn processor_ns(mut work: impl FnMut()) -> f64 {
    let mut repetitions = 1u32;
    loop {
        let start_ns = thread_ns();
        (0..repetitions).for_each(|_| work());
        let spent_ns = thread_ns() - start_ns;
        if spent_ns >= MIN_NS {
            return spent_ns as f64 / f64::from(repetitions);
        }
        repetitions *= 2;
    }
}

fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_and_bytes_are_those_of_the_batches() {
        let cost = batch_cost(BatchEncoding::Text, &[10, 20, 30, 30, 20], &[1.0, 2.0, 3.0, 4.0, 5.0], 4);
        assert_eq!((cost.readings, cost.bytes), (4, ("10+10:1.0,2.0,4.0".len() + "20:5.0".len()) as u64));
        assert!(cost.encode_ns > 0.0 && cost.decode_ns > 0.0);
    }

    #[test]
    #[should_panic(expected = "decoded is not what was encoded")]
    fn what_does_not_come_back_is_noticed() {
        let mut encoded = Batches::default();
        encoded.encode(BatchEncoding::Packed, &[10, 20], &[1.0, -0.0], 2);
        encoded.check(BatchEncoding::Packed, &[10, 20], &[1.0, 0.0], 2);
    }
}
