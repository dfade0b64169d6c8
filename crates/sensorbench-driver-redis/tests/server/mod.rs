//! The servers that the tests run against, and a way to them that is not the driver's.

use sensorbench_driver::{AsyncSession, Database, Driver, DriverError, Request, Rows, Schema, Sessions, TargetUrl, Value};
use sensorbench_driver_redis::{RedisClusterDatabase, RedisDatabase};

fn variable(name: &str, expected: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("set {name} to the URL of {expected}"))
}

/// The single server, with a namespace of the test's own.
pub fn url(namespace: &str) -> String {
    format!("{}?namespace={namespace}", variable("SENSORBENCH_TEST_URL", "a Redis, such as redis://:password@127.0.0.1:6379"))
}

/// The cluster, whose URL names all masters, with a namespace of the test's own.
pub fn cluster_url(namespace: &str) -> String {
    let expected = "a Redis Cluster, such as redis+cluster://127.0.0.1:7001,127.0.0.1:7002";
    format!("{}?namespace={namespace}", variable("SENSORBENCH_TEST_CLUSTER_URL", expected))
}

/// A driver of whichever database the URL is for.
pub fn open(url: &str) -> Box<dyn Driver> {
    let url = TargetUrl::parse(url).unwrap();
    let database: &dyn Database = if url.scheme == "redis" { &RedisDatabase } else { &RedisClusterDatabase };
    database.open(&url).unwrap()
}

/// Direct connections to the servers.
pub struct Admin {
    pub namespace: String,
    servers: Vec<redis::Client>,
}

impl Admin {
    pub fn of(url: &str) -> Self {
        let (servers, namespace) = url.split_once("?namespace=").expect("a URL of these tests");
        let (_, rest) = servers.split_once("://").expect("a URL");
        let (login, hosts) = rest.rsplit_once('@').map_or(("", rest), |(login, hosts)| (login, hosts));
        let client = |host: &str| redis::Client::open(format!("redis://{login}@{host}").replace("//@", "//")).unwrap();
        Self { namespace: namespace.to_owned(), servers: hosts.split(',').map(client).collect() }
    }

    /// Runs a command on the server that has `key`.
    pub fn run(&self, key: &str, words: &[&str]) -> redis::Value {
        let command = redis::cmd(words[0]).arg(&words[1..]).clone();
        for server in &self.servers {
            match command.query(&mut server.get_connection().unwrap()) {
                Err(error) if error.code() == Some("MOVED") => {}
                outcome => return outcome.unwrap(),
            }
        }
        panic!("no server has the key {key}")
    }

    /// Runs a command on every server.
    pub fn run_everywhere<T: redis::FromRedisValue>(&self, words: &[&str]) -> Vec<T> {
        let command = redis::cmd(words[0]).arg(&words[1..]).clone();
        self.servers.iter().map(|server| command.query(&mut server.get_connection().unwrap()).unwrap()).collect()
    }

    /// Runs a command on one of the servers.
    pub fn run_on(&self, server: usize, words: &[&str]) {
        redis::cmd(words[0]).arg(&words[1..]).exec(&mut self.servers[server].get_connection().unwrap()).unwrap();
    }

    /// Host and port of one of the servers.
    pub fn address(&self, server: usize) -> (String, String) {
        match self.servers[server].get_connection_info().addr() {
            redis::ConnectionAddr::Tcp(host, port) => (host.clone(), port.to_string()),
            other => panic!("not reached by TCP: {other:?}"),
        }
    }

    /// The password of one of the servers, if it has one.
    pub fn password(&self, server: usize) -> Option<String> {
        self.servers[server].get_connection_info().redis_settings().password().map(str::to_owned)
    }

    /// Removes the namespace.
    pub fn clear(&self) {
        for keys in self.run_everywhere::<Vec<String>>(&["KEYS", &format!("{}:*", self.namespace)]) {
            keys.iter().for_each(|key| drop(self.run(key, &["DEL", key])));
        }
    }
}

/// One session and the thread that polls it.
pub struct Client {
    pub runtime: tokio::runtime::Runtime,
    pub session: Box<dyn AsyncSession>,
    operations: Vec<String>,
}

impl Client {
    pub fn of(driver: &dyn Driver, schema: &Schema, concurrency: usize) -> Self {
        let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations).unwrap() else {
            panic!("sessions are asynchronous")
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = runtime.block_on(connector.connect(concurrency)).unwrap();
        Self { runtime, session, operations: schema.operations.iter().map(|operation| operation.name.clone()).collect() }
    }

    pub fn request(&self, operation: &str, parameters: &[Value]) -> Box<Request> {
        let operation = self.operations.iter().position(|name| name == operation).expect("an operation of the schema");
        Box::new(Request { operation, parameters: parameters.to_vec(), rows: Rows::new() })
    }

    pub fn ask(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let (request, outcome) = self.runtime.block_on(self.session.execute(self.request(operation, parameters)));
        outcome.map(|()| values(&request.rows))
    }
}

/// The rows of an answer.
pub fn values(rows: &Rows) -> Vec<Vec<Value>> {
    rows.iter().map(|row| (0..row.columns()).map(|column| row.value(column).to_value()).collect()).collect()
}
