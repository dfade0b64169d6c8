//! ClickHouse over HTTP: statements are SQL, rows are written as RowBinary and answers read as Native. sensorbench's namespace is a
//! database at the server.
//!
//! A target is `clickhouse://[[USER]:PASSWORD@]HOST[:PORT]`. Options of the URL are those of all servers that speak HTTP.
//!
//! ```toml
//! [create]
//! statements = ["CREATE TABLE readings (sensor String, time Int64, value Float64) ENGINE = MergeTree ORDER BY (sensor, time)"]
//!
//! [settle]
//! statements = ["OPTIMIZE TABLE readings FINAL"]     # merges that are already running are waited for in any case
//!
//! [operation.get_sensor_data]
//! statement = "SELECT time, value FROM readings WHERE sensor = :sensor AND time >= :from AND time < :to ORDER BY time"
//!
//! [operation.append_reading]
//! write = "readings"                                 # a row of this table; its columns are parameters,
//! columns = { location = "site" }                    # of the same names if nothing else is said
//! ```
//!
//! A parameter that is a time is a number of µs since 1970, and so is an answer's, unless its column is a DateTime or DateTime64. What a
//! column's type would change is refused, such as a time with a fraction of a second for a DateTime.

mod client;
mod driver;
mod native;
mod session;
mod statement;
mod table;
mod types;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

pub use self::client::{Client, Engine};
use self::driver::ClickhouseDriver;
pub use self::native::Answer;
pub use self::session::Prepared;
pub use self::statement::{Statement, name};
pub use self::table::{FORMAT, FULL_BATCH, Table};
use crate::sql;
use crate::target::Target;

/// ClickHouse.
pub struct ClickhouseDatabase;

impl Database for ClickhouseDatabase {
    fn about(&self) -> About {
        About {
            relational: true,
            bulk_load: Some("inserts of many rows as RowBinary"),
            ..About::server("clickhouse", "analytical relational database, by columns")
        }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(ClickhouseDriver::new(Target::of(url, "ClickHouse", 8123, &[])?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        check(schema)
    }

    fn no_op(&self) -> Option<Schema> {
        Some(no_op())
    }
}

/// Refuses a schema that cannot work, as far as that is known without an engine.
pub fn check(schema: &Schema) -> Result<(), DriverError> {
    SqlSchema::of(schema)?;
    schema.operations.iter().try_for_each(|operation| sql::check(operation, Statement::of))
}

/// A schema with the one operation that does least.
pub fn no_op() -> Schema {
    let operation = json!({
        "name": "nothing",
        "columns": [{"name": "one", "type": "integer"}],
        "statement": {"statement": "SELECT 1"},
    });
    serde_json::from_value(json!({"operations": [operation]})).expect("a schema")
}
