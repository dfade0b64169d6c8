//! Figures of load generators that share a run, as they sent them, added up.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{PrimitiveArray, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_engine::{Figures, Interval, OUTCOMES};
use sensorbench_histogram::{TaggedInterval, read_interval_log};
use serde_json::Value;

use crate::arrow_tables::intervals;
use crate::errors::{DataError, written};
use crate::interval_log::interval_log;
use crate::run::{figures_as_json, latencies_as_json};

#[pyclass(frozen, module = "sensorbench._engine")]
pub struct Merge {
    phases: Vec<String>,
    operations: Vec<String>,
    interval_ns: u64,
    merge: Mutex<sensorbench_engine::Merge>,
}

/// Figures by number of the interval, and within it by cell.
type ByInterval = BTreeMap<u64, Vec<Figures>>;

impl Merge {
    fn lock(&self) -> MutexGuard<'_, sensorbench_engine::Merge> {
        self.merge.lock().expect("nothing panics under this lock")
    }

    fn cells(&self) -> usize {
        self.phases.len() * self.operations.len()
    }

    /// The figures of a cell in the interval that begins at a time.
    fn cell<'a>(&self, found: &'a mut ByInterval, start_ns: u64, cell: usize) -> PyResult<&'a mut Figures> {
        // The log has times in milliseconds.
        let number = (start_ns + self.interval_ns / 2) / self.interval_ns;
        let figures = found.entry(number).or_insert_with(|| vec![Figures::default(); self.cells()]);
        figures.get_mut(cell).ok_or_else(|| DataError::new_err(format!("there is no cell {cell} in this run")))
    }

    fn add_counts(&self, found: &mut ByInterval, batch: &RecordBatch) -> PyResult<()> {
        let (start_ns, late, rows) = (numbers(batch, "start_ns")?, numbers(batch, "late")?, numbers(batch, "rows")?);
        let (phase, operation) = (small_numbers(batch, "phase")?, small_numbers(batch, "operation")?);
        let counts = OUTCOMES.iter().map(|outcome| numbers(batch, outcome.name())).collect::<PyResult<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let cell = usize::from(phase.value(row)) * self.operations.len() + usize::from(operation.value(row));
            let figures = self.cell(found, start_ns.value(row), cell)?;
            figures.counts.iter_mut().zip(&counts).for_each(|(count, column)| *count = column.value(row));
            figures.late = late.value(row);
            figures.rows = rows.value(row);
        }
        Ok(())
    }

    fn add_latencies(&self, found: &mut ByInterval, log: &str) -> PyResult<()> {
        let cells: HashMap<String, usize> = (0..self.cells())
            .map(|cell| {
                let (phase, operation) =
                    (&self.phases[cell / self.operations.len()], &self.operations[cell % self.operations.len()]);
                (format!("{phase}.{operation}"), cell)
            })
            .collect();
        for TaggedInterval { tag, start, latencies, .. } in read(log)? {
            let unknown = || DataError::new_err(format!("{tag:?} is not a figure of this run"));
            let (name, kind) = tag.rsplit_once('.').ok_or_else(unknown)?;
            let figures = self.cell(found, start.as_nanos() as u64, *cells.get(name).ok_or_else(unknown)?)?;
            match kind {
                "response" => figures.response.merge(&latencies),
                "service" => figures.service.merge(&latencies),
                "wait" => figures.wait.merge(&latencies),
                "failed" => figures.failed.merge(&latencies),
                _ => return Err(unknown()),
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Merge {
    #[new]
    fn new(phases: Vec<String>, operations: Vec<String>, interval_ns: u64) -> Self {
        let merge = Mutex::new(sensorbench_engine::Merge::new(phases.len() * operations.len()));
        Self { phases, operations, interval_ns: interval_ns.max(1), merge }
    }

    fn add(&self, python: Python, intervals: PyArrowType<RecordBatch>, histograms: &str) -> PyResult<()> {
        python.detach(|| {
            let mut found = ByInterval::new();
            self.add_counts(&mut found, &intervals.0)?;
            if !histograms.is_empty() {
                self.add_latencies(&mut found, histograms)?;
            }
            let mut merge = self.lock();
            found.into_iter().for_each(|(number, figures)| merge.add(Interval { number, figures }));
            Ok(())
        })
    }

    fn add_timer_lag(&self, log: &str) -> PyResult<()> {
        if !log.is_empty() {
            read(log)?.iter().for_each(|interval| self.lock().add_timer_lag(&interval.latencies));
        }
        Ok(())
    }

    #[pyo3(signature = (before_ns=None))]
    fn take(&self, before_ns: Option<u64>) -> (PyArrowType<RecordBatch>, String) {
        let end = before_ns.map_or(u64::MAX, |before_ns| before_ns / self.interval_ns);
        let taken = self.lock().take_before(end);
        let names: Vec<&str> = self.operations.iter().map(String::as_str).collect();
        let histograms = interval_log(&taken, &self.phases, &names, self.interval_ns);
        (PyArrowType(intervals(&taken, names.len(), self.interval_ns)), histograms)
    }

    /// By phase and operation.
    fn figures(&self) -> String {
        let figures = self.lock().figures();
        let of_phase = |cells: &[Figures]| -> Value {
            let named = self.operations.iter().cloned().zip(cells.iter().map(figures_as_json));
            Value::Object(named.collect())
        };
        let phases = self.phases.iter().cloned().zip(figures.chunks(self.operations.len().max(1)).map(of_phase));
        written(&Value::Object(phases.collect()))
    }

    fn timer_lag(&self) -> String {
        written(&latencies_as_json(self.lock().timer_lag()))
    }
}

fn read(log: &str) -> PyResult<Vec<TaggedInterval>> {
    read_interval_log(log).map_err(|error| DataError::new_err(error.to_string()))
}

fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a PrimitiveArray<UInt64Type>> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt());
    column.ok_or_else(|| DataError::new_err(format!("intervals need a column {name} of numbers")))
}

fn small_numbers<'a>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a PrimitiveArray<UInt16Type>> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt());
    column.ok_or_else(|| DataError::new_err(format!("intervals need a column {name} of small numbers")))
}
