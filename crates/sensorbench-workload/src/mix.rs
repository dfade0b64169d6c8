//! Which kind of operation: a mix of weighted kinds.

use serde::{Deserialize, Serialize};

use crate::{Stream, WorkloadError};

/// Up to here every whole number is a double.
const MAX_IN_A_ROUND: f64 = 9_007_199_254_740_992.0;

/// In which order the kinds of operation come.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MixOrder {
    /// Each operation is of a kind with the probability that is its share of the weights.
    #[default]
    Random,
    /// In rounds: in each, every kind comes as many times as its weight, one kind after the other.
    #[serde(rename = "in turn")]
    InTurn,
}

/// Weighted kinds of operation, numbered from zero.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Upper ends of the kinds' shares of the numbers that choose: of the places in a round, or of the 64-bit numbers. The last
    /// one is never compared.
    upper_ends: Vec<u64>,
    /// How many operations a round has, if they come in turn.
    round: Option<u64>,
}

impl Mix {
    /// A mix with one weight for each kind. Weights need not add up to one; those in turn must be whole numbers.
    pub fn new(weights: &[f64], order: MixOrder) -> Result<Self, WorkloadError> {
        let total: f64 = weights.iter().sum();
        let valid = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && total.is_finite() && total > 0.0;
        if !valid {
            return Err(WorkloadError::Weights(weights.to_vec()));
        }
        // Kinds of weight zero at the end must not receive what rounding leaves over.
        let last_kind = weights.iter().rposition(|weight| *weight > 0.0).expect("a positive total has a positive weight");
        let mut sum = 0.0;
        let sums = weights[..=last_kind].iter().map(|weight| {
            sum += weight;
            sum
        });
        match order {
            MixOrder::Random => {
                Ok(Self { upper_ends: sums.map(|sum| (sum / total * u64::MAX as f64) as u64).collect(), round: None })
            }
            MixOrder::InTurn if total <= MAX_IN_A_ROUND && weights.iter().all(|weight| weight.fract() == 0.0) => {
                Ok(Self { upper_ends: sums.map(|sum| sum as u64).collect(), round: Some(total as u64) })
            }
            MixOrder::InTurn => Err(WorkloadError::WeightsInTurn(weights.to_vec())),
        }
    }

    /// The kind of the k-th operation.
    #[inline]
    pub fn kind(&self, stream: Stream, k: u64) -> usize {
        let last = self.upper_ends.len() - 1;
        if last == 0 {
            return 0;
        }
        let number = self.round.map_or_else(|| stream.number(k), |round| k % round);
        self.upper_ends[..last].iter().position(|end| number < *end).unwrap_or(last)
    }

    /// How many operations of the k-th one's kind came before it, where kinds come in turn; at random nobody counted, and it is k.
    #[inline]
    pub fn ordinal(&self, k: u64) -> u64 {
        let Some(round) = self.round else { return k };
        let kind = self.kind(Stream::new(0), k);
        let (start, weight) = self.share(kind);
        k / round * weight + k % round - start
    }

    /// The operation of a kind that has this many of its kind before it, where kinds come in turn; at random nobody counted, and it is the
    /// number itself.
    #[inline]
    pub fn nth(&self, kind: usize, ordinal: u64) -> u64 {
        let Some(round) = self.round else { return ordinal };
        let (start, weight) = self.share(kind);
        ordinal / weight.max(1) * round + start + ordinal % weight.max(1)
    }

    /// How many of the first `operations` are of a kind, at the most: where kinds come in turn, exactly.
    pub fn max_of_kind(&self, kind: usize, operations: u64) -> u64 {
        let Some(round) = self.round else { return operations };
        let (start, weight) = self.share(kind);
        operations / round * weight + (operations % round).saturating_sub(start).min(weight)
    }

    /// The share of the operations that are of a kind.
    pub fn share_of(&self, kind: usize) -> f64 {
        let (start, width) = self.share(kind);
        if let Some(round) = self.round {
            return width as f64 / round as f64;
        }
        // What rounding leaves over belongs to the last kind.
        let is_last = kind + 1 == self.upper_ends.len();
        (if is_last { u64::MAX - start } else { width }) as f64 / u64::MAX as f64
    }

    /// Where in a round a kind begins, and how many times it comes.
    fn share(&self, kind: usize) -> (u64, u64) {
        let end = |kind: usize| self.upper_ends.get(kind).or(self.upper_ends.last()).copied().unwrap_or(0);
        let start = if kind == 0 { 0 } else { end(kind - 1) };
        (start, end(kind) - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_in_the_proportion_of_their_weights() {
        let mix = Mix::new(&[3.0, 0.0, 1.0, 0.0], MixOrder::Random).unwrap();
        let mut counts = [0u32; 4];
        (0..100_000).for_each(|k| counts[mix.kind(Stream::new(1), k)] += 1);
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((74_400..75_600).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn a_kind_has_its_share() {
        for order in [MixOrder::Random, MixOrder::InTurn] {
            let mix = Mix::new(&[3.0, 0.0, 1.0, 4.0, 0.0], order).unwrap();
            for (kind, share) in [0.375, 0.0, 0.125, 0.5, 0.0].into_iter().enumerate() {
                assert!((mix.share_of(kind) - share).abs() < 1e-12, "{kind}: {}", mix.share_of(kind));
            }
        }
    }

    #[test]
    fn weights_that_make_no_mix_are_refused() {
        for weights in [&[][..], &[0.0], &[-1.0, 2.0], &[f64::NAN], &[f64::INFINITY]] {
            for order in [MixOrder::Random, MixOrder::InTurn] {
                assert!(matches!(Mix::new(weights, order), Err(WorkloadError::Weights(_))), "{weights:?}");
            }
        }
    }

    #[test]
    fn kinds_in_turn_come_exactly_as_many_times_as_their_weight() {
        let mix = Mix::new(&[3.0, 0.0, 1.0, 2.0, 0.0], MixOrder::InTurn).unwrap();
        let kinds: Vec<usize> = (0..13).map(|k| mix.kind(Stream::new(k), k)).collect();
        assert_eq!(kinds, [0, 0, 0, 2, 3, 3, 0, 0, 0, 2, 3, 3, 0]);
        let one = Mix::new(&[0.0, 7.0], MixOrder::InTurn).unwrap();
        assert!((0..20).all(|k| one.kind(Stream::new(1), k) == 1));
        // A round whose shares are not doubles.
        let weights: Vec<f64> = (1..50).map(f64::from).collect();
        let (mix, mut counts) = (Mix::new(&weights, MixOrder::InTurn).unwrap(), vec![0.0; 49]);
        (0..1225).for_each(|k| counts[mix.kind(Stream::new(1), k)] += 1.0);
        assert_eq!(counts, weights);
    }

    #[test]
    fn operations_of_a_kind_in_turn_are_counted() {
        let weights = [3.0, 0.0, 1.0, 2.0, 0.0];
        let mix = Mix::new(&weights, MixOrder::InTurn).unwrap();
        let mut counts = [0; 5];
        for k in 0..40 {
            let kind = mix.kind(Stream::new(1), k);
            assert_eq!(mix.ordinal(k), counts[kind], "{k}");
            assert_eq!(mix.nth(kind, counts[kind]), k);
            assert_eq!([0, 1, 2, 3, 4].map(|kind| mix.max_of_kind(kind, k)), counts, "{k}");
            counts[kind] += 1;
        }
        let mix = Mix::new(&weights, MixOrder::Random).unwrap();
        assert_eq!((mix.ordinal(17), mix.nth(2, 17), mix.max_of_kind(2, 17)), (17, 17, 17));
    }

    #[test]
    fn weights_in_turn_are_whole_numbers() {
        for weights in [[0.5, 0.5], [1.0, 1e300]] {
            assert!(Mix::new(&weights, MixOrder::Random).is_ok());
            let error = Mix::new(&weights, MixOrder::InTurn).unwrap_err();
            assert_eq!(error, WorkloadError::WeightsInTurn(weights.to_vec()));
        }
    }
}
