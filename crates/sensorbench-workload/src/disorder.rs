//! The order in which readings arrive when some of them are late: each comes once, and none before its time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use libm::{exp, lgamma, log};
use serde::{Deserialize, Serialize};

use crate::{Stream, WorkloadError};

/// How readings come out of order. Delays are counted in readings of the whole stream.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Disorder {
    /// A share of the readings is late by 1 + a Poisson number; from a mean of 500 on by iot-benchmark's two-part distribution,
    /// whose longest delay is `max`.
    Poisson {
        /// Share of the readings that are late, above 0 and at most 1.
        ratio: f64,
        /// Mean of the Poisson number.
        mean: f64,
        /// The longest delay.
        max: u64,
    },
    /// A share of the readings is late by 1 to `max`, each equally often.
    Ratio {
        /// Share of the readings that are late, above 0 and at most 1.
        ratio: f64,
        /// The longest delay.
        max: u64,
    },
    /// Of each batch of this many readings, the last `ratio` of them come first.
    Batch {
        /// Readings of a batch, at least 2.
        size: u64,
        /// Share of a batch that comes before the rest.
        ratio: f64,
    },
}

/// The longest delay, in readings: how many are sorted to find one is proportional to it.
const MAX_DELAY: u64 = 1 << 18;
/// From this mean on, delays are of two parts (iot-benchmark: "if lambda >= 500").
const TWO_PARTS_FROM: f64 = 500.0;
/// Of the two-part distribution: the mean of the number that says which delay it is, and the greatest one.
const MEAN_OF_PARTS: f64 = 10.0;
const MAX_PART: u64 = 24;
/// Poisson numbers with a smaller probability are not distinguished from the last one.
const NEGLIGIBLE: f64 = 1e-12;
/// The fewest steps that are sorted at a time.
const MIN_STEPS: u64 = 4096;
/// This many sorted parts are kept: readers of what was written look back.
const KEPT: usize = 8;

/// The order made ready: which reading is the n-th to arrive, for any n.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Late(Arc<Late>),
    Batch { size: u64, first: u64 },
}

impl Order {
    /// Checks the numbers of a model.
    pub fn new(disorder: Disorder, random: Stream) -> Result<Self, WorkloadError> {
        let late = |ratio: f64, delays: Delays, max: u64| {
            if !(ratio > 0.0 && ratio <= 1.0) {
                return Err(WorkloadError::Disorder("ratio must be above 0 and at most 1"));
            }
            if max == 0 || max > MAX_DELAY {
                return Err(WorkloadError::Disorder("the longest delay must be 1 to 262144 readings"));
            }
            let steps = max.next_power_of_two().max(MIN_STEPS);
            Ok(Order::Late(Arc::new(Late { ratio, delays, max, random, steps, sorted: Mutex::default() })))
        };
        match disorder {
            Disorder::Poisson { mean, .. } if !(mean.is_finite() && mean > 0.0) => {
                Err(WorkloadError::Disorder("mean must be above 0"))
            }
            Disorder::Poisson { mean, max, .. } if mean > max as f64 => {
                Err(WorkloadError::Disorder("the mean delay must not be above the longest one"))
            }
            Disorder::Poisson { ratio, mean, max } if mean < TWO_PARTS_FROM => late(ratio, Delays::poisson(mean, max), max),
            Disorder::Poisson { ratio, mean, max } => late(ratio, Delays::of_two_parts(mean, max), max),
            Disorder::Ratio { ratio, max } => late(ratio, Delays::Even(max), max),
            Disorder::Batch { size, ratio } => {
                let last = (size as f64 * ratio) as u64;
                if size < 2 || last == 0 || last >= size {
                    return Err(WorkloadError::Disorder(
                        "a batch needs at least 2 readings, and a ratio by which some come first, not all",
                    ));
                }
                Ok(Order::Batch { size, first: size - last })
            }
        }
    }

    /// The reading that is the n-th to arrive, from 0.
    pub fn reading(&self, arrival: u64) -> u64 {
        match self {
            Order::Late(late) => late.reading(arrival),
            Order::Batch { size, first } => arrival - arrival % size + (arrival % size + first) % size,
        }
    }

    /// How much greater the number of a reading can be than that of its arrival.
    pub fn max_ahead(&self) -> u64 {
        match self {
            Order::Late(late) => late.max,
            Order::Batch { size, .. } => *size,
        }
    }
}

/// Readings that are due one at each step, of which some arrive steps later: those of one step in the order in which they were due.
#[derive(Debug)]
pub(crate) struct Late {
    ratio: f64,
    delays: Delays,
    max: u64,
    random: Stream,
    /// Steps that are sorted at a time; no delay is longer.
    steps: u64,
    sorted: Mutex<VecDeque<Arc<Sorted>>>,
}

/// What arrives in a number of steps.
#[derive(Debug)]
struct Sorted {
    part: u64,
    /// How many arrived before.
    first: u64,
    /// The readings, by how far they are behind `base`.
    readings: Vec<u32>,
    base: u64,
}

impl Late {
    /// The step at which a reading arrives: that of its own number, or later.
    fn step(&self, reading: u64) -> u64 {
        if self.random.split(0).unit(reading) < self.ratio {
            reading + self.delays.delay(self.random.split(1), reading)
        } else {
            reading
        }
    }

    fn reading(&self, arrival: u64) -> u64 {
        // Until a step at most as many have arrived as there were steps, and at least as many as were due one delay ago.
        let sorted = self.sorted(arrival / self.steps);
        let found =
            if arrival < sorted.first + sorted.readings.len() as u64 { sorted } else { self.sorted(arrival / self.steps + 1) };
        found.base + u64::from(found.readings[(arrival - found.first) as usize])
    }

    fn sorted(&self, part: u64) -> Arc<Sorted> {
        let kept = |sorted: &VecDeque<Arc<Sorted>>| sorted.iter().find(|kept| kept.part == part).cloned();
        if let Some(found) = kept(&self.sorted.lock().expect("nothing panics under this lock")) {
            return found;
        }
        let made = Arc::new(self.sort(part));
        let mut sorted = self.sorted.lock().expect("nothing panics under this lock");
        if kept(&sorted).is_none() {
            sorted.truncate(KEPT - 1);
            sorted.push_front(made.clone());
        }
        made
    }

    /// Counting sort by step; equal steps keep the order of the readings.
    fn sort(&self, part: u64) -> Sorted {
        let begin = part * self.steps;
        let end = begin + self.steps;
        let base = begin.saturating_sub(self.max);
        let mut on_the_way = 0;
        let mut arriving: Vec<(u32, u32)> = Vec::with_capacity(self.steps as usize);
        let mut places = vec![0u32; self.steps as usize + 1];
        for reading in base..end {
            let step = self.step(reading);
            on_the_way += u64::from(reading < begin && step >= begin);
            if (begin..end).contains(&step) {
                arriving.push(((step - begin) as u32, (reading - base) as u32));
                places[(step - begin) as usize + 1] += 1;
            }
        }
        for place in 1..places.len() {
            places[place] += places[place - 1];
        }
        let mut readings = vec![0; arriving.len()];
        for (step, reading) in arriving {
            let place = &mut places[step as usize];
            readings[*place as usize] = reading;
            *place += 1;
        }
        Sorted { part, first: begin - on_the_way, readings, base }
    }
}

/// Delays of readings that are late.
#[derive(Clone, Debug)]
enum Delays {
    /// 1 to this many, each equally often.
    Even(u64),
    /// These, by the upper ends of their shares.
    Table(Vec<(f64, u64)>),
}

impl Delays {
    /// 1 + a Poisson number, at most `max`.
    fn poisson(mean: f64, max: u64) -> Self {
        Self::of_poisson(mean, max - 1, |number| 1 + number)
    }

    /// iot-benchmark's delays: ten even steps up to the mean, which two of three are within, and fifteen wider ones up to `max`.
    fn of_two_parts(mean: f64, max: u64) -> Self {
        let delay = |part: u64| {
            let beyond = part as f64 + 1.0 - MEAN_OF_PARTS;
            let step = if beyond <= 0.0 { mean / MEAN_OF_PARTS } else { (max as f64 - mean) / 15.0 };
            (mean + beyond * step) as u64
        };
        Self::of_poisson(MEAN_OF_PARTS, MAX_PART, delay)
    }

    /// The delays of Poisson numbers up to `last`, which has the rest of the probability.
    fn of_poisson(mean: f64, last: u64, delay: impl Fn(u64) -> u64) -> Self {
        let probability = |number: u64| exp(number as f64 * log(mean) - mean - lgamma(number as f64 + 1.0));
        let mut table = Vec::new();
        let mut below = 0.0;
        for number in 0..=last {
            below += probability(number);
            let is_last = number == last || (number as f64 > mean && probability(number) < NEGLIGIBLE);
            table.push((if is_last { 1.0 } else { below }, delay(number)));
            if is_last {
                break;
            }
        }
        Self::Table(table)
    }

    fn delay(&self, random: Stream, reading: u64) -> u64 {
        match self {
            Delays::Even(max) => 1 + random.below(reading, *max),
            Delays::Table(table) => {
                let drawn = random.unit(reading);
                table[table.partition_point(|(below, _)| *below <= drawn).min(table.len() - 1)].1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READINGS: u64 = 200_000;

    fn order(disorder: Disorder) -> Order {
        Order::new(disorder, Stream::new(42)).unwrap()
    }

    fn models() -> [Disorder; 4] {
        [
            Disorder::Poisson { ratio: 0.2, mean: 20.0, max: 1_000 },
            Disorder::Poisson { ratio: 0.5, mean: 2_200.0, max: 10_000 },
            Disorder::Ratio { ratio: 0.3, max: 500 },
            Disorder::Batch { size: 1_000, ratio: 0.5 },
        ]
    }

    #[test]
    fn each_reading_arrives_once_and_none_too_far_ahead() {
        for model in models() {
            let order = order(model);
            let arrived: Vec<u64> = (0..READINGS).map(|arrival| order.reading(arrival)).collect();
            let ahead = order.max_ahead();
            let mut seen = vec![false; (READINGS + ahead) as usize + 1];
            for (arrival, reading) in arrived.iter().enumerate() {
                assert!(*reading <= arrival as u64 + ahead, "{model:?}");
                assert!(!std::mem::replace(&mut seen[*reading as usize], true), "{model:?}: {reading} twice");
            }
            // What is still on the way at the end is due within the longest delay.
            assert!(seen[..(READINGS - 2 * ahead) as usize].iter().all(|seen| *seen), "{model:?}");
        }
    }

    #[test]
    fn any_arrival_can_be_looked_up_in_any_order() {
        for model in models() {
            let (forwards, anywhere) = (order(model), order(model));
            let expected: Vec<u64> = (0..50_000).map(|arrival| forwards.reading(arrival)).collect();
            for number in 0..3_000 {
                let arrival = Stream::new(9).below(number, 50_000);
                assert_eq!(anywhere.reading(arrival), expected[arrival as usize], "{model:?}: {arrival}");
            }
        }
    }

    #[test]
    fn an_order_is_that_of_its_definition() {
        // By sorting all readings at once by the step at which they arrive.
        for model in models() {
            let order = order(model);
            let Order::Late(late) = &order else { continue };
            let mut all: Vec<u64> = (0..30_000).collect();
            all.sort_by_key(|reading| (late.step(*reading), *reading));
            for (arrival, reading) in all.iter().enumerate().take(15_000) {
                assert_eq!(order.reading(arrival as u64), *reading, "{model:?}: {arrival}");
            }
        }
    }

    fn delays(model: Disorder) -> Vec<u64> {
        let Order::Late(late) = order(model) else { panic!("a model with delays") };
        (0..READINGS).map(|reading| late.step(reading) - reading).collect()
    }

    #[test]
    fn a_share_is_late_by_one_and_a_poisson_number() {
        let delays = delays(Disorder::Poisson { ratio: 0.2, mean: 20.0, max: 1_000 });
        let late: Vec<f64> = delays.iter().filter(|delay| **delay > 0).map(|delay| *delay as f64 - 1.0).collect();
        let share = late.len() as f64 / READINGS as f64;
        assert!((share - 0.2).abs() < 0.004, "{share}");
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        let variance = late.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / late.len() as f64;
        assert!((mean - 20.0).abs() < 0.1 && (variance - 20.0).abs() < 0.6, "{mean}, {variance}");
        // Of a Poisson number with mean 20, 0.0888 are 20.
        let at_mean = late.iter().filter(|delay| **delay == 20.0).count() as f64 / late.len() as f64;
        assert!((at_mean - 0.0888).abs() < 0.006, "{at_mean}");
    }

    #[test]
    fn long_delays_are_those_of_iot_benchmark() {
        let mut delays = delays(Disorder::Poisson { ratio: 1.0, mean: 2_200.0, max: 170_000 });
        let mean = delays.iter().sum::<u64>() as f64 / READINGS as f64;
        assert!((mean / 22_084.0 - 1.0).abs() < 0.01, "{mean}");
        delays.sort_unstable();
        for (delay, share) in [(1_980, 0.33), (2_200, 0.46), (13_386, 0.58), (24_573, 0.70), (46_946, 0.86), (69_320, 0.95)] {
            let within = delays.partition_point(|of_one| *of_one <= delay) as f64 / READINGS as f64;
            assert!((within - share).abs() < 0.01, "{delay}: {within}");
        }
    }

    #[test]
    fn even_delays_are_even() {
        let delays = delays(Disorder::Ratio { ratio: 0.3, max: 10 });
        for delay in 1..=10 {
            let share = delays.iter().filter(|of_one| **of_one == delay).count() as f64 / READINGS as f64;
            assert!((share - 0.03).abs() < 0.002, "{delay}: {share}");
        }
    }

    #[test]
    fn the_second_part_of_a_batch_comes_first() {
        let order = order(Disorder::Batch { size: 10, ratio: 0.4 });
        let arrived: Vec<u64> = (0..20).map(|arrival| order.reading(arrival)).collect();
        assert_eq!(arrived, [6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 16, 17, 18, 19, 10, 11, 12, 13, 14, 15]);
    }

    #[test]
    fn models_that_are_none_are_refused() {
        for model in [
            Disorder::Poisson { ratio: 0.0, mean: 1.0, max: 9 },
            Disorder::Poisson { ratio: 0.5, mean: 0.0, max: 9 },
            Disorder::Poisson { ratio: 0.5, mean: 10.0, max: 9 },
            Disorder::Poisson { ratio: 0.5, mean: f64::NAN, max: 9 },
            Disorder::Ratio { ratio: 1.5, max: 9 },
            Disorder::Ratio { ratio: 0.5, max: 0 },
            Disorder::Ratio { ratio: 0.5, max: MAX_DELAY + 1 },
            Disorder::Batch { size: 1, ratio: 0.5 },
            Disorder::Batch { size: 10, ratio: 0.01 },
            Disorder::Batch { size: 10, ratio: 1.0 },
        ] {
            assert!(matches!(Order::new(model, Stream::new(1)), Err(WorkloadError::Disorder(_))), "{model:?}");
        }
    }
}
