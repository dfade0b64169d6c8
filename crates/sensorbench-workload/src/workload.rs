//! The k-th operation of a run.

use crate::{Choice, Chooser, Mix, MixOrder, Stream, WorkloadError, Zipfian};

/// Where some of the parameters of an operation come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterSource {
    /// A row of a table of candidates.
    Rows {
        /// Number of candidates, at least one.
        rows: u64,
        /// How one of them is chosen.
        choice: Choice,
    },
    /// One of the records that are there: of a table that a kind of operation lengthens meanwhile.
    Records {
        /// Records at the beginning, at least one.
        present: u64,
        /// How one of them is chosen.
        choice: Choice,
        /// What adds others.
        grown: Option<Grown>,
    },
    /// A number of its own for each k, for writes that must not meet. With `per`, the number of a sequential parameter source's rows, it counts
    /// the operations of the same kind that draw the same row of it: so that each row's numbers follow one another.
    Number {
        /// Rows of the sequential parameter source, at least one.
        per: Option<u64>,
    },
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

/// What lengthens a table of records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grown {
    /// Kind of the operation that adds one.
    pub operation: usize,
    /// How many operations the choice stays behind, so that what is chosen has been acknowledged.
    pub window: u64,
}

/// Kinds of operations, their weights and parameter sources: everything about the k-th operation but its text and its values.
#[derive(Clone, Debug)]
pub struct Workload {
    mix: Mix,
    kinds: Stream,
    sources: Vec<(ReadySource, Stream)>,
}

#[derive(Clone, Debug)]
enum ReadySource {
    Rows(Chooser),
    Records { present: u64, choice: Choice, grown: Grown },
    Number { per: Option<u64> },
    Written { operation: usize, window: u64, exponent: Option<f64> },
}

impl Workload {
    /// A workload with one weight for each kind of operation, and parameter sources that the operations share by their number.
    pub fn new(seed: u64, weights: &[f64], order: MixOrder, sources: &[ParameterSource]) -> Result<Self, WorkloadError> {
        let stream = Stream::new(seed);
        let ready = |(number, source): (usize, &ParameterSource)| {
            let source = match *source {
                ParameterSource::Rows { rows, choice } => ReadySource::Rows(choice.among(rows)?),
                ParameterSource::Records { present, choice, grown: None } => ReadySource::Rows(choice.among(present)?),
                ParameterSource::Records { present, choice, grown: Some(grown) } => {
                    choice.among(present)?;
                    ReadySource::Records { present, choice, grown }
                }
                ParameterSource::Number { per } => ReadySource::Number { per },
                ParameterSource::Written { operation, window, exponent } => {
                    exponent.map(|exponent| Zipfian::new(1, exponent)).transpose()?;
                    ReadySource::Written { operation, window, exponent }
                }
            };
            Ok((source, stream.split(1 + number as u64)))
        };
        let sources = sources.iter().enumerate().map(ready).collect::<Result<_, WorkloadError>>()?;
        Ok(Self { mix: Mix::new(weights, order)?, kinds: stream.split(0), sources })
    }

    /// The kind of the k-th operation.
    #[inline]
    pub fn operation(&self, k: u64) -> usize {
        self.mix.kind(self.kinds, k)
    }

    /// How many operations of the k-th one's kind came before it, where kinds come in turn; else k.
    #[inline]
    pub fn ordinal(&self, k: u64) -> u64 {
        self.mix.ordinal(k)
    }

    /// The operation of a kind with this many of its kind before it, where kinds come in turn; else that number, whatever its kind is.
    #[inline]
    pub fn nth_of_kind(&self, kind: usize, ordinal: u64) -> u64 {
        self.mix.nth(kind, ordinal)
    }

    /// How many of the first `operations` are of a kind, at the most: where kinds come in turn, exactly.
    pub fn max_of_kind(&self, kind: usize, operations: u64) -> u64 {
        self.mix.max_of_kind(kind, operations)
    }

    /// What the parameter source numbered `source` gives to the k-th operation: the row of its table, k itself for [`ParameterSource::Number`] (or its count
    /// for each row), or the k of the write for [`ParameterSource::Written`] (0 while there is none old enough). For [`ParameterSource::Records`] it is the
    /// number of a record that was there at the beginning, or, after those, the k of the operation that added it.
    #[inline]
    pub fn chosen(&self, source: usize, k: u64) -> u64 {
        let (ready, stream) = &self.sources[source];
        match ready {
            // Where kinds come in turn, those of one kind go through the rows without leaving any out.
            ReadySource::Rows(Chooser::Sequential(rows)) => self.mix.ordinal(k) % rows,
            ReadySource::Rows(chooser) => chooser.row(*stream, k),
            ReadySource::Records { present, choice, grown } => self.record(*present, *choice, *grown, *stream, k),
            ReadySource::Number { per: None } => k,
            ReadySource::Number { per: Some(rows) } => self.mix.ordinal(k) / rows,
            ReadySource::Written { operation, window, exponent } => self.written(*operation, *window, *exponent, *stream, k),
        }
    }

    /// What the parameter source numbered `source` gives to the `element`-th of those that the k-th operation consists of, `elements` of them: a row
    /// of its own for each.
    #[inline]
    pub fn chosen_for_element(&self, source: usize, k: u64, element: u64, elements: u64) -> u64 {
        match &self.sources[source] {
            (ReadySource::Rows(chooser), stream) => chooser.row(*stream, k * elements + element),
            _ => self.chosen(source, k),
        }
    }

    /// How many numbers of a parameter source the operations of a kind have used, at the most, after this many operations of all kinds.
    pub fn used_numbers(&self, source: usize, kind: usize, operations: u64) -> u64 {
        match self.sources[source].0 {
            ReadySource::Number { per: Some(rows) } => self.mix.max_of_kind(kind, operations).div_ceil(rows),
            _ => operations,
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
        self.nearest(operation, old_enough - back, old_enough).unwrap_or(0)
    }

    /// The last operation of a kind before the `wanted`-th, else the next one before the `end`-th.
    fn nearest(&self, operation: usize, wanted: u64, end: u64) -> Option<u64> {
        let is_of_kind = |earlier: &u64| self.operation(*earlier) == operation;
        (0..wanted).rev().find(is_of_kind).or_else(|| (wanted..end).find(is_of_kind))
    }

    /// Records that were added are chosen among as many as there are on average by then, each by an operation near the place where it
    /// is on average: so nothing has to be counted.
    fn record(&self, present: u64, choice: Choice, grown: Grown, stream: Stream, k: u64) -> u64 {
        let old_enough = k.saturating_sub(grown.window);
        let share = self.mix.share_of(grown.operation);
        let added = (old_enough as f64 * share) as u64;
        let chooser = choice.among(present + added).expect("checked by new");
        let record = chooser.row(stream, k);
        let Some(number) = record.checked_sub(present) else { return record };
        let place = ((number + 1) as f64 / share) as u64;
        match self.nearest(grown.operation, place.min(old_enough), old_enough) {
            Some(added_by) => present + added_by,
            // None of them has come yet, which is rare: then it is the last of those that were there.
            None => present - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: usize = 1;
    const BOTH_ORDERS: [MixOrder; 2] = [MixOrder::Random, MixOrder::InTurn];

    fn workload(order: MixOrder, exponent: Option<f64>) -> Workload {
        let sources = [
            ParameterSource::Rows { rows: 1000, choice: Choice::Uniform },
            ParameterSource::Written { operation: WRITE, window: 100, exponent },
        ];
        Workload::new(42, &[3.0, 1.0], order, &sources).unwrap()
    }

    #[test]
    fn the_kth_operation_depends_on_seed_and_k_alone() {
        for order in BOTH_ORDERS {
            let (forwards, backwards) = (workload(order, None), workload(order, None));
            let of = |workload: &Workload, k| (workload.operation(k), workload.chosen(0, k), workload.chosen(1, k));
            let expected: Vec<_> = (0..5_000).map(|k| of(&forwards, k)).collect();
            let mut seen: Vec<_> = (0..5_000).rev().map(|k| of(&backwards, k)).collect();
            seen.reverse();
            assert_eq!(seen, expected);
            let sources = [ParameterSource::Rows { rows: 1000, choice: Choice::Uniform }];
            let other_seed = Workload::new(43, &[3.0, 1.0], order, &sources).unwrap();
            let differs = (0..5_000).any(|k| other_seed.operation(k) != forwards.operation(k));
            assert_eq!(differs, order == MixOrder::Random);
            assert!((0..5_000).any(|k| other_seed.chosen(0, k) != forwards.chosen(0, k)));
        }
    }

    #[test]
    fn what_is_read_was_written_before_the_window() {
        for order in BOTH_ORDERS {
            for workload in [workload(order, None), workload(order, Some(0.99))] {
                for k in 200..5_000 {
                    let written = workload.chosen(1, k);
                    assert!(written + 100 < k, "operation {k} reads {written}");
                    assert_eq!(workload.operation(written), WRITE, "operation {k} reads {written}");
                }
            }
        }
    }

    #[test]
    fn numbers_of_each_row_follow_one_another() {
        let sources = [ParameterSource::Rows { rows: 6, choice: Choice::Sequential }, ParameterSource::Number { per: Some(6) }];
        let workload = Workload::new(1, &[3.0, 1.0], MixOrder::InTurn, &sources).unwrap();
        let mut next = [0; 6];
        for k in (0..200).filter(|k| workload.operation(*k) == 0) {
            assert_eq!(workload.used_numbers(1, 0, k), next.into_iter().max().unwrap(), "{k}");
            let (row, number) = (workload.chosen(0, k), workload.chosen(1, k));
            assert_eq!(number, next[row as usize], "operation {k}, row {row}");
            next[row as usize] += 1;
        }
        assert!(next.iter().all(|numbers| *numbers == 25), "{next:?}");
    }

    fn growing(order: MixOrder, choice: Choice) -> Workload {
        let sources = [ParameterSource::Records { present: 500, choice, grown: Some(Grown { operation: WRITE, window: 100 }) }];
        Workload::new(42, &[3.0, 1.0], order, &sources).unwrap()
    }

    #[test]
    fn records_are_those_that_were_there_or_were_added_before_the_window() {
        for order in BOTH_ORDERS {
            for choice in [Choice::Uniform, Choice::Latest(0.99), Choice::Zipfian(0.99)] {
                let workload = growing(order, choice);
                let mut added = 0;
                for k in 0..5_000 {
                    if let Some(added_by) = workload.chosen(0, k).checked_sub(500) {
                        added += 1;
                        assert!(added_by + 100 < k && workload.operation(added_by) == WRITE, "operation {k} reads {added_by}");
                    }
                }
                assert!(added > 100, "{added} of 5,000 are of added records");
            }
        }
    }

    #[test]
    fn added_records_are_chosen_as_often_as_others() {
        let workload = growing(MixOrder::Random, Choice::Uniform);
        let (start, end) = (40_000, 60_000);
        let added = (start..end).filter(|k| workload.chosen(0, *k) >= 500).count() as f64;
        let expected: f64 = (start..end).map(|k| (k - 100) as f64 / 4.0).map(|added| added / (added + 500.0)).sum();
        assert!((added / expected - 1.0).abs() < 0.01, "{added} instead of {expected}");
        let latest = growing(MixOrder::Random, Choice::Latest(0.99));
        let newest = (start..end).filter(|k| latest.chosen(0, *k) + 1_100 >= 500 + k).count() as f64 / 20_000.0;
        // 250 of some 13,000 records: the share of the first 250 ranks.
        let zeta = |n: u32| (1..=n).map(|i| f64::from(i).powf(-0.99)).sum::<f64>();
        let expected = zeta(250) / zeta(13_000);
        assert!((newest / expected - 1.0).abs() < 0.05, "{newest} instead of {expected}");
    }

    #[test]
    fn latest_reads_are_mostly_of_new_writes() {
        let (even, latest) = (workload(MixOrder::Random, None), workload(MixOrder::Random, Some(0.99)));
        let mean_age = |workload: &Workload| (2_000..4_000).map(|k| k - workload.chosen(1, k)).sum::<u64>() / 2_000;
        assert!(mean_age(&latest) * 2 < mean_age(&even), "{} and {}", mean_age(&latest), mean_age(&even));
    }
}
