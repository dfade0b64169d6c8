//! What the server reports about itself: version, settings, counters, sizes, and how it is made to write to disk.
//!
//! Bytes on disk. The files of InnoDB's tables give the total; its statistics distinguish tables and indexes, as of the last
//! ANALYZE TABLE. Where the user may read neither, the server's own estimates stand in. Logs are shared with the server's
//! other databases and are not counted.

use std::collections::BTreeMap;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error};
use sensorbench_driver::{Description, Size};

use super::names::{MARKER_TABLE, quoted};

/// Settings that matter to speed and durability. Those that a server does not have are passed over.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version_comment', 'innodb_buffer_pool_size', \
    'innodb_doublewrite', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'innodb_io_capacity', 'innodb_log_file_size', \
    'innodb_page_size', 'innodb_redo_log_capacity', 'log_bin', 'max_connections', 'query_cache_size', 'query_cache_type', \
    'sync_binlog', 'thread_handling', 'transaction_isolation', 'tx_isolation')";

/// Tables whose changed pages can be written to their files by FLUSH TABLES.
const INNODB_TABLES: &str =
    "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE' AND engine = 'InnoDB'";

/// The user may not flush or lock tables.
const NOT_ALLOWED: [u16; 3] = [1044, 1142, 1227];

/// Files of InnoDB's tables: table, bytes allocated, bytes a page. The first is MySQL's, the second MariaDB's. What follows a # in a name
/// is the partition.
const FILES: [&str; 2] = [
    "SELECT substring_index(substring(name, ?), '#', 1), coalesce(allocated_size, 0), \
     if(zip_page_size > 0, zip_page_size, page_size) FROM information_schema.innodb_tablespaces WHERE name LIKE ?",
    "SELECT substring_index(substring(name, ?), '#', 1), coalesce(allocated_size, 0), page_size \
     FROM information_schema.innodb_sys_tablespaces WHERE name LIKE ?",
];

/// Pages of InnoDB's indexes: table, index, pages, bytes a page.
const INDEXES: &str = "SELECT substring_index(table_name, '#', 1), index_name, stat_value, @@innodb_page_size \
    FROM mysql.innodb_index_stats WHERE database_name = ? AND stat_name = 'size'";

/// What the server estimates for every table, whatever its engine: table, bytes.
const ESTIMATES: &str = "SELECT table_name, coalesce(data_length, 0) + coalesce(index_length, 0) FROM information_schema.tables \
    WHERE table_schema = ? AND table_type = 'BASE TABLE'";

type Estimate = (String, u64);
type File = (String, u64, u64);
type Index = (String, String, u64, u64);

/// What answers, and how it is set.
pub async fn describe(connection: &mut Conn) -> mysql_async::Result<Description> {
    let version: Option<String> = connection.query_first("SELECT version()").await?;
    let version = version.unwrap_or_default();
    let database = if version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
    let settings = shown(SETTINGS, connection).await?.into_iter().collect();
    Ok(Description { database: database.to_owned(), version, settings })
}

/// Counters and gauges of the server, by their names there.
pub async fn status(connection: &mut Conn) -> mysql_async::Result<BTreeMap<String, f64>> {
    let number = |text: String| text.parse().ok().filter(|number: &f64| number.is_finite());
    let status = shown("SHOW GLOBAL STATUS", connection).await?.into_iter();
    Ok(status.filter_map(|(name, value)| Some((name, number(value)?))).collect())
}

/// Names and values that the server shows.
async fn shown(statement: &str, connection: &mut Conn) -> mysql_async::Result<Vec<(String, String)>> {
    let pairs: Vec<(String, Option<String>)> = connection.query(statement).await?;
    Ok(pairs.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect())
}

/// Writes what is only in memory to the tables' files. Where the user may not ask for it, the server does it in its own time.
pub async fn flush(namespace: &str, connection: &mut Conn) -> mysql_async::Result<()> {
    let tables: Vec<String> = connection.exec(INNODB_TABLES, (namespace,)).await?;
    if tables.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = tables.iter().map(|table| quoted(table)).collect();
    match connection.query_drop(format!("FLUSH TABLES {} FOR EXPORT", names.join(", "))).await {
        Err(Error::Server(error)) if NOT_ALLOWED.contains(&error.code) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => connection.query_drop("UNLOCK TABLES").await,
    }
}

/// Bytes of the tables and indexes of the namespace.
pub async fn size(namespace: &str, connection: &mut Conn) -> mysql_async::Result<Size> {
    let estimates: Vec<Estimate> = connection.exec(ESTIMATES, (namespace,)).await?;
    let files = files(namespace, connection).await?;
    let indexes: Vec<Index> = readable(connection.exec(INDEXES, (namespace,)).await)?.unwrap_or_default();
    let has_file = |table: &str| files.iter().any(|(name, ..)| name == table);
    let without_file = estimates.iter().filter(|(table, _)| !has_file(table)).map(|(_, bytes)| bytes);
    let total_bytes = files.iter().map(|(_, bytes, _)| bytes).chain(without_file).sum();
    Ok(Size { total_bytes, parts: parts(&estimates, &files, &indexes), ..Size::default() })
}

async fn files(namespace: &str, connection: &mut Conn) -> mysql_async::Result<Vec<File>> {
    let (prefix, pattern) = (namespace.len() + 2, format!("{}/%", namespace.replace('_', "\\_")));
    for question in FILES {
        if let Some(files) = readable(connection.exec(question, (prefix, &pattern)).await)? {
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

/// None when the server has no such table or does not show it to us.
fn readable<T: FromRow>(answer: mysql_async::Result<Vec<T>>) -> mysql_async::Result<Option<Vec<T>>> {
    match answer {
        Err(Error::Server(_)) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Bytes by table, and by table and index where they are apart.
fn parts(estimates: &[Estimate], files: &[File], indexes: &[Index]) -> BTreeMap<String, u64> {
    let mut parts = BTreeMap::new();
    for (table, index, pages, server_page_bytes) in indexes {
        let page_bytes = files.iter().find(|(name, ..)| name == table).map_or(*server_page_bytes, |(_, _, bytes)| *bytes);
        // InnoDB keeps a table's rows in the index of its primary key.
        let is_table = matches!(index.as_str(), "PRIMARY" | "GEN_CLUST_INDEX");
        *parts.entry(if is_table { table.clone() } else { format!("{table}.{index}") }).or_default() += pages * page_bytes;
    }
    for (table, bytes) in estimates {
        parts.entry(table.clone()).or_insert(*bytes);
    }
    parts.remove(MARKER_TABLE);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_tables_and_their_indexes() {
        let index = |table: &str, index: &str, pages| (table.to_owned(), index.to_owned(), pages, 16_384);
        let parts = parts(
            &["t", "small", "old", "sensorbench"].map(|table| (table.to_owned(), 11)),
            &[("small".to_owned(), 65_536, 8_192)],
            &[index("t", "PRIMARY", 2), index("t", "PRIMARY", 1), index("t", "by_time", 2), index("small", "GEN_CLUST_INDEX", 4)],
        );
        let expected = [("old", 11), ("small", 4 * 8_192), ("t", 3 * 16_384), ("t.by_time", 2 * 16_384)];
        assert_eq!(parts, expected.map(|(name, bytes)| (name.to_owned(), bytes)).into());
    }
}
