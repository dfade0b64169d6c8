//! The statements of a trace, read while they are replayed: in the order of their times, copies of the trace merged.

use std::collections::{HashMap, VecDeque};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use sensorbench_driver::Literal;
use tokio::sync::mpsc;

use super::literals::parse_literals;
use super::plan::{Copy, ReplayPlan};

/// Statements that are handed on together, and how many such parcels may wait: what is read ahead stays small.
const PARCEL: usize = 512;
pub(super) const PARCELS: usize = 16;

/// The rows of a trace, in the order of their times.
pub type TraceReader = Box<dyn RecordBatchReader + Send>;

/// How many statements each session of a copy has, by its number. Sessions that are not in it are left out whole.
pub type SessionLengths = HashMap<i32, u32>;

/// One recorded statement of a replay.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub k: u64,
    /// When it is to start, in nanoseconds since the replay began.
    pub after_origin_ns: u64,
    /// Its session, and the copy of the trace that it is of.
    pub session: (u32, i32),
    pub transaction: Option<i64>,
    pub template: u16,
    pub literals: Vec<Literal>,
}

/// Reads all copies and hands on their statements until they are at their end, or nobody takes them any more. Returns what is wrong
/// with the trace, if something is.
pub(super) fn read(
    plan: &ReplayPlan,
    readers: Vec<TraceReader>,
    lengths: &[SessionLengths],
    parcels: &mpsc::Sender<Vec<Statement>>,
) -> Result<(), String> {
    let mut copies: Vec<CopyReader> = readers
        .into_iter()
        .zip(&plan.copies)
        .enumerate()
        .map(|(number, (reader, copy))| CopyReader::new(number, *copy, reader, plan))
        .collect();
    for copy in &mut copies {
        copy.fill(plan, &lengths[copy.number])?;
    }
    let mut parcel = Vec::with_capacity(PARCEL);
    loop {
        let earliest = copies.iter_mut().filter(|copy| !copy.read.is_empty()).min_by_key(|copy| copy.read[0].after_origin_ns);
        let Some(copy) = earliest else { break };
        parcel.extend(copy.read.pop_front());
        copy.fill(plan, &lengths[copy.number])?;
        if parcel.len() == PARCEL && parcels.blocking_send(std::mem::replace(&mut parcel, Vec::with_capacity(PARCEL))).is_err() {
            return Ok(());
        }
    }
    // Nobody takes it where the replay was stopped.
    let _ = parcels.blocking_send(parcel);
    Ok(())
}

struct CopyReader {
    number: usize,
    copy: Copy,
    reader: TraceReader,
    row: u64,
    first_us: Option<i64>,
    last_us: i64,
    speed: f64,
    /// Statements that were read and are not handed on yet.
    read: VecDeque<Statement>,
}

impl CopyReader {
    fn new(number: usize, copy: Copy, reader: TraceReader, plan: &ReplayPlan) -> Self {
        let speed = plan.speed.unwrap_or(1.0);
        Self { number, copy, reader, row: 0, first_us: None, last_us: i64::MIN, speed, read: VecDeque::new() }
    }

    /// Reads on until there is a statement, or the end.
    fn fill(&mut self, plan: &ReplayPlan, lengths: &SessionLengths) -> Result<(), String> {
        while self.read.is_empty() {
            let Some(batch) = self.reader.next() else { return Ok(()) };
            self.add(&batch.map_err(|error| error.to_string())?, plan, lengths)?;
        }
        Ok(())
    }

    fn add(&mut self, batch: &RecordBatch, plan: &ReplayPlan, lengths: &SessionLengths) -> Result<(), String> {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("the trace has no column {name}"));
        let wrong = |name: &str| format!("column {name} of the trace has another type than traces have");
        let at = column("at")?.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(|| wrong("at"))?;
        let session = column("session")?.as_primitive_opt::<Int32Type>().ok_or_else(|| wrong("session"))?;
        let transaction = column("transaction")?.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("transaction"))?;
        let template = column("template")?.as_primitive_opt::<Int32Type>().ok_or_else(|| wrong("template"))?;
        let parameters = column("parameters")?.as_string_opt::<i64>().ok_or_else(|| wrong("parameters"))?;
        for row in 0..batch.num_rows() {
            let number = self.row;
            self.row += 1;
            let at_us = at.value(row);
            if at_us < self.last_us {
                return Err(format!("row {number} of the trace is earlier than the row before it; sort it by at"));
            }
            self.last_us = at_us;
            let first_us = *self.first_us.get_or_insert(at_us);
            let found = template.value(row);
            let known = usize::try_from(found).ok().filter(|number| *number < plan.templates.len());
            let template = known.ok_or_else(|| format!("row {number} of the trace names template {found}, which it has not"))?;
            let is_left_out = plan.left_out.binary_search(&template).is_ok();
            if is_left_out || !lengths.contains_key(&session.value(row)) {
                continue;
            }
            let json = if parameters.is_null(row) { "[]" } else { parameters.value(row) };
            let literals = parse_literals(json)
                .ok_or_else(|| format!("row {number} of the trace: expected a JSON array of literals as parameters"))?;
            let since_ns = (at_us - first_us) as f64 * 1e3 / self.speed;
            self.read.push_back(Statement {
                k: self.number as u64 * plan.rows + number,
                after_origin_ns: since_ns as u64 + self.copy.delay_us * 1000,
                session: (self.number as u32, session.value(row)),
                transaction: (!transaction.is_null(row)).then(|| transaction.value(row)),
                template: template as u16,
                literals,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, Int64Array, LargeStringArray, RecordBatchIterator, TimestampMicrosecondArray};

    use super::*;

    /// Rows of time (µs), session and template.
    pub fn reader(rows: &[(i64, i32, i32)]) -> TraceReader {
        let columns: [(&str, ArrayRef); 5] = [
            ("at", Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.0)))),
            ("session", Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1)))),
            ("transaction", Arc::new(Int64Array::new_null(rows.len()))),
            ("template", Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.2)))),
            ("parameters", Arc::new(LargeStringArray::from_iter_values(rows.iter().map(|row| format!("[{}]", row.0))))),
        ];
        let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
        Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema()))
    }

    pub fn plan(copies: &[u64]) -> ReplayPlan {
        let template = |name: &str| serde_json::json!({"name": name, "statement": "SELECT $1"});
        let copies: Vec<_> = copies.iter().map(|delay_us| serde_json::json!({"delay_us": delay_us})).collect();
        serde_json::from_value(serde_json::json!({
            "templates": [template("a"), template("b")], "phase": "measure", "speed": 2.0, "copies": copies, "rows": 4,
            "left_out": [1], "connections": 1, "timeout_s": 1.0, "interval_s": 1.0, "late_after_ms": 1.0,
            "keeps_answers": false, "read_only": true,
        }))
        .unwrap()
    }

    fn read_all(plan: &ReplayPlan, readers: Vec<TraceReader>, lengths: &[SessionLengths]) -> Result<Vec<Statement>, String> {
        let (sender, mut parcels) = mpsc::channel(100);
        read(plan, readers, lengths, &sender)?;
        drop(sender);
        let mut all = Vec::new();
        while let Ok(parcel) = parcels.try_recv() {
            all.extend(parcel);
        }
        Ok(all)
    }

    #[test]
    fn copies_are_merged_by_time_without_what_is_left_out() {
        let rows = [(1000, 7, 0), (1010, 8, 0), (1020, 7, 1), (1030, 7, 0)];
        let lengths = [SessionLengths::from([(7, 2), (8, 1)]), SessionLengths::from([(7, 2)])];
        let all = read_all(&plan(&[0, 3]), vec![reader(&rows), reader(&rows)], &lengths).unwrap();
        let seen: Vec<_> = all.iter().map(|one| (one.k, one.after_origin_ns, one.session)).collect();
        assert_eq!(seen, [(0, 0, (0, 7)), (4, 3000, (1, 7)), (1, 5000, (0, 8)), (3, 15000, (0, 7)), (7, 18000, (1, 7))]);
        assert_eq!(all[0].literals, [Literal::Number("1000".to_owned())]);
    }

    #[test]
    fn what_is_wrong_with_a_trace_is_named_with_its_row() {
        let lengths = [SessionLengths::from([(7, 2)])];
        for (rows, expected) in [
            (vec![(10, 7, 0), (9, 7, 0)], "row 1 of the trace is earlier"),
            (vec![(10, 7, 0), (11, 7, 2)], "row 1 of the trace names template 2"),
        ] {
            let problem = read_all(&plan(&[0]), vec![reader(&rows)], &lengths).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
