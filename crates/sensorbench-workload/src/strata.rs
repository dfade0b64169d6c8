//! A share of the numbers 0, 1, 2, ...: exactly one out of each stratum of 1 / share, at a place of it that is drawn.

use crate::{Stream, WorkloadError};

/// Shares are whole numbers of millionths, so that how many were chosen before a number is exact however large it is.
const WHOLE: u64 = 1_000_000;

/// Numbers of which a share is chosen. Whether one is, how many were before it, and which is the n-th of the others cost the same for every
/// number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strata {
    parts: u64,
    random: Stream,
    /// The first numbers, of which none is chosen.
    spared: u64,
}

impl Strata {
    /// Chooses a share above 0 and at most `max_share`, but none of the first `spared` numbers: fewer than a stratum has.
    pub fn new(share: f64, max_share: f64, spared: u64, random: Stream) -> Result<Self, WorkloadError> {
        let parts = (share * WHOLE as f64).round();
        if !(1.0..=max_share * WHOLE as f64).contains(&parts) {
            return Err(WorkloadError::DeliveryShare { share, max_share });
        }
        Ok(Self { parts: parts as u64, random, spared })
    }

    /// The first number of a stratum.
    fn begin(&self, stratum: u64) -> u64 {
        (u128::from(stratum) * u128::from(WHOLE)).div_ceil(u128::from(self.parts)) as u64
    }

    /// The stratum of a number.
    fn stratum(&self, number: u64) -> u64 {
        (u128::from(number) * u128::from(self.parts) / u128::from(WHOLE)) as u64
    }

    /// The number that a stratum chooses.
    fn chosen(&self, stratum: u64) -> u64 {
        let begin = if stratum == 0 { self.spared } else { self.begin(stratum) };
        begin + self.random.below(stratum, self.begin(stratum + 1) - begin)
    }

    /// Whether a number is chosen.
    pub fn is_chosen(&self, number: u64) -> bool {
        self.chosen(self.stratum(number)) == number
    }

    /// How many before a number are chosen.
    pub fn chosen_before(&self, number: u64) -> u64 {
        let stratum = self.stratum(number);
        stratum + u64::from(self.chosen(stratum) < number)
    }

    /// The number with `others` before it that are not chosen, as it is not itself.
    pub fn other(&self, others: u64) -> u64 {
        let others_before = |stratum: u64| self.begin(stratum) - stratum;
        let mut stratum = (u128::from(others) * u128::from(self.parts) / u128::from(WHOLE - self.parts)) as u64;
        while others_before(stratum) > others {
            stratum -= 1;
        }
        while others_before(stratum + 1) <= others {
            stratum += 1;
        }
        let number = others + stratum;
        if number < self.chosen(stratum) { number } else { number + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_without_counting() {
        for share in [0.5, 0.37, 0.05, 0.001] {
            let strata = Strata::new(share, 0.5, 1, Stream::new(7)).unwrap();
            let (mut chosen, mut others) = (0, 0);
            for number in 0..50_000 {
                assert_eq!(strata.chosen_before(number), chosen, "{share}: {number}");
                if strata.is_chosen(number) {
                    chosen += 1;
                } else {
                    assert_eq!(strata.other(others), number, "{share}");
                    others += 1;
                }
            }
            assert!(!strata.is_chosen(0));
            assert!((chosen as f64 - share * 50_000.0).abs() <= 1.0, "{share}: {chosen}");
        }
        let almost_all = Strata::new(0.9, 0.9, 0, Stream::new(7)).unwrap();
        let left: Vec<u64> = (0..1_000).map(|others| almost_all.other(others)).collect();
        assert!(left.is_sorted() && left.iter().all(|number| !almost_all.is_chosen(*number)));
        assert!((9_990..=10_010).contains(left.last().unwrap()), "{left:?}");
    }

    #[test]
    fn places_within_strata_are_even() {
        let strata = Strata::new(0.1, 0.5, 0, Stream::new(7)).unwrap();
        let mut places = [0u32; 10];
        (0..100_000).filter(|number| strata.is_chosen(*number)).for_each(|number| places[number as usize % 10] += 1);
        assert!(places.iter().all(|count| (850..1_150).contains(count)), "{places:?}");
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        for share in [0.0, -0.1, 0.6, f64::NAN, 1e-9] {
            assert!(matches!(Strata::new(share, 0.5, 0, Stream::new(1)), Err(WorkloadError::DeliveryShare { .. })), "{share}");
        }
    }
}
