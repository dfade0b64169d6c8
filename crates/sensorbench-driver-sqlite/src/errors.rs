//! What the library's errors mean.

use sensorbench_driver::DriverError;

/// A statement that SQLite refused, in its own words.
pub fn statement_error(error: rusqlite::Error) -> DriverError {
    DriverError::Statement(error.to_string())
}
