//! PostgreSQL itself, whose words are the defaults.

use super::Dialect;

/// PostgreSQL.
pub struct Postgresql;

impl Dialect for Postgresql {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn product(&self) -> &'static str {
        "PostgreSQL"
    }

    fn summary(&self) -> &'static str {
        "relational database server"
    }
}
