//! PostgreSQL, and databases that speak its protocol: statements are SQL, and sensorbench's namespace is a schema in the database that the
//! URL names.
//!
//! `wire/` has the protocol, the same for all: connections, their pool, binary COPY, values. What a database words in another way is a
//! [`Dialect`](dialect::Dialect): a file in `dialect/`, and one line where databases are registered.
//!
//! Options of PostgreSQL's URL besides those of every server: `synchronous_commit` (on, off, local, remote_write or remote_apply), set
//! in every session; the server's own if not given. Those of other
//! databases are in `dialect/`.

mod database;
pub mod dialect;
mod driver;
mod lines;
mod namespace;
mod statement;
mod wire;

pub use database::PostgresqlWire;
pub use dialect::{Cratedb, Greptimedb, Postgresql, Questdb, Timescaledb};
