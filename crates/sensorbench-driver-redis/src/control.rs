//! Control of a Redis, or of all masters of a cluster, with the `redis` library: nothing here is measured.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, Pipeline};
use sensorbench_driver::DriverError;

use crate::cluster::Topology;
use crate::control_connection::{ask, connect, failed};
use crate::target::{Address, Target};

/// How long replicas may take to catch up with a load.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(600);
const REPLICA_POLL: Duration = Duration::from_millis(10);

/// Keys that a step of SCAN looks at, which blocks the server for about a millisecond.
const KEYS_A_STEP: u32 = 1000;

/// Every master.
pub struct Masters {
    pub topology: Topology,
    masters: Vec<Master>,
}

struct Master {
    address: Address,
    connection: MultiplexedConnection,
}

impl Masters {
    pub async fn connect(target: &Target) -> Result<Self, DriverError> {
        let topology = Topology::ask(target, &target.addresses()).await?;
        let mut masters = Vec::new();
        for address in &topology.masters {
            masters.push(Master { connection: connect(target, address).await?, address: address.clone() });
        }
        Ok(Self { topology, masters })
    }

    /// The text under a key; None if there is none, or something else than UTF-8 text.
    pub async fn text(&mut self, key: &str) -> Result<Option<String>, DriverError> {
        let master = self.of_key(key)?;
        if master.ask::<String>(redis::cmd("TYPE").arg(key)).await? != "string" {
            return Ok(None);
        }
        let bytes: Option<Vec<u8>> = master.ask(redis::cmd("GET").arg(key)).await?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// Keys that end with `end`, of those that are UTF-8.
    pub async fn keys_that_end_with(&mut self, end: &str) -> Result<Vec<String>, DriverError> {
        let mut found = Vec::new();
        for master in &mut self.masters {
            let mut scan = Scan::matching(format!("*{end}"));
            while let Some(keys) = scan.next(master).await? {
                found.extend(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()));
            }
        }
        Ok(found)
    }

    pub async fn set(&mut self, key: &str, value: &str) -> Result<(), DriverError> {
        self.of_key(key)?.ask(redis::cmd("SET").arg(key).arg(value)).await
    }

    pub async fn unlink(&mut self, key: &str) -> Result<(), DriverError> {
        self.of_key(key)?.ask(redis::cmd("UNLINK").arg(key)).await
    }

    fn of_key(&mut self, key: &str) -> Result<&mut Master, DriverError> {
        let place = self.topology.master_of(key.as_bytes())?;
        Ok(&mut self.masters[place])
    }

    /// Any key that begins with `prefix`.
    pub async fn any_key(&mut self, prefix: &str) -> Result<Option<Vec<u8>>, DriverError> {
        for master in &mut self.masters {
            let mut scan = Scan::of(prefix);
            while let Some(keys) = scan.next(master).await? {
                if let Some(key) = keys.into_iter().next() {
                    return Ok(Some(key));
                }
            }
        }
        Ok(None)
    }

    /// Removes every key that begins with `prefix`, but for `kept`.
    pub async fn unlink_all(&mut self, prefix: &str, kept: &str) -> Result<(), DriverError> {
        for master in &mut self.masters {
            let mut scan = Scan::of(prefix);
            while let Some(keys) = scan.next(master).await? {
                let mut pipeline = Pipeline::new();
                for key in keys.iter().filter(|key| key.as_slice() != kept.as_bytes()) {
                    pipeline.cmd("UNLINK").arg(key);
                }
                master.ask_all::<u64>(&pipeline).await?;
            }
        }
        Ok(())
    }

    /// Number of keys that begin with `prefix`.
    pub async fn count_keys(&mut self, prefix: &str) -> Result<u64, DriverError> {
        let mut count = 0;
        for master in &mut self.masters {
            let mut scan = Scan::of(prefix);
            while let Some(keys) = scan.next(master).await? {
                count += keys.len() as u64;
            }
        }
        Ok(count)
    }

    /// Asks `command` for a number of every key that begins with `prefix`; `more` are its words after the key. Keys that went
    /// meanwhile are left out.
    pub async fn numbers(
        &mut self,
        prefix: &str,
        command: &[&str],
        more: &[&str],
        mut each: impl FnMut(&[u8], u64),
    ) -> Result<(), DriverError> {
        for master in &mut self.masters {
            let mut scan = Scan::of(prefix);
            while let Some(keys) = scan.next(master).await? {
                let mut pipeline = Pipeline::new();
                for key in &keys {
                    pipeline.add_command(Cmd::new().arg(command).arg(key).arg(more).clone());
                }
                let numbers = master.ask_all::<Option<u64>>(&pipeline).await?;
                keys.iter().zip(numbers).for_each(|(key, number)| number.into_iter().for_each(|number| each(key, number)));
            }
        }
        Ok(())
    }

    /// What INFO says: of each master, with its host.
    pub async fn info(&mut self, section: &str) -> Result<Vec<(String, BTreeMap<String, String>)>, DriverError> {
        let mut all = Vec::new();
        for master in &mut self.masters {
            all.push((master.address.host.clone(), master.info(section).await?));
        }
        Ok(all)
    }

    /// A setting of the first master; None when it has none of this name or does not report it.
    pub async fn setting(&mut self, name: &str) -> Option<String> {
        let command = redis::cmd("CONFIG").arg("GET").arg(name).clone();
        let answer: BTreeMap<String, String> = self.masters[0].ask(&command).await.ok()?;
        answer.into_values().next()
    }

    /// Waits until every replica has what its master has now.
    pub async fn wait_for_replicas(&mut self) -> Result<(), DriverError> {
        for master in &mut self.masters {
            let waited = tokio::time::timeout(REPLICA_TIMEOUT, master.wait_for_replicas()).await;
            waited.unwrap_or_else(|_| Err(master.address.unreachable("its replicas do not catch up")))?;
        }
        Ok(())
    }
}

impl Master {
    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, DriverError> {
        ask(&mut self.connection, &self.address, command).await
    }

    async fn ask_all<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> Result<Vec<T>, DriverError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        pipeline.query_async(&mut self.connection).await.map_err(|error| failed(&self.address, error))
    }

    async fn info(&mut self, section: &str) -> Result<BTreeMap<String, String>, DriverError> {
        let text: String = self.ask(redis::cmd("INFO").arg(section)).await?;
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }

    async fn wait_for_replicas(&mut self) -> Result<(), DriverError> {
        let mut goal = None;
        loop {
            let info = numbers_of(&self.info("replication").await?);
            let goal = *goal.get_or_insert(info.get("master_repl_offset").copied().unwrap_or(0.0));
            let is_behind = |(name, offset): (&String, &f64)| is_replica_offset(name) && *offset < goal;
            if !info.iter().any(is_behind) {
                return Ok(());
            }
            tokio::time::sleep(REPLICA_POLL).await;
        }
    }
}

/// `slave0.offset` and so on.
fn is_replica_offset(name: &str) -> bool {
    let number = name.strip_prefix("slave").and_then(|rest| rest.strip_suffix(".offset"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The numbers of INFO by its names; those in `name:key=1,other=2` as `name.key`.
pub fn numbers_of(info: &BTreeMap<String, String>) -> BTreeMap<String, f64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let mut numbers = BTreeMap::new();
    for (name, value) in info {
        if let Some(value) = number(value) {
            numbers.insert(name.clone(), value);
            continue;
        }
        let parts = value.split(',').filter_map(|part| part.split_once('='));
        numbers.extend(parts.filter_map(|(key, value)| Some((format!("{name}.{key}"), number(value)?))));
    }
    numbers
}

/// A walk over the keys that begin with a prefix. SCAN may give a key twice; this does not.
struct Scan {
    pattern: String,
    /// None after the last step.
    cursor: Option<u64>,
    /// Hashes of the keys that came, which take less room than the keys.
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Scan {
    /// Prefixes are words and colons, so that nothing in them has a meaning in patterns.
    fn of(prefix: &str) -> Self {
        Self::matching(format!("{prefix}*"))
    }

    fn matching(pattern: String) -> Self {
        Self { pattern, cursor: Some(0), seen: HashSet::new(), hasher: RandomState::new() }
    }

    /// Some more keys, or None when there are no more.
    async fn next(&mut self, master: &mut Master) -> Result<Option<Vec<Vec<u8>>>, DriverError> {
        let Some(cursor) = self.cursor else { return Ok(None) };
        let command = redis::cmd("SCAN").arg(cursor).arg("MATCH").arg(&self.pattern).arg("COUNT").arg(KEYS_A_STEP).clone();
        let (cursor, mut keys): (u64, Vec<Vec<u8>>) = master.ask(&command).await?;
        self.cursor = (cursor != 0).then_some(cursor);
        keys.retain(|key| self.seen.insert(self.hasher.hash_one(key)));
        Ok(Some(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_info_are_told_from_the_rest() {
        let info = [
            ("used_memory", "1000"),
            ("redis_version", "7.0.15"),
            ("used_memory_peak_perc", "99.5%"),
            ("instantaneous_input_kbps", "0.25"),
            ("cmdstat_get", "calls=3,usec=12,usec_per_call=4.00"),
            ("slave0", "ip=127.0.0.1,port=6380,state=online,offset=70,lag=0"),
        ];
        let numbers = numbers_of(&info.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let expected = [
            ("cmdstat_get.calls", 3.0),
            ("cmdstat_get.usec", 12.0),
            ("cmdstat_get.usec_per_call", 4.0),
            ("instantaneous_input_kbps", 0.25),
            ("slave0.lag", 0.0),
            ("slave0.offset", 70.0),
            ("slave0.port", 6380.0),
            ("used_memory", 1000.0),
        ];
        assert_eq!(numbers.iter().map(|(name, number)| (name.as_str(), *number)).collect::<Vec<_>>(), expected);
        assert_eq!(numbers.keys().filter(|name| is_replica_offset(name)).collect::<Vec<_>>(), ["slave0.offset"]);
    }
}
