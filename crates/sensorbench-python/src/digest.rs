//! Digests of answers that were not given by a driver: reference answers, and what was written.

use std::sync::Arc;

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_dataset::Column;
use sensorbench_driver::{Digest, Operation, Rows, row_hash};

use crate::errors::{DataError, parsed};

/// Number of rows, hash, whether they came in order, values of computed columns.
#[pyfunction]
pub fn digest(rows: PyArrowType<RecordBatchStreamReader>, operation: &str) -> PyResult<(u64, u64, Option<bool>, Vec<f64>)> {
    let operation: Operation = parsed(operation)?;
    let data_error = |error: &dyn std::fmt::Display| DataError::new_err(error.to_string());
    let mut answer = Rows::new();
    for batch in rows.0 {
        let batch = batch.map_err(|error| data_error(&error))?;
        let column = |name: &str| Column::of(&batch, name).map_err(|error| data_error(&error));
        let columns: Vec<Column> = operation.columns.iter().map(|declared| column(&declared.name)).collect::<PyResult<_>>()?;
        for row in 0..batch.num_rows() {
            columns.iter().for_each(|column| answer.push(column.value(row)));
            answer.end_row();
        }
    }
    let Digest { rows, hash, in_order, computed } = sensorbench_driver::digest(&answer, &operation);
    Ok((rows, hash, in_order, computed))
}

/// The hash of each row over some columns: the digest of an answer has the sum of them.
#[pyfunction]
pub fn row_hashes(rows: PyArrowType<RecordBatchStreamReader>, columns: Vec<String>) -> PyResult<PyArrowType<RecordBatch>> {
    let data_error = |error: &dyn std::fmt::Display| DataError::new_err(error.to_string());
    let (mut hashes, mut bytes) = (Vec::new(), Vec::with_capacity(64));
    for batch in rows.0 {
        let batch = batch.map_err(|error| data_error(&error))?;
        let column = |name: &String| Column::of(&batch, name).map_err(|error| data_error(&error));
        let of_batch: Vec<Column> = columns.iter().map(column).collect::<PyResult<_>>()?;
        hashes.extend((0..batch.num_rows()).map(|row| row_hash(of_batch.iter().map(|column| column.value(row)), &mut bytes)));
    }
    let hashes: ArrayRef = Arc::new(UInt64Array::from(hashes));
    RecordBatch::try_from_iter([("hash", hashes)]).map(PyArrowType).map_err(|error| data_error(&error))
}
