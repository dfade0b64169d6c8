//! Apache IoTDB over REST, its table model and its tree model: statements are SQL and rows are written as tablets, or as records of devices.
//! sensorbench's namespace is a database at the server, and in the tree model also the database `root.NAMESPACE_tree`.
//!
//! A target is `iotdb://[[USER]:PASSWORD@]HOST[:PORT]`, with the port of the REST service. `wal_mode=sync|async|disable` says how the server
//! keeps its write-ahead log, which it does not report; it is what the durability class is read from.
//!
//! ```toml
//! [create]
//! statements = ["CREATE TABLE readings (site STRING TAG, sensor STRING TAG, value DOUBLE FIELD)"]
//! columns.readings = { time = "measured" }           # columns at the server that have other names in the load query
//!
//! [operation.get_sensor_data]
//! statement = "SELECT time, value FROM readings WHERE sensor = :sensor AND time >= :from AND time < :to"
//!
//! [operation.append_reading]
//! write = "readings"                                 # a row of this table; its columns are parameters,
//! columns = { site = "location" }                    # of the same names if nothing else is said
//! ```
//!
//! A schema with `paths` is one of the tree model (`tree.rs`): a table is what lies below `root.NAMESPACE_tree.TABLE`, as `{TABLE}` in statements. In
//! them, `:name@text` is a node.
//!
//! ```toml
//! [create]
//! paths.readings = ["site", "zone", "sensor"]        # columns that are nodes; time is the time, the others are measurements
//!
//! [operation.get_sensor_data]
//! statement = "SELECT value FROM {readings}.:site@text.:zone@text.:sensor@text WHERE time >= :from AND time < :to"
//! ```
//!
//! Every table has a column `time`. A row whose tags and time are those of another one takes its place. Times are whole units of the server's
//! `timestamp_precision`; what is finer is refused. Tags are text: whole numbers become their decimal digits.

mod answer;
mod driver;
mod place;
mod precision;
mod session;
mod statement;
mod table;
mod tree;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};
use serde_json::json;

use self::driver::{IotdbDriver, WAL_MODE};
use self::statement::Statement;
use self::table::IotdbSchema;
use crate::sql;
use crate::target::Target;

/// Stands for a namespace where a schema is checked without a server.
const NO_NAMESPACE: &str = "sensorbench";

/// Apache IoTDB.
pub struct IotdbDatabase;

impl Database for IotdbDatabase {
    fn about(&self) -> About {
        About {
            relational: true,
            bulk_load: Some("tablets over REST"),
            ..About::server("iotdb", "time series with tags and fields: Apache IoTDB, tables over REST")
        }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        if url.option("gzip") == Some("on") {
            return Err(url.error("option gzip=on: IoTDB's REST service takes no compressed bodies; leave it out"));
        }
        let wal_mode = match url.option(WAL_MODE) {
            None => None,
            Some(mode @ ("sync" | "async" | "disable")) => Some(mode.to_owned()),
            Some(other) => return Err(url.error(format!("option {WAL_MODE}={other}: expected sync, async or disable"))),
        };
        Ok(Box::new(IotdbDriver::new(Target::of(url, "IoTDB's REST service", 18080, &[WAL_MODE])?, wal_mode)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let is_tree = IotdbSchema::of(schema)?.paths.is_some();
        let namespace = is_tree.then_some(NO_NAMESPACE);
        schema.operations.iter().try_for_each(|operation| sql::check(operation, |operation| Statement::of(operation, namespace)))
    }

    /// The server refuses statements that read no table.
    fn no_op(&self) -> Option<Schema> {
        let operation = json!({
            "name": "nothing",
            "columns": [{"name": "variable", "type": "text"}, {"name": "value", "type": "text"}],
            "statement": {"statement": "SHOW VARIABLES"},
        });
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}
