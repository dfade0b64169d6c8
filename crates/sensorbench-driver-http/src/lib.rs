//! Databases whose protocol is HTTP: InfluxDB 1, 2 and 3, VictoriaMetrics, Prometheus, OpenTSDB, ClickHouse and IoTDB. A target is
//! `influxdb://[[USER]:PASSWORD@]HOST[:PORT]`, `influxdb2://:TOKEN@HOST[:PORT]?org=ORGANISATION&auth=token`, `influxdb2+flux://…`,
//! `influxdb3://:TOKEN@HOST[:PORT]?auth=bearer`, `victoriametrics://…`,
//! `prometheus://…`, `opentsdb://…`, `clickhouse://…` or `iotdb://…`. What they share is here: connections that stay open, each with one request at a time, loading, and
//! statements with parameters. Servers that take points differ in a [`protocol`], one module each; points are lines of the line protocol
//! (`line`), samples of remote write (`samples`) or JSON (`json_points`). ClickHouse (`clickhouse`) and IoTDB (`iotdb`) have tables and SQL.
//!
//! Options of the URL besides those of every server: `gzip` (on: bodies are compressed, both ways) and `auth` (basic; token or bearer:
//! the token is in the place of the password).
//!
//! ```toml
//! [create.points.readings]                # how a row of the fill becomes a point
//! measurement = "readings"                # if not given, the table's name
//! tags   = ["site", "zone", "sensor"]     # columns under their own names, or { NAME = "COLUMN" }
//! fields = ["value"]                      # the first one counts the points, and is never null
//! time   = "time"                         # if not given, the column time; with server_time = true, when the server takes the point
//! base64 = ["data"]                       # fields of bytes, which become text
//!
//! [create.points.wide]                    # the column sensor names the field that has the column value
//! tags  = ["site", "zone"]
//! named = { name = "sensor", value = "value" }
//!
//! [operation.insert_reading]
//! write = "readings"                      # a point of this table; its columns are parameters
//!
//! [operation.get_sensor_data]             # of InfluxDB; of VictoriaMetrics, Prometheus and OpenTSDB see their modules
//! query = "SELECT value FROM readings WHERE site = :site@text AND sensor = :sensor AND time >= :from AND time < :to"
//! row = ["time", "value"]                 # where the columns are in the answer; if not given, under their own names
//! ```
//!
//! Values are never put into text: InfluxDB binds them, and what it cannot bind is written by one encoder for each type (`template.rs`,
//! `points.rs`). What a server would change without a word is refused: NaN, text that is not a tag, times beyond its range or finer than
//! its unit, labels that it would cut.

mod answer;
pub mod clickhouse;
mod connection;
mod control;
mod driven;
mod driver;
mod influxdb;
mod influxdb2;
mod influxdb3;
mod iotdb;
mod json;
mod json_points;
mod line;
mod load;
mod metrics;
mod opentsdb;
mod point_form;
mod points;
mod pool;
mod prometheus;
mod promql;
mod protocol;
mod row_places;
mod samples;
mod schema;
mod series_columns;
mod session;
mod sql;
#[cfg(test)]
mod stub;
mod target;
mod template;
mod times;
mod victoriametrics;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};

use crate::clickhouse::ClickhouseDatabase;
use crate::driver::HttpDriver;
use crate::influxdb::Influxdb;
use crate::influxdb2::Influxdb2;
use crate::influxdb3::Influxdb3;
pub use crate::iotdb::IotdbDatabase;
use crate::opentsdb::Opentsdb;
use crate::prometheus::Prometheus;
use crate::protocol::{Protocol, Scope};
use crate::schema::HttpSchema;
use crate::target::Target;
use crate::victoriametrics::Victoriametrics;

/// A database that takes points over HTTP.
pub struct HttpDatabase(&'static dyn Protocol);

/// InfluxDB 1.
pub const INFLUXDB: HttpDatabase = HttpDatabase(&Influxdb);

/// InfluxDB 2.
pub const INFLUXDB2: HttpDatabase = HttpDatabase(&Influxdb2 { reads_flux: false });

/// InfluxDB 2, read by Flux.
pub const INFLUXDB2_FLUX: HttpDatabase = HttpDatabase(&Influxdb2 { reads_flux: true });

/// InfluxDB 3.
pub const INFLUXDB3: HttpDatabase = HttpDatabase(&Influxdb3);

/// VictoriaMetrics on one server.
pub const VICTORIAMETRICS: HttpDatabase = HttpDatabase(&Victoriametrics);

/// Prometheus, written by remote write.
pub const PROMETHEUS: HttpDatabase = HttpDatabase(&Prometheus);

/// OpenTSDB over HBase.
pub const OPENTSDB: HttpDatabase = HttpDatabase(&Opentsdb);

/// ClickHouse.
pub const CLICKHOUSE: ClickhouseDatabase = ClickhouseDatabase;

/// Apache IoTDB.
pub const IOTDB: IotdbDatabase = IotdbDatabase;

impl Database for HttpDatabase {
    fn about(&self) -> About {
        self.0.about()
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        self.0.check_options(url)?;
        Ok(Box::new(HttpDriver::new(self.0, Target::of(url, self.0.product(), self.0.port(), self.0.options())?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = HttpSchema::of(schema, self.0)?;
        let scope = Scope::new("sensorbench", "sensorbench:");
        schema.operations.iter().try_for_each(|operation| parsed.prepare(self.0, &scope, operation).map(drop))
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
        for database in [INFLUXDB, INFLUXDB2, INFLUXDB2_FLUX, INFLUXDB3, VICTORIAMETRICS, PROMETHEUS, OPENTSDB] {
            database.check(&database.no_op().unwrap()).unwrap();
        }
    }
}
