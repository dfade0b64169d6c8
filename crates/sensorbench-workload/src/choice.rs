//! Which row: how one of n candidate rows is chosen for an operation.

use libm::log1p;
use serde::{Deserialize, Serialize};

use crate::scatter::Scatter;
use crate::ycsb::ScrambledZipfian;
use crate::{Stream, WorkloadError, Zipfian};

/// How rows are chosen, in the words of operation and experiment files.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Each row equally often.
    #[default]
    Uniform,
    /// Row by row in their order, again from the first after the last.
    Sequential,
    /// Skewed towards the first rows, with this exponent.
    Zipfian(f64),
    /// Skewed towards the last rows, with this exponent.
    Latest(f64),
    /// Skewed with this exponent, the popular rows spread over all of them.
    ScatteredZipfian(f64),
    /// Skewed as YCSB's own generator does it, which is no Zipf distribution.
    YcsbZipfian,
    /// A share of the operations for the first share of the rows, each of these equally often, and the rest for the others.
    Hotspot {
        /// Share of the rows.
        rows: f64,
        /// Share of the operations.
        operations: f64,
    },
    /// Exponentially skewed towards the last rows: this many percent of the operations are for the last share of the rows.
    Exponential {
        /// Percent of the operations.
        percentile: f64,
        /// Share of the rows.
        rows: f64,
    },
}

/// A choice made ready for a number of rows.
#[derive(Clone, Copy, Debug)]
pub enum Chooser {
    /// See [`Choice::Uniform`].
    Uniform(u64),
    /// See [`Choice::Sequential`].
    Sequential(u64),
    /// See [`Choice::Zipfian`].
    Zipfian(Zipfian),
    /// See [`Choice::Latest`].
    Latest(u64, Zipfian),
    /// See [`Choice::ScatteredZipfian`].
    Scattered(Zipfian, Scatter),
    /// See [`Choice::YcsbZipfian`].
    Ycsb(ScrambledZipfian),
    /// See [`Choice::Hotspot`].
    Hotspot {
        /// Rows.
        rows: u64,
        /// Those of them that are hot.
        hot: u64,
        /// Share of the operations that are for these.
        operations: f64,
    },
    /// See [`Choice::Exponential`].
    Exponential {
        /// Rows.
        rows: u64,
        /// How many rows back from the last the choice is on average.
        mean: f64,
    },
}

impl Choice {
    /// Makes the choice ready for `rows` candidate rows (at least one).
    pub fn among(self, rows: u64) -> Result<Chooser, WorkloadError> {
        Ok(match self {
            Choice::Uniform => Chooser::Uniform(rows),
            Choice::Sequential => Chooser::Sequential(rows),
            Choice::Zipfian(exponent) => Chooser::Zipfian(Zipfian::new(rows, exponent)?),
            Choice::Latest(exponent) => Chooser::Latest(rows, Zipfian::new(rows, exponent)?),
            Choice::ScatteredZipfian(exponent) => Chooser::Scattered(Zipfian::new(rows, exponent)?, Scatter::new(rows)),
            Choice::YcsbZipfian => Chooser::Ycsb(ScrambledZipfian::new(rows)),
            Choice::Hotspot { rows: share, operations } => {
                is_share(share).and_then(|()| is_share(operations))?;
                let hot = ((rows as f64 * share) as u64).min(rows);
                // Where all rows or none are hot, there is nothing to distinguish.
                let operations = match hot {
                    0 => 0.0,
                    all if all == rows => 1.0,
                    _ => operations,
                };
                Chooser::Hotspot { rows, hot, operations }
            }
            Choice::Exponential { percentile, rows: share } => {
                is_share(share).and_then(|()| is_share(percentile / 100.0))?;
                if share == 0.0 || percentile == 0.0 || percentile == 100.0 {
                    return Err(WorkloadError::Share(if share == 0.0 { share } else { percentile / 100.0 }));
                }
                Chooser::Exponential { rows, mean: rows as f64 * share / -log1p(-percentile / 100.0) }
            }
        })
    }
}

impl Chooser {
    /// The row of the k-th operation, from 0 to rows − 1.
    #[inline]
    pub fn row(&self, stream: Stream, k: u64) -> u64 {
        match self {
            Chooser::Uniform(rows) => stream.below(k, *rows),
            Chooser::Sequential(rows) => k % rows,
            Chooser::Zipfian(zipfian) => zipfian.rank(stream, k),
            Chooser::Latest(rows, zipfian) => rows - 1 - zipfian.rank(stream, k),
            Chooser::Scattered(zipfian, scatter) => scatter.place(zipfian.rank(stream, k)),
            Chooser::Ycsb(zipfian) => zipfian.record(stream, k),
            Chooser::Hotspot { rows, hot, operations } => {
                let places = stream.split(k);
                if places.unit(0) < *operations { places.below(1, *hot) } else { hot + places.below(1, rows - hot) }
            }
            Chooser::Exponential { rows, mean } => rows - 1 - back(*rows, *mean, stream.split(k)),
        }
    }
}

fn is_share(share: f64) -> Result<(), WorkloadError> {
    if (0.0..=1.0).contains(&share) { Ok(()) } else { Err(WorkloadError::Share(share)) }
}

/// How many rows back from the last: exponentially distributed, below the number of rows.
fn back(rows: u64, mean: f64, attempts: Stream) -> u64 {
    let drawn = |attempt| (-log1p(-attempts.unit(attempt)) * mean) as u64;
    (0..).map(drawn).find(|back| *back < rows).expect("some attempt is near enough")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(choice: Choice) -> [u32; 4] {
        let chooser = choice.among(4).unwrap();
        let mut counts = [0; 4];
        (0..40_000).for_each(|k| counts[chooser.row(Stream::new(5), k) as usize] += 1);
        counts
    }

    #[test]
    fn uniform_and_sequential_are_even() {
        assert!(counts(Choice::Uniform).iter().all(|count| (9_600..10_400).contains(count)));
        assert_eq!(counts(Choice::Sequential), [10_000; 4]);
    }

    #[test]
    fn latest_mirrors_zipfian() {
        let mut latest = counts(Choice::Latest(0.99));
        latest.reverse();
        assert_eq!(latest, counts(Choice::Zipfian(0.99)));
    }

    #[test]
    fn scattered_ranks_are_those_of_zipf_at_other_rows() {
        let (mut scattered, mut zipfian) = (counts(Choice::ScatteredZipfian(0.99)), counts(Choice::Zipfian(0.99)));
        assert_ne!(scattered, zipfian);
        scattered.sort_unstable();
        zipfian.sort_unstable();
        assert_eq!(scattered, zipfian);
    }

    #[test]
    fn a_hotspot_has_its_share_of_the_operations() {
        let chooser = Choice::Hotspot { rows: 0.2, operations: 0.8 }.among(1000).unwrap();
        let rows: Vec<u64> = (0..50_000).map(|k| chooser.row(Stream::new(5), k)).collect();
        let hot = rows.iter().filter(|row| **row < 200).count();
        assert!((39_500..40_500).contains(&hot), "{hot}");
        assert!(rows.iter().all(|row| *row < 1000) && rows.contains(&999) && rows.contains(&200));
        for share in [0.0, 1.0] {
            let chooser = Choice::Hotspot { rows: share, operations: 0.8 }.among(3).unwrap();
            assert!((0..300).all(|k| chooser.row(Stream::new(5), k) < 3), "{share}");
        }
    }

    #[test]
    fn an_exponential_choice_has_its_percentile_among_the_last_rows() {
        let chooser = Choice::Exponential { percentile: 95.0, rows: 0.5 }.among(1000).unwrap();
        let last = (0..50_000).filter(|k| chooser.row(Stream::new(5), *k) >= 500).count();
        // Of what would lie before the first row, 0.25 %, another choice is made.
        let expected = 0.95 / 0.9975 * 50_000.0;
        assert!((last as f64 - expected).abs() < 300.0, "{last} instead of {expected}");
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        for choice in [
            Choice::Hotspot { rows: 1.5, operations: 0.5 },
            Choice::Hotspot { rows: 0.5, operations: f64::NAN },
            Choice::Exponential { percentile: 100.0, rows: 0.5 },
            Choice::Exponential { percentile: 95.0, rows: 0.0 },
        ] {
            assert!(matches!(choice.among(10), Err(WorkloadError::Share(_))), "{choice:?}");
        }
    }
}
