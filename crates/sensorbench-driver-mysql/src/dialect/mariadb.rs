//! MariaDB, which takes MySQL's words.

use super::Dialect;

/// MariaDB, which takes MySQL's words.
pub struct Mariadb;

impl Dialect for Mariadb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn summary(&self) -> &'static str {
        "relational server, grown out of MySQL"
    }
}
