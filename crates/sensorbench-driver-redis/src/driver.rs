//! Control of a Redis target.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use sensorbench_driver::{
    Admission, Description, Driver, DriverError, KeptSchema, Marker, Occupant, Operation, Progress, ReplayConnector,
    ReplayRequest, Schema, Sessions, Size, WriteCheck, WriteQuestion, is_namespace,
};

use crate::control::{Masters, numbers_of};
use crate::operation::Prepared;
use crate::replay::{Replayer, check_writes};
use crate::schema::{RedisSchema, RowCount};
use crate::session::Connector;
use crate::target::{MARK_KEY_END, Target};
use crate::{load, load_file};

/// What INFO calls the number of commands that a server has done.
const COMMANDS: &str = "total_commands_processed";

/// Settings that matter to speed and durability.
const SETTINGS: [&str; 6] = ["appendfsync", "appendonly", "io-threads", "maxmemory", "maxmemory-policy", "save"];

pub struct RedisDriver {
    target: Arc<Target>,
    schema: KeptSchema<RedisSchema>,
}

impl RedisDriver {
    pub fn new(target: Target) -> Self {
        Self { target: Arc::new(target), schema: KeptSchema::default() }
    }

    fn schema(&self) -> Result<RedisSchema, DriverError> {
        self.schema.get(self.target.server.shown())
    }

    /// What all keys of sensorbench begin with.
    fn prefix(&self) -> String {
        Target::prefix_of(&self.target.server.namespace)
    }

    fn marker_key(&self) -> String {
        Target::marker_key_of(&self.target.server.namespace)
    }

    async fn remove_keys(&self, masters: &mut Masters) -> Result<(), DriverError> {
        masters.unlink_all(&self.prefix(), &self.marker_key()).await
    }
}

/// Runs a step of control, whose connections live as long as it.
fn wait_for<T>(step: impl Future<Output = Result<T, DriverError>>) -> Result<T, DriverError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| DriverError::Connection(format!("no runtime for connections: {error}")))?.block_on(step)
}

impl Driver for RedisDriver {
    fn describe(&self) -> Result<Description, DriverError> {
        wait_for(async {
            let mut masters = Masters::connect(&self.target).await?;
            let (_, info) = masters.info("server").await?.swap_remove(0);
            let mut settings = BTreeMap::new();
            for name in SETTINGS {
                settings.extend(masters.setting(name).await.map(|value| (name.to_owned(), value)));
            }
            settings.extend(info.get("redis_mode").map(|mode| ("redis_mode".to_owned(), mode.clone())));
            if self.target.is_cluster {
                settings.insert("masters".to_owned(), masters.topology.masters.len().to_string());
                settings.insert("replicas".to_owned(), masters.topology.replicas.to_string());
            }
            // Valkey and others give the version of Redis that they are like, and their own.
            let database = info.get("server_name").map_or("redis", String::as_str);
            let version = info.get(&format!("{database}_version")).or_else(|| info.get("redis_version"));
            let version = version.map_or("not reported", String::as_str).to_owned();
            let database = if database == "redis" { "Redis" } else { database };
            Ok(Description { database: database.to_owned(), version, settings })
        })
    }

    fn namespace(&self) -> String {
        format!("{}, keys that begin with {}", self.target.server.shown(), self.prefix())
    }

    fn occupant(&self) -> Result<Occupant, DriverError> {
        wait_for(async {
            let mut masters = Masters::connect(&self.target).await?;
            if let Some(marker) = masters.text(&self.marker_key()).await?.as_deref().and_then(Marker::parse) {
                return Ok(Occupant::Ours(marker));
            }
            Ok(match masters.any_key(&self.prefix()).await? {
                None => Occupant::Absent,
                Some(key) => Occupant::Foreign(format!("{} is somebody's", String::from_utf8_lossy(&key))),
            })
        })
    }

    fn create(&self, schema: &Schema, marker: &Marker, admission: &Admission) -> Result<(), DriverError> {
        let parsed = RedisSchema::of(schema, &self.target.server.namespace)?;
        wait_for(async {
            let mut masters = Masters::connect(&self.target).await?;
            if admission.replaces() {
                self.remove_keys(&mut masters).await?;
            }
            masters.set(&self.marker_key(), &marker.to_text()).await
        })?;
        self.schema.keep(parsed);
        Ok(())
    }

    fn attach(&self, schema: &Schema) -> Result<(), DriverError> {
        self.schema.keep(RedisSchema::of(schema, &self.target.server.namespace)?);
        Ok(())
    }

    fn write_marker(&self, marker: &Marker, _: &Admission) -> Result<(), DriverError> {
        wait_for(async { Masters::connect(&self.target).await?.set(&self.marker_key(), &marker.to_text()).await })
    }

    fn remove(&self, _: &Admission) -> Result<(), DriverError> {
        wait_for(async {
            let mut masters = Masters::connect(&self.target).await?;
            // The marker goes last, so that what an interruption leaves is still ours.
            self.remove_keys(&mut masters).await?;
            masters.unlink(&self.marker_key()).await
        })
    }

    fn namespaces(&self) -> Result<Vec<String>, DriverError> {
        wait_for(async {
            let mut masters = Masters::connect(&self.target).await?;
            let mut ours = Vec::new();
            for key in masters.keys_that_end_with(MARK_KEY_END).await? {
                let Some(name) = key.strip_suffix(MARK_KEY_END).filter(|name| is_namespace(name)) else { continue };
                if masters.text(&key).await?.is_some_and(|text| Marker::parse(&text).is_some()) {
                    ours.push(name.to_owned());
                }
            }
            ours.sort_unstable();
            Ok(ours)
        })
    }

    fn load(&self, table: &str, rows: Box<dyn RecordBatchReader + Send>, progress: &Progress) -> Result<(), DriverError> {
        let schema = self.schema()?;
        wait_for(load::load(&self.target, schema.fill(table)?, rows, progress))
    }

    /// Commands in the protocol, for `redis-cli --pipe`.
    fn write_load_file(
        &self,
        table: &str,
        rows: Box<dyn RecordBatchReader + Send>,
        file: &Path,
        progress: &Progress,
    ) -> Result<(), DriverError> {
        load_file::write(self.schema()?.fill(table)?, rows, file, progress)
    }

    /// Waits for replicas. Nothing is forced to disk: what the server does about that is its own setting.
    fn settle(&self) -> Result<(), DriverError> {
        wait_for(async { Masters::connect(&self.target).await?.wait_for_replicas().await })
    }

    fn count(&self, table: &str) -> Result<u64, DriverError> {
        let schema = self.schema()?;
        let table = schema.table("count", table)?;
        wait_for(async {
            let mut masters = Masters::connect(&self.target).await?;
            match table.rows {
                RowCount::Keys => masters.count_keys(&table.prefix).await,
                RowCount::Members(command) => {
                    let mut rows = 0;
                    masters.numbers(&table.prefix, &[command], &[], |_, members| rows += members).await?;
                    Ok(rows)
                }
            }
        })
    }

    /// Bytes of memory, not of disk: what MEMORY USAGE estimates for every key from five of its members.
    fn size(&self) -> Result<Size, DriverError> {
        let prefix = self.prefix();
        wait_for(async {
            let mut size = Size::default();
            let mut masters = Masters::connect(&self.target).await?;
            let add = |key: &[u8], bytes: u64| {
                size.total_bytes += bytes;
                let after = String::from_utf8_lossy(&key[prefix.len()..]);
                let table = after.split_once(':').map(|(table, _)| table.to_owned());
                table.into_iter().for_each(|table| *size.parts.entry(table).or_default() += bytes);
            };
            masters.numbers(&prefix, &["MEMORY", "USAGE"], &["SAMPLES", "5"], add).await?;
            Ok(size)
        })
    }

    /// What INFO says; of a cluster, the sum over its masters, and beside it what each of them has done.
    fn status(&self) -> Result<BTreeMap<String, f64>, DriverError> {
        wait_for(async {
            let mut sums = BTreeMap::new();
            let masters = Masters::connect(&self.target).await?.info("everything").await?;
            let is_cluster = masters.len() > 1;
            for (host, info) in masters {
                for (name, number) in numbers_of(&info) {
                    if is_cluster && name == COMMANDS {
                        sums.insert(format!("{host}.master.{name}"), number);
                    }
                    *sums.entry(name).or_default() += number;
                }
            }
            Ok(sums)
        })
    }

    fn sessions(&self, operations: &[Operation]) -> Result<Sessions, DriverError> {
        let schema = self.schema()?;
        let prepared = operations.iter().map(|operation| Prepared::of(&schema, operation)).collect::<Result<_, _>>()?;
        Ok(Sessions::Asynchronous(Box::new(Connector { target: self.target.clone(), operations: prepared })))
    }

    fn replayer(&self, request: ReplayRequest) -> Result<Box<dyn ReplayConnector>, DriverError> {
        Ok(Box::new(Replayer::of(self.target.clone(), request)))
    }

    fn check_writes(&self, question: WriteQuestion) -> Result<Vec<WriteCheck>, DriverError> {
        wait_for(check_writes(&self.target, question))
    }
}
