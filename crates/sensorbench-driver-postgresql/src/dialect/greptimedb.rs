//! GreptimeDB: time series, logs and traces in one engine, which speaks PostgreSQL's protocol, among others.
//!
//! A database of its own is sensorbench's namespace. There are no transactions, and nothing is updated: a row with the key and the time of an
//! earlier one takes its place, by which the marker is written. Tables are named with their database everywhere, so that schema files write
//! `{measurements}`. Every table has a time index. There is no COPY from the connection, so that loading is by inserts of many rows each.
//!
//! No such server could be started where this was written: everything here was checked against GreptimeDB's documentation and sources alone.

use std::collections::BTreeMap;

use futures::future::LocalBoxFuture;
use sensorbench_driver::{About, Description, DriverError, Size, TargetUrl, Type, place_tables, quoted};
use tokio_postgres::{Client, Error};

use super::{BulkLoad, Dialect, catalog, relational};

const BUILD: &str = "SELECT pkg_version, git_commit FROM information_schema.build_info LIMIT 1";

const OCCUPANT: &str = "\
    SELECT s.found > 0, m.found = 1 FROM \
    (SELECT count(*) AS found FROM information_schema.schemata WHERE schema_name = $1) s CROSS JOIN \
    (SELECT count(*) AS found FROM information_schema.columns WHERE table_schema = $1 AND table_name = 'sensorbench' \
        AND column_name = 'mark' AND lower(data_type) = 'string') m";

const NAMESPACES: &str = "\
    SELECT table_schema FROM information_schema.columns \
    WHERE table_name = 'sensorbench' AND column_name = 'mark' AND lower(data_type) = 'string' ORDER BY table_schema";

const TABLES: &str = "\
    SELECT table_name FROM information_schema.tables WHERE table_schema = $1 AND table_type = 'BASE TABLE' ORDER BY table_name";

const SIZES: &str = "\
    SELECT t.table_name, CAST(sum(r.disk_size) AS BIGINT) FROM information_schema.region_statistics r \
    JOIN information_schema.tables t ON r.table_id = t.table_id WHERE t.table_schema = $1 GROUP BY t.table_name";

/// Gauges over all regions, by the names that they get here.
const GAUGES: [&str; 4] = ["regions.rows", "regions.memtable_bytes", "regions.disk_bytes", "regions.sst_files"];
const STATUS: &str = "\
    SELECT CAST(sum(region_rows) AS BIGINT), CAST(sum(memtable_size) AS BIGINT), CAST(sum(disk_size) AS BIGINT), \
    CAST(sum(sst_num) AS BIGINT) FROM information_schema.region_statistics";

/// GreptimeDB.
pub struct Greptimedb;

impl Dialect for Greptimedb {
    fn about(&self) -> About {
        let bulk_load = Some("inserts of many rows");
        About { bulk_load, ..relational("greptimedb", "metrics, logs and traces in one engine, with SQL") }
    }

    fn product(&self) -> &'static str {
        "GreptimeDB"
    }

    fn default_port(&self) -> u16 {
        4003
    }

    fn default_database(&self) -> &'static str {
        "public"
    }

    fn identity(&self) -> Option<&'static str> {
        Some(BUILD)
    }

    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Nothing is set: tables are named with their database.
    fn session_settings(&self, _url: &TargetUrl, _namespace: &str) -> Result<String, DriverError> {
        Ok(String::new())
    }

    fn namespace(&self, namespace: &str) -> String {
        format!("database {namespace}")
    }

    fn foreign(&self) -> &'static str {
        "it is somebody's database"
    }

    fn table(&self, namespace: &str, name: &str) -> String {
        format!("{}.{}", quoted(namespace), quoted(name))
    }

    fn place(&self, namespace: &str, statement: &str) -> String {
        place_tables(statement, |name| self.table(namespace, name))
    }

    fn type_words(&self, canonical: Type) -> (&'static str, &'static str) {
        match canonical {
            Type::Boolean => ("boolean", "boolean"),
            Type::Integer => ("smallint, int or bigint", "bigint"),
            Type::Double => ("double", "double"),
            Type::Timestamp => ("timestamp(6)", "timestamp(6)"),
            Type::Text => ("string", "string"),
            Type::Bytes => ("varbinary", "varbinary"),
        }
    }

    fn occupant(&self) -> &'static str {
        OCCUPANT
    }

    fn namespaces(&self) -> &'static str {
        NAMESPACES
    }

    fn create_namespace(&self, namespace: &str) -> String {
        let (database, table) = (quoted(namespace), self.table(namespace, "sensorbench"));
        format!("CREATE DATABASE {database}; CREATE TABLE {table} (mark STRING, written TIMESTAMP(3) TIME INDEX)")
    }

    fn end_of_creation(&self) -> &'static str {
        "SELECT 1"
    }

    fn insert_marker(&self, namespace: &str) -> String {
        format!("INSERT INTO {} (mark, written) VALUES ($1, 0)", self.table(namespace, "sensorbench"))
    }

    /// The row of the same time takes the place of the first one.
    fn update_marker(&self, namespace: &str) -> String {
        self.insert_marker(namespace)
    }

    fn marker(&self, namespace: &str) -> String {
        format!("SELECT mark FROM {} LIMIT 1", self.table(namespace, "sensorbench"))
    }

    fn remove_namespace(&self, namespace: &str) -> String {
        format!("DROP DATABASE {}", quoted(namespace))
    }

    fn bulk_load(&self) -> BulkLoad {
        BulkLoad::Inserts
    }

    /// There is no statement that ends the connections of a name; what they still execute ends by itself.
    fn end_connections(&self) -> Option<&'static str> {
        None
    }

    fn describe<'a>(&'a self, client: &'a Client, _url: &'a TargetUrl) -> LocalBoxFuture<'a, Result<Description, Error>> {
        Box::pin(async move {
            let build = client.query_one(BUILD, &[]).await?;
            let settings = BTreeMap::from([("build".to_owned(), build.try_get(1)?)]);
            Ok(Description { database: "GreptimeDB".to_owned(), version: build.try_get(0)?, settings })
        })
    }

    /// Has what lies in memory written to files, table by table.
    fn flush<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            for row in client.query(TABLES, &[&namespace]).await? {
                let table: String = row.try_get(0)?;
                client.batch_execute(&format!("ADMIN flush_table('{namespace}.{table}')")).await?;
            }
            Ok(())
        })
    }

    /// Bytes of the files of all regions; what GreptimeDB calls approximate.
    fn size<'a>(&'a self, client: &'a Client, namespace: &'a str) -> LocalBoxFuture<'a, Result<Size, Error>> {
        Box::pin(catalog::size_of_parts(client, SIZES, namespace))
    }

    fn status<'a>(&'a self, client: &'a Client) -> LocalBoxFuture<'a, Result<BTreeMap<String, f64>, Error>> {
        Box::pin(catalog::counters(client, STATUS, &GAUGES))
    }
}

#[cfg(test)]
mod tests {
    use sensorbench_driver::Database;

    use super::*;
    use crate::PostgresqlWire;

    #[test]
    fn it_is_named_as_itself_and_its_tables_with_their_database() {
        let open = |text: &str| PostgresqlWire(&Greptimedb).open(&TargetUrl::parse(text).unwrap());
        assert_eq!(
            open("greptimedb://host/public?namespace=mine").unwrap().namespace(),
            "GreptimeDB at host:4003, database mine"
        );
        assert!(open("greptimedb://host?synchronous_commit=off").is_err());
        assert_eq!(Greptimedb.place("mine", "SELECT x FROM {log} l"), "SELECT x FROM \"mine\".\"log\" l");
    }

    #[test]
    fn the_marker_is_written_again_in_its_place() {
        assert_eq!(Greptimedb.update_marker("mine"), Greptimedb.insert_marker("mine"));
        assert!(
            Greptimedb.create_namespace("mine").starts_with("CREATE DATABASE \"mine\"; CREATE TABLE \"mine\".\"sensorbench\"")
        );
    }
}
