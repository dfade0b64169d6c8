//! How the readings of a stream are delivered: late, twice, or never.

use serde::{Deserialize, Serialize};

use crate::disorder::Order;
use crate::strata::Strata;
use crate::{Disorder, Stream, WorkloadError};

/// How writes deliver a stream of readings: which reading the n-th write has.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryModel {
    /// Readings that are late.
    pub disorder: Option<Disorder>,
    /// Readings that are sent more than once.
    pub duplicates: Option<Duplicates>,
    /// Readings that are never sent.
    pub gaps: Option<Gaps>,
}

/// Writes that send a reading again.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Duplicates {
    /// Share of the writes, above 0 and at most one half.
    pub share: f64,
    /// The reading was first sent at most this many new readings before, at least 1.
    pub window: u64,
}

/// Runs of readings that are missing.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Gaps {
    /// Share of the readings, above 0 and at most 0.9.
    pub share: f64,
    /// Readings of a gap, at least 1.
    pub length: u64,
}

const MAX_DUPLICATES: f64 = 0.5;
const MAX_GAPS: f64 = 0.9;
/// This many earlier writes are tried for one that sent a new reading; where kinds of operation are mixed, most may be of another kind.
const ATTEMPTS: u64 = 64;

/// A delivery made ready: a function of its stream and the number of the write.
#[derive(Clone, Debug)]
pub struct Delivery {
    order: Option<Order>,
    duplicates: Option<(Strata, u64)>,
    gaps: Option<(Strata, u64)>,
    random: Stream,
}

/// What a write delivers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// Number of the reading.
    pub reading: u64,
    /// Whether an earlier write has sent it, too.
    pub is_again: bool,
}

impl Delivery {
    /// A delivery from a stream that nothing else is drawn from.
    pub fn new(model: &DeliveryModel, random: Stream) -> Result<Self, WorkloadError> {
        if model.duplicates.is_some_and(|duplicates| duplicates.window == 0) || model.gaps.is_some_and(|gaps| gaps.length == 0) {
            return Err(WorkloadError::Disorder("the window of duplicates and the length of gaps must be at least 1"));
        }
        let order = model.disorder.map(|disorder| Order::new(disorder, random.split(0))).transpose()?;
        // Before the first write nothing can be sent again.
        let of_duplicates = |duplicates: Duplicates| Strata::new(duplicates.share, MAX_DUPLICATES, 1, random.split(1));
        let of_gaps = |gaps: Gaps| Strata::new(gaps.share, MAX_GAPS, 0, random.split(2));
        let duplicates = model.duplicates.map(|duplicates| of_duplicates(duplicates).map(|strata| (strata, duplicates.window)));
        let gaps = model.gaps.map(|gaps| of_gaps(gaps).map(|strata| (strata, gaps.length)));
        Ok(Self { order, duplicates: duplicates.transpose()?, gaps: gaps.transpose()?, random: random.split(3) })
    }

    /// What the write with this number delivers. `is_write` says of numbers before it whether they are writes: where other operations lie
    /// between them, only what a write sent can be sent again.
    pub fn at(&self, write: u64, is_write: impl Fn(u64) -> bool) -> Delivered {
        let Some((strata, window)) = &self.duplicates else {
            return Delivered { reading: self.reading(write), is_again: false };
        };
        let new_before = write - strata.chosen_before(write);
        if !strata.is_chosen(write) {
            return Delivered { reading: self.reading(new_before), is_again: false };
        }
        let random = self.random.split(write);
        let earlier = |attempt| new_before - 1 - random.below(attempt, new_before.min(*window));
        match (0..ATTEMPTS).map(earlier).find(|new| is_write(strata.other(*new))) {
            Some(new) => Delivered { reading: self.reading(new), is_again: true },
            // None of them was a write: it says again what none has said.
            None => Delivered { reading: self.reading(new_before - 1), is_again: true },
        }
    }

    /// The reading that is the n-th to arrive, of those that arrive.
    fn reading(&self, arrival: u64) -> u64 {
        let number = self.order.as_ref().map_or(arrival, |order| order.reading(arrival));
        self.sent(number)
    }

    /// The n-th reading of those that are sent.
    fn sent(&self, number: u64) -> u64 {
        self.gaps.as_ref().map_or(number, |(strata, length)| strata.other(number / length) * length + number % length)
    }

    /// A number that is greater than those of all readings that this many first writes deliver.
    pub fn end(&self, writes: u64) -> u64 {
        match writes {
            0 => 0,
            _ => self.sent(writes - 1 + self.order.as_ref().map_or(0, Order::max_ahead)) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    const WRITES: u64 = 100_000;

    fn delivery(model: DeliveryModel) -> Delivery {
        Delivery::new(&model, Stream::new(42)).unwrap()
    }

    fn full() -> DeliveryModel {
        DeliveryModel {
            disorder: Some(Disorder::Poisson { ratio: 0.2, mean: 20.0, max: 1_000 }),
            duplicates: Some(Duplicates { share: 0.05, window: 500 }),
            gaps: Some(Gaps { share: 0.1, length: 7 }),
        }
    }

    #[test]
    fn without_a_model_readings_come_as_they_are() {
        let delivery = delivery(DeliveryModel::default());
        assert!((0..1_000).all(|write| delivery.at(write, |_| true) == Delivered { reading: write, is_again: false }));
        assert_eq!(delivery.end(1_000), 1_000);
    }

    #[test]
    fn what_a_write_delivers_depends_on_its_number_alone() {
        let (forwards, backwards) = (delivery(full()), delivery(full()));
        let expected: Vec<Delivered> = (0..20_000).map(|write| forwards.at(write, |_| true)).collect();
        let mut seen: Vec<Delivered> = (0..20_000).rev().map(|write| backwards.at(write, |_| true)).collect();
        seen.reverse();
        assert_eq!(seen, expected);
        let other = Delivery::new(&full(), Stream::new(43)).unwrap();
        assert!((0..20_000).any(|write| other.at(write, |_| true) != expected[write as usize]));
    }

    #[test]
    fn a_share_of_the_writes_sends_again_what_was_sent_before() {
        let delivery = delivery(full());
        let mut first: HashMap<u64, u64> = HashMap::new();
        let (mut again, mut new) = (0, 0);
        for write in 0..WRITES {
            let delivered = delivery.at(write, |_| true);
            if delivered.is_again {
                let sent = first[&delivered.reading];
                assert!(new - sent <= 500, "{write} sends again what was new {} readings ago", new - sent);
                again += 1;
            } else {
                assert_eq!(first.insert(delivered.reading, new), None, "{write}");
                new += 1;
            }
        }
        assert_eq!(again, WRITES / 20);
        assert!(first.keys().all(|reading| *reading < delivery.end(WRITES)));
        // Late readings come within the longest delay; what is missing is missing in whole gaps.
        let arrived = delivery.sent(new - 1_000);
        let missing: Vec<u64> = (0..arrived).filter(|reading| !first.contains_key(reading)).collect();
        let share = missing.len() as f64 / arrived as f64;
        assert!((share - 0.1).abs() < 0.001, "{share}");
        let units: HashSet<u64> = missing.iter().map(|reading| reading / 7).collect();
        assert!(units.len() * 7 - missing.len() < 7, "{} gaps, {} readings", units.len(), missing.len());
    }

    #[test]
    fn only_what_a_write_sent_is_sent_again() {
        let delivery = delivery(DeliveryModel { disorder: None, gaps: None, ..full() });
        // One operation in four is a write.
        let is_write = |number: u64| number % 4 == 1;
        let mut sent = HashSet::new();
        for write in (0..WRITES).filter(|number| is_write(*number)) {
            let delivered = delivery.at(write, is_write);
            assert!(!delivered.is_again || sent.contains(&delivered.reading), "{write}");
            sent.insert(delivered.reading);
        }
    }

    #[test]
    fn models_that_are_none_are_refused() {
        for model in [
            DeliveryModel { duplicates: Some(Duplicates { share: 0.6, window: 10 }), ..DeliveryModel::default() },
            DeliveryModel { duplicates: Some(Duplicates { share: 0.1, window: 0 }), ..DeliveryModel::default() },
            DeliveryModel { gaps: Some(Gaps { share: 0.95, length: 1 }), ..DeliveryModel::default() },
            DeliveryModel { gaps: Some(Gaps { share: 0.1, length: 0 }), ..DeliveryModel::default() },
        ] {
            assert!(Delivery::new(&model, Stream::new(1)).is_err(), "{model:?}");
        }
    }
}
