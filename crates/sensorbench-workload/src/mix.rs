//! Which kind of operation: a mix of weighted kinds.

use crate::{Stream, WorkloadError};

/// Weighted kinds of operation, numbered from zero.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Upper ends of the kinds' shares of the 64-bit numbers; the last one is never compared.
    upper_ends: Vec<u64>,
}

impl Mix {
    /// A mix with one weight for each kind; weights need not add up to one.
    pub fn new(weights: &[f64]) -> Result<Self, WorkloadError> {
        let total: f64 = weights.iter().sum();
        let valid = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && total.is_finite() && total > 0.0;
        if !valid {
            return Err(WorkloadError::Weights(weights.to_vec()));
        }
        // Kinds of weight zero at the end must not receive what rounding leaves over.
        let last_kind = weights.iter().rposition(|weight| *weight > 0.0).expect("a positive total has a positive weight");
        let mut sum = 0.0;
        let upper_ends = weights[..=last_kind].iter().map(|weight| {
            sum += weight;
            (sum / total * u64::MAX as f64) as u64
        });
        Ok(Self { upper_ends: upper_ends.collect() })
    }

    /// The kind of the k-th operation.
    #[inline]
    pub fn kind(&self, stream: Stream, k: u64) -> usize {
        let last = self.upper_ends.len() - 1;
        if last == 0 {
            return 0;
        }
        let number = stream.number(k);
        self.upper_ends[..last].iter().position(|end| number < *end).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_in_the_proportion_of_their_weights() {
        let mix = Mix::new(&[3.0, 0.0, 1.0, 0.0]).unwrap();
        let mut counts = [0u32; 4];
        (0..100_000).for_each(|k| counts[mix.kind(Stream::new(1), k)] += 1);
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((74_400..75_600).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn weights_that_make_no_mix_are_refused() {
        for weights in [&[][..], &[0.0], &[-1.0, 2.0], &[f64::NAN], &[f64::INFINITY]] {
            assert!(matches!(Mix::new(weights), Err(WorkloadError::Weights(_))), "{weights:?}");
        }
    }
}
