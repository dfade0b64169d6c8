//! What the errors of the library and of the server mean, for whoever reads them. `place` is the server as messages name it.

use std::error::Error as _;
use std::fmt;

use sensorbench_driver::{DriverError, SchemaError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What the server says instead of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refusal {
    /// `SQLSTATE`.
    pub code: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl Refusal {
    /// Reads the fields of a message: each has a letter and a text that ends with a zero.
    pub fn of(mut content: &[u8]) -> Self {
        let mut refusal = Self::default();
        while let Some((kind, rest)) = content.split_first()
            && *kind != 0
        {
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            let text = String::from_utf8_lossy(&rest[..end]).into_owned();
            match kind {
                b'C' => refusal.code = text,
                b'M' => refusal.message = text,
                b'D' => refusal.detail = Some(text),
                b'H' => refusal.hint = Some(text),
                _ => {}
            }
            content = rest.get(end + 1..).unwrap_or_default();
        }
        refusal
    }

    /// What it is to whoever executed the statement at the server at `place`.
    pub fn error(&self, place: &str) -> DriverError {
        if is_loss_code(&self.code) { lost_because(place, self) } else { DriverError::Statement(self.to_string()) }
    }

    /// True when a statement was cancelled, by whomever.
    pub fn is_cancellation(&self) -> bool {
        self.code == SqlState::QUERY_CANCELED.code()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&joined(&self.message, self.detail.as_deref(), self.hint.as_deref()))
    }
}

fn joined(message: &str, detail: Option<&str>, hint: Option<&str>) -> String {
    [Some(message), detail, hint].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// 08 are failures of connections; with 57P the server says that it ends one.
fn is_loss_code(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P")
}

/// The server's own words, or the library's with their causes.
pub fn describe(error: &Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return joined(refusal.message(), refusal.detail(), refusal.hint());
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
    error.code().is_none_or(|code| is_loss_code(code.code()))
}

/// A connection to the server at `place` that was lost on the way.
pub fn lost(place: &str, error: &Error) -> DriverError {
    lost_because(place, &describe(error))
}

/// The same with the reason in words.
pub fn lost_because(place: &str, reason: &dyn fmt::Display) -> DriverError {
    DriverError::Connection(format!("{place}: the connection was lost: {reason}; the server's log may say why"))
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
