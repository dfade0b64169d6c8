//! MySQL, MariaDB, and databases that speak their protocol. MySQL and MariaDB are two names for one driver, because schema files, studies and reports distinguish them. They speak the same
//! protocol and understand the same schema words; `describe` says which of the two really answers.
//!
//! `wire/` has the protocol, the same for all: connections, their pool, LOAD DATA LOCAL, values. What a database words in another way is a
//! [`Dialect`](dialect::Dialect): a file in `dialect/`, and one line where databases are registered.
//!
//! A target is `mysql://user:password@host:3306/database?option=value` or `mariadb://…` with the options that every server has
//! (see [`Server`](sensorbench_driver::Server)) and no others. sensorbench's own tables are in a database of the namespace's name,
//! which it creates itself; the database in the URL is only the one to log in to.
//!
//! Schema files have `statements` in `[create]` and `[settle]`, and a `statement` with `:named` parameters in `[operation.NAME]`.
//!
//! | type | column | |
//! |---|---|---|
//! | boolean | `BOOLEAN` | |
//! | integer | `TINYINT` … `BIGINT` | |
//! | double | `DOUBLE` | stores neither NaN nor infinities; `FLOAT` and `DECIMAL` are refused, because they round |
//! | timestamp | `DATETIME(6)`, `TIMESTAMP(6)`, `BIGINT` | UTC; `BIGINT` holds microseconds since 1970 |
//! | text | `VARCHAR`, `TEXT` | compared by code points, unless the schema names another `COLLATE` |
//! | bytes | `VARBINARY`, `BLOB` | |
//!
//! Parameters of type timestamp are bound as `DATETIME(6)`. Where an operation meets `BIGINT` columns, it says
//! `timestamps = "microseconds"` beside its statement.
//!
//! The protocol answers one statement after the other, so that a connection serves one operation at a time. A session opens as
//! many connections as there may be operations in flight, at most [`MAX_CONNECTIONS`] unless the URL says `connections=`;
//! operations beyond that wait inside the session for a free one, which is part of their service time. One more connection
//! is there to cancel statements by KILL QUERY. Behind an address that leads to several servers, where a KILL could meet the wrong one,
//! connections are given up instead.
//!
//! Rows are loaded by LOAD DATA LOCAL, which the server must allow (`local_infile`).

mod database;
pub mod dialect;
mod driver;
mod namespace;
mod wire;

pub use database::MysqlWire;
pub use dialect::{Mariadb, Mysql};
pub use wire::MAX_CONNECTIONS;
