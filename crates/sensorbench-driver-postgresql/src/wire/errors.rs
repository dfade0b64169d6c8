//! What the library's errors mean, for whoever reads them. `place` is the server as messages name it.

use std::error::Error as _;

use sensorbench_driver::{DriverError, SchemaError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The server's own words, or the library's with their causes.
pub fn describe(error: &Error) -> String {
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

/// A connection to the server at `place` that was lost on the way.
pub fn lost(place: &str, error: &Error) -> DriverError {
    DriverError::Connection(format!("{place}: the connection was lost: {}; the server's log may tell why", describe(error)))
}

/// A statement that the server at `place` refused, unless the connection is gone.
pub fn statement_error(place: &str, error: Error) -> DriverError {
    if is_loss(&error) { lost(place, &error) } else { DriverError::Statement(describe(&error)) }
}

/// A statement of the schema file that the server at `place` refused, unless the connection is gone.
pub fn schema_error(place: &str, path: impl Into<String>, error: Error) -> DriverError {
    if is_loss(&error) { lost(place, &error) } else { SchemaError::at(path, describe(&error)).into() }
}

/// Rows that the server at `place` refused, unless the connection is gone.
pub fn data_error(place: &str, table: &str, error: Error) -> DriverError {
    if is_loss(&error) {
        return lost(place, &error);
    }
    let line = error.as_db_error().and_then(|refusal| refusal.where_()).map(|line| format!(" ({line})"));
    DriverError::Data(format!("table {table}: {}{}", describe(&error), line.unwrap_or_default()))
}

const UNREACHED: &str = "check host and port, that the server runs, and the options tls= and ca=";

/// The server at `place` that could not be reached.
pub fn not_reached(place: &str, error: &std::io::Error) -> DriverError {
    DriverError::Connection(format!("{place}: error connecting to server: {error}; {UNREACHED}"))
}

/// A connection that the server at `place` did not take.
///
/// `is_login` says that it means user and password; `ignored` why the password file was not read.
pub fn not_connected(place: &str, scheme: &str, is_login: bool, ignored: Option<&str>, error: &Error) -> DriverError {
    let described = describe(error);
    let advice = match error.code() {
        // The client itself gives up where the server wants a password and there is none.
        code if is_login || code.is_none() && described.contains("password missing") => {
            let variables = format!("SENSORBENCH_{}", scheme.to_uppercase());
            let ignored = ignored.map(|why| format!("; {why}")).unwrap_or_default();
            format!(
                "check user and password (in the URL, in the file that credentials= names, in {variables}_USER and \
                 {variables}_PASSWORD, or in the file that PGPASSFILE names, else ~/.pgpass), and certificate= if the server asks \
                 for one{ignored}"
            )
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => format!("name a database that is there, as {scheme}://HOST/DATABASE"),
        Some(&SqlState::TOO_MANY_CONNECTIONS) => "give a smaller connections=, or raise the server's max_connections".to_owned(),
        Some(_) => "the server answers but takes no connection".to_owned(),
        None => UNREACHED.to_owned(),
    };
    DriverError::Connection(format!("{place}: {described}; {advice}"))
}
