//! Which row: how one of n candidate rows is chosen for an operation.

use serde::{Deserialize, Serialize};

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
}

impl Choice {
    /// Makes the choice ready for `rows` candidate rows (at least one).
    pub fn among(self, rows: u64) -> Result<Chooser, WorkloadError> {
        Ok(match self {
            Choice::Uniform => Chooser::Uniform(rows),
            Choice::Sequential => Chooser::Sequential(rows),
            Choice::Zipfian(exponent) => Chooser::Zipfian(Zipfian::new(rows, exponent)?),
            Choice::Latest(exponent) => Chooser::Latest(rows, Zipfian::new(rows, exponent)?),
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
        }
    }
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
}
