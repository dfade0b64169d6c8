//! Whatever has an ODBC driver: databases that have no driver of their own here, commercial ones above all.
//!
//! A target is `odbc:DSN?option=value`, a data source of `odbc.ini`, or `odbc:?driver=/path/of/a/driver.so&server=…`, without
//! one. Options that are not ours are attributes of the connection string; percent signs in them are decoded. Ours are
//!
//! | option | | if not given |
//! |---|---|---|
//! | `namespace` | what the names of sensorbench's tables begin with | `sensorbench` |
//! | `credentials` | a file with user and password, which become `UID` and `PWD` | `uid=`, `pwd=`, the environment |
//! | `connections` | the most connections of a run; operations beyond that wait | one for each operation in flight |
//! | `rows` | rows that are fetched and written at a time | 1000 |
//! | `text` | `utf16`, or `utf8` for drivers that are not for Unicode (psqlodbca.so) | `utf16` |
//! | `login_timeout` | seconds | 10 |
//! | `manager` | unixODBC's library | `SENSORBENCH_ODBC_MANAGER`, else the system's `libodbc.so.2` |
//!
//! The driver manager is loaded when a target is opened. Libraries that it and the driver need and that the system does not have
//! are taken from the manager's folder.
//!
//! Schema files have `statements` in `[create]` and `[settle]`, and a `statement` with `:named` parameters in `[operation.NAME]`.
//! The name of a table stands between braces, everywhere: `{log}` is the table `<namespace>_log`. Nothing is quoted: names of
//! tables and columns are words that the database does not reserve.
//!
//! | type | column | |
//! |---|---|---|
//! | boolean | `BOOLEAN`, `BIT` | or an integer, as the database has it |
//! | integer | `SMALLINT` … `BIGINT`, `DECIMAL(n, 0)` | |
//! | double | `DOUBLE PRECISION` | `REAL` and `DECIMAL` are refused, because they round |
//! | timestamp | `TIMESTAMP(6)` and its like, `BIGINT` | UTC; `BIGINT` holds microseconds since 1970 |
//! | text | `VARCHAR` … | |
//! | bytes | `VARBINARY` … | |
//!
//! Parameters of type timestamp are bound as date and time. Where an operation meets `BIGINT` columns, it says
//! `timestamps = "microseconds"` beside its statement.
//!
//! Drivers and databases change values on the way, and say nothing: they cut fractions of seconds, round doubles, or turn text
//! into question marks. While rows are loaded, the first value of each kind in each column is read back; loading ends when it is
//! another.
//!
//! A session executes one operation at a time. Those that take too long are called off by SQLCancel, from another thread.

mod attributes;
mod control;
mod dbms;
mod driver;
mod layout;
mod link;
mod load;
mod names;
mod namespace;
mod odbc;
mod operation_statement;
mod pool;
mod prepared;
mod round_trip;
mod session;
mod target;
mod values;

use std::collections::BTreeSet;

use sensorbench_driver::{About, Database, Driver, DriverError, Schema, SchemaError, SqlSchema, TargetUrl, is_word};
use serde_json::json;

use crate::driver::OdbcDriver;
use crate::link::Link;
use crate::names::{MARK, Names};
use crate::operation_statement::OperationStatement;

/// The driver.
pub struct OdbcDatabase;

impl Database for OdbcDatabase {
    fn about(&self) -> About {
        About::server("odbc", "whatever has an ODBC driver")
    }

    fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>, DriverError> {
        Ok(Box::new(OdbcDriver::new(Link::of(url)?)))
    }

    /// The form of every part, the names of tables and columns, and the parameters of every statement; the statements themselves
    /// only a database knows.
    fn check(&self, schema: &Schema) -> Result<(), DriverError> {
        let parsed = SqlSchema::of(schema)?;
        let names = Names::of("sensorbench");
        let created: BTreeSet<String> = parsed.create().flat_map(|(_, statement)| names.place(statement).tables).collect();
        if created.contains(MARK) {
            return Err(
                SchemaError::at("create.statements", format!("{{{MARK}}} is sensorbench's own table; name another")).into()
            );
        }
        for (table, columns) in parsed.tables() {
            let path = format!("fill.{table}");
            if !created.contains(table) {
                let message = format!("no statement of [create] has {{{table}}}; a table's name stands between braces there");
                return Err(SchemaError::at(path, message).into());
            }
            if let Some(column) = columns.iter().find(|column| !is_word(&column.name)) {
                let message = format!("the column {:?} is not a word; names are not quoted, so name it with AS", column.name);
                return Err(SchemaError::at(path, message).into());
            }
        }
        schema.operations.iter().try_for_each(|operation| OperationStatement::of(operation, &names).map(drop))
    }

    fn no_op(&self) -> Option<Schema> {
        let operation =
            json!({"name": "nothing", "columns": [{"name": "one", "type": "integer"}], "statement": {"statement": "SELECT 1"}});
        Some(serde_json::from_value(json!({"operations": [operation]})).expect("a schema"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        OdbcDatabase.check(&toml::from_str(text).unwrap()).expect_err("refused").to_string()
    }

    #[test]
    fn wrong_schemas_are_told_with_their_place() {
        assert!(refused("[create]\nstatement = ['x']").starts_with("create.statement: unknown field"));
        assert!(refused("[create]\nstatements = ['CREATE TABLE {mark} (x INTEGER)']").contains("sensorbench's own table"));
        let fill = "[[tables.log]]\nname = 'a b'\ntype = 'integer'\n";
        assert!(refused(fill).starts_with("fill.log: no statement of [create] has {log}"));
        assert!(
            refused(&format!("{fill}[create]\nstatements = ['CREATE TABLE {{log}} (x INTEGER)']"))
                .contains("\"a b\" is not a word")
        );
        let operation = |statement: &str| format!("[[operations]]\nname = 'q'\n{statement}");
        assert!(refused(&operation("")).starts_with("operation.q: missing field `statement`"));
        assert!(refused(&operation("statement.statement = 'SELECT :x'")).contains("the operation has no parameter :x"));
        let unknown_word = refused(&operation("statement = {statement = 'SELECT 1', timestamps = 'seconds'}"));
        assert!(unknown_word.contains("expected `datetime` or `microseconds`"), "{unknown_word}");
        OdbcDatabase.check(&OdbcDatabase.no_op().unwrap()).unwrap();
    }

    #[test]
    fn a_driver_manager_that_is_not_there_is_told_how_to_get() {
        let open = |url: &str| OdbcDatabase.open(&TargetUrl::parse(url).unwrap()).err().expect("refused").to_string();
        let missing = open("odbc:x?manager=/nowhere/libodbc.so.2&pwd=secret");
        assert!(missing.contains("/nowhere/libodbc.so.2") && missing.contains("install unixODBC"), "{missing}");
        assert!(missing.contains("SENSORBENCH_ODBC_MANAGER") && !missing.contains("secret"), "{missing}");
        let other = open("odbc:x?manager=libc.so.6");
        assert!(other.contains("libc.so.6 is not an ODBC driver manager"), "{other}");
    }
}
