//! The server that tests are run against, and sessions on it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{
    AsyncSession, Database, Driver, DriverError, Intent, Progress, Request, Rows, Schema, Sessions, TargetUrl, Type, Value,
    ValueRef,
};
use sensorbench_driver_postgresql::{Postgresql, PostgresqlWire};
use tokio::runtime::Runtime;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

/// The database that is tested.
pub const POSTGRESQL: PostgresqlWire = PostgresqlWire(&Postgresql);

/// A namespace of one test at the server.
pub struct TestServer {
    /// URL with the namespace.
    pub url: String,
    namespace: &'static str,
    config: Config,
}

impl TestServer {
    /// The server that SENSORBENCH_TEST_URL names, with a namespace that nobody else uses and that is empty.
    pub fn with_namespace(namespace: &'static str) -> Self {
        let base = std::env::var("SENSORBENCH_TEST_URL")
            .expect("SENSORBENCH_TEST_URL names the server: postgresql://USER:PASSWORD@HOST:PORT/DATABASE");
        let joint = if base.contains('?') { '&' } else { '?' };
        let config = base.split('?').next().unwrap_or(&base).parse().expect("SENSORBENCH_TEST_URL is a URL");
        let server = Self { url: format!("{base}{joint}namespace={namespace}"), namespace, config };
        server.run(&format!("DROP SCHEMA IF EXISTS {namespace} CASCADE"));
        server
    }

    /// A driver that is not connected yet.
    pub fn driver(&self) -> Box<dyn Driver> {
        open(&self.url)
    }

    /// A driver with another option.
    pub fn driver_with(&self, option: &str) -> Box<dyn Driver> {
        open(&format!("{}&{option}", self.url))
    }

    /// A driver with the tables of a schema.
    pub fn created(&self, option: &str, schema: &Schema) -> Box<dyn Driver> {
        let driver = self.driver_with(option);
        driver.guard(&owner()).create(schema, "mark", Intent::Replace).expect("the tables are created");
        driver
    }

    /// The same server for a user with this password, at this port.
    pub fn url_for(&self, password: &str, port: u16) -> String {
        let (user, host) = (self.config.get_user().unwrap(), self.host());
        format!("postgresql://{user}:{password}@{host}:{port}/{}", self.config.get_dbname().unwrap())
    }

    /// The server's host.
    pub fn host(&self) -> &str {
        let Host::Tcp(host) = &self.config.get_hosts()[0] else { panic!("the server is reached by TCP") };
        host
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.config.get_ports()[0]
    }

    /// An error's message, which never holds the password.
    pub fn message(&self, error: DriverError) -> String {
        let message = format!("{error} {error:?}");
        let password = std::str::from_utf8(self.config.get_password().unwrap()).unwrap();
        assert!(!message.contains(password), "{message}");
        message
    }

    /// Executes statements as somebody who is not sensorbench.
    pub fn run(&self, statements: &str) {
        self.as_somebody(async |client| client.batch_execute(statements).await.unwrap());
    }

    /// The texts that a query is answered with.
    pub fn texts(&self, query: &str) -> Vec<String> {
        let rows = self.as_somebody(async |client| client.query(query, &[]).await.unwrap());
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Number of statements with these words that the server executes now.
    pub fn executing(&self, words: &str) -> i64 {
        let query =
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND strpos(query, $1) > 0";
        self.as_somebody(async |client| client.query_one(query, &[&words]).await.unwrap().get(0))
    }

    /// Ends every connection whose last statement has these words in it.
    pub fn end_connections(&self, words: &str) -> i64 {
        let query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND strpos(query, $1) > 0";
        self.as_somebody(async |client| client.query_one(query, &[&words]).await.unwrap().get(0))
    }

    fn as_somebody<T>(&self, work: impl AsyncFnOnce(&Client) -> T) -> T {
        runtime().block_on(async {
            let (client, connection) = self.config.connect(NoTls).await.expect("the server of SENSORBENCH_TEST_URL answers");
            tokio::spawn(connection);
            work(&client).await
        })
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.namespace));
        }
    }
}

/// A session as the engine has it: polled on one thread.
pub struct TestSession {
    session: Rc<dyn AsyncSession>,
    /// Dropped after the session.
    runtime: Runtime,
    operations: Rc<Vec<String>>,
}

/// How operations are executed inside the runtime.
#[derive(Clone)]
pub struct Executor {
    session: Rc<dyn AsyncSession>,
    operations: Rc<Vec<String>>,
}

impl TestSession {
    /// Connects for this many operations in flight.
    pub fn connect(driver: &dyn Driver, schema: &Schema, concurrency: usize) -> Result<Self, DriverError> {
        let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations)? else { panic!("sessions are asynchronous") };
        let runtime = runtime();
        let session = runtime.block_on(connector.connect(concurrency))?.into();
        let operations = Rc::new(schema.operations.iter().map(|operation| operation.name.clone()).collect());
        Ok(Self { session, runtime, operations })
    }

    /// Does something inside the runtime.
    pub fn run<T>(&self, work: impl AsyncFnOnce(Executor) -> T) -> T {
        self.runtime.block_on(work(Executor { session: self.session.clone(), operations: self.operations.clone() }))
    }

    /// Executes one operation.
    pub fn execute(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        self.run(async |executor| executor.execute(operation, parameters).await)
    }
}

impl Executor {
    /// The answer to an operation.
    pub async fn execute(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let operation = self.operations.iter().position(|name| name == operation).expect("an operation of the schema");
        let request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        let (request, outcome) = self.session.execute(Box::new(request)).await;
        let row = |row: sensorbench_driver::RowRef| (0..row.columns()).map(|column| row.value(column).to_value()).collect();
        outcome.map(|()| request.rows.iter().map(row).collect())
    }

    /// Executes an operation and drops it after this long; None if it was not over by then.
    pub async fn execute_for(&self, limit: Duration, operation: &str) -> Option<Result<Vec<Vec<Value>>, DriverError>> {
        tokio::time::timeout(limit, self.execute(operation, &[])).await.ok()
    }

    /// Executes operations, this many at a time, as `work` says for each of their numbers.
    pub async fn execute_all(&self, operations: u64, concurrency: usize, work: impl AsyncFn(&Self, u64)) {
        let next = RefCell::new(0..operations);
        let slot = || async {
            loop {
                let Some(number) = next.borrow_mut().next() else { return };
                work(self, number).await;
            }
        };
        futures::future::join_all((0..concurrency).map(|_| slot())).await;
    }
}

/// A driver that is not connected yet.
pub fn open(url: &str) -> Box<dyn Driver> {
    POSTGRESQL.open(&TargetUrl::parse(url).unwrap()).expect("a valid URL")
}

/// A schema as it stands in a file.
pub fn schema(text: &str) -> Schema {
    toml::from_str(text).expect("a schema")
}

/// A schema with the table `t (id, value)` for so declared columns and no operations.
pub fn table_of(columns: &str) -> Schema {
    schema(&format!(
        "[create]\nstatements = ['CREATE TABLE t ({columns})']\n\
         [tables]\nt = [{{ name = 'id', type = 'integer' }}, {{ name = 'value', type = 'double' }}]"
    ))
}

/// Loads rows into `t`.
pub fn load(driver: &dyn Driver, ids: &[i64]) -> Result<u64, DriverError> {
    let rows = RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, ids.iter().copied().map(ValueRef::Integer))),
        ("value", array_of(Type::Double, ids.iter().map(|id| ValueRef::Double(*id as f64 / 7.0)))),
    ])
    .unwrap();
    let (schema, progress) = (rows.schema(), Progress::default());
    driver.load("t", Box::new(RecordBatchIterator::new([Ok(rows)], schema)), &progress)?;
    Ok(progress.rows())
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
