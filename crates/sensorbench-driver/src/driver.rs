//! What a driver is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    Admission, Deadline, DriverError, Marker, Occupant, Operation, Progress, ReplayConnector, ReplayRequest, Rows, Schema,
    TargetUrl, Value, WriteCheck, WriteQuestion,
};

/// What a kind of database is.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, which is also the scheme of its URLs and the word in schema files.
    pub name: &'static str,
    /// The word in schema files, where databases share their schemas.
    pub schemas: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// True when it runs inside this process and a target is a path.
    pub embedded: bool,
    /// True when all its data lie in memory.
    pub in_memory: bool,
    /// True when several processes may use a target at the same time.
    pub many_processes: bool,
    /// True when it is a relational database.
    pub relational: bool,
    /// What the database has for much data at once, past its ordinary writes, and loading goes by, always or by a target's option.
    /// None if rows are loaded by ordinary writes.
    pub bulk_load: Option<&'static str>,
    /// Whose recorded statements it executes again, by the name that traces have of them; [`ANY_STATEMENTS`](crate::ANY_STATEMENTS) where
    /// it looks at none. None if it cannot be replayed at.
    pub replays: Option<&'static str>,
}

impl About {
    /// A database of servers, with schemas of its own.
    pub const fn server(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            schemas: name,
            summary,
            embedded: false,
            in_memory: false,
            many_processes: true,
            relational: false,
            bulk_load: None,
            replays: None,
        }
    }

    /// A database inside this process, with schemas of its own.
    pub const fn embedded(name: &'static str, summary: &'static str) -> Self {
        Self { embedded: true, many_processes: false, ..Self::server(name, summary) }
    }
}

/// A kind of database. One static value a driver crate, registered by name.
pub trait Database: Sync {
    /// What it is.
    fn about(&self) -> About;

    /// The database's name, which is also the scheme of its URLs and the word in schema files.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// The word in schema files, where databases share their schemas.
    fn dialect(&self) -> &'static str {
        self.about().schemas
    }

    /// Opens a target. Nothing is created or changed there yet.
    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError>;

    /// Refuses a schema that cannot work, as far as can be known without a target.
    fn check(&self, schema: &Schema) -> Result<(), DriverError>;

    /// A schema with one operation that does as little as this database can: what the driver itself costs. None when only
    /// a server knows.
    fn no_op(&self) -> Option<Schema>;
}

/// An open target. Its methods block; nothing here is measured operation by operation.
pub trait Driver: Send + Sync {
    /// What answers there.
    fn describe(&self) -> Result<Description, DriverError>;

    /// The namespace as messages name it: which kind of thing, its name, and where.
    fn namespace(&self) -> String;

    /// What to do where the namespace is not free.
    fn elsewhere(&self) -> &'static str {
        "name another one with namespace= in the URL"
    }

    /// Who occupies the namespace. Nothing is changed.
    fn occupant(&self) -> Result<Occupant, DriverError>;

    /// Creates the namespace with its marker and the schema's empty tables. Where the admission says so, what sensorbench created there
    /// is removed first.
    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError>;

    /// Uses tables that sensorbench created before.
    fn attach(&self, schema: &Schema) -> Result<(), DriverError>;

    /// Writes another marker into a namespace that has one.
    fn write_marker(&self, marker: &Marker, admission: &Admission) -> Result<(), DriverError>;

    /// Removes the namespace.
    fn remove(&self, admission: &Admission) -> Result<(), DriverError>;

    /// Names of all namespaces at the target that carry a marker of ours; of one that only the URL can name, that one or none.
    fn namespaces(&self) -> Result<Vec<String>, DriverError>;

    /// Loads rows into a table as fast as the database takes them. Columns are found by name.
    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError>;

    /// Writes rows to a file that the database's own tool loads, where only the driver knows what such a file looks like.
    fn write_load_file(
        &self,
        _table: &str,
        _rows: Box<dyn RecordBatchReader + Send>,
        _file: &Path,
        _progress: &Progress,
    ) -> Result<(), DriverError> {
        Err(DriverError::Data("this driver writes no files for another loader".to_owned()))
    }

    /// Does what belongs to loading and comes after it: flushes, compactions, indexes, statistics.
    fn settle(&self) -> Result<(), DriverError>;

    /// Makes visible what was written, where a server acknowledges before that; nothing else.
    fn show(&self) -> Result<(), DriverError> {
        Ok(())
    }

    /// Counts the rows of a table, by looking at them.
    fn count(&self, table: &str) -> Result<u64, DriverError>;

    /// Counts the rows of a table, where `missing` says of how many rows a column has no value. Servers that keep the values of a row each by
    /// itself count those; the others have rows to count.
    fn count_incomplete(&self, table: &str, _missing: &BTreeMap<String, u64>) -> Result<u64, DriverError> {
        self.count(table)
    }

    /// Bytes on disk.
    fn size(&self) -> Result<Size, DriverError>;

    /// Counters and gauges that the server keeps of itself, by its own names: what is going on inside, for servers of anybody.
    /// Nothing where there is no server.
    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        Ok(BTreeMap::new())
    }

    /// Sessions that execute these operations of the schema.
    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError>;

    /// Connections that execute recorded statements, where the driver can do that.
    fn replayer(&self, _request: ReplayRequest) -> Result<Box<dyn ReplayConnector>, DriverError> {
        Err(cannot_replay())
    }

    /// Finds out, without executing anything, whether templates write only to tables of the namespace, or nowhere where they may only read.
    fn check_writes(&self, _question: WriteQuestion) -> Result<Vec<WriteCheck>, DriverError> {
        Err(cannot_replay())
    }
}

fn cannot_replay() -> DriverError {
    DriverError::Url("this driver cannot execute recorded statements".to_owned())
}

/// What answers at a target.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Description {
    /// Name of the database that answers.
    pub database: String,
    /// Its version.
    pub version: String,
    /// Settings that matter to speed and durability, in the database's own words. No secrets.
    pub settings: BTreeMap<String, String>,
}

/// Bytes on disk.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Size {
    /// Everything that belongs to sensorbench's namespace, logs included.
    pub total_bytes: u64,
    /// Why nobody knows; the total is then 0 and means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Tables and indexes by name, where the database reports it.
    pub parts: BTreeMap<String, u64>,
    /// The largest partition of each table, if the database has partitions and reports them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub largest_partitions: BTreeMap<String, u64>,
}

/// How operations are executed.
pub enum Sessions {
    /// One session serves many operations in flight; its futures are polled by one thread.
    Asynchronous(Box<dyn AsyncConnector>),
    /// A session serves one operation at a time on a thread of its own.
    Blocking(Box<dyn BlockingConnector>),
}

/// Makes asynchronous sessions, one for each engine thread.
pub trait AsyncConnector: Send + Sync {
    /// Connects and prepares, inside the runtime that will poll the session's futures, for at most `concurrency` operations at
    /// a time.
    fn connect(&self, concurrency: usize) -> LocalBoxFuture<'_, Result<Box<dyn AsyncSession>, DriverError>>;
}

/// Makes blocking sessions, one for each operation in flight.
pub trait BlockingConnector: Send + Sync {
    /// Connects and prepares. The session gives up an operation when the deadline has passed.
    fn connect(&self, deadline: Arc<Deadline>) -> Result<Box<dyn BlockingSession>, DriverError>;
}

/// An operation to execute, and where its answer goes. The engine uses it again for the next operation.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Number of the operation among those that the sessions were made for.
    pub operation: usize,
    /// Values of its parameters, in declared order.
    pub parameters: Vec<Value>,
    /// The rows of its answer.
    pub rows: Rows,
}

/// A request that is being executed. It comes back with how it ended.
pub type Executing<'a> = LocalBoxFuture<'a, (Box<Request>, Result<(), DriverError>)>;

/// A connection that executes operations, many at a time.
pub trait AsyncSession {
    /// Executes an operation and drains its whole answer into the request's rows. The future is dropped when the operation
    /// times out or is cancelled; the session must then still be usable.
    fn execute(&self, request: Box<Request>) -> Executing<'_>;

    /// Whether an operation takes the parameters of several rows, one row after the other, and writes all of them by one request.
    fn writes_many(&self, _operation: usize) -> bool {
        false
    }
}

/// A connection that executes operations, one at a time.
pub trait BlockingSession {
    /// Executes an operation and drains its whole answer into the request's rows; gives up when its deadline has passed.
    /// The session must be usable after any error.
    fn execute(&mut self, request: &mut Request) -> Result<(), DriverError>;

    /// Whether an operation takes the parameters of several rows, one row after the other, and writes all of them by one request.
    fn writes_many(&self, _operation: usize) -> bool {
        false
    }
}
