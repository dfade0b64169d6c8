//! Skewed choice: item i of 1..=n with a probability proportional to i^-exponent.

use libm::{exp, expm1, log, log1p};

use crate::{Stream, WorkloadError};

/// An exact Zipf distribution over any number of items, in constant time and memory.
///
/// Rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996, with its notation (H is the integral of h). Unlike YCSB's ZipfianGenerator it
/// approximates nothing. Changed here: the uniform numbers are looked up by (k, attempt) and libm is the pure-Rust one,
/// so that equal seeds choose equal items on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Zipfian {
    exponent: f64,
    items: u64,
    h_integral_first: f64,
    h_integral_items: f64,
    always_accepted: f64,
}

impl Zipfian {
    /// A distribution over `items` (at least one) with the given exponent (YCSB's default is 0.99).
    pub fn new(items: u64, exponent: f64) -> Result<Self, WorkloadError> {
        if !exponent.is_finite() || exponent <= 0.0 {
            return Err(WorkloadError::Exponent(exponent));
        }
        let h_integral_first = h_integral(exponent, 1.5) - 1.0;
        let h_integral_items = h_integral(exponent, items as f64 + 0.5);
        let always_accepted = 2.0 - h_integral_inverse(exponent, h_integral(exponent, 2.5) - h(exponent, 2.0));
        Ok(Self { exponent, items, h_integral_first, h_integral_items, always_accepted })
    }

    /// The rank of the k-th choice, from 0 (the most frequent) to items − 1.
    pub fn rank(&self, stream: Stream, k: u64) -> u64 {
        let attempts = stream.split(k);
        for attempt in 0.. {
            let u = self.h_integral_items + attempts.unit(attempt) * (self.h_integral_first - self.h_integral_items);
            let x = h_integral_inverse(self.exponent, u);
            let item = ((x + 0.5) as u64).clamp(1, self.items);
            let near_enough = item as f64 - x <= self.always_accepted;
            if near_enough || u >= h_integral(self.exponent, item as f64 + 0.5) - h(self.exponent, item as f64) {
                return item - 1;
            }
        }
        unreachable!("an attempt is accepted with a probability above one half")
    }
}

fn h(exponent: f64, x: f64) -> f64 {
    exp(-exponent * log(x))
}

/// The integral of h: (x^(1−e) − 1) / (1−e), and log x for e = 1.
fn h_integral(exponent: f64, x: f64) -> f64 {
    let log_x = log(x);
    expm1_over_x((1.0 - exponent) * log_x) * log_x
}

fn h_integral_inverse(exponent: f64, x: f64) -> f64 {
    // Rounding may push the argument below −1, where the inverse is not defined.
    let t = (x * (1.0 - exponent)).max(-1.0);
    exp(log1p_over_x(t) * x)
}

/// log(1 + x) / x, by its series near zero.
fn log1p_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { log1p(x) / x } else { 1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x)) }
}

/// (e^x − 1) / x, by its series near zero.
fn expm1_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0 * (1.0 + 0.25 * x)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_probabilities_of_the_definition() {
        const SAMPLES: u64 = 400_000;
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let zipfian = Zipfian::new(100, exponent).unwrap();
            let mut counts = [0f64; 100];
            (0..SAMPLES).for_each(|k| counts[zipfian.rank(Stream::new(11), k) as usize] += 1.0);
            let weights: Vec<f64> = (1..=100).map(|i| (i as f64).powf(-exponent)).collect();
            let total: f64 = weights.iter().sum();
            let chi_square: f64 = counts
                .iter()
                .zip(&weights)
                .map(|(count, weight)| {
                    let expected = SAMPLES as f64 * weight / total;
                    (count - expected).powi(2) / expected
                })
                .sum();
            // 99 degrees of freedom: 148.2 is exceeded with a probability of 0.001.
            assert!(chi_square < 148.2, "exponent {exponent}: chi-square {chi_square}");
        }
    }

    #[test]
    fn one_item_is_always_chosen() {
        let zipfian = Zipfian::new(1, 0.99).unwrap();
        assert!((0..1000).all(|k| zipfian.rank(Stream::new(3), k) == 0));
    }

    #[test]
    fn an_exponent_outside_the_definition_is_refused() {
        for exponent in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Zipfian::new(10, exponent).is_err(), "{exponent}");
        }
    }
}
