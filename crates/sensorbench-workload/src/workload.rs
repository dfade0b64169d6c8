//! The k-th operation of a run.

use crate::{Choice, Chooser, Mix, MixOrder, Stream, WorkloadError, Zipfian};

/// Where some of the parameters of an operation come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// A row of a table of candidates.
    Rows {
        /// Number of candidates, at least one.
        rows: u64,
        /// How one of them is chosen.
        choice: Choice,
    },
    /// A number of its own for each k, for writes that must not meet.
    Number,
    /// The k of an earlier write, so that what was written can be read. The write is at least `window` operations old:
    /// long enough to have been acknowledged when no more than `window` operations are in flight.
    Written {
        /// Kind of the writing operation.
        operation: usize,
        /// How many operations the choice stays behind.
        window: u64,
        /// Skew towards the newest write; uniform over all writes if not given.
        exponent: Option<f64>,
    },
}

/// Kinds of operations, their weights and draws: everything about the k-th operation but its text and its values.
#[derive(Clone, Debug)]
pub struct Workload {
    mix: Mix,
    kinds: Stream,
    draws: Vec<(ReadyDraw, Stream)>,
}

#[derive(Clone, Debug)]
enum ReadyDraw {
    Rows(Chooser),
    Number,
    Written { operation: usize, window: u64, exponent: Option<f64> },
}

impl Workload {
    /// A workload with one weight for each kind of operation, and draws that the operations share by their number.
    pub fn new(seed: u64, weights: &[f64], order: MixOrder, draws: &[Draw]) -> Result<Self, WorkloadError> {
        let stream = Stream::new(seed);
        let ready = |(number, draw): (usize, &Draw)| {
            let draw = match *draw {
                Draw::Rows { rows, choice } => ReadyDraw::Rows(choice.among(rows)?),
                Draw::Number => ReadyDraw::Number,
                Draw::Written { operation, window, exponent } => {
                    exponent.map(|exponent| Zipfian::new(1, exponent)).transpose()?;
                    ReadyDraw::Written { operation, window, exponent }
                }
            };
            Ok((draw, stream.split(1 + number as u64)))
        };
        let draws = draws.iter().enumerate().map(ready).collect::<Result<_, WorkloadError>>()?;
        Ok(Self { mix: Mix::new(weights, order)?, kinds: stream.split(0), draws })
    }

    /// The kind of the k-th operation.
    #[inline]
    pub fn operation(&self, k: u64) -> usize {
        self.mix.kind(self.kinds, k)
    }

    /// What the draw numbered `draw` gives to the k-th operation: the row of its table, k itself for [`Draw::Number`],
    /// or the k of the write for [`Draw::Written`] (0 while there is none old enough).
    #[inline]
    pub fn drawn(&self, draw: usize, k: u64) -> u64 {
        let (ready, stream) = &self.draws[draw];
        match ready {
            ReadyDraw::Rows(chooser) => chooser.row(*stream, k),
            ReadyDraw::Number => k,
            ReadyDraw::Written { operation, window, exponent } => self.written(*operation, *window, *exponent, *stream, k),
        }
    }

    fn written(&self, operation: usize, window: u64, exponent: Option<f64>, stream: Stream, k: u64) -> u64 {
        let old_enough = k.saturating_sub(window);
        if old_enough == 0 {
            return 0;
        }
        let back = match exponent {
            None => stream.below(k, old_enough),
            Some(exponent) => Zipfian::new(old_enough, exponent).expect("checked by new").rank(stream, k),
        };
        let is_write = |earlier: &u64| self.operation(*earlier) == operation;
        let wanted = old_enough - back;
        (0..wanted).rev().find(is_write).or_else(|| (wanted..old_enough).find(is_write)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: usize = 1;
    const BOTH_ORDERS: [MixOrder; 2] = [MixOrder::Random, MixOrder::InTurn];

    fn workload(order: MixOrder, exponent: Option<f64>) -> Workload {
        let draws =
            [Draw::Rows { rows: 1000, choice: Choice::Uniform }, Draw::Written { operation: WRITE, window: 100, exponent }];
        Workload::new(42, &[3.0, 1.0], order, &draws).unwrap()
    }

    #[test]
    fn the_kth_operation_depends_on_seed_and_k_alone() {
        for order in BOTH_ORDERS {
            let (forwards, backwards) = (workload(order, None), workload(order, None));
            let of = |workload: &Workload, k| (workload.operation(k), workload.drawn(0, k), workload.drawn(1, k));
            let expected: Vec<_> = (0..5_000).map(|k| of(&forwards, k)).collect();
            let mut seen: Vec<_> = (0..5_000).rev().map(|k| of(&backwards, k)).collect();
            seen.reverse();
            assert_eq!(seen, expected);
            let draws = [Draw::Rows { rows: 1000, choice: Choice::Uniform }];
            let other_seed = Workload::new(43, &[3.0, 1.0], order, &draws).unwrap();
            let differs = (0..5_000).any(|k| other_seed.operation(k) != forwards.operation(k));
            assert_eq!(differs, order == MixOrder::Random);
            assert!((0..5_000).any(|k| other_seed.drawn(0, k) != forwards.drawn(0, k)));
        }
    }

    #[test]
    fn what_is_read_was_written_before_the_window() {
        for order in BOTH_ORDERS {
            for workload in [workload(order, None), workload(order, Some(0.99))] {
                for k in 200..5_000 {
                    let written = workload.drawn(1, k);
                    assert!(written + 100 < k, "operation {k} reads {written}");
                    assert_eq!(workload.operation(written), WRITE, "operation {k} reads {written}");
                }
            }
        }
    }

    #[test]
    fn latest_reads_are_mostly_of_new_writes() {
        let (even, latest) = (workload(MixOrder::Random, None), workload(MixOrder::Random, Some(0.99)));
        let mean_age = |workload: &Workload| (2_000..4_000).map(|k| k - workload.drawn(1, k)).sum::<u64>() / 2_000;
        assert!(mean_age(&latest) * 2 < mean_age(&even), "{} and {}", mean_age(&latest), mean_age(&even));
    }
}
