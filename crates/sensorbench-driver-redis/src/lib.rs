//! Redis and Redis Cluster. A target is `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or
//! `redis+cluster://HOST[:PORT],…` with some nodes of a cluster; sensorbench's namespace is all keys that begin with
//! `<namespace>:`. Both read the same schema files (`database = "redis"`):
//!
//! ```toml
//! [create.table.readings]                       # a table: keys of one form, here sensorbench:readings:5:2:AC1
//! key   = "{site}:{zone}:{sensor}"              # nothing: the whole table is under one key
//! write = ["ZADD", "{time}", "{time}:{value}"]  # writes a row of the fill; the key is put in after the name
//! row   = "member"                              # what count counts: members of keys, or keys (row = "key")
//!
//! [operation.get_sensor_data]
//! table   = "readings"
//! key     = "{site}:{zone}:{sensor}"            # if not given, as in the table
//! command = ["ZRANGEBYSCORE", "{from}", "({to}"]
//! row     = ["{time}:{value}"]                  # what elements of the reply look like that make a row
//! ```
//!
//! A *word* is a text, in which `{name}` stands for a column (in `write`) or a parameter (in `command`) and `{{` for a brace,
//! or `{ prefix = "[", key = ["time", "id"], record = ["value"] }`: bytes that sort like the values of `key`, followed by those
//! of `record`, which may be null. With the first, all scores 0 and ZRANGEBYLEX, ranges are exact whatever the type. Words in a
//! list of their own, `["HSET", "id", "{id}", ["name", "{name}"]]`, are left out together when a value in them is null; elsewhere
//! null is an error. As text, times are µs since 1970.
//!
//! *Elements* of a reply are read by words, too, as many at a time as `row` has: `["{value}", "{time}"]` for WITHSCORES,
//! `["time", "{time}", "value", "{value}"]` for HGETALL; without `row` each element is one column, in their order, as HMGET and
//! ZCARD answer. In a text, a value ends where the text after it begins. Arrays within arrays are read as one (TS.RANGE); nil is
//! null, and where all elements of a row are nil, there is no row.
//!
//! Commands come from a list: those that touch nothing but the key after their name. Consecutive rows of a fill with the same key
//! share a command, so that a fill is best sorted by the key.
//!
//! Each client thread keeps `connections=` connections to each master; if that is not given, as many as it may have operations in
//! flight, at most 50. Operations beyond that are pipelined, those that are ready together in one packet. Redis cannot cancel a
//! command: what it answers to an operation that timed out is thrown away when it comes.
//!
//! Sizes are of memory, not of disk.

mod answer;
mod cluster;
mod command;
mod connection;
mod control;
mod control_connection;
mod driver;
mod load;
mod load_file;
mod operation;
mod pool;
mod recorded_command;
mod recorded_reply;
mod replay;
mod reply;
mod resp;
mod schema;
mod session;
mod target;
mod text;
mod word;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};
use serde_json::json;

use crate::driver::RedisDriver;
use crate::operation::Prepared;
use crate::schema::RedisSchema;
use crate::target::Target;

const NAME: &str = "redis";

/// The driver of a single server.
pub struct RedisDatabase;

/// The driver of a cluster, which differs only in where a key is.
pub struct RedisClusterDatabase;

impl Database for RedisDatabase {
    fn about(&self) -> About {
        About { in_memory: true, replays: Some(NAME), ..About::server(NAME, "data structures in memory, a single server") }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(RedisDriver::new(Target::of(url, false)?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        check(schema)
    }

    fn no_op(&self) -> Option<Schema> {
        Some(no_op())
    }
}

impl Database for RedisClusterDatabase {
    fn about(&self) -> About {
        let summary = "data structures in memory, a cluster whose masters share the keys";
        About { in_memory: true, replays: Some(NAME), schemas: NAME, ..About::server("redis+cluster", summary) }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(RedisDriver::new(Target::of(url, true)?)))
    }

    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        check(schema)
    }

    fn no_op(&self) -> Option<Schema> {
        Some(no_op())
    }
}

fn check(schema: &Schema) -> Result<(), DriverError> {
    let parsed = RedisSchema::of(schema, "sensorbench")?;
    for operation in &schema.operations {
        Prepared::of(&parsed, operation)?;
    }
    Ok(())
}

/// GET of a key that is not there.
fn no_op() -> Schema {
    let schema = json!({
        "create": {"table": {"empty": {}}},
        "operations": [{
            "name": "nothing",
            "columns": [{"name": "value", "type": "bytes"}],
            "statement": {"table": "empty", "command": ["GET"]},
        }],
    });
    serde_json::from_value(schema).expect("a schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_take_the_same_schemas() {
        for database in [&RedisDatabase as &dyn Database, &RedisClusterDatabase] {
            assert_eq!(database.dialect(), "redis");
            database.check(&database.no_op().unwrap()).unwrap();
        }
    }
}
