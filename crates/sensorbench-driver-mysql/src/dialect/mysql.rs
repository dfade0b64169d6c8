//! MySQL, whose words are the defaults.

use super::Dialect;

/// MySQL, whose words are the defaults.
pub struct Mysql;

impl Dialect for Mysql {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn summary(&self) -> &'static str {
        "relational server, by Oracle"
    }
}
