//! fjall, a log-structured key-value store inside the client's process: a table is a keyspace whose keys sort like the
//! key columns, an operation is one contiguous range of keys or one write, and the whole folder is sensorbench's
//! namespace. A write that changes some columns of a row reads it first, under a lock of the row.

mod driver;
mod errors;
mod load;
mod locks;
mod operation;
mod session;
mod table;
mod target;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};
use serde_json::json;

use crate::driver::FjallDriver;
use crate::operation::Prepared;
use crate::table::FjallSchema;
use crate::target::Target;

/// The driver.
pub struct FjallDatabase;

impl Database for FjallDatabase {
    fn about(&self) -> About {
        let bulk_load = Some("sorted tables, past journal and memtables");
        About { bulk_load, ..About::embedded("fjall", "log-structured key-value store in one folder, inside the process") }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(FjallDriver::new(Target::of(url)?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = FjallSchema::of(schema)?;
        for operation in &schema.operations {
            Prepared::of(&parsed, operation)?;
        }
        Ok(())
    }

    fn no_op(&self) -> Option<Schema> {
        let schema = json!({
            "create": {"table": {"empty": {"key": [{"name": "id", "type": "integer"}]}}},
            "operations": [{"name": "nothing", "columns": [{"name": "id", "type": "integer"}], "statement": {"scan": {"table": "empty"}}}],
        });
        Some(serde_json::from_value(schema).expect("a schema"))
    }
}
