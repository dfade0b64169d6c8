//! How recorded statements are executed again: each recorded session on a connection of its own.

use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::{DriverError, Rows};

/// A statement of a trace with its literals taken out.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StatementTemplate {
    /// Its name in results.
    pub name: String,
    /// Its text, with `$1`, `$2`, … in the places of literals.
    pub statement: String,
}

/// What the connections of a replay are made for.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// The templates, in the order of their numbers.
    pub templates: Vec<StatementTemplate>,
    /// The server itself must refuse everything that changes data.
    pub read_only: bool,
    /// Values of answers are kept, for comparing them; else their rows are only counted.
    pub keeps_answers: bool,
}

/// Makes the connections of a replay.
pub trait ReplayConnector: Send + Sync {
    /// Opens the connection of one session, inside the runtime that will poll its futures.
    fn connect(&self) -> LocalBoxFuture<'_, Result<Box<dyn ReplayConnection>, DriverError>>;
}

/// The connection of one recorded session. It executes one statement after the other.
pub trait ReplayConnection {
    /// Executes a statement with its literals bound as text, which the server reads as the type that the statement needs; None is
    /// null. A template is prepared when the session first uses it. Returns the rows of the answer, or those that a write changed.
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Option<String>],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>>;

    /// Asks the server to end the statement that it executes.
    fn cancel(&self) -> LocalBoxFuture<'_, ()>;

    /// True when the server, or the network, ended the connection.
    fn is_lost(&self) -> bool;
}

/// Where a template writes, as the server itself says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WriteCheck {
    /// Number of the template.
    pub template: usize,
    /// Why it may write outside the namespace; None when the server says that it writes nowhere else.
    pub problem: Option<String>,
}
