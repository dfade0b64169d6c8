//! Apache Cassandra, and whatever else speaks CQL: statements are CQL, and sensorbench's namespace is a keyspace.
//!
//! A statement in a schema file may say `consistency = "one"` and `page_size = 1000` (0: no paging) for itself.
//!
//! Options of the URL besides those of every server:
//!
//! | option | values | if not given |
//! |---|---|---|
//! | `consistency` | `one`, `two`, `three`, `quorum`, `all`, `local_one`, `local_quorum`, `each_quorum`, `any` (writes) | `local_quorum` |
//! | `replication` | copies of each row, when the keyspace is created | 1 |
//! | `durable_writes` | `on` or `off`: whether writes go to the commit log | `on` |
//! | `datacenter` | the one whose nodes are asked first | any |
//! | `page_size` | rows fetched at a time; 0: all at once | 5000 |
//! | `retries` | `off`, or `default`: the driver library's policy; retries are counted in the status as `client.retries` | `off` |
//! | `compression` | of the protocol: `off`, `lz4` or `snappy` | `off` |
//! | `load` | `writes`: prepared writes, grouped by partition; `sstables`: files written by Cassandra's own writer and streamed | `writes` |
//! | `sstable_loader` | the program that does the latter (a server of the lab names its own) | |
//! | `storage_port` | where nodes take SSTables | 7000 |
//! | `nodetool` | a program that is called as `nodetool -h NODE COMMAND`, to flush and to measure sizes | |
//!
//! `connections` counts connections to each node, of each client thread. Speculative execution is off.

mod catalogue;
mod control;
mod copy_file;
mod count;
mod driver;
mod encode;
mod errors;
mod literals;
mod load;
mod namespace;
mod nodetool;
mod observe;
mod prepared;
mod replay;
mod schema;
mod session;
mod sstables;
mod target;
mod wire;
mod written;

use std::sync::Arc;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::driver::CassandraDriver;
use crate::schema::OperationStatement;
use crate::target::Target;

/// The driver.
pub struct CassandraDatabase;

impl Database for CassandraDatabase {
    fn about(&self) -> About {
        let bulk_load = Some("SSTables that are streamed to the nodes (load=sstables)");
        let replays = Some("cassandra");
        About { bulk_load, replays, ..About::server("cassandra", "wide-column database server, or a cluster of them") }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(CassandraDriver::new(Arc::new(Target::of(url)?))))
    }

    /// Without a server only the form can be checked: what CQL there is, and that its parameters are declared.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        SqlSchema::of(schema)?;
        schema.operations.iter().try_for_each(|operation| OperationStatement::of(operation).map(|_| ()))
    }

    fn no_op(&self) -> Option<Schema> {
        let operation = json!({
            "name": "nothing",
            "columns": [{"name": "key", "type": "text"}],
            "statement": {"statement": "SELECT key FROM system.local"},
        });
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}
