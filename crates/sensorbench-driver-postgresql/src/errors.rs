//! What the library's errors mean, told to whoever reads them.

use std::error::Error as _;

use sensorbench_driver::{DriverError, SchemaError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The server's own words, or the library's with their causes.
pub fn told(error: &Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        let parts = [Some(refusal.message()), refusal.detail(), refusal.hint()];
        return parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}

/// True when the connection is gone, and not only a statement refused.
pub fn is_loss(error: &Error) -> bool {
    // 08 are failures of connections; with 57P the server says that it ends one.
    error.code().is_none_or(|code| code.code().starts_with("08") || code.code().starts_with("57P"))
}

/// True when a statement was cancelled, by whomever.
pub fn is_cancellation(error: &Error) -> bool {
    error.code() == Some(&SqlState::QUERY_CANCELED)
}

/// A connection to `server` that was lost on the way.
pub fn lost(server: &str, error: &Error) -> DriverError {
    DriverError::Connection(format!(
        "PostgreSQL at {server}: the connection was lost: {}; the server's log may tell why",
        told(error)
    ))
}

/// A statement that `server` refused, unless the connection is gone.
pub fn statement_error(server: &str, error: Error) -> DriverError {
    if is_loss(&error) { lost(server, &error) } else { DriverError::Statement(told(&error)) }
}

/// A statement of the schema file that `server` refused, unless the connection is gone.
pub fn schema_error(server: &str, path: impl Into<String>, error: Error) -> DriverError {
    if is_loss(&error) { lost(server, &error) } else { SchemaError::at(path, told(&error)).into() }
}

/// Rows that `server` refused, unless the connection is gone.
pub fn data_error(server: &str, table: &str, error: Error) -> DriverError {
    if is_loss(&error) {
        return lost(server, &error);
    }
    let place = error.as_db_error().and_then(|refusal| refusal.where_()).map(|place| format!(" ({place})"));
    DriverError::Data(format!("table {table}: {}{}", told(&error), place.unwrap_or_default()))
}

/// A connection that `server` did not take.
pub fn not_connected(server: &str, error: &Error) -> DriverError {
    let advice = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            "check user and password (in the URL, in the file that credentials= names, or in SENSORBENCH_POSTGRESQL_USER and \
             SENSORBENCH_POSTGRESQL_PASSWORD), and certificate= if the server asks for one"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "name a database that is there, as postgresql://HOST/DATABASE",
        Some(&SqlState::TOO_MANY_CONNECTIONS) => "give a smaller connections=, or raise the server's max_connections",
        Some(_) => "the server answers but takes no connection",
        None => "check host and port, that the server runs, and the options tls= and ca=",
    };
    DriverError::Connection(format!("PostgreSQL at {server}: {}; {advice}", told(error)))
}
