//! Places in schema files.

use sensorbench_driver::{DriverError, SchemaError};

/// An error that refuses a statement names its place in the schema file; a lost connection has no place there.
pub fn with_place(path: String, error: DriverError) -> DriverError {
    match error {
        DriverError::Statement(message) => SchemaError::at(path, message).into(),
        other => other,
    }
}
