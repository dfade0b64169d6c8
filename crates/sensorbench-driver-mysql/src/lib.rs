//! MySQL and MariaDB: two names for one driver, because schema files, studies and reports tell them apart. They speak the same
//! protocol and understand the same schema words; [`describe`](Driver::describe) says which of the two really answers.
//!
//! A target is `mysql://user:password@host:3306/database?option=value` or `mariadb://…` with the options that every server has
//! (see [`Server`](sensorbench_driver::Server)) and no others. sensorbench's own tables are in a database of the namespace's name,
//! which it creates itself; the database in the URL is only the one to log in to.
//!
//! Schema files have `statements` in `[create]` and `[settle]`, and a `statement` with `:named` parameters in `[operation.NAME]`.
//!
//! | type | column | |
//! |---|---|---|
//! | boolean | `BOOLEAN` | |
//! | integer | `TINYINT` … `BIGINT` | |
//! | double | `DOUBLE` | stores neither NaN nor infinities; `FLOAT` and `DECIMAL` are refused, because they round |
//! | timestamp | `DATETIME(6)`, `TIMESTAMP(6)`, `BIGINT` | UTC; `BIGINT` holds microseconds since 1970 |
//! | text | `VARCHAR`, `TEXT` | compared by code points, unless the schema names another `COLLATE` |
//! | bytes | `VARBINARY`, `BLOB` | |
//!
//! Parameters of type timestamp are bound as `DATETIME(6)`. Where an operation meets `BIGINT` columns, it says
//! `timestamps = "microseconds"` beside its statement.
//!
//! The protocol answers one statement after the other, so that a connection serves one operation at a time. A session opens as
//! many connections as there may be operations in flight, at most [`MOST_CONNECTIONS`] unless the URL says `connections=`;
//! operations beyond that wait inside the session for a free one, which is part of their service time. One more connection
//! is there to cancel statements by KILL QUERY. Behind an address that leads to several servers, where a KILL could meet the wrong one,
//! connections are given up instead.
//!
//! Rows are loaded by LOAD DATA LOCAL, which the server must allow (`local_infile`).

mod calendar;
mod driver;
mod link;
mod load;
mod names;
mod namespace;
mod pool;
mod schema;
mod session;
mod size;
mod statement;
mod text;
mod values;

use std::sync::Arc;

use sensorbench_driver::{Database, Driver, DriverError, Schema, SqlSchema, TargetUrl};
use serde_json::json;

use crate::driver::MysqlDriver;
use crate::link::Link;
use crate::statement::Statement;

pub use crate::session::MOST_CONNECTIONS;

macro_rules! database {
    ($database:ident, $name:literal, $summary:literal) => {
        #[doc = $summary]
        pub struct $database;

        impl Database for $database {
            fn name(&self) -> &'static str {
                $name
            }

            fn dialect(&self) -> &'static str {
                "mysql"
            }

            fn summary(&self) -> &'static str {
                $summary
            }

            fn embedded(&self) -> bool {
                false
            }

            fn relational(&self) -> bool {
                true
            }

            fn bulk_load(&self) -> Option<&'static str> {
                Some("LOAD DATA LOCAL")
            }

            fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
                Ok(Box::new(MysqlDriver::new(Arc::new(Link::of(url)?))))
            }

            fn check(&self, schema: &Schema) -> Result<(), DriverError> {
                check(schema)
            }

            fn no_op(&self) -> Option<Schema> {
                Some(no_op())
            }
        }
    };
}

database!(MysqlDatabase, "mysql", "relational server, by Oracle");
database!(MariadbDatabase, "mariadb", "relational server, grown out of MySQL");

/// The form of every part and the parameters of every statement; the statements themselves only a server can tell.
fn check(schema: &Schema) -> Result<(), DriverError> {
    SqlSchema::of(schema)?;
    schema.operations.iter().try_for_each(|operation| Statement::of(operation).map(drop))
}

fn no_op() -> Schema {
    let operation =
        json!({"name": "nothing", "columns": [{"name": "one", "type": "integer"}], "statement": {"statement": "SELECT 1"}});
    serde_json::from_value(json!({"operations": [operation]})).expect("a schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_urls_and_statements_are_told_with_their_place() {
        let url_error = |url: &str| MysqlDatabase.open(&TargetUrl::parse(url).unwrap()).err().expect("refused").to_string();
        assert!(url_error("mysql:me:secret@host").contains("expected mysql://HOST"));
        assert!(url_error("mysql://a,b").contains("expected one host"));
        assert!(url_error("mysql://a?compress=1").contains("unknown option compress"));
        let schema_error = |text: &str| check(&toml::from_str(text).unwrap()).expect_err("refused").to_string();
        assert!(schema_error("[create]\nstatement = ['x']").starts_with("create.statement: unknown field"));
        assert!(schema_error("[settle]\nstatements = 'x'").starts_with("settle.statements: "));
        let operation = |statement: &str| format!("[[operations]]\nname = 'q'\n{statement}");
        assert!(schema_error(&operation("")).starts_with("operation.q: missing field `statement`"));
        assert!(schema_error(&operation("statement.statement = 'SELECT :x'")).contains("the operation has no parameter :x"));
        assert!(schema_error(&operation("statement.statement = 'SELECT ?'")).contains("must be written as :name"));
        let unknown_word = schema_error(&operation("statement = {statement = 'SELECT 1', timestamps = 'seconds'}"));
        assert!(unknown_word.contains("expected `datetime` or `microseconds`"), "{unknown_word}");
    }

    #[test]
    fn opening_a_target_does_not_connect() {
        assert!(MariadbDatabase.open(&TargetUrl::parse("mariadb://me:secret@127.0.0.1:1").unwrap()).is_ok());
        check(&no_op()).unwrap();
    }
}
