//! Many rows become few rows of byte-array batches: one for each group and time bucket.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::encoding::{BatchEncoding, encode_batch};
use crate::{Column, Every, Type, Value, ValueRef, canonical_type};

/// How rows are batched, in the words of schema files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Batching {
    /// How the readings of a batch are written.
    pub encoding: BatchEncoding,
    /// Columns whose equal values make a group.
    pub group: Vec<String>,
    /// Column of the time of a reading.
    pub time: String,
    /// Column of the value of a reading, a double.
    pub value: String,
    /// Length of the time bucket of one batch.
    pub every: Every,
    /// Name of the new column with the start of the time bucket.
    pub start_column: String,
    /// Name of the new column with the bytes.
    pub bytes_column: String,
}

/// Rows a batch of the output has at the most.
const OUTPUT_ROWS: usize = 1024;

/// Reads rows from `input` and gives rows with the group's columns, the start of the time bucket, and the bytes.
///
/// Rows of one group and time bucket that follow one another make one batch, in whatever order they come. A group and time bucket that
/// comes again later makes another batch, so that rows are best sorted by group and time.
pub struct BatchedRows<R> {
    input: R,
    batching: Batching,
    schema: SchemaRef,
    open: Option<OpenBatch>,
    output: Vec<FinishedBatch>,
    input_ended: bool,
}

struct OpenBatch {
    group: Vec<Value>,
    start: i64,
    times: Vec<i64>,
    values: Vec<f64>,
}

struct FinishedBatch {
    group: Vec<Value>,
    start: i64,
    bytes: Vec<u8>,
}

impl<R: RecordBatchReader> BatchedRows<R> {
    /// Fails when a column is missing or has an unfit type.
    pub fn new(input: R, batching: Batching) -> Result<Self, ArrowError> {
        if !batching.every.is_above_zero() {
            return Err(invalid("the length of a batch must be above zero"));
        }
        let input_schema = input.schema();
        let type_of = |name: &String| {
            canonical_type(input_schema.field_with_name(name)?.data_type())
                .ok_or_else(|| invalid(format!("column {name} has no canonical type")))
        };
        for (name, expected) in [(&batching.time, Type::Timestamp), (&batching.value, Type::Double)] {
            if type_of(name)? != expected {
                return Err(invalid(format!("column {name} of a batch must be a {}", expected.name())));
            }
        }
        let mut fields = Vec::new();
        for name in &batching.group {
            fields.push(Field::new(name, arrow_type(type_of(name)?), false));
        }
        fields.push(Field::new(&batching.start_column, arrow_type(Type::Timestamp), false));
        fields.push(Field::new(&batching.bytes_column, DataType::Binary, false));
        Ok(Self { input, batching, schema: Arc::new(Schema::new(fields)), open: None, output: Vec::new(), input_ended: false })
    }

    fn take_in(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let column = |name: &String| Column::of(rows, name).map_err(invalid);
        let group: Vec<Column> = self.batching.group.iter().map(column).collect::<Result<_, _>>()?;
        let (times, values) = (column(&self.batching.time)?, column(&self.batching.value)?);
        for row in 0..rows.num_rows() {
            let (ValueRef::Timestamp(time), ValueRef::Double(value)) = (times.value(row), values.value(row)) else {
                return Err(invalid("a reading of a batch has neither a null time nor a null value"));
            };
            let start = self.batching.every.floor(time);
            let fits = |open: &OpenBatch| {
                open.start == start && open.group.iter().zip(&group).all(|(value, column)| value.as_ref() == column.value(row))
            };
            if !self.open.as_ref().is_some_and(fits) {
                self.finish_open()?;
                let group = group.iter().map(|column| column.value(row).to_value()).collect();
                self.open = Some(OpenBatch { group, start, times: Vec::new(), values: Vec::new() });
            }
            let open = self.open.as_mut().expect("opened above");
            open.times.push(time);
            open.values.push(value);
        }
        Ok(())
    }

    fn finish_open(&mut self) -> Result<(), ArrowError> {
        if let Some(open) = self.open.take() {
            let mut bytes = Vec::new();
            encode_batch(self.batching.encoding, &open.times, &open.values, &mut bytes).map_err(invalid)?;
            self.output.push(FinishedBatch { group: open.group, start: open.start, bytes });
        }
        Ok(())
    }

    fn next_output(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while self.output.len() < OUTPUT_ROWS && !self.input_ended {
            match self.input.next() {
                Some(rows) => self.take_in(&rows?)?,
                None => {
                    self.input_ended = true;
                    self.finish_open()?;
                }
            }
        }
        if self.output.is_empty() {
            return Ok(None);
        }
        let rows: Vec<FinishedBatch> = self.output.drain(..self.output.len().min(OUTPUT_ROWS)).collect();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for column in 0..self.batching.group.len() {
            let column_type = canonical_type(self.schema.field(column).data_type()).expect("checked by new");
            arrays.push(array_of(column_type, rows.iter().map(|row| row.group[column].as_ref())));
        }
        arrays.push(array_of(Type::Timestamp, rows.iter().map(|row| ValueRef::Timestamp(row.start))));
        arrays.push(array_of(Type::Bytes, rows.iter().map(|row| ValueRef::Bytes(&row.bytes))));
        RecordBatch::try_new(self.schema.clone(), arrays).map(Some)
    }
}

impl<R: RecordBatchReader> Iterator for BatchedRows<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_output().transpose()
    }
}

impl<R: RecordBatchReader> RecordBatchReader for BatchedRows<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

fn invalid(message: impl ToString) -> ArrowError {
    ArrowError::InvalidArgumentError(message.to_string())
}

/// The Arrow type that holds a canonical type.
pub fn arrow_type(column_type: Type) -> DataType {
    match column_type {
        Type::Boolean => DataType::Boolean,
        Type::Integer => DataType::Int64,
        Type::Double => DataType::Float64,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::Text => DataType::Utf8,
        Type::Bytes => DataType::Binary,
    }
}

/// An Arrow array of values of one canonical type, or null.
///
/// Panics when a value is of another type: what is put together here was typed before.
pub fn array_of<'a>(column_type: Type, values: impl Iterator<Item = ValueRef<'a>>) -> ArrayRef {
    macro_rules! built {
        ($builder:expr, $variant:ident) => {{
            let mut builder = $builder;
            values.for_each(|value| match value {
                ValueRef::$variant(value) => builder.append_value(value),
                ValueRef::Null => builder.append_null(),
                other => panic!("a column of {} has the value {other:?}", column_type.name()),
            });
            Arc::new(builder.finish()) as Arc<dyn Array>
        }};
    }
    match column_type {
        Type::Boolean => built!(BooleanBuilder::new(), Boolean),
        Type::Integer => built!(Int64Builder::new(), Integer),
        Type::Double => built!(Float64Builder::new(), Double),
        Type::Timestamp => built!(TimestampMicrosecondBuilder::new(), Timestamp),
        Type::Text => built!(StringBuilder::new(), Text),
        Type::Bytes => built!(BinaryBuilder::new(), Bytes),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatchIterator;

    use super::*;
    use crate::encoding::decode_batch;

    fn rows(rows: &[(&str, i64, f64)]) -> RecordBatch {
        RecordBatch::try_from_iter([
            ("sensor", array_of(Type::Text, rows.iter().map(|row| ValueRef::Text(row.0)))),
            ("time", array_of(Type::Timestamp, rows.iter().map(|row| ValueRef::Timestamp(row.1)))),
            ("value", array_of(Type::Double, rows.iter().map(|row| ValueRef::Double(row.2)))),
        ])
        .unwrap()
    }

    fn batching() -> Batching {
        Batching {
            encoding: BatchEncoding::Packed,
            group: vec!["sensor".to_owned()],
            time: "time".to_owned(),
            value: "value".to_owned(),
            every: Every::Microseconds(10),
            start_column: "start".to_owned(),
            bytes_column: "readings".to_owned(),
        }
    }

    fn unbatched(input: Vec<RecordBatch>) -> Vec<(String, i64, i64, f64)> {
        let schema = input[0].schema();
        let mut readings = Vec::new();
        for output in BatchedRows::new(RecordBatchIterator::new(input.into_iter().map(Ok), schema), batching()).unwrap() {
            let output = output.unwrap();
            let columns = ["sensor", "start", "readings"].map(|name| Column::of(&output, name).unwrap());
            for row in 0..output.num_rows() {
                let [ValueRef::Text(sensor), ValueRef::Timestamp(start), ValueRef::Bytes(bytes)] =
                    columns.map(|column| column.value(row))
                else {
                    panic!("unexpected types")
                };
                decode_batch(BatchEncoding::Packed, bytes, |time, value| readings.push((sensor.to_owned(), start, time, value)))
                    .unwrap();
            }
        }
        readings
    }

    fn owned<const N: usize>(readings: [(&str, i64, i64, f64); N]) -> Vec<(String, i64, i64, f64)> {
        readings.map(|(sensor, start, time, value)| (sensor.to_owned(), start, time, value)).to_vec()
    }

    #[test]
    fn groups_and_time_buckets_are_kept_apart_across_input_batches() {
        let readings =
            unbatched(vec![rows(&[("a", -1, 1.0), ("a", 0, 2.0), ("a", 9, 3.0)]), rows(&[("a", 10, 4.0), ("b", 10, 5.0)])]);
        let expected = [("a", -10, -1, 1.0), ("a", 0, 0, 2.0), ("a", 0, 9, 3.0), ("a", 10, 10, 4.0), ("b", 10, 10, 5.0)];
        assert_eq!(readings, owned(expected));
    }

    #[test]
    fn rows_of_a_time_bucket_come_in_any_order() {
        let readings = unbatched(vec![rows(&[("a", 5, 1.0), ("a", 4, 2.0)]), rows(&[("a", 9, 3.0), ("a", 5, 4.0)])]);
        let expected = [("a", 0, 4, 2.0), ("a", 0, 5, 4.0), ("a", 0, 9, 3.0)];
        assert_eq!(readings, owned(expected));
    }

    #[test]
    fn a_group_or_time_bucket_that_comes_again_is_another_batch() {
        let readings = unbatched(vec![rows(&[("a", 5, 1.0), ("b", 5, 2.0), ("a", 4, 3.0), ("a", 14, 4.0), ("a", 3, 5.0)])]);
        let expected = [("a", 0, 5, 1.0), ("b", 0, 5, 2.0), ("a", 0, 4, 3.0), ("a", 10, 14, 4.0), ("a", 0, 3, 5.0)];
        assert_eq!(readings, owned(expected));
    }

    #[test]
    fn missing_columns_are_refused() {
        let other = Batching { value: "reading".to_owned(), ..batching() };
        assert!(BatchedRows::new(RecordBatchIterator::new([], rows(&[]).schema()), other).is_err());
    }
}
