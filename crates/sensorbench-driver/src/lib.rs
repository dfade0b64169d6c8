//! The interface between the engine and databases.
//!
//! A *driver* adapts one kind of database. It is opened for a *target*, puts a *schema* there, loads its tables, and
//! gives *sessions* that execute operations. Sessions are asynchronous (network protocols) or blocking (embedded
//! databases, libraries that block); the engine measures both in the same way.
//!
//! Every driver passes the suite in [`contract`].

mod administration;
mod braces;
pub mod calendar;
pub mod contract;
mod conversion;
mod deadline;
mod digest;
mod driver;
mod error;
mod folder;
mod guard;
mod kept;
mod keyed;
mod lender;
mod named;
mod null;
mod numbered;
mod opened_once;
mod ownership;
pub mod pipeline;
mod progress;
mod replay;
mod rows;
mod runtime;
mod schema;
mod server;
mod sql;
mod tls;
mod url;
mod watch;

pub use administration::{Administration, Described};
pub use braces::{is_word, place_tables};
pub use conversion::{ConversionError, fixed, narrowed};
pub use deadline::Deadline;
pub use digest::{Digest, digest, digest_of_all_columns, row_hash};
pub use driver::{
    About, AsyncConnector, AsyncSession, BlockingConnector, BlockingSession, Database, Description, Driver, Executing, Request,
    Sessions, Size,
};
pub use error::{DriverError, ErrorKind};
pub use folder::Folder;
pub use guard::{Intent, NamespaceGuard};
pub use kept::KeptSchema;
pub use keyed::{KeyRange, KeyRangeNames, KeyedSchema, KeyedTable, OperationPlace};
pub use lender::{Lender, Loan};
pub use named::{Placeholder, Positional};
pub use null::NullDatabase;
pub use numbered::{Quotes, check_literals};
pub use opened_once::OpenedOnce;
pub use ownership::{Admission, Marker, Occupant, Owner};
pub use progress::Progress;
pub use replay::{
    ANY_STATEMENTS, Literal, ReplayConnection, ReplayConnector, ReplayRequest, StatementTemplate, WriteCheck, WriteQuestion,
};
pub use rows::{RowRef, Rows};
pub use runtime::runtime;
pub use schema::{Column, Direction, Operation, Order, Parameter, Schema, SchemaError, parse_part};
pub use server::{Login, SERVER_OPTIONS, Server, Tls, TlsMode, is_namespace, namespace_of};
pub use sql::{SqlSchema, SqlStatement, quoted};
pub use url::{TargetUrl, is_secret};
pub use watch::{Interrupt, Running, Watch};

pub use sensorbench_dataset::{Type, Value, ValueRef};
