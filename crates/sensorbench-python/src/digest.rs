//! Digests of answers that were not given by a driver: reference answers.

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_dataset::Column;
use sensorbench_driver::{Digest, Operation, Rows};

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
