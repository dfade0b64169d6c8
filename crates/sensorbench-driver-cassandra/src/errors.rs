//! What the library's errors mean, for whoever reads them.

use std::fmt::Display;
use std::time::Duration;

use scylla::errors::{BadQuery, DbError, ExecutionError, NewSessionError, PrepareError, RequestAttemptError};
use sensorbench_driver::{DriverError, SchemaError};

/// An operation that did not succeed.
pub fn execution_error(server: &str, error: ExecutionError) -> DriverError {
    match &error {
        ExecutionError::BadQuery(BadQuery::SerializationError(refused)) => DriverError::Data(refused.to_string()),
        ExecutionError::LastAttemptError(attempt) => attempt_error(server, attempt),
        ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt }) => attempt_error(server, first_attempt),
        ExecutionError::ConnectionPoolError(_) | ExecutionError::EmptyPlan => lost(server, &error),
        _ => DriverError::Statement(error.to_string()),
    }
}

/// Whether fewer replicas are up than the level of a statement needs.
pub fn is_unavailable(error: &ExecutionError) -> bool {
    matches!(error, ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Unavailable { .. }, _)))
}

/// A statement that could not be prepared.
pub fn prepare_error(server: &str, path: &str, error: &PrepareError) -> DriverError {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt: RequestAttemptError::DbError(_, message) } => {
            SchemaError::at(path, message).into()
        }
        other => unprepared(server, other),
    }
}

/// A statement of a trace that could not be prepared.
pub fn unprepared(server: &str, error: &PrepareError) -> DriverError {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt } => attempt_error(server, first_attempt),
        other => lost(server, other),
    }
}

/// A statement of the schema file that was refused, unless the connection is gone.
pub fn schema_error(server: &str, path: impl Into<String>, error: ExecutionError) -> DriverError {
    match execution_error(server, error) {
        DriverError::Statement(message) => SchemaError::at(path, message).into(),
        other => other,
    }
}

fn attempt_error(server: &str, error: &RequestAttemptError) -> DriverError {
    match error {
        RequestAttemptError::DbError(kind, message) if message.is_empty() => DriverError::Statement(kind.to_string()),
        RequestAttemptError::DbError(_, message) => DriverError::Statement(message.clone()),
        RequestAttemptError::SerializationError(refused) => DriverError::Data(refused.to_string()),
        RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId => lost(server, error),
        other => DriverError::Statement(other.to_string()),
    }
}

/// A cluster none of whose nodes can be asked.
fn lost(server: &str, error: &dyn Display) -> DriverError {
    DriverError::Connection(format!("Cassandra at {server}: the connection was lost: {error}; a node's log may say why"))
}

/// A cluster that took no connection.
pub fn not_connected(server: &str, error: &NewSessionError) -> DriverError {
    let words = error.to_string();
    let advice = if words.contains("uthentication") || words.contains("credentials") {
        "check user and password (in the URL, in the file that credentials= names, or in SENSORBENCH_CASSANDRA_USER and \
         SENSORBENCH_CASSANDRA_PASSWORD)"
    } else {
        "check host and port, that the server runs, and the options tls= and ca="
    };
    DriverError::Connection(format!("Cassandra at {server}: {words}; {advice}"))
}

/// A cluster that did not answer at all.
pub fn no_answer(server: &str, limit: Duration) -> DriverError {
    DriverError::Connection(format!(
        "Cassandra at {server}: no answer within {} s; check host and port, and that nothing on the way drops packets",
        limit.as_secs()
    ))
}
