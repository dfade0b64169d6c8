//! Where the cluster is, and how sessions with it are made.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::{Compression, PoolSize};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::{
    DefaultRetryPolicy, FallthroughRetryPolicy, RequestInfo, RetryDecision, RetryPolicy, RetrySession,
};
use scylla::statement::Consistency;
use sensorbench_driver::{DriverError, Server, TargetUrl, TlsMode};

use crate::errors;
use crate::schema::{CONSISTENCIES, READ_CONSISTENCIES, WRITE_CONSISTENCIES, consistency_of};

/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PORT: u16 = 9042;
const PAGE_SIZE: i32 = 5000;
const STORAGE_PORT: u16 = 7000;
const OPTIONS: [&str; 14] = [
    "compact",
    "compression",
    "consistency",
    "datacenter",
    "durable_writes",
    "load",
    "nodetool",
    "page_size",
    "read_consistency",
    "replication",
    "retries",
    "sstable_loader",
    "storage_port",
    "write_consistency",
];

/// A cluster, and sensorbench's keyspace in it.
pub struct Target {
    /// Where it is and who logs in; not shown.
    pub server: Server,
    /// Hosts and ports, as they stand in messages.
    pub shown: String,
    /// Whether the URL names the keyspace.
    pub names_namespace: bool,
    /// How many replicas must answer, where neither the schema nor the options below say.
    pub consistency: Consistency,
    /// How many must answer whatever reads, whatever the schema says.
    pub read_consistency: Option<Consistency>,
    /// How many must acknowledge whatever writes, loading included, whatever the schema says.
    pub write_consistency: Option<Consistency>,
    /// Whether each table is compacted to one SSTable on each node after loading.
    pub compacts: bool,
    /// Copies of each row.
    pub replication: u32,
    /// Whether writes go to the commit log.
    pub durable_writes: bool,
    /// Rows fetched at a time, where the schema does not say; all at once if none.
    pub page_size: Option<i32>,
    /// Retries so far; None when there are none.
    pub retries: Option<Arc<AtomicU64>>,
    /// The program that writes and streams SSTables, if rows are loaded in this way.
    pub sstable_loader: Option<PathBuf>,
    /// The port at which nodes take SSTables.
    pub storage_port: u16,
    /// nodetool.
    pub nodetool: Option<PathBuf>,
    /// When this target was first known to us.
    pub opened: SystemTime,
    /// Until when each node is not asked for its history of compactions again.
    pub history_rests: Mutex<BTreeMap<IpAddr, Instant>>,
    datacenter: Option<String>,
    compression: Option<Compression>,
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Target {
    pub fn of(url: &TargetUrl) -> Result<Self, DriverError> {
        let server = Server::of(url, PORT, &OPTIONS)?;
        if let Some(database) = &server.database {
            return Err(url.error(format!("{database} after the host: a keyspace is named by namespace=")));
        }
        let is_encrypted = server.tls.mode != TlsMode::Off;
        let file = |key: &str| match url.option(key).map(PathBuf::from) {
            Some(path) if !path.is_file() => Err(url.error(format!("option {key}: there is no file {}", path.display()))),
            path => Ok(path),
        };
        let page_size = url.parsed_option::<u16>("page_size", "a number of rows up to 65535")?;
        let loader = file("sstable_loader")?;
        let nodetool = file("nodetool")?;
        let compacts = chosen(url, "compact", &["on", "off"])? == Some("on");
        if compacts && nodetool.is_none() {
            return Err(url.error("compact=on needs nodetool=PROGRAM"));
        }
        Ok(Self {
            shown: server.shown(),
            names_namespace: url.option("namespace").is_some(),
            consistency: chosen(url, "consistency", &CONSISTENCIES)?.and_then(consistency_of).unwrap_or(Consistency::LocalQuorum),
            read_consistency: chosen(url, "read_consistency", &READ_CONSISTENCIES)?.and_then(consistency_of),
            write_consistency: chosen(url, "write_consistency", &WRITE_CONSISTENCIES)?.and_then(consistency_of),
            compacts,
            replication: url.parsed_option::<std::num::NonZeroU32>("replication", "a number above zero")?.map_or(1, u32::from),
            durable_writes: chosen(url, "durable_writes", &["on", "off"])? != Some("off"),
            page_size: Some(page_size.map_or(PAGE_SIZE, i32::from)).filter(|size| *size > 0),
            retries: (chosen(url, "retries", &["off", "default"])? == Some("default")).then(Arc::default),
            sstable_loader: match (chosen(url, "load", &["writes", "sstables"])?, loader) {
                (Some("sstables"), None) => return Err(url.error("load=sstables needs sstable_loader=PROGRAM")),
                (Some("sstables"), program) => program,
                _ => None,
            },
            storage_port: url.parsed_option("storage_port", "the number of a port")?.unwrap_or(STORAGE_PORT),
            nodetool,
            opened: SystemTime::now(),
            history_rests: Mutex::default(),
            datacenter: url.option("datacenter").map(str::to_owned),
            compression: match chosen(url, "compression", &["off", "lz4", "snappy"])? {
                Some("lz4") => Some(Compression::Lz4),
                Some("snappy") => Some(Compression::Snappy),
                _ => None,
            },
            tls: is_encrypted.then(|| server.tls.client_config(url).map(Arc::new)).transpose()?,
            server,
        })
    }

    /// The keyspace whose tables the URL's statements mean, where it names one.
    pub fn named_keyspace(&self) -> Option<&str> {
        self.names_namespace.then_some(self.server.namespace.as_str())
    }

    /// Opens a session with this many connections to each node. Statements find the tables of a keyspace, where one is named.
    pub async fn connect(&self, connections: usize, keyspace: Option<&str>) -> Result<Session, DriverError> {
        let connections = NonZeroUsize::new(connections).unwrap_or(NonZeroUsize::MIN);
        let mut builder = SessionBuilder::new()
            .known_nodes(self.server.hosts.iter().map(|(host, port)| format!("{host}:{port}")))
            .connection_timeout(CONNECT_TIMEOUT)
            .hostname_resolution_timeout(Some(CONNECT_TIMEOUT))
            .pool_size(PoolSize::PerHost(connections))
            .compression(self.compression)
            .tls_context(self.tls.clone())
            .default_execution_profile_handle(self.profile().into_handle());
        if let (Some(user), Some(password)) = (&self.server.user, &self.server.password) {
            builder = builder.user(user, password);
        }
        if let Some(keyspace) = keyspace {
            builder = builder.use_keyspace(keyspace, true).keyspaces_to_fetch([keyspace]);
        }
        let connected = tokio::time::timeout(CONNECT_TIMEOUT * 2, builder.build()).await;
        connected
            .map_err(|_| errors::no_answer(&self.shown, CONNECT_TIMEOUT * 2))?
            .map_err(|error| errors::not_connected(&self.shown, &error))
    }

    /// What requests are executed with. The engine keeps the time limit itself.
    fn profile(&self) -> ExecutionProfile {
        let mut policy = DefaultPolicy::builder().token_aware(true);
        if let Some(datacenter) = &self.datacenter {
            policy = policy.prefer_datacenter(datacenter.clone());
        }
        let retries: Arc<dyn RetryPolicy> = match &self.retries {
            None => Arc::new(FallthroughRetryPolicy::new()),
            Some(retries) => Arc::new(CountedRetries { policy: DefaultRetryPolicy::new(), retries: retries.clone() }),
        };
        ExecutionProfile::builder()
            .load_balancing_policy(policy.build())
            .retry_policy(retries)
            .speculative_execution_policy(None)
            .consistency(self.consistency)
            .request_timeout(None)
            .build()
    }
}

/// An option that has one of some words.
fn chosen<'a>(url: &'a TargetUrl, key: &str, known: &[&str]) -> Result<Option<&'a str>, DriverError> {
    match url.option(key) {
        Some(word) if !known.contains(&word) => {
            Err(url.error(format!("option {key}={word}: expected one of {}", known.join(", "))))
        }
        word => Ok(word),
    }
}

/// The library's policy, with its retries counted.
#[derive(Debug)]
struct CountedRetries {
    policy: DefaultRetryPolicy,
    retries: Arc<AtomicU64>,
}

struct CountedSession {
    session: Box<dyn RetrySession>,
    retries: Arc<AtomicU64>,
}

impl RetryPolicy for CountedRetries {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(CountedSession { session: self.policy.new_session(), retries: self.retries.clone() })
    }
}

impl RetrySession for CountedSession {
    fn decide_should_retry(&mut self, request: RequestInfo) -> RetryDecision {
        let decision = self.session.decide_should_retry(request);
        if matches!(decision, RetryDecision::RetrySameTarget(_) | RetryDecision::RetryNextTarget(_)) {
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
        decision
    }

    fn reset(&mut self) {
        self.session.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<Target, DriverError> {
        Target::of(&TargetUrl::parse(text).unwrap())
    }

    #[test]
    fn a_url_says_what_is_not_the_default() {
        let plain = target("cassandra://a,b:9999").unwrap();
        assert_eq!((plain.shown.as_str(), plain.consistency), ("a:9042,b:9999", Consistency::LocalQuorum));
        assert_eq!((plain.replication, plain.durable_writes, plain.page_size), (1, true, Some(5000)));
        assert!(plain.retries.is_none() && plain.tls.is_none());
        let other =
            target("cassandra://a?consistency=one&replication=3&durable_writes=off&page_size=0&retries=default&tls=on").unwrap();
        assert_eq!((other.consistency, other.replication, other.durable_writes), (Consistency::One, 3, false));
        assert!(other.page_size.is_none() && other.retries.is_some() && other.tls.is_some());
        assert_eq!((other.read_consistency, other.write_consistency, other.compacts), (None, None, false));
        let apart = target("cassandra://a?read_consistency=one&write_consistency=quorum").unwrap();
        assert_eq!(
            (apart.read_consistency, apart.write_consistency, apart.consistency),
            (Some(Consistency::One), Some(Consistency::Quorum), Consistency::LocalQuorum)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_the_password() {
        for (text, expected) in [
            ("cassandra://me:secret@a?consistency=most", "expected one of any, one, two"),
            ("cassandra://me:secret@a?read_consistency=any", "expected one of one, two"),
            ("cassandra://me:secret@a?write_consistency=serial", "expected one of any, one"),
            ("cassandra://me:secret@a?compact=on", "needs nodetool=PROGRAM"),
            ("cassandra://me:secret@a?replication=0", "expected a number above zero"),
            ("cassandra://me:secret@a?load=sstables", "needs sstable_loader=PROGRAM"),
            ("cassandra://me:secret@a?nodetool=/no/where", "there is no file /no/where"),
            ("cassandra://me:secret@a/power", "a keyspace is named by namespace="),
        ] {
            let message = target(text).err().expect(text).to_string();
            assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        }
    }
}
