//! What QuestDB says of its tables and of itself.

use std::collections::BTreeMap;
use std::time::Duration;

use sensorbench_driver::{Description, DriverError, Size, quoted};
use tokio::time::sleep;
use tokio_postgres::{Client, Error};

use crate::dialect::{Dialect, Pauses, retried};
use crate::wire::errors;

/// For the namespace `$1`: are there tables, and does one have the marker's column?
pub const OCCUPANT: &str = "\
    SELECT t.tables > 0, m.markers > 0 FROM \
    (SELECT count() tables FROM tables() WHERE left(table_name, length($1::varchar) + 1) = concat($1::varchar, '.')) t CROSS JOIN \
    (SELECT count() markers FROM information_schema.columns() \
        WHERE table_name = concat($1::varchar, '.sensorbench') AND column_name = 'mark') m";

/// Namespaces with a table that has the marker's column.
pub const NAMESPACES: &str = "\
    SELECT left(table_name, length(table_name) - length('.sensorbench')) FROM information_schema.columns() \
    WHERE right(table_name, length('.sensorbench')) = '.sensorbench' AND column_name = 'mark' ORDER BY 1";

/// Tables and views of the namespace `$1`; the marker's comes last, so that what is left of a removal that was cut short is still ours.
const TABLES: &str = "\
    SELECT table_name, matView FROM tables() WHERE left(table_name, length($1::varchar) + 1) = concat($1::varchar, '.') \
    ORDER BY CASE WHEN right(table_name, length('.sensorbench')) = '.sensorbench' THEN 2 WHEN matView THEN 0 ELSE 1 END";

/// Tables whose write-ahead log was not applied to its end.
const BEHIND: &str = "\
    SELECT name, suspended, errorMessage FROM wal_tables() \
    WHERE left(name, length($1::varchar) + 1) = concat($1::varchar, '.') AND (suspended OR sequencerTxn <> writerTxn)";

/// Settings that matter to speed and durability.
const SETTINGS: &str = "\
    SELECT property_path, value FROM (SHOW PARAMETERS) WHERE property_path IN ('cairo.commit.mode', 'cairo.max.uncommitted.rows', \
    'cairo.o3.max.lag', 'cairo.wal.segment.rollover.row.count', 'cairo.writer.data.append.page.size', 'shared.worker.count', \
    'wal.apply.worker.count', 'pg.worker.count', 'ram.usage.limit.bytes', 'ram.usage.limit.percent')";

/// Materialized views of the namespace `$1` that do not have everything of their tables yet.
const STALE_VIEWS: &str = "\
    SELECT view_name, view_status = 'invalid', invalidation_reason FROM materialized_views() \
    WHERE left(view_name, length($1::varchar) + 1) = concat($1::varchar, '.') \
    AND (view_status = 'invalid' OR base_table_txn > coalesce(refresh_base_table_txn, -1))";

/// Waits until the write-ahead logs of the namespace are applied.
pub async fn catch_up(client: &Client, place: &str, namespace: &str) -> Result<(), DriverError> {
    let refused = |error| errors::statement_error(place, error);
    // A view is refreshed when its table has what was written, and has a log of its own.
    for (query, what) in [
        (BEHIND, "has stopped applying its write-ahead log; fix the cause, then ALTER TABLE … RESUME WAL"),
        (STALE_VIEWS, "no longer refreshes this view"),
        (BEHIND, "has stopped applying its write-ahead log"),
    ] {
        let query = client.prepare(query).await.map_err(refused)?;
        let mut pauses = Pauses::default();
        loop {
            let rows = client.query(&query, &[&namespace]).await.map_err(refused)?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                if row.try_get(1).map_err(refused)? {
                    let name: String = row.try_get(0).map_err(refused)?;
                    let words: Option<String> = row.try_get(2).map_err(refused)?;
                    let words = words.unwrap_or_default();
                    return Err(DriverError::Data(format!("table {name}: {} {what} ({words})", place)));
                }
            }
            pauses.wait().await;
        }
    }
    Ok(())
}

/// Drops the tables of the namespace.
pub async fn remove(dialect: &dyn Dialect, client: &Client, namespace: &str) -> Result<(), Error> {
    for row in client.query(TABLES, &[&namespace]).await? {
        let (name, is_view): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
        let kind = if is_view { "MATERIALIZED VIEW" } else { "TABLE" };
        let statement = format!("DROP {kind} {}", quoted(&name));
        retried(dialect, async || client.batch_execute(&statement).await).await?;
    }
    Ok(())
}

/// What answers, and how it is set; also whether our writes wait until they can be read.
pub async fn describe(client: &Client, waits: bool) -> Result<Description, Error> {
    let build: String = client.query_one("SELECT build()", &[]).await?.try_get(0)?;
    let mut settings = BTreeMap::new();
    for row in client.query(SETTINGS, &[]).await? {
        settings.insert(row.try_get(0)?, row.try_get(1)?);
    }
    settings.insert("a write waits until it is".to_owned(), if waits { "applied" } else { "acknowledged" }.to_owned());
    let version = version_in(&build).to_owned();
    settings.insert("build".to_owned(), build);
    Ok(Description { database: "QuestDB".to_owned(), version, settings })
}

/// "Build Information: QuestDB 9.3.4, JDK 24.0.2, Commit Hash …"
fn version_in(build: &str) -> &str {
    let after = build.split_once("QuestDB ").map_or(build, |(_, after)| after);
    after.split(',').next().unwrap_or_default()
}

/// For how long a table that is not written keeps its files open, with room for what comes next, how often that is looked at, and how often
/// the parts of write-ahead logs that were applied are removed.
const IDLE: &str = "\
    SELECT value::long FROM (SHOW PARAMETERS) WHERE property_path IN \
    ('cairo.inactive.writer.ttl', 'cairo.idle.check.interval', 'cairo.wal.purge.interval')";
/// Who has set it shorter than this wants to know sizes, and they are waited for.
const LONGEST_IDLE: Duration = Duration::from_secs(5);

/// Bytes of the tables of the namespace on disk, with their write-ahead logs. An open file counts with the room that QuestDB keeps in it, and an
/// applied log is a copy of the rows. QuestDB gives both back when the table was not written for a while, which is waited for where the while is short.
pub async fn size(client: &Client, namespace: &str) -> Result<Size, Error> {
    let mut idle_ms = 0;
    for row in client.query(IDLE, &[]).await? {
        idle_ms += row.try_get::<_, i64>(0)?.unsigned_abs();
    }
    let idle = Duration::from_millis(idle_ms + idle_ms / 4);
    if idle <= LONGEST_IDLE {
        sleep(idle).await;
    }
    let prefix = format!("{namespace}.");
    let mut parts = BTreeMap::new();
    for row in client.query("SELECT tableName, diskSize FROM table_storage()", &[]).await? {
        let (table, bytes): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        if let Some(name) = table.strip_prefix(&prefix) {
            parts.insert(name.to_owned(), bytes as u64);
        }
    }
    let total_bytes = parts.values().sum();
    parts.remove("sensorbench");
    Ok(Size { total_bytes, parts, ..Size::default() })
}

/// What the server says of itself in SQL: how far it is behind with its write-ahead logs, and its memory.
pub async fn status(client: &Client) -> Result<BTreeMap<String, f64>, Error> {
    let logs = client
        .query_one("SELECT coalesce(sum(sequencerTxn - writerTxn), 0), count(), sum(suspended::int) FROM wal_tables()", &[]);
    let logs = logs.await?;
    let mut status = BTreeMap::new();
    for (place, name) in ["wal.pending_transactions", "wal.tables", "wal.suspended_tables"].into_iter().enumerate() {
        status.insert(name.to_owned(), logs.try_get::<_, Option<i64>>(place)?.unwrap_or(0) as f64);
    }
    for row in client.query("SELECT memory_tag, bytes FROM memory_metrics()", &[]).await? {
        let (tag, bytes): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        if bytes != 0 {
            status.insert(format!("memory.{}", tag.to_lowercase()), bytes as f64);
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_the_server_says_of_its_build() {
        assert_eq!(version_in("Build Information: QuestDB 9.3.4, JDK 24.0.2, Commit Hash 9ea3"), "9.3.4");
    }
}
