//! HBase, through its Thrift 2 gateways, one for each region server.
//!
//! A target is `hbase://HOST[:PORT][,HOST[:PORT]]…?option=value`, where each host is a gateway (port 9090). Beside the options of every
//! server there are
//!
//! | option | | if not given |
//! |---|---|---|
//! | `durability` | what a write waits for: `default` (the table's own), `skip`, `async`, `sync`, `fsync` | `default` |
//! | `load_durability` | the same while tables are loaded | as `durability` |
//! | `page` | rows that a gateway sends in one answer | 1000 |
//! | `scanner_caching` | rows that a gateway fetches from a region server at a time | as `page` |
//! | `transport` | `buffered` or `framed`, as the gateways were started | `buffered` |
//! | `connections` | the most connections of a run; operations beyond that wait | one for each operation in flight |
//! | `admin` | `HOST:PORT` of the lab's administration, which does what gateways cannot: flushes, compactions, sizes, counters | |
//!
//! A table's row key is made of columns in bytes that sort like their values, so that rows lie in the order of these columns. Columns
//! of the value are a cell each, a null is no cell. Where readings stand beside one another in a row, the time within a period is the
//! qualifier of a cell, or its version. What region servers cannot do for a gateway, as reducing rows, is done by the client.

mod admin;
mod bindings;
mod cells;
mod driver;
mod errors;
mod filter;
mod load;
mod namespace;
mod operation;
mod pool;
mod requests;
mod rows;
mod scanning;
mod session;
mod table;
mod target;
mod wire;

use sensorbench_driver::{Database, Driver, DriverError, Schema, TargetUrl};

use crate::driver::HbaseDriver;
use crate::operation::Prepared;
use crate::table::HbaseSchema;
use crate::target::Target;

/// The driver.
pub struct HbaseDatabase;

impl Database for HbaseDatabase {
    fn name(&self) -> &'static str {
        "hbase"
    }

    fn summary(&self) -> &'static str {
        "HBase, through its Thrift gateways"
    }

    fn embedded(&self) -> bool {
        false
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(HbaseDriver::new(Target::of(url)?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = HbaseSchema::of(schema)?;
        for operation in &schema.operations {
            Prepared::of(&parsed, operation)?;
        }
        Ok(())
    }

    fn no_op(&self) -> Option<Schema> {
        None
    }
}
