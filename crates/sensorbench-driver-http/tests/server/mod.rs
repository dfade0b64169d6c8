//! The server that the environment names, as its owner reaches it: with no help of the driver.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sensorbench_dataset::array_of;
use sensorbench_driver::{
    AsyncSession, Driver, DriverError, Progress, Request, RowRef, Rows, Schema, Sessions, TargetUrl, Type, Value, ValueRef,
    runtime,
};
use tokio::runtime::Runtime;

pub fn url(namespace: &str, options: &str) -> String {
    let server = std::env::var("SENSORBENCH_TEST_URL").expect("pytest passes the URL of a server");
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}namespace={namespace}{options}")
}

pub fn scheme() -> String {
    TargetUrl::parse(&url("x", "")).unwrap().scheme
}

pub fn open(database: &dyn sensorbench_driver::Database, url: &str) -> Box<dyn Driver> {
    database.open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// Status and body of a request that is sent as its owner would: a GET, or a POST of what is given.
pub fn request(path: &str, body: Option<&str>) -> (u16, String) {
    send(if body.is_some() { "POST" } else { "GET" }, path, body.unwrap_or(""))
}

/// The same with another method. Where there is no user, the password is a token.
pub fn send(method: &str, path: &str, body: &str) -> (u16, String) {
    let url = std::env::var("SENSORBENCH_TEST_URL").unwrap();
    let (_, server) = url.split_once("://").unwrap();
    let server = server.split('?').next().expect("a host");
    let (login, host) = server.rsplit_once('@').map_or((None, server), |(login, host)| (Some(login), host));
    let login = login.map(|login| percent_encoding::percent_decode_str(login).decode_utf8().unwrap().into_owned());
    let authorization = login.map_or(String::new(), |login| match login.strip_prefix(':') {
        Some(token) => format!("Authorization: Token {token}\r\n"),
        None => format!("Authorization: Basic {}\r\n", STANDARD.encode(login)),
    });
    let kind = match path {
        path if path.starts_with("/api/put") || path.starts_with("/api/suggest") => "Content-Type: application/json\r\n",
        path if path.starts_with("/query") => "Content-Type: application/x-www-form-urlencoded\r\n",
        path if path.starts_with("/rest/") || path.starts_with("/api/v3/configure") || path.starts_with("/api/v3/query") => {
            "Content-Type: application/json\r\n"
        }
        _ => "",
    };
    let mut stream = TcpStream::connect(host).expect("the server answers");
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {host}\r\n{authorization}{kind}Content-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
}

pub fn schema(schema: serde_json::Value) -> Schema {
    serde_json::from_value(schema).expect("a schema")
}

pub fn load(driver: &dyn Driver, table: &str, columns: Vec<(&str, ArrayRef)>) -> (u64, Result<(), DriverError>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let (schema, progress) = (batch.schema(), Progress::default());
    let outcome = driver.load(table, Box::new(RecordBatchIterator::new([Ok(batch)], schema)), &progress);
    (progress.rows(), outcome)
}

pub fn texts(values: &[&str]) -> ArrayRef {
    array_of(Type::Text, values.iter().map(|value| ValueRef::Text(value)))
}

pub fn times(values: &[i64]) -> ArrayRef {
    array_of(Type::Timestamp, values.iter().map(|value| ValueRef::Timestamp(*value)))
}

pub fn doubles(values: &[f64]) -> ArrayRef {
    array_of(Type::Double, values.iter().map(|value| ValueRef::Double(*value)))
}

/// A session for the operations of a schema.
pub struct Asking {
    runtime: Runtime,
    session: Box<dyn AsyncSession>,
    names: Vec<String>,
}

impl Asking {
    pub fn of(driver: &dyn Driver, schema: &Schema) -> Self {
        let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations).unwrap() else {
            panic!("sessions are asynchronous")
        };
        let runtime = runtime().unwrap();
        let session = runtime.block_on(connector.connect(4)).unwrap();
        Self { runtime, session, names: schema.operations.iter().map(|operation| operation.name.clone()).collect() }
    }

    pub async fn ask(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let operation = self.names.iter().position(|name| name == operation).expect("an operation of the schema");
        let request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        let (request, outcome) = self.session.execute(Box::new(request)).await;
        outcome?;
        let row = |row: RowRef| (0..row.columns()).map(|column| row.value(column).to_value()).collect();
        Ok(request.rows.iter().map(row).collect())
    }

    pub fn execute(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        self.runtime.block_on(self.ask(operation, parameters))
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

pub fn text(text: &str) -> Value {
    Value::Text(Arc::from(text))
}
