//! DuckDB, inside the client's process: statements are SQL, a target is the path of a file, and the whole file is sensorbench's namespace.
//!
//! Nothing is linked. The library is the one in DuckDB's Python package, which exports the whole C API; it is opened when a target is, or a
//! schema is checked.
//!
//! A target is `duckdb:PATH?option=value`. Options have DuckDB's own names: `threads`, `memory_limit`, `fsync_mode`, `checkpoint_threshold`.

mod driver;
mod errors;
mod library;
mod load;
mod schema;
mod session;
mod target;

use std::path::PathBuf;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::driver::DuckdbDriver;
use crate::library::Library;
use crate::target::Target;

/// The driver.
pub struct DuckdbDatabase {
    /// Where the library is; the error says what to do where there is none.
    pub find_library: fn() -> Result<PathBuf, String>,
}

impl DuckdbDatabase {
    fn library(&self) -> Result<&'static Library, DriverError> {
        (self.find_library)()
            .and_then(|path| Library::open(&path))
            .map_err(|reason| DriverError::Url(format!("duckdb: {reason}")))
    }
}

impl Database for DuckdbDatabase {
    fn about(&self) -> About {
        About {
            relational: true,
            bulk_load: Some("the appender, by columns"),
            ..About::embedded("duckdb", "analytical relational database in one file, by columns, inside the process")
        }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(DuckdbDriver::new(Target::of(url, self.library()?)?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        schema::check(self.library()?, &SqlSchema::of(schema)?, &schema.operations)
    }

    fn no_op(&self) -> Option<Schema> {
        let operation =
            json!({"name": "nothing", "columns": [{"name": "one", "type": "integer"}], "statement": {"statement": "SELECT 1"}});
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}
