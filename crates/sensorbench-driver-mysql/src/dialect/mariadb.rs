//! MariaDB, which takes MySQL's words.

use sensorbench_driver::About;

use super::{Dialect, relational};

/// MariaDB, which takes MySQL's words.
pub struct Mariadb;

impl Dialect for Mariadb {
    fn about(&self) -> About {
        relational("mariadb", "relational server, grown out of MySQL")
    }
}
