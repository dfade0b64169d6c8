//! What a plan's operations are, without running them.

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use sensorbench_dataset::{Value, array_of};
use sensorbench_driver::Operation;
use sensorbench_engine::{ClientSteps, Plan, ReadyPlan};

use crate::arrow_tables::parameter_tables;
use crate::errors::{EngineError, UsageError, parsed, run_error, schema_error, written};

/// The statements that an operation takes, its own first, each as an operation after the client's work is taken out; of those that
/// are spread over tables, those of the first.
#[pyfunction]
pub fn statement_operations(operation: &str, work: &str) -> PyResult<String> {
    let (operation, work): (Operation, ClientSteps) = (parsed(operation)?, parsed(work)?);
    let statements = work.statements_of(&operation).map_err(schema_error)?;
    Ok(written(&statements.all().map(|one| work.for_table(one, 0)).collect::<Vec<_>>()))
}

/// The parameters of operations of one kind, one row for each (of one that writes several readings, one for each of those): of those with the given numbers k, or of all of this kind
/// among the first `count`; of those, of every n-th.
#[pyfunction]
#[pyo3(signature = (plan, tables, phase, operation, numbers=None, count=0, every=1))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn parameters(
    python: Python,
    plan: &str,
    tables: Vec<PyArrowType<RecordBatchStreamReader>>,
    phase: usize,
    operation: usize,
    numbers: Option<Vec<u64>>,
    count: u64,
    every: usize,
) -> PyResult<PyArrowType<RecordBatch>> {
    let plan: Plan = parsed(plan)?;
    let plan = ReadyPlan::new(plan, &parameter_tables(tables)?).map_err(run_error)?;
    python.detach(|| match numbers {
        Some(numbers) => rows_of(&plan, phase, operation, numbers.into_iter(), every, true),
        None => rows_of(&plan, phase, operation, 0..count, every, false),
    })
}

fn rows_of(
    plan: &ReadyPlan,
    phase: usize,
    operation: usize,
    numbers: impl Iterator<Item = u64>,
    every: usize,
    all_of_kind: bool,
) -> PyResult<PyArrowType<RecordBatch>> {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut of_kind = 0;
    for k in numbers {
        let found = plan.kind_of(phase, k);
        if found == operation {
            if of_kind % every.max(1) == 0 {
                rows.extend(plan.parameters_of(phase, k));
            }
            of_kind += 1;
        } else if all_of_kind {
            return Err(UsageError::new_err(format!("operation {k} is of another kind: {}", plan.operations()[found].name)));
        }
    }
    let declared = &plan.operations()[operation].parameters;
    let column =
        |number: usize| -> ArrayRef { array_of(declared[number].value_type, rows.iter().map(|row| row[number].as_ref())) };
    let columns = (0..declared.len()).map(|number| (declared[number].name.as_str(), column(number), true));
    RecordBatch::try_from_iter_with_nullable(columns).map(PyArrowType).map_err(|error| EngineError::new_err(error.to_string()))
}
