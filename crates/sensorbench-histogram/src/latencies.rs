//! One distribution of latencies.

use hdrhistogram::Histogram;

/// Counts of latencies in nanoseconds, kept to three significant digits (a relative error of at most 0.1 %).
///
/// It grows with the largest value recorded, so an idle operation costs a few bytes and a slow one some 200 KB.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies(pub(crate) Histogram<u64>);

const SIGNIFICANT_DIGITS: u8 = 3;

impl Default for Latencies {
    fn default() -> Self {
        let mut histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("three significant digits are within HDR's bounds");
        histogram.auto(true);
        Self(histogram)
    }
}

impl Latencies {
    /// Counts one latency of `nanoseconds`; zero counts as one nanosecond, which is the smallest that HDR can record.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.record(nanoseconds.max(1)).expect("a resizing histogram takes every u64 up to i64::MAX");
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both histograms resize and have the same precision");
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest value with at least the share `quantile` (0 to 1) of the counts at or below it, in nanoseconds.
    /// None when nothing was recorded.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.value_at_quantile(quantile))
    }

    /// The mean in nanoseconds, or None when nothing was recorded.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.mean())
    }

    /// The largest latency in nanoseconds, or None when nothing was recorded.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.max())
    }

    /// Every counted value with its count, ascending. A value is the middle of its bin, in nanoseconds.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|bin| (self.0.median_equivalent(bin.value_iterated_to()), bin.count_at_value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        values.into_iter().for_each(|value| latencies.record(value));
        latencies
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let whole = of((1..=100_000).map(|i| i * 37));
        let mut merged = of((1..=100_000).filter(|i| i % 3 == 0).map(|i| i * 37));
        merged.merge(&of((1..=100_000).filter(|i| i % 3 != 0).map(|i| i * 37)));
        assert_eq!(merged, whole);
    }

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let latencies = of(1..=1_000_000);
        for (quantile, expected) in [(0.5, 500_000.0), (0.99, 990_000.0), (0.999, 999_000.0)] {
            let value = latencies.quantile(quantile).unwrap() as f64;
            assert!((value / expected - 1.0).abs() <= 0.001, "{quantile}: {value} instead of {expected}");
        }
    }

    #[test]
    fn an_empty_distribution_has_no_quantile() {
        let latencies = Latencies::default();
        assert_eq!((latencies.quantile(0.5), latencies.mean(), latencies.max()), (None, None, None));
    }

    #[test]
    fn very_long_and_zero_latencies_are_counted() {
        let day_ns = 24 * 3600 * 1_000_000_000;
        let latencies = of([0, day_ns]);
        assert_eq!(latencies.count(), 2);
        assert!(latencies.max().unwrap() >= day_ns);
    }
}
