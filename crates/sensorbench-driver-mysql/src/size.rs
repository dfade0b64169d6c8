//! Bytes on disk. The files of InnoDB's tables tell the total; its statistics tell tables and indexes apart, as of the last
//! ANALYZE TABLE. Where the user may read neither, the server's own estimates stand in. Logs are shared with the server's
//! other databases and are not counted.

use std::collections::BTreeMap;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error};
use sensorbench_driver::{DriverError, Size};

use crate::link::Link;

/// Files of InnoDB's tables: name, bytes allocated, bytes a page. The names are MySQL's and MariaDB's.
const FILES: [&str; 2] = [
    "SELECT substring(name, ?), allocated_size, if(zip_page_size > 0, zip_page_size, page_size) \
     FROM information_schema.innodb_tablespaces WHERE name LIKE ?",
    "SELECT substring(name, ?), allocated_size, page_size FROM information_schema.innodb_sys_tablespaces WHERE name LIKE ?",
];

/// Pages of InnoDB's tables and indexes.
const INDEXES: &str = "SELECT table_name, index_name, stat_value, @@innodb_page_size FROM mysql.innodb_index_stats \
    WHERE database_name = ? AND stat_name = 'size'";

/// What the server says of every table: name, engine, bytes of data, bytes of indexes.
const TABLES: &str = "SELECT table_name, engine, data_length, index_length FROM information_schema.tables \
    WHERE table_schema = ? AND table_type = 'BASE TABLE'";

type Table = (String, Option<String>, Option<u64>, Option<u64>);
type File = (String, u64, u64);
type Index = (String, String, u64, u64);

pub async fn size(link: &Link, connection: &mut Conn) -> Result<Size, DriverError> {
    measured(&link.server.namespace, connection).await.map_err(|error| link.error(error))
}

async fn measured(namespace: &str, connection: &mut Conn) -> mysql_async::Result<Size> {
    let tables: Vec<Table> = connection.exec(TABLES, (namespace,)).await?;
    let files = files(namespace, connection).await?;
    let indexes = readable::<Index>(connection.exec(INDEXES, (namespace,)).await)?;
    let total_bytes = tables.iter().filter(|table| files.is_none() || !is_innodb(table)).map(estimate).sum::<u64>()
        + files.iter().flatten().map(|(_, bytes, _)| bytes).sum::<u64>();
    Ok(Size { total_bytes, parts: parts(&tables, &files.unwrap_or_default(), &indexes.unwrap_or_default()) })
}

async fn files(namespace: &str, connection: &mut Conn) -> mysql_async::Result<Option<Vec<File>>> {
    let (prefix, pattern) = (namespace.len() + 2, format!("{}/%", namespace.replace('_', "\\_")));
    for question in FILES {
        if let Some(files) = readable(connection.exec(question, (prefix, &pattern)).await)? {
            return Ok(Some(files));
        }
    }
    Ok(None)
}

/// None when the server has no such table or does not show it to us.
fn readable<T: FromRow>(answer: mysql_async::Result<Vec<T>>) -> mysql_async::Result<Option<Vec<T>>> {
    match answer {
        Err(Error::Server(_)) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Bytes by table, and by table and index where they are apart.
fn parts(tables: &[Table], files: &[File], indexes: &[Index]) -> BTreeMap<String, u64> {
    let mut parts = BTreeMap::new();
    for (table, index, pages, server_page_bytes) in indexes {
        let page_bytes = files.iter().find(|(name, ..)| name == table).map_or(*server_page_bytes, |(_, _, bytes)| *bytes);
        // InnoDB keeps a table's rows in the index of its primary key.
        let is_table = matches!(index.as_str(), "PRIMARY" | "GEN_CLUST_INDEX");
        parts.insert(if is_table { table.clone() } else { format!("{table}.{index}") }, pages * page_bytes);
    }
    for table in tables {
        parts.entry(table.0.clone()).or_insert_with(|| estimate(table));
    }
    parts.remove(crate::namespace::TABLE);
    parts
}

fn is_innodb(table: &Table) -> bool {
    table.1.as_deref().is_some_and(|engine| engine.eq_ignore_ascii_case("InnoDB"))
}

fn estimate((_, _, data, indexes): &Table) -> u64 {
    data.unwrap_or(0) + indexes.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_tables_and_their_indexes() {
        let table = |name: &str, engine: &str| (name.to_owned(), Some(engine.to_owned()), Some(10), Some(1));
        let index = |table: &str, index: &str, pages| (table.to_owned(), index.to_owned(), pages, 16_384);
        let parts = parts(
            &[table("t", "InnoDB"), table("small", "InnoDB"), table("old", "MyISAM"), table("sensorbench", "InnoDB")],
            &[("small".to_owned(), 65_536, 8_192)],
            &[index("t", "PRIMARY", 3), index("t", "by_time", 2), index("small", "GEN_CLUST_INDEX", 4)],
        );
        let expected = [("old", 11), ("small", 4 * 8_192), ("t", 3 * 16_384), ("t.by_time", 2 * 16_384)];
        assert_eq!(parts, expected.map(|(name, bytes)| (name.to_owned(), bytes)).into());
    }
}
