//! PostgreSQL itself, whose words are the defaults.

use sensorbench_driver::About;

use super::{Dialect, relational};

/// PostgreSQL.
pub struct Postgresql;

impl Dialect for Postgresql {
    fn about(&self) -> About {
        relational("postgresql", "relational database server")
    }

    fn product(&self) -> &'static str {
        "PostgreSQL"
    }
}
