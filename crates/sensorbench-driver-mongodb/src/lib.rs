//! MongoDB, and servers that speak its protocol; `describe` says which one answers. A target is
//! `mongodb://[[USER[:PASSWORD]]@]HOST[:PORT],…[/AUTHENTICATION_DATABASE]`: a server, some members of a replica set, or some
//! routers of a sharded cluster. sensorbench's namespace is a database of its own.
//!
//! Options of the URL besides those of every server: `write_concern` (a number of members above zero, `majority`, or a name that
//! the deployment defines), `journal` (on or off), `read_concern` (local, available, majority, linearizable, snapshot),
//! `read_preference` (primary, primary_preferred, secondary, secondary_preferred, nearest), `replica_set`, `direct` (on: the named
//! server alone, whatever it belongs to), and `auth_mechanism` (scram-sha-1, scram-sha-256, plain, x509). What is not given is the
//! server's or the deployment's own; of a target `ferretdb://…`, the mechanism is plain.
//!
//! A schema's words are MongoDB's command documents:
//!
//! ```toml
//! [create]
//! commands = [
//!     { create = "readings" },
//!     { createIndexes = "readings", indexes = [{ name = "key", key = { sensor = 1, time = 1 } }] },
//! ]
//!
//! [create.documents.readings]             # a row of the fill as a document; if not given, its columns as they are
//! document = { sensor = ":sensor", time = { "$date" = ":time" }, value = ":value" }
//!
//! [operation.get_sensor_data]
//! command = { find = "readings", filter = { sensor = ":sensor", time = { "$gte" = { "$date" = ":from" } } } }
//! row = ["time", "value"]                 # where the columns are in a document; if not given, under their own names
//! ```
//!
//! A text that is `:name` as a whole stands for the value of a parameter or column, which is bound with its type and never put into
//! text; `::name` is the text `:name`. Integers are bound as the shortest of int and long; times as a long of µs since 1970, or
//! within `{ "$date" = ":time" }` as a date, which has milliseconds and refuses more. Other values are Extended JSON.
//!
//! In keys and names of collections, `:number`, and of a time `:time@day` (days since 1970), `:time@hour` (of the day) and
//! `:time@minute` (of the hour) stand for whole numbers: they make slots within a document, and collections of time buckets.
//!
//! ```toml
//! [create.documents.readings_by_day]      # rows that follow each other and give the same document share it
//! document = { sensor = ":sensor", day = { "$date" = ":day" } }
//! each = { "hours.:time@hour.:time@minute" = ":value" }
//! preallocated = true                     # every slot is there from the start, with null
//!
//! [operation.get_sensor_data]
//! command = { find = "readings_by_day", filter = { sensor = ":sensor" } }
//! slots = { field = "hours", start = "day", levels = ["hour", "minute"], from = ":from", to = ":to" }
//! ```
//!
//! Slots are read as rows with the columns `time` and `value`.

mod answer;
mod command;
mod control;
mod conversion;
mod documents;
mod driver;
mod errors;
mod load;
mod names;
mod namespace;
mod observe;
#[cfg(test)]
mod router;
mod schema;
mod session;
mod slots;
mod target;
mod template;

use std::sync::Arc;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, TargetUrl};
use serde_json::json;

use crate::command::Prepared;
use crate::driver::MongodbDriver;
use crate::schema::MongodbSchema;
use crate::target::Target;

const NAME: &str = "mongodb";

/// MongoDB itself.
pub const MONGODB: About = About::server(NAME, "documents: MongoDB, or what speaks its protocol");
/// FerretDB with its data in SQLite.
pub const FERRETDB: About = About { schemas: NAME, ..About::server("ferretdb", "documents: MongoDB's protocol over SQLite") };
/// FerretDB with its data in PostgreSQL.
pub const FERRETDB_POSTGRESQL: About =
    About { schemas: NAME, ..About::server("ferretdb+postgresql", "documents: MongoDB's protocol over PostgreSQL") };

/// A database that speaks MongoDB's protocol.
pub struct MongodbWire(pub About);

impl Database for MongodbWire {
    fn about(&self) -> About {
        self.0
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(MongodbDriver::new(Arc::new(Target::of(url)?))))
    }

    /// Without a server only the form can be checked: which commands there are, and that their parameters are declared.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        MongodbSchema::of(schema)?;
        schema.operations.iter().try_for_each(|operation| Prepared::of(operation).map(drop))
    }

    /// The number of documents in a collection that is not there.
    fn no_op(&self) -> Option<Schema> {
        let operation = json!({
            "name": "nothing",
            "columns": [{"name": "n", "type": "integer"}],
            "statement": {"command": {"count": "nothing"}},
        });
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_servers_take_the_same_schemas() {
        for database in [MONGODB, FERRETDB, FERRETDB_POSTGRESQL].map(MongodbWire) {
            assert_eq!(database.dialect(), "mongodb");
            database.check(&database.no_op().unwrap()).unwrap();
        }
    }
}
