//! What a cluster reports about itself, node by node: virtual tables by CQL, and what only nodetool knows.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant, UNIX_EPOCH};

use scylla::client::session::Session;
use scylla::cluster::Node;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::unprepared::Statement;
use scylla::value::{CqlTimestamp, CqlValue, Row};
use sensorbench_driver::{Description, DriverError, Size};

use crate::schema::word_of;
use crate::target::Target;
use crate::{errors, nodetool};

/// Settings that matter to speed and durability. Which there are depends on the version.
const SETTINGS: [&str; 32] = [
    "authenticator",
    "authenticator.class_name",
    "commitlog_sync",
    "commitlog_sync_period",
    "commitlog_compression",
    "compaction_throughput",
    "concurrent_compactors",
    "concurrent_reads",
    "concurrent_writes",
    "disk_access_mode",
    "file_cache_enabled",
    "file_cache_size",
    "hinted_handoff_enabled",
    "key_cache_save_period",
    "key_cache_size",
    "memtable.configurations",
    "memtable_allocation_type",
    "memtable_cleanup_threshold",
    "memtable_flush_writers",
    "memtable_heap_space",
    "memtable_offheap_space",
    "native_transport_max_threads",
    "num_tokens",
    "partitioner",
    "range_request_timeout",
    "read_request_timeout",
    "row_cache_size",
    "sstable.selected_format",
    "storage_compatibility_mode",
    "stream_throughput_outbound",
    "trickle_fsync",
    "write_request_timeout",
];
/// Columns of `thread_pools` that are reported, if a pool has done anything.
const POOL_COLUMNS: [&str; 4] = ["active_tasks", "pending_tasks", "blocked_tasks", "completed_tasks"];
/// Virtual tables of latencies of each table.
const LATENCIES: [&str; 5] = [
    "coordinator_read_latency",
    "coordinator_write_latency",
    "coordinator_scan_latency",
    "local_read_latency",
    "local_write_latency",
];
const MEBIBYTE: f64 = 1_048_576.0;
/// Compactions that are done, and what they read and wrote. Rows go after a week, so that a count of all would fall.
const HISTORY: &str =
    "SELECT keyspace_name, bytes_in, bytes_out FROM system.compaction_history WHERE compacted_at >= ? ALLOW FILTERING";
/// A whole history is read, which may be long: a node is asked again when this many times as long has passed as it took.
const HISTORY_RESTS: u32 = 20;
/// The nodes' clocks may be behind ours by this.
const CLOCKS_DIFFER_BY: Duration = Duration::from_secs(3600);

/// A target's cluster, asked in a session.
pub struct Observed<'a> {
    pub target: &'a Target,
    pub session: &'a Session,
}

impl Observed<'_> {
    /// What answers, and how it is set.
    pub async fn describe(&self) -> Result<Description, DriverError> {
        let node = self.first_node()?;
        let version = self.version(&node).await?;
        let mut settings = BTreeMap::new();
        for row in self.rows(&node, "SELECT name, value FROM system_views.settings").await? {
            if let [Some(CqlValue::Text(name)), Some(CqlValue::Text(value))] = &row.columns[..]
                && SETTINGS.contains(&name.as_str())
            {
                settings.insert(name.clone(), value.clone());
            }
        }
        let own = [
            ("nodes", self.nodes().len().to_string()),
            ("consistency", word_of(self.target.consistency).to_owned()),
            ("replication", self.target.replication.to_string()),
            ("durable_writes", self.target.durable_writes.to_string()),
            ("page_size", self.target.page_size.map_or("not paged".to_owned(), |size| size.to_string())),
            ("retries", if self.target.retries.is_some() { "default" } else { "off" }.to_owned()),
            ("loading", if self.target.sstable_loader.is_some() { "SSTables" } else { "writes" }.to_owned()),
            ("compacted after loading", if self.target.compacts { "yes" } else { "no" }.to_owned()),
            ("flush after loading", if self.target.nodetool.is_some() { "yes" } else { "no, there is no nodetool=" }.to_owned()),
        ];
        settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let of_kind = [("read_consistency", self.target.read_consistency), ("write_consistency", self.target.write_consistency)];
        let of_kind = of_kind.into_iter().filter_map(|(name, level)| Some((name.to_owned(), word_of(level?).to_owned())));
        settings.extend(of_kind);
        Ok(Description { database: "Apache Cassandra".to_owned(), version, settings })
    }

    /// Addresses of the nodes.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.nodes().iter().map(|node| node.address.ip()).collect()
    }

    /// Tasks that compact tables, or build something for them, on all nodes.
    pub async fn compactions(&self) -> Result<u64, DriverError> {
        let mut tasks = 0;
        for node in self.nodes() {
            tasks += self.rows(&node, "SELECT table_name FROM system_views.sstable_tasks").await?.len() as u64;
            for row in self.rows(&node, "SELECT active_tasks, pending_tasks, name FROM system_views.thread_pools").await? {
                if matches!(&row.columns[2], Some(CqlValue::Text(name)) if name == "CompactionExecutor") {
                    tasks += row.columns[..2].iter().flatten().filter_map(number).sum::<f64>() as u64;
                }
            }
        }
        Ok(tasks)
    }

    /// Bytes of the tables in the namespace on all nodes, with the largest partition of each where nodetool reports it. The commit log
    /// belongs to the whole server and is not in it.
    pub async fn size(&self) -> Result<Size, DriverError> {
        let mut size = Size::default();
        if let Some(program) = &self.target.nodetool {
            self.add_exact(program, &mut size)?;
        } else {
            for node in self.nodes() {
                self.add_mebibytes(&node, &mut size).await?;
            }
        }
        size.total_bytes = size.parts.values().sum();
        size.parts.remove("sensorbench");
        size.largest_partitions.remove("sensorbench");
        Ok(size)
    }

    fn add_exact(&self, program: &Path, size: &mut Size) -> Result<(), DriverError> {
        let keyspace = &self.target.server.namespace;
        for output in nodetool::call_each(program, &self.addresses(), &["tablestats", "-F", "json", keyspace])? {
            for (table, bytes) in nodetool::table_bytes(&output, keyspace)? {
                *size.parts.entry(table.clone()).or_default() += bytes.total;
                let largest = size.largest_partitions.entry(table).or_default();
                *largest = bytes.largest_partition.max(*largest);
            }
        }
        Ok(())
    }

    async fn add_mebibytes(&self, node: &Arc<Node>, size: &mut Size) -> Result<(), DriverError> {
        let query = "SELECT table_name, mebibytes, keyspace_name FROM system_views.disk_usage";
        for row in self.rows(node, query).await? {
            if let [Some(CqlValue::Text(table)), Some(mebibytes), Some(CqlValue::Text(keyspace))] = &row.columns[..]
                && *keyspace == self.target.server.namespace
            {
                *size.parts.entry(table.clone()).or_default() += (number(mebibytes).unwrap_or(0.0) * MEBIBYTE) as u64;
            }
        }
        Ok(())
    }

    /// Counters and gauges of every node. Names begin with the node's address where there is more than one.
    pub async fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        let mut status = BTreeMap::new();
        let nodes = self.nodes();
        for node in &nodes {
            let whose = if nodes.len() > 1 { format!("{}.", node.address.ip()) } else { String::new() };
            // A node that is away reports nothing; the others do.
            match self.status_of(node).await {
                Ok(output) => status.extend(output.into_iter().map(|(name, value)| (format!("{whose}{name}"), value))),
                Err(error) if nodes.len() == 1 => return Err(error),
                Err(_) => {}
            }
        }
        if let Some(retries) = &self.target.retries {
            status.insert("client.retries".to_owned(), retries.load(Ordering::Relaxed) as f64);
        }
        Ok(status)
    }

    async fn status_of(&self, node: &Arc<Node>) -> Result<BTreeMap<String, f64>, DriverError> {
        let mut status = BTreeMap::new();
        for (name, columns) in self.named_numbers(node, "thread_pools", &["name"]).await? {
            if columns.get("completed_tasks").is_some_and(|tasks| *tasks > 0.0) {
                let output = columns.into_iter().filter(|(column, _)| POOL_COLUMNS.contains(&column.as_str()));
                status.extend(output.map(|(column, value)| (format!("thread_pools.{name}.{column}"), value)));
            }
        }
        for (name, columns) in self.named_numbers(node, "caches", &["name"]).await? {
            // One without room is switched off.
            if columns.get("capacity_bytes").is_some_and(|bytes| *bytes > 0.0) {
                status.extend(columns.into_iter().map(|(column, value)| (format!("caches.{name}.{column}"), value)));
            }
        }
        let wrong_by = latency_correction(&self.version(node).await?);
        for view in LATENCIES {
            for (name, columns) in self.named_numbers(node, view, &["keyspace_name", "table_name"]).await? {
                if let Some(table) = name.strip_prefix(&format!("{}.", self.target.server.namespace)) {
                    status.extend(columns.into_iter().map(|(column, value)| {
                        let value = if column.ends_with("_ms") { value * wrong_by } else { value };
                        (format!("{view}.{table}.{column}"), value)
                    }));
                }
            }
        }
        let tasks = self.rows(node, "SELECT table_name FROM system_views.sstable_tasks").await?.len();
        status.insert("sstable_tasks".to_owned(), tasks as f64);
        status.extend(self.mebibytes_of(node).await?.map(|sum| ("disk_usage.mebibytes".to_owned(), sum)));
        if let Some(compactions) = self.history_in_turn(node).await {
            status.extend(compactions.map(|(name, value)| (format!("compaction_history.{name}"), value)));
        }
        Ok(status)
    }

    /// What all tables take on disk, but for the server's own; None if there are none.
    async fn mebibytes_of(&self, node: &Arc<Node>) -> Result<Option<f64>, DriverError> {
        let tables = self.named_numbers(node, "disk_usage", &["keyspace_name", "table_name"]).await?;
        let of_users = tables.into_iter().filter(|(name, _)| !is_of_the_server(name));
        Ok(of_users.filter_map(|(_, columns)| columns.get("mebibytes").copied()).reduce(|sum, more| sum + more))
    }

    /// The history of compactions; None while it rests, and for those who may not read it.
    async fn history_in_turn(&self, node: &Arc<Node>) -> Option<[(&'static str, f64); 3]> {
        let is_resting = |until: &Instant| Instant::now() < *until;
        if self.history_rests().get(&node.address.ip()).is_some_and(is_resting) {
            return None;
        }
        let started = Instant::now();
        let history = self.history_of(node).await;
        self.history_rests().insert(node.address.ip(), Instant::now() + started.elapsed() * HISTORY_RESTS);
        history.ok()
    }

    fn history_rests(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Instant>> {
        self.target.history_rests.lock().expect("nothing panics under this lock")
    }

    /// Compactions since this target was opened, but for those of the server's own tables.
    async fn history_of(&self, node: &Arc<Node>) -> Result<[(&'static str, f64); 3], DriverError> {
        let since = self.target.opened - CLOCKS_DIFFER_BY;
        let since_ms = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let answer = self.ask_with(node, HISTORY, (CqlTimestamp(since_ms),)).await?;
        let (mut compactions, mut bytes_in, mut bytes_out) = (0.0, 0.0, 0.0);
        for row in answer.rows::<(String, i64, i64)>().map_err(unreadable)? {
            let (keyspace, read, written) = row.map_err(unreadable)?;
            if !is_of_the_server(&keyspace) {
                compactions += 1.0;
                bytes_in += read as f64;
                bytes_out += written as f64;
            }
        }
        Ok([("compactions", compactions), ("bytes_in", bytes_in), ("bytes_out", bytes_out)])
    }

    /// The numbers in each row of a virtual table, by the row's name and the column's.
    async fn named_numbers(
        &self,
        node: &Arc<Node>,
        view: &str,
        name: &[&str],
    ) -> Result<Vec<(String, BTreeMap<String, f64>)>, DriverError> {
        let answer = self.ask(node, &format!("SELECT * FROM system_views.{view}")).await?;
        let columns: Vec<String> = answer.column_specs().iter().map(|column| column.name().to_owned()).collect();
        let mut named = Vec::new();
        for row in answer.rows::<Row>().map_err(unreadable)? {
            let mut words = vec![String::new(); name.len()];
            let mut numbers = BTreeMap::new();
            for (column, value) in columns.iter().zip(row.map_err(unreadable)?.columns) {
                match (value, name.iter().position(|known| known == column)) {
                    (Some(CqlValue::Text(text)), Some(place)) => words[place] = text,
                    (Some(value), _) => numbers.extend(number(&value).map(|value| (column.clone(), value))),
                    (None, _) => {}
                }
            }
            named.push((words.join("."), numbers));
        }
        Ok(named)
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        self.session.get_cluster_state().get_nodes_info().to_vec()
    }

    fn first_node(&self) -> Result<Arc<Node>, DriverError> {
        let nodes = self.nodes();
        let connected = nodes.iter().find(|node| node.is_connected()).or(nodes.first()).cloned();
        connected.ok_or_else(|| DriverError::Connection(format!("Cassandra at {}: it has no nodes", self.target.shown)))
    }

    async fn version(&self, node: &Arc<Node>) -> Result<String, DriverError> {
        let local = self.ask(node, "SELECT release_version FROM system.local").await?;
        local.first_row::<(String,)>().map(|(version,)| version).map_err(unreadable)
    }

    async fn rows(&self, node: &Arc<Node>, query: &str) -> Result<Vec<Row>, DriverError> {
        let answer = self.ask(node, query).await?;
        answer.rows::<Row>().map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)
    }

    /// Asks one node. Virtual tables are its own.
    async fn ask(&self, node: &Arc<Node>, query: &str) -> Result<QueryRowsResult, DriverError> {
        self.ask_with(node, query, ()).await
    }

    async fn ask_with(&self, node: &Arc<Node>, query: &str, values: impl SerializeRow) -> Result<QueryRowsResult, DriverError> {
        let mut statement = Statement::new(query);
        statement.set_consistency(Consistency::One);
        statement.set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node.clone()), None)));
        let answer = self.session.query_unpaged(statement, values).await;
        let answer = answer.map_err(|error| errors::execution_error(&self.target.shown, error))?;
        answer.into_rows_result().map_err(unreadable)
    }
}

/// What the columns in milliseconds of tables of latencies must be multiplied with: these versions take the microseconds that they
/// have for nanoseconds.
fn latency_correction(version: &str) -> f64 {
    if version.starts_with("4.") || version.starts_with("5.0.") { 1000.0 } else { 1.0 }
}

/// Whether a keyspace, or a table with that of its keyspace before it, is one that the server keeps for itself.
fn is_of_the_server(name: &str) -> bool {
    let keyspace = name.split('.').next().unwrap_or(name);
    keyspace == "system" || keyspace.starts_with("system_")
}

fn number(value: &CqlValue) -> Option<f64> {
    Some(match value {
        CqlValue::TinyInt(value) => f64::from(*value),
        CqlValue::SmallInt(value) => f64::from(*value),
        CqlValue::Int(value) => f64::from(*value),
        CqlValue::BigInt(value) => *value as f64,
        CqlValue::Counter(value) => value.0 as f64,
        CqlValue::Float(value) => f64::from(*value),
        CqlValue::Double(value) => *value,
        _ => return None,
    })
}

fn unreadable(error: impl std::fmt::Display) -> DriverError {
    DriverError::Data(format!("an answer cannot be read: {error}"))
}
