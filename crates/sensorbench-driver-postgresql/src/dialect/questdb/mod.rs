//! QuestDB: a database for time series that speaks PostgreSQL's protocol, and takes in much data by line protocol over HTTP.
//!
//! It has neither schemas nor databases: sensorbench's tables are those whose names begin with the namespace and a point, as in
//! `"sensorbench.measurements"`. Schema files write `{measurements}` for it.
//!
//! Options of its URL besides those of every server:
//!
//! | option | | if not given |
//! |---|---|---|
//! | `http` | the port of the line protocol over HTTP, at the same host | 9000 |
//! | `wait` | `applied`: a write waits until it can be read; `no`: until it is acknowledged | `no` |
//!
//! An acknowledged write is in the table's write-ahead log and can be read when QuestDB has applied that log, usually some milliseconds
//! later. `settle` and `count` wait for it. Tables without a designated timestamp have no such log.
//!
//! Null is the smallest integer, NaN and the infinities; booleans and short integers have no null. Such values are refused, because QuestDB
//! would change them without a word.

mod catalog;

use std::collections::BTreeMap;

use futures::future::LocalBoxFuture;
use postgres_types::Type as ServerType;
use sensorbench_driver::{About, Description, DriverError, Size, TargetUrl, Type, place_tables, quoted};
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, Error};

use super::{BulkLoad, Dialect, relational, waits};
use crate::statement::OperationStatement;
use crate::wire::values::{Limits, Nulls};

/// Until when writes wait where the URL asks them to.
const WAIT: &str = "applied";
/// The only database that there is.
const DATABASE: &str = "qdb";
const HTTP_PORT: u16 = 9000;

/// QuestDB.
pub struct Questdb;

impl Dialect for Questdb {
    fn about(&self) -> About {
        let bulk_load = Some("line protocol over HTTP");
        About { bulk_load, ..relational("questdb", "time-series database server with SQL") }
    }

    fn product(&self) -> &'static str {
        "QuestDB"
    }

    fn default_port(&self) -> u16 {
        8812
    }

    fn default_database(&self) -> &'static str {
        DATABASE
    }

    fn options(&self) -> &'static [&'static str] {
        &["http", "wait"]
    }

    /// QuestDB has nothing to set, and takes whatever name a database is given.
    fn session_settings(&self, url: &TargetUrl, _namespace: &str) -> Result<String, DriverError> {
        http_port(url)?;
        waits(url, WAIT)?;
        let database = url.rest.trim_start_matches('/').split_once('/').map_or("", |(_, database)| database);
        if database.is_empty() || database == DATABASE {
            Ok(String::new())
        } else {
            Err(url.error(format!("the database {database}: QuestDB has one database, {DATABASE}; name it or none")))
        }
    }

    /// QuestDB has no codes for it.
    fn refuses_login(&self, refusal: &DbError) -> bool {
        refusal.message().contains("invalid username/password")
    }

    fn namespace(&self, namespace: &str) -> String {
        format!("tables {namespace}.*")
    }

    fn foreign(&self) -> &'static str {
        "these are somebody's tables"
    }

    fn table(&self, namespace: &str, name: &str) -> String {
        quoted(&stored(namespace, name))
    }

    fn place(&self, namespace: &str, statement: &str) -> String {
        place_tables(statement, |name| self.table(namespace, name))
    }

    /// Statements and their types are cached by their text, also those of tables that are no longer the same (seen with 9.3.4).
    fn remembers_statements(&self) -> bool {
        true
    }

    /// A table cannot be dropped while its rows are read (`busyReader`) or its columns (`busyTableReaderMetaPool`). A query that was cancelled, or
    /// whose connection was closed, reads on until the server notices. Tables without a write-ahead log have one writer, and a thread of the server
    /// closes it when it was idle (`table busy [reason=unknown]`).
    fn passes(&self, refusal: &DbError) -> bool {
        refusal.message().contains("[reason='busy") || refusal.message().contains("table busy")
    }

    fn limits(&self) -> Limits {
        Limits { nulls: Nulls::InBand, ..Limits::NONE }
    }

    fn after_write(&self, url: &TargetUrl, namespace: &str, operation: &OperationStatement) -> Option<String> {
        let waits = waits(url, WAIT).unwrap_or(false) && operation.columns.is_empty();
        let mut waited = Vec::new();
        place_tables(&operation.positional.text, |name| {
            waited.push(format!("wait_wal_table('{}')", stored(namespace, name)));
            String::new()
        });
        (waits && !waited.is_empty()).then(|| format!("SELECT {}", waited.join(", ")))
    }

    fn no_op(&self) -> &'static str {
        "SELECT 1::long"
    }

    fn type_words(&self, canonical: Type) -> (&'static str, &'static str) {
        match canonical {
            Type::Boolean => ("boolean", "boolean"),
            Type::Integer => ("long, int, short or byte", "long"),
            Type::Double => ("double", "double"),
            Type::Timestamp => ("timestamp", "timestamp"),
            Type::Text => ("symbol or varchar", "varchar"),
            Type::Bytes => ("binary", "binary"),
        }
    }

    /// QuestDB guesses wrong where a parameter is cast: `$1::long` is a double for it.
    fn declared(&self, canonical: Type) -> Option<ServerType> {
        Some(match canonical {
            Type::Boolean => ServerType::BOOL,
            Type::Integer => ServerType::INT8,
            Type::Double => ServerType::FLOAT8,
            Type::Timestamp => ServerType::TIMESTAMP,
            Type::Text => ServerType::VARCHAR,
            Type::Bytes => ServerType::BYTEA,
        })
    }

    fn occupant(&self) -> &'static str {
        catalog::OCCUPANT
    }

    fn namespaces(&self) -> &'static str {
        catalog::NAMESPACES
    }

    /// A table without a timestamp has no write-ahead log: what is written there can be read at once.
    fn create_namespace(&self, namespace: &str) -> String {
        format!("CREATE TABLE {} (mark VARCHAR)", self.table(namespace, "sensorbench"))
    }

    fn end_of_creation(&self) -> &'static str {
        "SELECT 1"
    }

    fn insert_marker(&self, namespace: &str) -> String {
        format!("INSERT INTO {} (mark) VALUES ($1)", self.table(namespace, "sensorbench"))
    }

    fn update_marker(&self, namespace: &str) -> String {
        format!("UPDATE {} SET mark = $1", self.table(namespace, "sensorbench"))
    }

    fn marker(&self, namespace: &str) -> String {
        format!("SELECT mark::varchar FROM {} LIMIT 1", self.table(namespace, "sensorbench"))
    }

    fn remove<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(catalog::remove(self, client, namespace))
    }

    fn bulk_load(&self) -> BulkLoad {
        BulkLoad::Lines
    }

    /// QuestDB ends what a connection executes when it is closed.
    fn end_connections(&self) -> Option<&'static str> {
        None
    }

    fn catch_up<'a>(
        &'a self,
        client: &'a Client,
        place: &'a str,
        namespace: &'a str,
    ) -> LocalBoxFuture<'a, Result<(), DriverError>> {
        Box::pin(catalog::catch_up(client, place, namespace))
    }

    fn describe<'a>(&'a self, client: &'a Client, url: &'a TargetUrl) -> LocalBoxFuture<'a, Result<Description, Error>> {
        Box::pin(catalog::describe(client, waits(url, WAIT).unwrap_or(false)))
    }

    /// There is nothing to ask for: data are in the tables' files when the write-ahead log was applied.
    fn flush<'a>(&'a self, _client: &'a Client, _namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn size<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<Size, Error>> {
        Box::pin(catalog::size(client, namespace))
    }

    fn status<'a>(&'a self, client: &'a Client) -> LocalBoxFuture<'a, Result<BTreeMap<String, f64>, Error>> {
        Box::pin(catalog::status(client))
    }
}

/// What a table of the namespace is called in the database.
pub fn stored(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// The port of the HTTP server, at the same host.
pub fn http_port(url: &TargetUrl) -> Result<u16, DriverError> {
    Ok(url.parsed_option("http", "the port of QuestDB's HTTP server")?.unwrap_or(HTTP_PORT))
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Database;

    use super::*;
    use crate::PostgresqlWire;

    fn refused(text: &str) -> String {
        PostgresqlWire(&Questdb).open(&TargetUrl::parse(text).unwrap()).err().expect(text).to_string()
    }

    #[test]
    fn wrong_options_and_databases_are_refused_before_anything_is_asked() {
        assert!(refused("questdb://host/power").contains("QuestDB has one database, qdb"));
        assert!(refused("questdb://host?wait=yes").contains("expected applied or no"));
        assert!(refused("questdb://host?http=x").contains("the port of QuestDB's HTTP server"));
        let opened = PostgresqlWire(&Questdb).open(&TargetUrl::parse("questdb://me@host/qdb?namespace=mine").unwrap()).unwrap();
        assert_eq!(opened.namespace(), "QuestDB at host:8812, tables mine.*");
    }

    #[test]
    fn tables_between_braces_lie_in_the_namespace() {
        assert_eq!(Questdb.place("mine", "SELECT x FROM {log} l"), "SELECT x FROM \"mine.log\" l");
    }
}
