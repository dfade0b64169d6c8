//! What the encodings of byte-array batches cost.

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_dataset::encoding::BatchEncoding;
use sensorbench_dataset::{Column, ValueRef};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as NameError;

use crate::errors::{DataError, UsageError, written};

type Rows = PyArrowType<RecordBatchStreamReader>;

#[pyfunction]
pub fn batch_cost(python: Python, rows: Rows, encoding: &str, batch: usize) -> PyResult<String> {
    let encoding = BatchEncoding::deserialize(encoding.into_deserializer())
        .map_err(|error: NameError| UsageError::new_err(error.to_string()))?;
    if batch == 0 {
        return Err(UsageError::new_err("a batch has at least one reading"));
    }
    let (times, values) = readings(rows.0)?;
    if times.is_empty() {
        return Err(DataError::new_err("there are no readings to encode"));
    }
    Ok(written(&python.detach(|| sensorbench_dataset::encoding::batch_cost(encoding, &times, &values, batch))))
}

fn readings(rows: RecordBatchStreamReader) -> PyResult<(Vec<i64>, Vec<f64>)> {
    let data_error = |error: &dyn std::fmt::Display| DataError::new_err(error.to_string());
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for batch in rows {
        let batch = batch.map_err(|error| data_error(&error))?;
        let column = |name: &str| Column::of(&batch, name).map_err(|error| data_error(&error));
        let (time, value) = (column("time")?, column("value")?);
        for row in 0..batch.num_rows() {
            let (ValueRef::Timestamp(time), ValueRef::Double(value)) = (time.value(row), value.value(row)) else {
                return Err(DataError::new_err(
                    "a reading has a time (a timestamp) and a value (a double), neither of them null",
                ));
            };
            times.push(time);
            values.push(value);
        }
    }
    Ok((times, values))
}
