//! SQLite, inside the client's process: statements are SQL, a target is the path of a file, and the whole file is
//! sensorbench's namespace.

mod driver;
mod errors;
mod load;
mod schema;
mod session;
mod target;

use rusqlite::Connection;
use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::driver::SqliteDriver;
use crate::errors::statement_error;
use crate::schema::{check_tables, run};
use crate::target::Target;

/// The driver.
pub struct SqliteDatabase;

impl Database for SqliteDatabase {
    fn about(&self) -> About {
        let summary = "relational database in one file, inside the process";
        About { relational: true, many_processes: true, ..About::embedded("sqlite", summary) }
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(SqliteDriver::new(Target::of(url)?)))
    }

    /// Creates the tables in memory and prepares every statement there.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        let connection = Connection::open_in_memory().map_err(statement_error)?;
        run(parsed.create(), &connection)?;
        check_tables(&parsed, &connection)?;
        run(parsed.settle(), &connection)?;
        for operation in &schema.operations {
            session::Prepared::of(&connection, operation)?;
        }
        Ok(())
    }

    fn no_op(&self) -> Option<Schema> {
        let operation =
            json!({"name": "nothing", "columns": [{"name": "one", "type": "integer"}], "statement": {"statement": "SELECT 1"}});
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}
