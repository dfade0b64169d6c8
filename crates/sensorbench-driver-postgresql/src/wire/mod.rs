//! The protocol of PostgreSQL, which other databases speak, too: connections and their pool, prepared operations, binary COPY, values.
//! What the databases word differently they say as a [`Dialect`](crate::dialect::Dialect).

mod connection;
mod control;
mod copy;
pub mod errors;
mod inserts;
mod lent;
mod messages;
mod numeric;
mod opener;
mod password_file;
mod pool;
mod prepared;
mod replay;
mod session;
mod stream;
mod tables;
mod target;
pub mod values;

pub use control::Control;
pub use copy::{LoadOrder, Rows, copy};
pub use inserts::{insert, insert_many};
pub use replay::{Replayer, check_reads, check_writes};
pub use session::Connector;
pub use tables::{check_tables, run, table_forms};
pub use target::Target;
