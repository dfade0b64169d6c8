//! fjall, a log-structured key-value store inside the client's process: a table is a keyspace whose keys sort like the
//! key columns, an operation is one contiguous range of keys or one write, and the whole folder is sensorbench's
//! namespace. A write that changes some columns of a row reads it first, under a lock of the row.

mod driver;
mod load;
mod locks;
mod operation;
mod session;
mod table;
mod target;

use sensorbench_driver::{Database, Driver, DriverError, Schema, TargetUrl};
use serde_json::json;

use crate::driver::FjallDriver;
use crate::operation::Prepared;
use crate::table::FjallSchema;
use crate::target::Target;

/// The driver.
pub struct FjallDatabase;

impl Database for FjallDatabase {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn summary(&self) -> &'static str {
        "log-structured key-value store in one folder, inside the process"
    }

    fn embedded(&self) -> bool {
        true
    }

    fn bulk_load(&self) -> Option<&'static str> {
        Some("sorted tables, past journal and memtables")
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

/// What fjall's errors say is the text of Rust's debugger; only what the operating system says is for people.
fn fjall_error(error: fjall::Error) -> DriverError {
    let mut causes = std::iter::successors(Some(&error as &dyn std::error::Error), |cause| cause.source());
    if let Some(system) = causes.find_map(|cause| cause.downcast_ref::<std::io::Error>()) {
        return DriverError::Statement(system.to_string());
    }
    let said = match error {
        fjall::Error::Locked => "another process, or another target of this one, has it open",
        fjall::Error::Poisoned => "a write failed before, and it takes no more of them until it is opened again",
        fjall::Error::KeyspaceDeleted => "the table was removed meanwhile",
        _ => "its files are damaged, or of another version of fjall; load it again with --replace",
    };
    DriverError::Statement(said.to_owned())
}
