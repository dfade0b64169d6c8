//! The values of an operation's parameters.

use sensorbench_dataset::{Type, Value};
use sensorbench_workload::{Stream, Workload};
use serde::{Deserialize, Serialize};

use crate::delivery::ReadyDelivery;
use crate::parameter_table::ParameterTable;
use crate::records::{GrownBy, RandomText, RecordNames};

/// Where one parameter of an operation comes from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterOrigin {
    /// Number of the parameter source.
    pub source: usize,
    /// What of the parameter source: a column of its table, a column of numbers, or a parameter of the written operation; after those, if the
    /// parameter source has a span, the beginning and the end of it.
    pub column: usize,
    /// Each of several readings that one operation writes has a row of its own.
    #[serde(default)]
    pub each: bool,
}

/// A column of numbers, each used once: start + step × number.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NumberColumn {
    /// Integer or timestamp.
    #[serde(rename = "type")]
    pub value_type: Type,
    /// Value for the number 0.
    pub start: i64,
    /// Difference between the values of neighbouring numbers.
    pub step: i64,
}

/// A span of time that ends with a write: as long as this many units, at random from `min` to `max`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Number of the written operation's parameter that is the time, a timestamp.
    pub time: usize,
    /// Length of a unit in µs.
    pub unit_us: i64,
    /// Fewest units.
    pub min: u64,
    /// Most units.
    pub max: u64,
}

/// What the values of a parameter source are.
#[derive(Clone, Debug)]
pub enum SourceValues {
    /// Rows of a table.
    Table(ParameterTable),
    /// Numbers.
    Numbers(Vec<NumberColumn>),
    /// Names of records that are there.
    Records(Records),
    /// Names of records of their own.
    NewRecords {
        /// Number of the first of them.
        first: u64,
        /// How they are named.
        names: RecordNames,
    },
    /// Random texts.
    Texts(Vec<RandomText>),
    /// The parameters of an earlier write of this kind, and a span that ends with it.
    Written(usize, Option<Span>),
}

/// Records that are there: this many from the first on, and those that an operation adds.
#[derive(Clone, Debug)]
pub struct Records {
    /// Number of the first.
    pub first: u64,
    /// How many there are at the beginning.
    pub present: u64,
    /// How they are named.
    pub names: RecordNames,
    /// What adds others.
    pub grown: Option<GrownBy>,
}

/// How the operations of a phase are numbered for writes, so that the numbers of phases and repeats never meet: either after
/// those of the phases before, or, where it is not known how many operations those have, every `stride`-th from `offset` on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Numbering {
    /// Number of the operation k = 0.
    pub offset: i64,
    /// Difference between the numbers of k and k + 1.
    pub stride: i64,
    /// How many operations each phase before has.
    #[serde(default)]
    pub before: Vec<u64>,
}

impl Default for Numbering {
    fn default() -> Self {
        Self { offset: 0, stride: 1, before: Vec::new() }
    }
}

/// What the operations of one phase are, and how they are numbered.
#[derive(Clone, Debug)]
pub struct PhaseWorkload {
    /// Kinds and parameter sources.
    pub workload: Workload,
    stride: i64,
    /// By kind of operation and parameter source, the first number.
    first: Vec<Vec<i64>>,
    /// By kind of operation, how it delivers its readings, where they do not come as they are.
    deliveries: Vec<Option<ReadyDelivery>>,
}

/// Whose parameters an operation has.
#[derive(Clone, Copy)]
struct Numbers {
    /// The operation that it would be if readings came as they are.
    own: u64,
    /// The same for parameters that it does not have again.
    renewed: u64,
}

/// Numbers that no operation of a run has: what is drawn by them is drawn by none of them.
const RENEWED: u64 = 1 << 40;

impl PhaseWorkload {
    /// A phase's workload with this many parameter sources, and for each kind of operation how it delivers its readings.
    pub fn new(workload: Workload, numbering: &Numbering, deliveries: Vec<Option<ReadyDelivery>>, sources: usize) -> Self {
        let mut phase = Self { stride: numbering.stride, first: Vec::new(), workload, deliveries };
        let used = |source, kind| numbering.before.iter().map(|before| phase.used(source, kind, *before) as i64).sum::<i64>();
        let first: Vec<Vec<i64>> = (0..phase.deliveries.len())
            .map(|kind| (0..sources).map(|source| numbering.offset + used(source, kind)).collect())
            .collect();
        phase.first = first;
        phase
    }

    /// How many numbers of a parameter source the operations of a kind have used, at the most, after this many operations of all kinds.
    fn used(&self, source: usize, kind: usize, operations: u64) -> u64 {
        let Some(of_kind) = &self.deliveries[kind] else { return self.workload.used_numbers(source, kind, operations) };
        let end = of_kind.delivery.end(self.workload.max_of_kind(kind, operations));
        self.workload.used_numbers(source, kind, self.workload.nth_of_kind(kind, end))
    }

    /// Whose parameters the k-th operation has, which is of kind `kind`.
    #[inline]
    fn numbers(&self, kind: usize, k: u64) -> Numbers {
        let Some(of_kind) = &self.deliveries[kind] else { return Numbers { own: k, renewed: k } };
        let is_write = |write| self.workload.operation(self.workload.nth_of_kind(kind, write)) == kind;
        let delivered = of_kind.delivery.at(self.workload.ordinal(k), is_write);
        let own = self.workload.nth_of_kind(kind, delivered.reading);
        Numbers { own, renewed: if delivered.is_again { RENEWED + k } else { own } }
    }

    fn number(&self, kind: usize, source: usize, chosen: u64) -> i64 {
        self.first[kind][source].wrapping_add(self.stride.wrapping_mul(chosen as i64))
    }
}

/// Everything that gives the k-th operation its values.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Values of each parameter source.
    pub sources: Vec<SourceValues>,
    /// For each kind of operation, where its parameters come from.
    pub origins: Vec<Vec<ParameterOrigin>>,
    /// For each kind of operation, how many readings one of them writes; 1 for those that write none or one.
    pub readings: Vec<u64>,
    /// For each kind of operation, the stream of its random texts.
    pub texts: Vec<Stream>,
    /// For each kind of operation, what it takes from columns that the processor has to wait for. Empty if no kind does.
    far: Vec<Vec<ParameterOrigin>>,
}

impl Parameters {
    /// Those of operations with these sources and origins, in the order of the fields.
    pub fn new(sources: Vec<SourceValues>, origins: Vec<Vec<ParameterOrigin>>, readings: Vec<u64>, texts: Vec<Stream>) -> Self {
        let is_far = |origin: &&ParameterOrigin| match &sources[origin.source] {
            SourceValues::Table(table) => !origin.each && table.is_far(origin.column),
            _ => false,
        };
        let mut far: Vec<Vec<_>> = origins.iter().map(|of_kind| of_kind.iter().filter(is_far).copied().collect()).collect();
        if far.iter().all(Vec::is_empty) {
            far.clear();
        }
        Self { sources, origins, readings, texts, far }
    }

    /// Puts the values for the k-th operation, which is of kind `kind`, into `values`: those of its first reading, if it writes
    /// several.
    #[inline]
    pub fn fill(&self, phase: &PhaseWorkload, kind: usize, k: u64, values: &mut Vec<Value>) {
        values.clear();
        self.append_reading(phase, kind, k, 0, values);
    }

    /// Has the processor fetch what the k-th operation, which comes soon, takes from large tables. Waiting for it took an eighth of the client's time for a
    /// pipelined operation.
    #[inline]
    pub fn prefetch(&self, phase: &PhaseWorkload, k: u64) {
        if self.far.is_empty() {
            return;
        }
        let kind = phase.workload.operation(k);
        if phase.deliveries[kind].is_some() {
            return;
        }
        for origin in &self.far[kind] {
            if let SourceValues::Table(table) = &self.sources[origin.source] {
                table.prefetch(origin.column, phase.workload.chosen(origin.source, k) as usize);
            }
        }
    }

    /// Appends the values for one of the readings that the k-th operation writes.
    #[inline]
    pub fn append_reading(&self, phase: &PhaseWorkload, kind: usize, k: u64, reading: u64, values: &mut Vec<Value>) {
        let numbers = phase.numbers(kind, k);
        values.extend((0..self.origins[kind].len()).map(|parameter| self.delivered(phase, kind, parameter, numbers, reading)));
    }

    /// The value of one parameter for one of the readings that the k-th operation writes.
    fn value(&self, phase: &PhaseWorkload, kind: usize, parameter: usize, k: u64, reading: u64) -> Value {
        self.delivered(phase, kind, parameter, phase.numbers(kind, k), reading)
    }

    /// The same of an operation with the parameters of others.
    fn delivered(&self, phase: &PhaseWorkload, kind: usize, parameter: usize, numbers: Numbers, reading: u64) -> Value {
        let origin = self.origins[kind][parameter];
        let Some(of_kind) = &phase.deliveries[kind] else { return self.given(phase, kind, origin, numbers.own, reading) };
        let k = if of_kind.renewed[parameter] { numbers.renewed } else { numbers.own };
        let value = self.given(phase, kind, origin, k, reading);
        match &of_kind.churn {
            Some(churn) if churn.churn.parameter == parameter => {
                churn.replaced(value, &self.given(phase, kind, self.origins[kind][churn.churn.time], numbers.own, reading))
            }
            _ => value,
        }
    }

    /// What a parameter source gives to the k-th operation.
    fn given(&self, phase: &PhaseWorkload, kind: usize, origin: ParameterOrigin, k: u64, reading: u64) -> Value {
        let readings = self.readings[kind];
        let chosen = if origin.each && readings > 1 {
            phase.workload.chosen_for_element(origin.source, k, reading, readings)
        } else {
            phase.workload.chosen(origin.source, k)
        };
        match &self.sources[origin.source] {
            SourceValues::Table(table) => table.value(origin.column, chosen as usize),
            SourceValues::Numbers(columns) => {
                let column = columns[origin.column];
                let number = phase.number(kind, origin.source, chosen).wrapping_mul(readings as i64).wrapping_add(reading as i64);
                let value = column.start.wrapping_add(column.step.wrapping_mul(number));
                if column.value_type == Type::Timestamp { Value::Timestamp(value) } else { Value::Integer(value) }
            }
            SourceValues::Records(records) => self.record(phase, records, chosen),
            SourceValues::NewRecords { first, names } => {
                names.name(first.wrapping_add(phase.number(kind, origin.source, chosen).cast_unsigned()))
            }
            SourceValues::Texts(texts) => {
                let number = phase.number(kind, origin.source, chosen).cast_unsigned();
                texts[origin.column].text(self.texts[kind], number, origin.column)
            }
            SourceValues::Written(write, span) => self.written(phase, *write, *span, origin.column, chosen, k),
        }
    }

    /// The name of a record that was there, or that the operation with the number after those has added.
    fn record(&self, phase: &PhaseWorkload, records: &Records, chosen: u64) -> Value {
        match (records.grown, chosen.checked_sub(records.present)) {
            (Some(by), Some(added_by)) => self.value(phase, by.operation, by.parameter, added_by, 0),
            _ => records.names.name(records.first + chosen),
        }
    }

    /// A parameter of the write with the number `written`, or an end of the span that ends with it, for the k-th operation. Of a write
    /// of several readings it is one of them, another one for each k, and the span ends with the last.
    fn written(&self, phase: &PhaseWorkload, write: usize, span: Option<Span>, column: usize, written: u64, k: u64) -> Value {
        let parameters = self.origins[write].len();
        let Some(span) = span.filter(|_| column >= parameters) else {
            return self.value(phase, write, column, written, k % self.readings[write]);
        };
        let last = self.value(phase, write, span.time, written, self.readings[write] - 1);
        let Value::Timestamp(last) = last else { return Value::Null };
        let units = span.min + Stream::new(k).below(written, span.max.saturating_sub(span.min) + 1);
        let to = last.saturating_add(1);
        let is_from = column == parameters;
        Value::Timestamp(if is_from { to.saturating_sub(span.unit_us.saturating_mul(units as i64)) } else { to })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;
    use crate::{Plan, ReadyPlan};

    const SERIES: usize = 6;
    const STEP: i64 = 10;

    /// A run's plan: each operation writes this many readings of the next series, every fourth reads what was written.
    fn plan(numbering: serde_json::Value, readings: u64) -> ReadyPlan {
        let series = ParameterTable::of_values(&[(0..SERIES as i64).map(Value::Integer).collect()]);
        let plan: Plan = serde_json::from_value(plan_json(numbering, readings)).unwrap();
        ReadyPlan::new(plan, &[series]).unwrap()
    }

    fn plan_json(numbering: serde_json::Value, readings: u64) -> serde_json::Value {
        let parameter = |name: &str, of: &str| json!({"name": name, "type": of});
        let write = json!({
            "weight": 3.0,
            "operation": {"name": "write", "parameters": [parameter("series", "integer"), parameter("time", "timestamp")]},
            "parameters": [{"source": 0, "column": 0}, {"source": 1, "column": 0, "each": true}],
            "client_steps": {"readings": readings},
        });
        let read = json!({
            "weight": 1.0,
            "operation": {
                "name": "read",
                "parameters": [parameter("series", "integer"), parameter("from", "timestamp"), parameter("to", "timestamp")],
                "columns": [parameter("time", "timestamp")],
            },
            "parameters": [{"source": 2, "column": 0}, {"source": 2, "column": 2}, {"source": 2, "column": 3}],
        });
        json!({
            "seed": 1,
            "operations": [write, read],
            "order": "in turn",
            "parameter_sources": [
                {"rows": {"table": 0, "choice": "sequential"}},
                {"numbers": {"columns": [{"type": "timestamp", "start": 0, "step": STEP}], "per": 0}},
                {"written": {"operation": 0, "window": 20, "span": {"time": 1, "unit_us": STEP, "min": 3, "max": 5}}},
            ],
            "phases": [{"name": "measure", "operations": 100, "numbering": numbering}],
            "concurrency": 1,
            "timeout_s": 1.0,
        })
    }

    /// Series and time of each reading that the first `operations` operations write.
    fn written(plan: &ReadyPlan, operations: u64) -> Vec<(i64, i64)> {
        let pair = |values: Vec<Value>| match values[..] {
            [Value::Integer(series), Value::Timestamp(time)] => (series, time),
            _ => panic!("{values:?}"),
        };
        (0..operations).filter(|k| plan.kind_of(0, *k) == 0).flat_map(|k| plan.parameters_of(0, k).map(pair)).collect()
    }

    #[test]
    fn phases_of_known_length_write_each_series_without_a_gap() {
        for readings in [1, 4] {
            let mut all = Vec::new();
            for before in [vec![], vec![100], vec![100, 57]] {
                let operations = if before.len() == 1 { 57 } else { 100 };
                let numbering = json!({"offset": 0, "stride": 1, "before": before});
                all.extend(written(&plan(numbering, readings), operations));
            }
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "each time of a series once");
            for series in 0..SERIES as i64 {
                let mut times: Vec<i64> = all.iter().filter(|(of, _)| *of == series).map(|(_, time)| time / STEP).collect();
                times.sort_unstable();
                // Where a phase ends in the middle of the series, the next begins with the number after the greatest.
                let missing = times.last().unwrap() + 1 - times.len() as i64;
                assert!(missing <= 2 * readings as i64, "{missing} missing of {}", times.len());
            }
        }
    }

    /// The same with a delivery of the writes: late, again and missing.
    fn delivered_plan(numbering: serde_json::Value, readings: u64) -> ReadyPlan {
        let series = ParameterTable::of_values(&[(0..SERIES as i64).map(Value::Integer).collect()]);
        let model = json!({
            "disorder": {"poisson": {"ratio": 0.2, "mean": 5.0, "max": 50}},
            "duplicates": {"share": 0.1, "window": 20},
            "gaps": {"share": 0.1, "length": 3},
        });
        let mut planned = plan_json(numbering, readings);
        planned["operations"][0]["delivery"] = json!({"model": model});
        ReadyPlan::new(serde_json::from_value(planned).unwrap(), &[series]).unwrap()
    }

    #[test]
    fn what_is_delivered_late_again_or_never_does_not_meet_other_phases() {
        for readings in [1, 4] {
            let (mut all, mut again) = (HashSet::new(), 0);
            for before in [vec![], vec![100], vec![100, 57]] {
                let operations = if before.len() == 1 { 57 } else { 100 };
                let numbering = json!({"offset": 0, "stride": 1, "before": before});
                let of_phase = written(&delivered_plan(numbering, readings), operations);
                let distinct: HashSet<_> = of_phase.iter().copied().collect();
                again += of_phase.len() - distinct.len();
                assert!(distinct.iter().all(|reading| all.insert(*reading)), "a reading of another phase");
            }
            // Of 75, 43 and 75 writes one in ten.
            assert!((18 * readings..=21 * readings).contains(&(again as u64)), "{again}");
        }
    }

    #[test]
    fn what_is_read_was_delivered() {
        let plan = delivered_plan(json!({"offset": 0, "stride": 1}), 4);
        let there: HashSet<(i64, i64)> = written(&plan, 400).into_iter().collect();
        for k in (100..400).filter(|k| plan.kind_of(0, *k) == 1) {
            let values = plan.parameters_of(0, k).next().unwrap();
            let [Value::Integer(series), _, Value::Timestamp(to)] = values[..] else { panic!("{values:?}") };
            assert!(there.contains(&(series, to - 1)), "{series}, {to}");
        }
    }

    #[test]
    fn a_reading_that_is_sent_again_has_another_value_where_that_is_wanted() {
        let values = ParameterTable::of_values(&[(0..1_000_000).map(Value::Integer).collect()]);
        for renewed in [vec![], vec![1]] {
            let plan = json!({
                "seed": 1,
                "operations": [{
                    "weight": 1.0,
                    "operation": {"name": "write", "parameters": [
                        {"name": "time", "type": "timestamp"}, {"name": "value", "type": "integer"},
                    ]},
                    "parameters": [{"source": 0, "column": 0}, {"source": 1, "column": 0}],
                    "delivery": {"model": {"duplicates": {"share": 0.2, "window": 50}}, "renewed": renewed},
                }],
                "parameter_sources": [
                    {"numbers": {"columns": [{"type": "timestamp", "start": 0, "step": STEP}], "per": null}},
                    {"rows": {"table": 0}},
                ],
                "phases": [{"name": "measure", "operations": 1000}],
                "concurrency": 1,
                "timeout_s": 1.0,
            });
            let plan = ReadyPlan::new(serde_json::from_value(plan).unwrap(), std::slice::from_ref(&values)).unwrap();
            let rows: Vec<(i64, i64)> = (0..1000)
                .map(|k| match plan.parameters_of(0, k).next().unwrap()[..] {
                    [Value::Timestamp(time), Value::Integer(value)] => (time, value),
                    ref other => panic!("{other:?}"),
                })
                .collect();
            let times: HashSet<i64> = rows.iter().map(|(time, _)| *time).collect();
            assert_eq!(times.len(), 800);
            let distinct: HashSet<(i64, i64)> = rows.into_iter().collect();
            assert_eq!(distinct.len(), if renewed.is_empty() { 800 } else { 1000 });
        }
    }

    #[test]
    fn phases_of_unknown_length_never_meet() {
        let run = |offset: i64| written(&plan(json!({"offset": offset, "stride": 3}), 4), 500);
        let all = [run(0), run(1), run(2)].concat();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn records_are_named_like_those_that_were_added() {
        let names = json!({"prefix": "user", "hashed": false});
        let text = |name: &str| json!({"name": name, "type": "text"});
        let plan: Plan = serde_json::from_value(json!({
            "seed": 1,
            "operations": [
                {
                    "weight": 1.0,
                    "operation": {"name": "insert", "parameters": [text("key"), text("field0")]},
                    "parameters": [{"source": 0, "column": 0}, {"source": 1, "column": 0}],
                },
                {
                    "weight": 1.0,
                    "operation": {"name": "read", "parameters": [text("key")], "columns": [text("field0")]},
                    "parameters": [{"source": 2, "column": 0}],
                },
            ],
            "parameter_sources": [
                {"new_records": {"first": 1000, "names": names}},
                {"texts": [{"min": 8, "max": 8}]},
                {"records": {
                    "first": 0, "present": 1000, "choice": {"latest": 0.99}, "names": names,
                    "grown": {"operation": 0, "parameter": 0, "window": 20},
                }},
            ],
            "phases": [{"name": "measure", "operations": 2000}],
            "concurrency": 1,
            "timeout_s": 1.0,
        }))
        .unwrap();
        let plan = ReadyPlan::new(plan, &[]).unwrap();
        let (mut there, mut added): (HashSet<u64>, usize) = ((0..1000).collect(), 0);
        for k in 0..2000 {
            let Some(Value::Text(key)) = plan.parameters_of(0, k).next().unwrap().into_iter().next() else { panic!("a key") };
            let record: u64 = key.strip_prefix("user").unwrap().parse().unwrap();
            if plan.kind_of(0, k) == 0 {
                assert!(there.insert(record), "{record} is added once");
            } else {
                assert!(there.contains(&record), "{record}");
                added += usize::from(record >= 1000);
            }
        }
        assert!(added > 300, "{added} of 1,000 reads are of added records");
    }

    #[test]
    fn a_span_ends_with_the_last_reading_of_a_write() {
        let plan = plan(json!({"offset": 0, "stride": 1}), 4);
        let ends: HashSet<(i64, i64)> = written(&plan, 400).chunks(4).map(|of_one| of_one[3]).collect();
        let mut lengths = HashSet::new();
        for k in (100..400).filter(|k| plan.kind_of(0, *k) == 1) {
            let values = plan.parameters_of(0, k).next().unwrap();
            let [Value::Integer(series), Value::Timestamp(from), Value::Timestamp(to)] = values[..] else { panic!("{values:?}") };
            assert!(ends.contains(&(series, to - 1)), "{series}, {to}");
            lengths.insert((to - from) / STEP);
        }
        assert_eq!(lengths, HashSet::from([3, 4, 5]));
    }
}
