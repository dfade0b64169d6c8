//! Errors of the engine as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sensorbench_driver::{DriverError, SchemaError as DriverSchemaError};
use sensorbench_engine::EngineError as RunError;

create_exception!(_engine, EngineError, PyException, "Something that the engine or a database could not do.");
create_exception!(_engine, UsageError, EngineError, "A URL, schema or plan that cannot be used: nothing was touched.");
create_exception!(_engine, SchemaError, UsageError, "A schema that cannot be used; args are (path of the key, message).");
create_exception!(_engine, TargetError, EngineError, "A database that cannot be reached, or that refused something.");
create_exception!(_engine, NamespaceError, TargetError, "Something at the target that sensorbench must not touch.");
create_exception!(_engine, DataError, TargetError, "Rows that do not fit, or that the database cannot hold.");
create_exception!(_engine, CancelledError, EngineError, "What was asked for was cancelled on the way.");

pub fn add_to(module: &Bound<PyModule>) -> PyResult<()> {
    let python = module.py();
    module.add("EngineError", python.get_type::<EngineError>())?;
    module.add("UsageError", python.get_type::<UsageError>())?;
    module.add("SchemaError", python.get_type::<SchemaError>())?;
    module.add("TargetError", python.get_type::<TargetError>())?;
    module.add("NamespaceError", python.get_type::<NamespaceError>())?;
    module.add("DataError", python.get_type::<DataError>())?;
    module.add("CancelledError", python.get_type::<CancelledError>())
}

pub fn schema_error(error: DriverSchemaError) -> PyErr {
    SchemaError::new_err((error.path, error.message))
}

pub fn driver_error(error: DriverError) -> PyErr {
    let message = error.to_string();
    match error {
        DriverError::Schema(error) => schema_error(*error),
        DriverError::Url(_) => UsageError::new_err(message),
        DriverError::Namespace(_) => NamespaceError::new_err(message),
        DriverError::Data(_) => DataError::new_err(message),
        DriverError::Cancelled => CancelledError::new_err(message),
        DriverError::Connection(_) | DriverError::Statement(_) | DriverError::Timeout => TargetError::new_err(message),
    }
}

pub fn run_error(error: RunError) -> PyErr {
    match error {
        RunError::Schema(error) => schema_error(error),
        RunError::Driver(error) => driver_error(error),
        RunError::Plan(message) => UsageError::new_err(message),
        RunError::Workload(error) => UsageError::new_err(error.to_string()),
        RunError::System(message) => EngineError::new_err(message),
    }
}

/// Reads what Python wrote as JSON. That it has the right form is Python's business, so that a wrong one is a programmer's
/// mistake there.
pub fn parsed<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| UsageError::new_err(error.to_string()))
}

/// Writes what Python will read as JSON.
pub fn written(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("results have string keys and finite numbers")
}
