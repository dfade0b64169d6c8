//! The cluster that tests are run against.

use arrow_array::{RecordBatch, RecordBatchIterator};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use sensorbench_dataset::array_of;
use sensorbench_driver::{
    AsyncSession, Database, Driver, DriverError, Progress, Request, Rows, Schema, Sessions, TargetUrl, Type, Value,
};
use sensorbench_driver_cassandra::CassandraDatabase;
use tokio::runtime::{Builder, Runtime};

/// A namespace of one test in the cluster.
pub struct TestCluster {
    /// URL with the namespace.
    pub url: String,
    namespace: &'static str,
    session: Session,
    runtime: Runtime,
}

impl TestCluster {
    /// The cluster that SENSORBENCH_TEST_URL names, with a namespace that nobody else uses and that is empty.
    pub fn with_namespace(namespace: &'static str) -> Self {
        let base = base_url();
        let joint = if base.contains('?') { '&' } else { '?' };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let session = runtime.block_on(SessionBuilder::new().known_node(first_host(&base)).build());
        let session = session.expect("the cluster of SENSORBENCH_TEST_URL answers");
        let cluster = Self { url: format!("{base}{joint}namespace={namespace}"), namespace, session, runtime };
        cluster.run(&format!("DROP KEYSPACE IF EXISTS {namespace}"));
        cluster
    }

    /// A driver that is not connected yet.
    pub fn driver_with(&self, option: &str) -> Box<dyn Driver> {
        open(&format!("{}{option}", self.url)).expect("the URL is sound")
    }

    /// Executes a statement as somebody who is not sensorbench.
    pub fn run(&self, statement: &str) {
        self.runtime.block_on(self.session.query_unpaged(statement, ())).expect("the statement is executed");
    }

    /// The texts that a query is answered with, sorted.
    pub fn texts(&self, query: &str) -> Vec<String> {
        let answer = self.runtime.block_on(self.session.query_unpaged(query, ())).expect("the query is executed");
        let rows = answer.into_rows_result().expect("rows");
        let mut texts: Vec<String> = rows.rows::<(String,)>().expect("texts").map(|row| row.expect("a text").0).collect();
        texts.sort();
        texts
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP KEYSPACE IF EXISTS {}", self.namespace));
        }
    }
}

/// The URL of the cluster.
pub fn base_url() -> String {
    std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the cluster: cassandra://HOST:PORT")
}

/// Host and port of the first node.
pub fn first_host(url: &str) -> String {
    let hosts = url.trim_start_matches("cassandra://").split(['?', '/']).next().unwrap_or_default();
    hosts.split(',').next().unwrap_or_default().to_owned()
}

/// A driver.
pub fn open(url: &str) -> Result<Box<dyn Driver>, DriverError> {
    CassandraDatabase.open(&TargetUrl::parse(url).expect("a URL"))
}

/// A schema in TOML.
pub fn schema(text: &str) -> Schema {
    toml::from_str(text).expect("a schema")
}

/// Loads rows; how many were counted.
pub fn load<const COLUMNS: usize>(
    driver: &dyn Driver,
    table: &str,
    names: &[&str; COLUMNS],
    rows: impl Iterator<Item = [Value; COLUMNS]>,
) -> Result<u64, DriverError> {
    let progress = Progress::default();
    load_watched(driver, table, names, rows, &progress)?;
    Ok(progress.rows())
}

/// Loads rows while somebody watches.
pub fn load_watched<const COLUMNS: usize>(
    driver: &dyn Driver,
    table: &str,
    names: &[&str; COLUMNS],
    rows: impl Iterator<Item = [Value; COLUMNS]>,
    progress: &Progress,
) -> Result<(), DriverError> {
    let rows: Vec<_> = rows.collect();
    let column = |place: usize| {
        let value_type = rows.iter().find_map(|row| row[place].as_ref().value_type()).unwrap_or(Type::Integer);
        array_of(value_type, rows.iter().map(|row| row[place].as_ref()))
    };
    let batch = RecordBatch::try_from_iter_with_nullable((0..COLUMNS).map(|place| (names[place], column(place), true)));
    let batch = batch.expect("columns of one length");
    let schema = batch.schema();
    driver.load(table, Box::new(RecordBatchIterator::new([Ok(batch)], schema)), progress)
}

/// A session as the engine has it: polled on one thread.
pub struct TestSession {
    executor: Executor,
    runtime: Runtime,
}

/// How operations are executed inside the runtime.
pub struct Executor {
    session: Box<dyn AsyncSession>,
    operations: Vec<String>,
}

impl TestSession {
    /// Connects for this many operations in flight.
    pub fn connect(driver: &dyn Driver, schema: &Schema, concurrency: usize) -> Self {
        Self::try_connect(driver, schema, concurrency).expect("the session connects")
    }

    /// The same where it may be refused.
    pub fn try_connect(driver: &dyn Driver, schema: &Schema, concurrency: usize) -> Result<Self, DriverError> {
        let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations)? else { panic!("sessions are asynchronous") };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let session = runtime.block_on(connector.connect(concurrency))?;
        let operations = schema.operations.iter().map(|operation| operation.name.clone()).collect();
        Ok(Self { executor: Executor { session, operations }, runtime })
    }

    /// Does something inside the runtime.
    pub fn run(&self, work: impl AsyncFnOnce(&Executor)) {
        self.runtime.block_on(work(&self.executor));
    }
}

impl Executor {
    /// The rows of an operation's answer.
    pub async fn execute(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let operation = self.operations.iter().position(|name| name == operation).expect("the schema has the operation");
        let request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        let (request, outcome) = self.session.execute(Box::new(request)).await;
        outcome.map(|()| {
            let values = |row: sensorbench_driver::RowRef| (0..row.columns()).map(|place| row.value(place).to_value()).collect();
            request.rows.iter().map(values).collect()
        })
    }
}
