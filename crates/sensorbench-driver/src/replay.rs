//! What a database provides to be a target of replays: recorded statements are executed again, each session's in their order.
//!
//! When a statement starts, what it waits for, how it is counted and compared, and whose fault its lag is, are the engine's, the same for
//! all databases. A driver opens the connection of a session ([`ReplayConnector`]), prepares templates, binds literals and reads answers
//! ([`ReplayConnection`]), and says before anything is sent what templates could change ([`Driver::check_writes`](crate::Driver::check_writes)).
//! It says whose statements it takes in [`About::replays`](crate::About::replays).

use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::{DriverError, Rows};

/// The word for statements of whichever database, where nobody looks at them.
pub const ANY_STATEMENTS: &str = "any";

/// A statement of a trace with its literals taken out.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StatementTemplate {
    /// Its name in results.
    pub name: String,
    /// Its text, with `$1`, `$2`, … in the places of literals.
    pub statement: String,
    /// The keyspace that its sessions used when it was recorded, where that is known.
    #[serde(default)]
    pub keyspace: Option<String>,
    /// The consistency level that it was recorded with, in its database's words.
    #[serde(default)]
    pub consistency: Option<String>,
}

/// A literal of a recorded statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Null.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A number as it is written, with all its digits.
    Number(String),
    /// Anything else.
    Text(String),
}

impl Literal {
    /// The text that a server reads it from; None is null.
    pub fn text(&self) -> Option<&str> {
        match self {
            Literal::Null => None,
            Literal::Boolean(value) => Some(if *value { "true" } else { "false" }),
            Literal::Number(text) | Literal::Text(text) => Some(text),
        }
    }
}

/// What the connections of a replay are made for.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// The templates, in the order of their numbers.
    pub templates: Vec<StatementTemplate>,
    /// Everything that changes data must be refused: by the server itself, or by the driver where a server cannot.
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
    /// Executes a statement with its literals bound, never spliced into its text; where its transaction begins and ends are statements, too.
    /// A template is prepared when the session first uses it. Returns the rows of the answer, or those that a write changed.
    fn execute<'a>(
        &'a self,
        template: usize,
        literals: &'a [Literal],
        rows: &'a mut Rows,
    ) -> LocalBoxFuture<'a, Result<u64, DriverError>>;

    /// Asks the server to end the statement that it executes.
    fn cancel(&self) -> LocalBoxFuture<'_, ()>;

    /// True when the server, or the network, ended the connection.
    fn is_lost(&self) -> bool;
}

/// Templates that are checked before anything of a trace is sent.
#[derive(Clone, Copy, Debug)]
pub struct WriteQuestion<'a> {
    /// All templates, in the order of their numbers.
    pub templates: &'a [StatementTemplate],
    /// Numbers of those that write.
    pub writes: &'a [usize],
    /// Numbers of those that seem to read.
    pub reads: &'a [usize],
    /// They are executed by connections of a request that is `read_only`.
    pub read_only: bool,
}

/// What a template may change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WriteCheck {
    /// Number of the template.
    pub template: usize,
    /// Why it may change what it must not, tables outside the namespace or anything at all; None if it cannot.
    pub problem: Option<String>,
}
