//! MySQL, whose words are the defaults.

use sensorbench_driver::About;

use super::{Dialect, relational};

/// MySQL, whose words are the defaults.
pub struct Mysql;

impl Dialect for Mysql {
    fn about(&self) -> About {
        relational("mysql", "relational server, by Oracle")
    }
}
