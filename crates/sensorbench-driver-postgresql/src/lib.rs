//! PostgreSQL: statements are SQL, and sensorbench's namespace is a schema in the database that the URL names.
//!
//! Options of the URL besides those of every server: `synchronous_commit` (on, off, local, remote_write or remote_apply), set
//! in every session; the server's own if not given.

mod connection;
mod control;
mod driver;
mod errors;
mod load;
mod namespace;
mod numeric;
mod observe;
mod pool;
mod prepared;
mod schema;
mod session;
mod target;
mod wire;

use std::sync::Arc;

use sensorbench_driver::{Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::driver::PostgresqlDriver;
use crate::schema::Asked;
use crate::target::Target;

/// The driver.
pub struct PostgresqlDatabase;

impl Database for PostgresqlDatabase {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn summary(&self) -> &'static str {
        "relational database server"
    }

    fn embedded(&self) -> bool {
        false
    }

    fn relational(&self) -> bool {
        true
    }

    fn bulk_load(&self) -> Option<&'static str> {
        Some("binary COPY")
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(PostgresqlDriver::new(Arc::new(Target::of(url)?))))
    }

    /// Without a server only the form can be checked: what SQL there is, and that its parameters are declared.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        SqlSchema::of(schema)?;
        schema.operations.iter().try_for_each(|operation| Asked::of(operation).map(|_| ()))
    }

    fn no_op(&self) -> Option<Schema> {
        let operation = json!({
            "name": "nothing",
            "columns": [{"name": "one", "type": "integer"}],
            "statement": {"statement": "SELECT 1::bigint"},
        });
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}
