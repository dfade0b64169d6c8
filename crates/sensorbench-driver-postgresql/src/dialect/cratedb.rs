//! CrateDB: SQL over shards of Lucene, which speaks PostgreSQL's protocol.
//!
//! A schema of its own is sensorbench's namespace; it begins with its first table and ends with its last one, and there are no transactions. The
//! marker's table therefore comes first and goes last. Tables are named with their schema everywhere, so that schema files write `{measurements}`.
//!
//! What was written is found by its whole primary key at once, and by other queries after a refresh, which comes once a second where tables are
//! read. `settle` and `count` refresh. With the option `wait=refreshed` each write does, else (`wait=no`) it waits until it is acknowledged.
//!
//! Times are milliseconds: finer ones are refused. There is no type for bytes. COPY over the connection is not there, so that loading is by
//! inserts of many rows each.
//!
//! No such server could be started where this was written: everything here was checked against CrateDB's documentation and sources alone.

use std::collections::BTreeMap;

use futures::future::LocalBoxFuture;
use postgres_types::Type as ServerType;
use sensorbench_driver::{About, Description, DriverError, Size, TargetUrl, Type, place_tables, quoted};
use tokio_postgres::{Client, Error};

use super::{BulkLoad, Dialect, catalog, relational, waits};
use crate::statement::OperationStatement;
use crate::wire::errors;
use crate::wire::values::Limits;

/// Until when writes wait where the URL asks them to.
const WAIT: &str = "refreshed";
/// Where tables without a schema are.
const DATABASE: &str = "doc";
const VERSION: &str = "SELECT version['number'] FROM sys.nodes LIMIT 1";

/// The columns of the marker's table: by its whole key a row is found as soon as it was written.
const OCCUPANT: &str = "\
    SELECT s.found > 0, m.found = 2 FROM \
    (SELECT count(*) AS found FROM information_schema.schemata WHERE schema_name = $1) s CROSS JOIN \
    (SELECT count(*) AS found FROM information_schema.columns WHERE table_schema = $1 AND table_name = 'sensorbench' \
        AND column_name IN ('id', 'mark') AND data_type = 'text') m";

const NAMESPACES: &str = "\
    SELECT table_schema FROM information_schema.columns \
    WHERE table_name = 'sensorbench' AND column_name IN ('id', 'mark') AND data_type = 'text' \
    GROUP BY table_schema HAVING count(*) = 2 ORDER BY 1";

/// Tables and views of a schema; the marker's comes last, so that what is left of a removal that was cut short is still ours.
const TABLES: &str = "\
    SELECT table_name, table_type = 'VIEW' FROM information_schema.tables WHERE table_schema = $1 \
    ORDER BY CASE WHEN table_name = 'sensorbench' THEN 2 WHEN table_type = 'VIEW' THEN 0 ELSE 1 END, 1";

const SIZES: &str = "SELECT table_name, sum(size) FROM sys.shards WHERE schema_name = $1 GROUP BY table_name";

const NODES: &str = "SELECT count(*), max(heap['max']), max(os_info['available_processors'])::bigint FROM sys.nodes";

/// Counters and gauges over all nodes, by the names that they get here.
const COUNTERS: [&str; 4] = ["heap.used_bytes", "fs.read_bytes", "fs.written_bytes", "connections.psql"];
const STATUS: &str = "\
    SELECT sum(heap['used'])::bigint, sum(fs['total']['bytes_read'])::bigint, sum(fs['total']['bytes_written'])::bigint, \
    sum(connections['psql']['total'])::bigint FROM sys.nodes";

/// CrateDB.
pub struct Cratedb;

impl Dialect for Cratedb {
    fn about(&self) -> About {
        About { bulk_load: Some("inserts of many rows"), ..relational("cratedb", "distributed SQL over shards of Lucene") }
    }

    fn product(&self) -> &'static str {
        "CrateDB"
    }

    fn default_database(&self) -> &'static str {
        DATABASE
    }

    fn identity(&self) -> Option<&'static str> {
        Some(VERSION)
    }

    fn options(&self) -> &'static [&'static str] {
        &["wait"]
    }

    /// Nothing is set: tables are named with their schema.
    fn session_settings(&self, url: &TargetUrl, _namespace: &str) -> Result<String, DriverError> {
        waits(url, WAIT)?;
        match url.rest.trim_start_matches('/').split_once('/').map_or("", |(_, database)| database) {
            "" | DATABASE => Ok(String::new()),
            other => Err(url.error(format!(
                "the database {other}: CrateDB has schemas and no databases; name none ({DATABASE} is where it looks by itself), and \
                 sensorbench's schema as namespace="
            ))),
        }
    }

    fn table(&self, namespace: &str, name: &str) -> String {
        format!("{}.{}", quoted(namespace), quoted(name))
    }

    fn place(&self, namespace: &str, statement: &str) -> String {
        place_tables(statement, |name| self.table(namespace, name))
    }

    fn limits(&self) -> Limits {
        Limits { time_unit_us: 1000, ..Limits::NONE }
    }

    fn after_write(&self, url: &TargetUrl, namespace: &str, operation: &OperationStatement) -> Option<String> {
        let waits = waits(url, WAIT).unwrap_or(false) && operation.columns.is_empty();
        let mut written = Vec::new();
        place_tables(&operation.positional.text, |name| {
            written.push(self.table(namespace, name));
            String::new()
        });
        (waits && !written.is_empty()).then(|| format!("REFRESH TABLE {}", written.join(", ")))
    }

    fn type_words(&self, canonical: Type) -> (&'static str, &'static str) {
        match canonical {
            Type::Boolean => ("boolean", "boolean"),
            Type::Integer => ("smallint, integer or bigint", "bigint"),
            Type::Double => ("double precision", "double precision"),
            Type::Timestamp => ("timestamp with or without time zone", "timestamp without time zone"),
            Type::Text => ("text or varchar", "text"),
            Type::Bytes => ("something else: CrateDB has no type for bytes", "text"),
        }
    }

    fn declared(&self, canonical: Type) -> Option<ServerType> {
        Some(match canonical {
            Type::Boolean => ServerType::BOOL,
            Type::Integer => ServerType::INT8,
            Type::Double => ServerType::FLOAT8,
            Type::Timestamp => ServerType::TIMESTAMP,
            Type::Text => ServerType::VARCHAR,
            Type::Bytes => return None,
        })
    }

    fn occupant(&self) -> &'static str {
        OCCUPANT
    }

    fn namespaces(&self) -> &'static str {
        NAMESPACES
    }

    fn create_namespace(&self, namespace: &str) -> String {
        format!("CREATE TABLE {} (id TEXT PRIMARY KEY, mark TEXT)", self.table(namespace, "sensorbench"))
    }

    fn end_of_creation(&self) -> &'static str {
        "SELECT 1"
    }

    fn insert_marker(&self, namespace: &str) -> String {
        format!("INSERT INTO {} (id, mark) VALUES ('mark', $1)", self.table(namespace, "sensorbench"))
    }

    fn update_marker(&self, namespace: &str) -> String {
        format!("UPDATE {} SET mark = $1 WHERE id = 'mark'", self.table(namespace, "sensorbench"))
    }

    fn marker(&self, namespace: &str) -> String {
        format!("SELECT mark FROM {} WHERE id = 'mark'", self.table(namespace, "sensorbench"))
    }

    fn remove<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            for row in client.query(TABLES, &[&namespace]).await? {
                let kind = if row.try_get::<_, bool>(1)? { "VIEW" } else { "TABLE" };
                client.batch_execute(&format!("DROP {kind} {}", self.table(namespace, row.try_get(0)?))).await?;
            }
            Ok(())
        })
    }

    fn bulk_load(&self) -> BulkLoad {
        BulkLoad::Inserts
    }

    /// There is no statement that ends the connections of a name; what they still execute ends by itself.
    fn end_connections(&self) -> Option<&'static str> {
        None
    }

    fn catch_up<'a>(
        &'a self,
        client: &'a Client,
        place: &'a str,
        namespace: &'a str,
    ) -> LocalBoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let refreshed = self.on_tables(client, namespace, |tables| format!("REFRESH TABLE {}", tables.join(", "))).await;
            refreshed.map_err(|error| errors::statement_error(place, error))
        })
    }

    fn describe<'a>(&'a self, client: &'a Client, url: &'a TargetUrl) -> LocalBoxFuture<'a, Result<Description, Error>> {
        Box::pin(async move {
            let version = client.query_one(VERSION, &[]).await?.try_get(0)?;
            let nodes = client.query_one(NODES, &[]).await?;
            let mut settings = BTreeMap::new();
            for (place, name) in ["nodes", "heap of a node", "processors of a node"].into_iter().enumerate() {
                settings.insert(name.to_owned(), nodes.try_get::<_, i64>(place)?.to_string());
            }
            let wait = if waits(url, WAIT).unwrap_or(false) { "refreshed" } else { "acknowledged" };
            settings.insert("a write waits until it is".to_owned(), wait.to_owned());
            Ok(Description { database: "CrateDB".to_owned(), version, settings })
        })
    }

    /// Has what lies in the shards' logs written to their segments.
    fn flush<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(self.on_tables(client, namespace, |tables| format!("OPTIMIZE TABLE {} WITH (flush = true)", tables.join(", "))))
    }

    /// Bytes of all shards, replicas included.
    fn size<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<Size, Error>> {
        Box::pin(catalog::size_of_parts(client, SIZES, namespace))
    }

    fn status<'a>(&'a self, client: &'a Client) -> LocalBoxFuture<'a, Result<BTreeMap<String, f64>, Error>> {
        Box::pin(catalog::counters(client, STATUS, &COUNTERS))
    }
}

impl Cratedb {
    /// Executes a statement about all tables of a schema, if there are any.
    async fn on_tables(
        &self,
        client: &Client,
        namespace: &str,
        statement: impl FnOnce(&[String]) -> String,
    ) -> Result<(), Error> {
        let mut tables = Vec::new();
        for row in client.query(TABLES, &[&namespace]).await? {
            if !row.try_get::<_, bool>(1)? {
                tables.push(self.table(namespace, row.try_get(0)?));
            }
        }
        if tables.is_empty() { Ok(()) } else { client.batch_execute(&statement(&tables)).await }
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::{Database, Operation};
    use serde_json::json;

    use super::*;
    use crate::PostgresqlWire;

    fn refused(text: &str) -> String {
        PostgresqlWire(&Cratedb).open(&TargetUrl::parse(text).unwrap()).err().expect(text).to_string()
    }

    #[test]
    fn wrong_options_and_databases_are_refused_before_anything_is_asked() {
        assert!(refused("cratedb://host/power").contains("CrateDB has schemas and no databases"));
        assert!(refused("cratedb://host?wait=applied").contains("expected refreshed or no"));
        assert!(refused("cratedb://host?synchronous_commit=off").contains("unknown option synchronous_commit"));
        let opened =
            PostgresqlWire(&Cratedb).open(&TargetUrl::parse("cratedb://crate@host/doc?namespace=mine").unwrap()).unwrap();
        assert_eq!(opened.namespace(), "CrateDB at host:5432, schema mine");
    }

    #[test]
    fn tables_are_named_with_their_schema_and_refreshed_where_that_is_waited_for() {
        assert_eq!(Cratedb.place("mine", "SELECT x FROM {log} l"), "SELECT x FROM \"mine\".\"log\" l");
        let operation: Operation =
            serde_json::from_value(json!({"name": "w", "statement": {"statement": "INSERT INTO {log} VALUES (1)"}})).unwrap();
        let write = OperationStatement::of(&operation).unwrap();
        let after = |url: &str| Cratedb.after_write(&TargetUrl::parse(url).unwrap(), "mine", &write);
        assert_eq!(after("cratedb://host?wait=refreshed").as_deref(), Some("REFRESH TABLE \"mine\".\"log\""));
        assert_eq!(after("cratedb://host"), None);
    }
}
