//! chDB: ClickHouse's engine inside the client's process. Schemas are those of `clickhouse`; statements, types and rows are that driver's.
//!
//! Nothing is linked. The library is the one in chDB's npm package, which exports the C API (the extension of its Python package exports none);
//! it is opened when a target is.
//!
//! A target is `chdb:PATH?option=value`: a folder. Options have ClickHouse's own names: `max_threads`, `max_memory_usage`, `async_insert`.
//! The engine has one folder open in a process at a time. It is closed when another one is opened and nobody uses it.

mod driver;
mod library;
mod load;
mod session;
mod store;

use std::path::PathBuf;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};
use sensorbench_driver_http::clickhouse;

use crate::driver::ChdbDriver;
use crate::library::Library;
use crate::store::Store;

/// The driver.
pub struct ChdbDatabase {
    /// Where the library is; the error says what to do where there is none.
    pub find_library: fn() -> Result<PathBuf, String>,
}

impl Database for ChdbDatabase {
    fn about(&self) -> About {
        About {
            schemas: "clickhouse",
            relational: true,
            bulk_load: Some("inserts of many rows as RowBinary"),
            ..About::embedded("chdb", "ClickHouse of today inside the process, in one folder")
        }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        let settings = store::settings(url)?;
        let library = (self.find_library)().and_then(|path| Library::open(&path));
        let library = library.map_err(|reason| DriverError::Url(format!("chdb: {reason}")))?;
        Ok(Box::new(ChdbDriver::new(Store::of(url, library, settings))))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        clickhouse::check(schema)
    }

    fn no_op(&self) -> Option<Schema> {
        Some(clickhouse::no_op())
    }
}
