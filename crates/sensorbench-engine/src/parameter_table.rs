//! Candidate rows that parameters are taken from.

use std::sync::Arc;

use arrow_array::RecordBatch;
use sensorbench_dataset::{Column, ColumnError, Value, ValueRef};

use crate::EngineError;

/// A column of more bytes than this does not stay in a processor's nearest caches, beside all else that a run touches.
const NEAR_BYTES: usize = 64 << 10;

/// Candidate rows that parameters are taken from. Its clones share them.
#[derive(Clone, Debug, Default)]
pub struct ParameterTable {
    columns: Arc<[Candidates]>,
    rows: usize,
}

/// The values of a column. An operation takes one at random, which the processor's caches rarely hold if there are many. So numbers take as little
/// room as they can.
#[derive(Debug)]
enum Candidates {
    Integers(Box<[i64]>),
    Doubles(Box<[f64]>),
    Timestamps(Box<[i64]>),
    /// Those of other types, and numbers with nulls among them.
    Values(Box<[Value]>),
}

impl ParameterTable {
    /// The candidates of Arrow batches with the same canonical columns.
    pub fn of(batches: &[RecordBatch]) -> Result<Self, EngineError> {
        let Some(first) = batches.first() else { return Ok(Self::default()) };
        let candidates = |name: &String| -> Result<Candidates, ColumnError> {
            let piece = |batch| Column::of(batch, name).map(|column| (column, batch.num_rows()));
            let pieces: Vec<_> = batches.iter().map(piece).collect::<Result<_, _>>()?;
            Ok(Candidates::of(pieces.iter().flat_map(|(column, rows)| (0..*rows).map(|row| column.value(row)))))
        };
        let columns = first.schema().fields().iter().map(|field| candidates(field.name())).collect::<Result<_, _>>();
        Ok(Self {
            columns: columns.map_err(|error| EngineError::Plan(error.to_string()))?,
            rows: batches.iter().map(RecordBatch::num_rows).sum(),
        })
    }

    /// The candidates of columns of equal length.
    #[cfg(test)]
    pub(crate) fn of_values(columns: &[Vec<Value>]) -> Self {
        Self {
            columns: columns.iter().map(|column| Candidates::of(column.iter().map(Value::as_ref))).collect(),
            rows: columns.first().map_or(0, Vec::len),
        }
    }

    /// Number of candidates.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of a candidate.
    pub fn row(&self, row: usize) -> Vec<Value> {
        self.columns.iter().map(|column| column.value(row)).collect()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// One value of a candidate.
    #[inline]
    pub(crate) fn value(&self, column: usize, row: usize) -> Value {
        self.columns[column].value(row)
    }

    /// Whether the processor has to wait for the values of a column, unless they are prefetched.
    pub(crate) fn is_far(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|candidates| candidates.bytes() > NEAR_BYTES)
    }

    /// Has the processor fetch a value that will be taken soon.
    #[inline]
    pub(crate) fn prefetch(&self, column: usize, row: usize) {
        self.columns[column].prefetch(row);
    }
}

impl Candidates {
    fn of<'a>(values: impl Iterator<Item = ValueRef<'a>> + Clone) -> Self {
        let integer = |value| if let ValueRef::Integer(value) = value { Some(value) } else { None };
        let double = |value| if let ValueRef::Double(value) = value { Some(value) } else { None };
        let timestamp = |value| if let ValueRef::Timestamp(value) = value { Some(value) } else { None };
        let integers = values.clone().map(integer).collect::<Option<_>>().map(Self::Integers);
        integers
            .or_else(|| values.clone().map(double).collect::<Option<_>>().map(Self::Doubles))
            .or_else(|| values.clone().map(timestamp).collect::<Option<_>>().map(Self::Timestamps))
            .unwrap_or_else(|| Self::Values(values.map(ValueRef::to_value).collect()))
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Integers(values) | Self::Timestamps(values) => size_of_val(&**values),
            Self::Doubles(values) => size_of_val(&**values),
            Self::Values(values) => size_of_val(&**values),
        }
    }

    #[inline]
    fn value(&self, row: usize) -> Value {
        match self {
            Self::Integers(values) => Value::Integer(values[row]),
            Self::Doubles(values) => Value::Double(values[row]),
            Self::Timestamps(values) => Value::Timestamp(values[row]),
            Self::Values(values) => values[row].clone(),
        }
    }

    #[inline]
    fn prefetch(&self, row: usize) {
        match self {
            Self::Integers(values) | Self::Timestamps(values) => prefetch(values.get(row)),
            Self::Doubles(values) => prefetch(values.get(row)),
            Self::Values(values) => prefetch(values.get(row)),
        }
    }
}

/// Has the processor fetch a value without waiting for it, where processors can be asked for that.
#[inline]
fn prefetch<T>(value: Option<&T>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = value {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it changes nothing that a program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn values_of_all_types_come_back_as_they_were() {
        let batch = |first: i64| {
            let columns: [(&str, ArrayRef); 6] = [
                ("number", Arc::new(Int64Array::from(vec![first, -1]))),
                ("measured", Arc::new(Float64Array::from(vec![0.5, -0.0]))),
                ("time", Arc::new(TimestampMicrosecondArray::from(vec![7, first]))),
                ("name", Arc::new(StringArray::from(vec!["a", "b"]))),
                ("flag", Arc::new(BooleanArray::from(vec![true, false]))),
                ("missing", Arc::new(Int64Array::from(vec![Some(first), None]))),
            ];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let table = ParameterTable::of(&[batch(3), batch(4)]).unwrap();
        assert_eq!((table.rows(), table.columns()), (4, 6));
        let row = |number, measured, time, name: &str, flag, missing| {
            vec![
                Value::Integer(number),
                Value::Double(measured),
                Value::Timestamp(time),
                Value::Text(name.into()),
                Value::Boolean(flag),
                missing,
            ]
        };
        assert_eq!(table.row(0), row(3, 0.5, 7, "a", true, Value::Integer(3)));
        assert_eq!(table.row(1), row(-1, -0.0, 3, "b", false, Value::Null));
        assert_eq!(table.row(2), row(4, 0.5, 7, "a", true, Value::Integer(4)));
        assert_eq!(table.row(3), row(-1, -0.0, 4, "b", false, Value::Null));
        assert_eq!(table.value(2, 3), Value::Timestamp(4));
    }

    #[test]
    fn large_columns_are_far_and_what_is_not_there_is_not_fetched() {
        let table = |rows: i64| ParameterTable::of_values(&[(0..rows).map(Value::Integer).collect()]);
        assert!(!table(8192).is_far(0));
        assert!(table(8193).is_far(0));
        assert!(!table(8193).is_far(1));
        table(1).prefetch(0, 1);
    }

    #[test]
    fn a_column_without_a_canonical_type_is_named() {
        let batch = RecordBatch::try_from_iter([("small", Arc::new(arrow_array::Int8Array::from(vec![1])) as ArrayRef)]).unwrap();
        let error = ParameterTable::of(&[batch]).unwrap_err();
        assert!(error.to_string().contains("column small has the Arrow type Int8"), "{error}");
    }
}
