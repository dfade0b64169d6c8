//! What PostgreSQL's catalog says about the server: versions, settings, sizes, counters.

use std::collections::BTreeMap;

use sensorbench_driver::{Description, DriverError, Size, TargetUrl};
use tokio_postgres::{Client, Error};

use crate::wire::errors;

/// Settings that matter to speed and durability.
const SETTINGS: [&str; 11] = [
    "data_checksums",
    "fsync",
    "full_page_writes",
    "jit",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "wal_level",
    "wal_compression",
    "work_mem",
];

/// Superusers may write a checkpoint, and since PostgreSQL 15 members of a role that is made for it.
const MAY_CHECKPOINT: &str = "\
    SELECT rolsuper OR coalesce(pg_catalog.pg_has_role(pg_catalog.to_regrole('pg_checkpoint')::oid, 'USAGE'), false) \
    FROM pg_catalog.pg_roles WHERE rolname = current_user";

/// Relations of a schema that have files: tables, materialised views, indexes. What a table has besides (TOAST, maps) is its own.
const PARTS: &str = "\
    SELECT c.relname::text, coalesce(pg_catalog.pg_table_size(c.oid), 0) FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'm', 'i')";

/// Views of counters with what goes before their names. Which there are depends on the version.
const STATISTICS: [(&str, &str); 4] = [
    ("database", "pg_catalog.pg_stat_database"),
    ("bgwriter", "pg_catalog.pg_stat_bgwriter"),
    ("checkpointer", "pg_catalog.pg_stat_checkpointer"),
    ("wal", "pg_catalog.pg_stat_wal"),
];

/// What answers, and how it is set.
pub async fn describe(client: &Client) -> Result<Description, Error> {
    let answer = client.query_one("SELECT pg_catalog.version(), current_setting('server_version')", &[]).await?;
    let (product, version): (String, String) = (answer.try_get(0)?, answer.try_get(1)?);
    let query = "SELECT name, current_setting(name) FROM pg_catalog.pg_settings WHERE name = ANY($1)";
    let mut settings = BTreeMap::new();
    for row in client.query(query, &[&SETTINGS.as_slice()]).await? {
        settings.insert(row.try_get(0)?, row.try_get(1)?);
    }
    let checkpoint = if may_checkpoint(client).await? { "yes" } else { "no, the user may not" };
    settings.insert("checkpoint after loading".to_owned(), checkpoint.to_owned());
    let database = product.split(' ').next().unwrap_or_default().to_owned();
    settings.insert("build".to_owned(), product);
    Ok(Description { database, version, settings })
}

/// Has the server write everything to its tables' files, where the user may ask for that.
pub async fn flush(client: &Client) -> Result<(), Error> {
    if may_checkpoint(client).await? { client.batch_execute("CHECKPOINT").await } else { Ok(()) }
}

async fn may_checkpoint(client: &Client) -> Result<bool, Error> {
    client.query_one(MAY_CHECKPOINT, &[]).await?.try_get(0)
}

/// Bytes of the tables and indexes in a schema. The write-ahead log belongs to the whole server and is not in it.
pub async fn size(client: &Client, namespace: &str) -> Result<Size, Error> {
    size_of_parts(client, PARTS, namespace).await
}

/// The size of a namespace by a query that answers, for its name as `$1`, with names of parts and their bytes.
pub async fn size_of_parts(client: &Client, query: &str, namespace: &str) -> Result<Size, Error> {
    let mut parts = BTreeMap::new();
    for row in client.query(query, &[&namespace]).await? {
        parts.insert(row.try_get(0)?, row.try_get::<_, i64>(1)? as u64);
    }
    let total_bytes = parts.values().sum();
    parts.remove("sensorbench");
    Ok(Size { total_bytes, parts, ..Size::default() })
}

/// Counters and gauges of this database and of the server, by their names there.
pub async fn status(client: &Client) -> Result<BTreeMap<String, f64>, Error> {
    let mut status = BTreeMap::new();
    for (group, view) in STATISTICS {
        let is_there = client.query_one("SELECT pg_catalog.to_regclass($1) IS NOT NULL", &[&view]).await?;
        if is_there.try_get(0)? {
            let condition = if group == "database" { "WHERE datname = pg_catalog.current_database()" } else { "" };
            let query = format!("SELECT pg_catalog.row_to_json(v)::text FROM {view} v {condition}");
            add_numbers(group, client.query_one(&query, &[]).await?.try_get(0)?, &mut status);
        }
    }
    let size = client.query_one("SELECT pg_catalog.pg_database_size(pg_catalog.current_database())", &[]).await?;
    status.insert("database.size_bytes".to_owned(), size.try_get::<_, i64>(0)? as f64);
    Ok(status)
}

/// Counters and gauges by a query that answers with one row of integers, which get these names; null is none.
pub async fn counters(client: &Client, query: &str, names: &[&str]) -> Result<BTreeMap<String, f64>, Error> {
    let row = client.query_one(query, &[]).await?;
    let mut status = BTreeMap::new();
    for (place, name) in names.iter().enumerate() {
        if let Some(number) = row.try_get::<_, Option<i64>>(place)? {
            status.insert((*name).to_owned(), number as f64);
        }
    }
    Ok(status)
}

/// Whether a query that only one product answers is answered. Fails with the server's words, and what to do.
pub async fn check_product(client: &Client, query: &str, place: &str, url: &TargetUrl, product: &str) -> Result<(), DriverError> {
    match client.query(query, &[]).await {
        Ok(_) => Ok(()),
        Err(error) if errors::is_loss(&error) => Err(errors::lost(place, &error)),
        Err(error) => Err(url.error(format!(
            "{place}: the server does not answer as {product} does: {}; name the database that it is, as postgresql:// for PostgreSQL",
            errors::describe(&error)
        ))),
    }
}

/// Adds the numbers of a row, which has other columns in every version of the server.
fn add_numbers(group: &str, row: &str, status: &mut BTreeMap<String, f64>) {
    let columns: serde_json::Map<String, serde_json::Value> = serde_json::from_str(row).unwrap_or_default();
    let numbers = columns.iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
    status.extend(numbers.filter(|(name, _)| *name != "datid").map(|(name, value)| (format!("{group}.{name}"), value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_taken_from_a_row_of_counters() {
        let mut status = BTreeMap::new();
        let row = r#"{"datid":5,"datname":"x","blks_hit":7,"blk_read_time":0.5,"checksum_failures":null}"#;
        add_numbers("database", row, &mut status);
        let expected = [("database.blk_read_time", 0.5), ("database.blks_hit", 7.0)];
        assert_eq!(status, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }
}
