//! The protocol of MySQL, which other databases speak, too: connections and their pool, prepared statements, LOAD DATA LOCAL, values.
//! What the databases word differently they say as a [`Dialect`](crate::dialect::Dialect).

mod calendar;
mod link;
mod load;
mod places;
mod pool;
mod replay;
mod schema;
mod session;
mod statement;
mod text;
mod values;
mod written;

pub use link::Link;
pub use load::load;
pub use replay::Replayer;
pub use schema::{check_tables, run};
pub use session::{Connector, MAX_CONNECTIONS};
pub use statement::Statement;
pub use written::check_writes;
