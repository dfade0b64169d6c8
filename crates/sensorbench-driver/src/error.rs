//! What can go wrong between the engine and a database.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::SchemaError;

/// An operation, or a step of control, that did not succeed. Messages never hold passwords.
#[derive(Clone, Debug, Error)]
pub enum DriverError {
    /// A target URL that cannot be used: the user's mistake. It is shown without its user info.
    #[error("{0}")]
    Url(String),
    /// A schema that cannot be used: the user's mistake. Boxed, because results are handed on with every operation.
    #[error(transparent)]
    Schema(Box<SchemaError>),
    /// Something at the target that sensorbench did not create, or that is in the way.
    #[error("{0}")]
    Namespace(String),
    /// The database cannot be reached, or went away.
    #[error("{0}")]
    Connection(String),
    /// The database refused a statement.
    #[error("{0}")]
    Statement(String),
    /// A value that the database cannot hold, or rows that are not as the schema says.
    #[error("{0}")]
    Data(String),
    /// The operation took longer than allowed.
    #[error("timed out")]
    Timeout,
    /// The run was stopped while the operation was in flight.
    #[error("cancelled")]
    Cancelled,
}

/// The kinds that errors are counted by.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// See [`DriverError::Url`].
    Url,
    /// See [`DriverError::Schema`].
    Schema,
    /// See [`DriverError::Namespace`].
    Namespace,
    /// See [`DriverError::Connection`].
    Connection,
    /// See [`DriverError::Statement`].
    Statement,
    /// See [`DriverError::Data`].
    Data,
    /// See [`DriverError::Timeout`].
    Timeout,
    /// See [`DriverError::Cancelled`].
    Cancelled,
}

impl ErrorKind {
    /// The word for this kind in results.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Url => "url",
            ErrorKind::Schema => "schema",
            ErrorKind::Namespace => "namespace",
            ErrorKind::Connection => "connection",
            ErrorKind::Statement => "statement",
            ErrorKind::Data => "data",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Cancelled => "cancelled",
        }
    }
}

impl From<SchemaError> for DriverError {
    fn from(error: SchemaError) -> Self {
        DriverError::Schema(Box::new(error))
    }
}

impl DriverError {
    /// The kind that this error is counted by.
    pub fn kind(&self) -> ErrorKind {
        match self {
            DriverError::Url(_) => ErrorKind::Url,
            DriverError::Schema(_) => ErrorKind::Schema,
            DriverError::Namespace(_) => ErrorKind::Namespace,
            DriverError::Connection(_) => ErrorKind::Connection,
            DriverError::Statement(_) => ErrorKind::Statement,
            DriverError::Data(_) => ErrorKind::Data,
            DriverError::Timeout => ErrorKind::Timeout,
            DriverError::Cancelled => ErrorKind::Cancelled,
        }
    }
}
