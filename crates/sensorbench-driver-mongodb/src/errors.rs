//! What the library's errors mean, for whoever reads them.

use mongodb::error::{Error, ErrorKind};
use sensorbench_driver::{DriverError, SchemaError};

/// Codes of errors in which the user may not do something, or is nobody.
const UNAUTHORIZED: [i32; 2] = [13, 18];

/// The server's own words, or the library's.
pub fn describe(error: &Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(refusal) if refusal.code_name.is_empty() => refusal.message.clone(),
        ErrorKind::Command(refusal) => format!("{} ({})", refusal.message, refusal.code_name),
        ErrorKind::InsertMany(failed) => {
            let first = failed.write_errors.iter().flatten().next().map(|one| one.message.clone());
            let concern = failed.write_concern_error.as_ref().map(|one| format!("write concern: {}", one.message));
            first.or(concern).unwrap_or_else(|| error.to_string())
        }
        other => other.to_string(),
    }
}

/// A command that was refused, unless the server is gone.
pub fn statement_error(server: &str, error: Error) -> DriverError {
    if is_refusal(&error) { DriverError::Statement(describe(&error)) } else { not_reached(server, &error) }
}

/// A command of the schema file that was refused, unless the server is gone.
pub fn schema_error(server: &str, path: impl Into<String>, error: Error) -> DriverError {
    if is_refusal(&error) { SchemaError::at(path, describe(&error)).into() } else { not_reached(server, &error) }
}

/// Rows that were refused, unless the server is gone.
pub fn data_error(server: &str, table: &str, error: Error) -> DriverError {
    if is_refusal(&error) {
        DriverError::Data(format!("table {table}: {}", describe(&error)))
    } else {
        not_reached(server, &error)
    }
}

/// Something in the way of sensorbench's own database, unless the server is gone.
pub fn namespace_error(server: &str, namespace: &str, error: Error) -> DriverError {
    if !is_refusal(&error) {
        return not_reached(server, &error);
    }
    let advice = match error.kind.as_ref() {
        // FerretDB hands on what the PostgreSQL behind it says of a password.
        ErrorKind::Command(refusal)
            if UNAUTHORIZED.contains(&refusal.code) || refusal.message.contains("authentication failed") =>
        {
            "; give user and password (in the URL, in the file that credentials= names, or in the environment) of somebody with the \
             role dbOwner there, or name another database with namespace="
        }
        _ => "",
    };
    DriverError::Namespace(format!("the server at {server}: the database {namespace}: {}{advice}", describe(&error)))
}

/// Whether the server answered, and the answer was no.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind.as_ref(),
        ErrorKind::Command(_) | ErrorKind::Write(_) | ErrorKind::InsertMany(_) | ErrorKind::InvalidResponse { .. }
    )
}

fn not_reached(server: &str, error: &Error) -> DriverError {
    let advice = match error.kind.as_ref() {
        ErrorKind::Authentication { .. } => {
            "check user and password (in the URL, in the file that credentials= names, or in the environment), the database after the \
             host, and auth_mechanism="
        }
        ErrorKind::ServerSelection { .. } => {
            "check hosts and ports, that the server runs, and tls=, replica_set= and read_preference="
        }
        _ => "the server's log may say why",
    };
    DriverError::Connection(format!("the server at {server}: {}; {advice}", describe(error)))
}
