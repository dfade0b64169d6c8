//! The quantiles of the normal distribution, equal on every machine.

use libm::{log, sqrt};

/// The value below which a share of the standard normal distribution lies (Wichura, "Algorithm AS 241: The percentage points of
/// the normal distribution", Applied Statistics 37, 1988, the version with seven digits). `share` is at least 0 and below 1.
pub(super) fn normal_quantile(share: f64) -> f64 {
    const SMALLEST: f64 = f64::EPSILON / 4.0;
    let from_median = share - 0.5;
    if from_median.abs() <= 0.425 {
        let r = 0.180_625 - from_median * from_median;
        let above = ((59.109_374_72 * r + 159.291_132_02) * r + 50.434_271_938) * r + 3.387_132_717_9;
        let below = ((67.187_563_6 * r + 78.757_757_664) * r + 17.895_169_469) * r + 1.0;
        return from_median * above / below;
    }
    let tail = share.min(1.0 - share).max(SMALLEST);
    let r = sqrt(-log(tail));
    let size = if r <= 5.0 {
        let r = r - 1.6;
        (((0.170_238_211_03 * r + 1.306_728_481_6) * r + 2.756_815_39) * r + 1.423_437_277_7)
            / ((0.120_211_329_75 * r + 0.737_001_642_5) * r + 1.0)
    } else {
        let r = r - 5.0;
        (((0.017_337_203_997 * r + 0.428_682_943_37) * r + 3.081_226_386) * r + 6.657_905_115)
            / ((0.012_258_202_635 * r + 0.241_978_942_25) * r + 1.0)
    };
    if from_median < 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::normal_quantile;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        let table = [(0.5, 0.0), (0.9, 1.281_551_566), (0.975, 1.959_963_985), (0.999, 3.090_232_306), (1e-9, -5.997_807_015)];
        for (share, quantile) in table {
            assert!((normal_quantile(share) - quantile).abs() < 1e-6, "{share}: {}", normal_quantile(share));
            assert!((normal_quantile(1.0 - share) + quantile).abs() < 1e-5, "{share}");
        }
        // A twelfth of the digits is left of 1 - 1e-15; the smallest share that a stream has is 0.
        assert!((normal_quantile(1e-15) + 7.941_345_326).abs() < 1e-5);
        assert!(normal_quantile(0.0).is_finite() && normal_quantile(1.0 - f64::EPSILON / 2.0).is_finite());
    }
}
