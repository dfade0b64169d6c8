//! Databases whose protocol is HTTP: InfluxDB 1 and VictoriaMetrics. A target is `influxdb://[[USER]:PASSWORD@]HOST[:PORT]` or
//! `victoriametrics://…`. What they share is here: connections that stay open, each with one request at a time, the line protocol,
//! loading, and statements with parameters. What they differ in is a [`protocol`], one module each.
//!
//! Options of the URL besides those of every server: `gzip` (on: bodies are compressed, both ways) and `auth` (basic; token or bearer:
//! the token is in the place of the password).
//!
//! ```toml
//! [create.points.readings]                # how a row of the fill becomes a point
//! measurement = "readings"                # if not given, the table's name
//! tags   = ["site", "zone", "sensor"]     # columns under their own names, or { NAME = "COLUMN" }
//! fields = ["value"]                      # the first one counts the points, and is never null
//! time   = "time"                         # if not given, the column time
//! base64 = ["data"]                       # fields of bytes, which become text
//!
//! [create.points.wide]                    # the column sensor names the field that has the column value
//! tags  = ["site", "zone"]
//! named = { name = "sensor", value = "value" }
//!
//! [operation.insert_reading]
//! write = "readings"                      # a point of this table; its columns are parameters
//!
//! [operation.get_sensor_data]             # of InfluxDB; of VictoriaMetrics see its module
//! query = "SELECT value FROM readings WHERE site = :site@text AND sensor = :sensor AND time >= :from AND time < :to"
//! row = ["time", "value"]                 # where the columns are in the answer; if not given, under their own names
//! ```
//!
//! Values are never put into text: InfluxDB binds them, and what it cannot bind is written by one encoder for each type (`template.rs`,
//! `points.rs`). What a server would change without a word is refused: NaN, text that is no tag, times beyond its range or finer than
//! its unit, labels that it would cut.

mod answer;
mod connection;
mod control;
mod driver;
mod influxdb;
mod json;
mod load;
mod points;
mod pool;
mod protocol;
mod schema;
mod session;
mod target;
mod template;
mod victoriametrics;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};

use crate::driver::HttpDriver;
use crate::influxdb::Influxdb;
use crate::protocol::Protocol;
use crate::schema::HttpSchema;
use crate::target::Target;
use crate::victoriametrics::Victoriametrics;

/// A database that speaks HTTP.
pub struct HttpDatabase(&'static dyn Protocol);

/// InfluxDB 1.
pub const INFLUXDB: HttpDatabase = HttpDatabase(&Influxdb);

/// VictoriaMetrics on one server.
pub const VICTORIAMETRICS: HttpDatabase = HttpDatabase(&Victoriametrics);

impl Database for HttpDatabase {
    fn about(&self) -> About {
        self.0.about()
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(HttpDriver::new(self.0, Target::of(url, self.0.product(), self.0.port())?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = HttpSchema::of(schema, self.0)?;
        schema.operations.iter().try_for_each(|operation| parsed.prepare(self.0, "sensorbench", operation).map(drop))
    }

    fn no_op(&self) -> Option<Schema> {
        Some(serde_json::from_value(serde_json::json!({"operations": [self.0.no_op()]})).expect("a schema"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_a_database_does_is_a_sound_schema() {
        for database in [INFLUXDB, VICTORIAMETRICS] {
            database.check(&database.no_op().unwrap()).unwrap();
        }
    }
}
