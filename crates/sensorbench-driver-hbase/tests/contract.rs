//! HBase's driver keeps the driver contract, with whatever cluster the URL names.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Subject, check};
use sensorbench_driver::{
    BlockingSession, Database, Deadline, Driver, DriverError, ErrorKind, Progress, Request, Rows, Schema, Sessions, TargetUrl,
    Type, Value, ValueRef,
};
use sensorbench_driver_hbase::HbaseDatabase;
use serde_json::json;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport};

#[path = "../src/bindings/mod.rs"]
mod bindings;

use bindings::{THBaseServiceSyncClient, TNamespaceDescriptor, TTHBaseServiceSyncClient};

/// The cluster's URL with a namespace, and more options.
fn url(namespace: &str, options: &str) -> String {
    let server = std::env::var("SENSORBENCH_TEST_URL").expect("pytest passes the URL of a cluster");
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}namespace={namespace}{options}")
}

fn open(url: &str) -> Box<dyn Driver> {
    HbaseDatabase.open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// Gateways as the URL has them, as `HOST:PORT`.
fn gateways() -> Vec<String> {
    let url = TargetUrl::parse(&url("any", "")).unwrap();
    url.rest.trim_start_matches("//").trim_end_matches('/').split(',').map(str::to_owned).collect()
}

/// Does something at the cluster as its owner would, with no help of the driver.
fn as_owner<T>(work: impl FnOnce(&mut dyn TTHBaseServiceSyncClient) -> thrift::Result<T>) -> T {
    let stream = TcpStream::connect(&gateways()[0]).unwrap();
    let input = TBinaryInputProtocol::new(TBufferedReadTransport::new(stream.try_clone().unwrap()), true);
    let output = TBinaryOutputProtocol::new(TBufferedWriteTransport::new(stream), true);
    work(&mut THBaseServiceSyncClient::new(input, output)).unwrap()
}

fn put_foreign(name: &str) {
    as_owner(|calls| {
        if !calls.list_namespaces()?.iter().any(|found| found == name) {
            calls.create_namespace(TNamespaceDescriptor { name: name.to_owned(), configuration: None })?;
        }
        Ok(())
    });
}

fn schema(schema: serde_json::Value) -> Schema {
    serde_json::from_value(schema).expect("a schema")
}

fn load(driver: &dyn Driver, table: &str, columns: Vec<(&str, ArrayRef)>) -> Result<u64, DriverError> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let (schema, progress) = (batch.schema(), Progress::default());
    driver.load(table, Box::new(RecordBatchIterator::new([Ok(batch)], schema)), &progress)?;
    Ok(progress.rows())
}

/// A session for the operations of a schema.
struct Asking {
    session: Box<dyn BlockingSession>,
    names: Vec<String>,
}

impl Asking {
    fn of(driver: &dyn Driver, schema: &Schema) -> Self {
        let Sessions::Blocking(connector) = driver.sessions(&schema.operations).unwrap() else { panic!("sessions block") };
        let deadline = Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false))));
        let names = schema.operations.iter().map(|operation| operation.name.clone()).collect();
        Self { session: connector.connect(deadline).unwrap(), names }
    }

    fn execute(&mut self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let operation = self.names.iter().position(|name| name == operation).expect("an operation of the schema");
        let mut request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        self.session.execute(&mut request)?;
        let row = |row: sensorbench_driver::RowRef| (0..row.columns()).map(|column| row.value(column).to_value()).collect();
        Ok(request.rows.iter().map(row).collect())
    }
}

#[test]
fn the_cluster_keeps_the_contract() {
    check(&Subject {
        database: &HbaseDatabase,
        url: url("contract", ""),
        schema: toml::from_str(include_str!("contract.toml")).expect("the schema of the contract"),
        stores_nan: true,
        stores_infinity: true,
        put_foreign: &|| {
            open(&url("contract", "")).remove().unwrap();
            put_foreign("contract");
        },
        remove_foreign: &|| as_owner(|calls| calls.delete_namespace("contract".to_owned())),
    });
}

#[test]
fn what_sensorbench_did_not_create_is_not_even_replaced() {
    put_foreign("foreign");
    let driver = open(&url("foreign", ""));
    let error = driver.create(&Schema::default(), "", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Namespace);
    assert!(error.to_string().contains("name another one with namespace="), "{error}");
    driver.remove().unwrap();
    assert!(as_owner(|calls| calls.list_namespaces()).contains(&"foreign".to_owned()));
    as_owner(|calls| calls.delete_namespace("foreign".to_owned()));
}
