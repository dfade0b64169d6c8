//! The values of an operation's parameters.

use arrow_array::RecordBatch;
use sensorbench_dataset::{Column, Type, Value};
use sensorbench_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::EngineError;

/// Candidate rows that operations draw from.
#[derive(Clone, Debug, Default)]
pub struct ParameterTable {
    columns: Vec<Vec<Value>>,
    rows: usize,
}

impl ParameterTable {
    /// The candidates of Arrow batches with the same canonical columns.
    pub fn of(batches: &[RecordBatch]) -> Result<Self, EngineError> {
        let Some(first) = batches.first() else { return Ok(Self::default()) };
        let mut columns = vec![Vec::new(); first.num_columns()];
        for batch in batches {
            for (number, field) in first.schema().fields().iter().enumerate() {
                let column = Column::of(batch, field.name()).map_err(|error| EngineError::Plan(error.to_string()))?;
                columns[number].extend((0..batch.num_rows()).map(|row| column.value(row).to_value()));
            }
        }
        Ok(Self { columns, rows: batches.iter().map(RecordBatch::num_rows).sum() })
    }

    /// Number of candidates.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of a candidate.
    pub fn row(&self, row: usize) -> Vec<Value> {
        self.columns.iter().map(|column| column[row].clone()).collect()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }
}

/// Where one parameter of an operation comes from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterSource {
    /// Number of the draw.
    pub draw: usize,
    /// What of the draw: a column of its table, a column of numbers, or a parameter of the written operation.
    pub column: usize,
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

/// What the values of a draw are.
#[derive(Clone, Debug)]
pub enum DrawValues {
    /// Rows of a table.
    Table(ParameterTable),
    /// Numbers.
    Numbers(Vec<NumberColumn>),
    /// The parameters of an earlier write of this kind.
    Written(usize),
}

/// How the operations of a phase are numbered for writes: number = offset + stride × k, so that the numbers of phases and
/// repeats never meet.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Numbering {
    /// Number of the operation k = 0.
    pub offset: i64,
    /// Difference between the numbers of k and k + 1.
    pub stride: i64,
}

impl Default for Numbering {
    fn default() -> Self {
        Self { offset: 0, stride: 1 }
    }
}

/// Everything that gives the k-th operation its values.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Values of each draw.
    pub draws: Vec<DrawValues>,
    /// For each kind of operation, where its parameters come from.
    pub sources: Vec<Vec<ParameterSource>>,
}

impl Parameters {
    /// Puts the values for the k-th operation, which is of kind `operation`, into `values`.
    #[inline]
    pub fn fill(&self, workload: &Workload, numbering: Numbering, operation: usize, k: u64, values: &mut Vec<Value>) {
        values.clear();
        values.extend(self.sources[operation].iter().map(|source| self.value(workload, numbering, *source, k)));
    }

    fn value(&self, workload: &Workload, numbering: Numbering, source: ParameterSource, k: u64) -> Value {
        let drawn = workload.drawn(source.draw, k);
        match &self.draws[source.draw] {
            DrawValues::Table(table) => table.columns[source.column][drawn as usize].clone(),
            DrawValues::Numbers(columns) => {
                let column = columns[source.column];
                let number = numbering.offset.wrapping_add(numbering.stride.wrapping_mul(drawn as i64));
                let value = column.start.wrapping_add(column.step.wrapping_mul(number));
                if column.value_type == Type::Timestamp { Value::Timestamp(value) } else { Value::Integer(value) }
            }
            DrawValues::Written(operation) => self.value(workload, numbering, self.sources[*operation][source.column], drawn),
        }
    }
}
