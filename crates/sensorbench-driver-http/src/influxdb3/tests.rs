//! Requests and answers as InfluxDB 3's documentation has them, against a server in this process that answers with those.

use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_driver::{
    Database, Driver, Intent, Occupant, Owner, Progress, Request, Rows, Schema, Sessions, TargetUrl, Type, Value, ValueRef,
    runtime,
};
use serde_json::{Value as Json, json};

use crate::INFLUXDB3;
use crate::stub::{Answer, Request as Received, Stub};

/// As HTTP API, v3 write_lp, Accept partial writes.
const PARTIAL: &str = r#"{"error": "partial write of line protocol occurred", "data": [{"original_line": "home,room=Sunroom temp=hi 1735549200", "line_number": 2, "error_message": "invalid column type for column 'temp'"}]}"#;

/// A server with one database of somebody else's, which keeps what it gets of the marker and refuses one line of each other batch.
fn server() -> Stub {
    let state: Arc<Mutex<(Vec<String>, Option<String>)>> = Arc::new(Mutex::new((vec!["home".to_owned()], None)));
    Stub::start(move |received| {
        let (databases, marker) = &mut *state.lock().unwrap();
        answer(received, databases, marker)
    })
}

fn answer(received: &Received, databases: &mut Vec<String>, marker: &mut Option<String>) -> Answer {
    let fine = |text: &str| (200, text.to_owned());
    let (method, path) = received.line.split_once(' ').expect("a method and a path");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match (method, path) {
        ("GET", "/ping") => fine(r#"{"version":"3.11.2","revision":"83b589b883","process_id":"b756d9e0"}"#),
        ("GET", "/api/v3/configure/database") => {
            let listed: Vec<Json> = databases.iter().map(|name| json!({"iox::database": name})).collect();
            fine(&json!(listed).to_string())
        }
        ("POST", "/api/v3/configure/database") => {
            let content: Json = serde_json::from_str(&received.body).unwrap();
            databases.push(content["db"].as_str().unwrap().to_owned());
            fine("{}")
        }
        ("DELETE", "/api/v3/configure/database") => {
            databases.retain(|name| !query.starts_with(&format!("db={name}&")));
            fine("")
        }
        ("POST", "/api/v3/write_lp") if received.body.starts_with("sensorbench settled") => (204, String::new()),
        ("POST", "/api/v3/write_lp") => match received.body.strip_prefix("sensorbench mark=\"") {
            Some(line) => {
                *marker = line.rsplit_once('"').map(|(text, _)| text.replace("\\\"", "\"").replace("\\\\", "\\"));
                (204, String::new())
            }
            None => (400, PARTIAL.to_owned()),
        },
        ("POST", "/api/v3/query_sql") => {
            let content: Json = serde_json::from_str(&received.body).unwrap();
            let (database, query) = (content["db"].as_str().unwrap(), content["q"].as_str().unwrap());
            let is_ours = database == "mine" && marker.is_some();
            fine(&match query {
                _ if query.contains("information_schema.columns") && query.contains("'sensorbench'") => {
                    if is_ours {
                        "{\"table_name\":\"sensorbench\"}\n".to_owned()
                    } else {
                        String::new()
                    }
                }
                _ if query.starts_with("SELECT mark") => format!("{}\n", json!({"mark": marker})),
                _ if query.contains("information_schema.tables") => {
                    "{\"table_name\":\"readings\"}\n{\"table_name\":\"sensorbench\"}\n".to_owned()
                }
                _ if query.contains("parquet_files") => "{\"size_bytes\":1000}\n{\"size_bytes\":24}\n".to_owned(),
                _ if query.contains("count(") => "{\"n\":7}\n".to_owned(),
                _ => "{\"time\":\"2020-09-13T12:26:40\",\"value\":0.5}\n{\"time\":\"2020-09-13T12:26:41\"}\n".to_owned(),
            })
        }
        other => panic!("{other:?} is nothing that the server knows"),
    }
}

fn open(stub: &Stub, options: &str) -> Box<dyn Driver> {
    let url = format!("influxdb3://:s3cret@{}?auth=bearer&namespace=mine{options}", stub.address);
    INFLUXDB3.open(&TargetUrl::parse(&url).unwrap()).unwrap()
}

fn schema() -> Schema {
    serde_json::from_value(json!({
        "create": {"points": {"readings": {"tags": ["sensor"], "fields": ["value"]}}},
        "tables": {"readings": [
            {"name": "sensor", "type": "text"}, {"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"},
        ]},
        "operations": [{
            "name": "read",
            "parameters": [{"name": "sensor", "type": "text"}],
            "columns": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}],
            "statement": {"query": "SELECT time, value FROM readings WHERE sensor = :sensor"},
        }],
    }))
    .unwrap()
}

fn batch() -> RecordBatch {
    let sensors = ["a", "b", "c"].map(ValueRef::Text);
    RecordBatch::try_from_iter([
        ("sensor", array_of(Type::Text, sensors.into_iter())),
        ("time", array_of(Type::Timestamp, (0..3).map(ValueRef::Timestamp))),
        ("value", array_of(Type::Double, (0..3).map(|value| ValueRef::Double(f64::from(value))))),
    ])
    .unwrap()
}

fn owner(id: &str) -> Owner {
    Owner { id: id.to_owned(), folder: "results".to_owned() }
}

#[test]
fn a_database_is_made_marked_and_removed_and_no_other_is_touched() {
    let stub = server();
    let driver = open(&stub, "");
    assert_eq!(driver.namespaces().unwrap(), Vec::<String>::new());
    driver.guard(&owner("a")).create(&schema(), "print", Intent::Create).unwrap();
    assert_eq!(driver.namespaces().unwrap(), ["mine"]);
    assert_eq!(driver.guard(&owner("a")).fingerprint().unwrap().as_deref(), Some("print"));
    let received = stub.taken();
    assert!(received.iter().all(|request| request.authorization == "Bearer s3cret"), "{received:?}");
    assert!(received.iter().any(|request| request.line == "POST /api/v3/write_lp?db=mine&precision=microsecond"), "{received:?}");
    let size = driver.size().unwrap();
    assert_eq!((size.total_bytes, size.parts["readings"]), (2048, 1024));
    assert_eq!(driver.count("readings").unwrap(), 7);
    driver.guard(&owner("a")).remove().unwrap();
    assert!(stub.taken().iter().any(|request| request.line == "DELETE /api/v3/configure/database?db=mine&hard_delete_at=now"));
    assert!(matches!(driver.occupant().unwrap(), Occupant::Absent));
}

#[test]
fn what_is_written_early_is_described() {
    let stub = server();
    let description = open(&stub, "").describe().unwrap();
    assert_eq!((description.database.as_str(), description.version.as_str()), ("InfluxDB 3", "3.11.2"));
    assert_eq!(description.settings["a write waits until it is"], "in the object store");
    let (early, batch) = (open(&stub, "&sync=off"), batch());
    assert_eq!(early.describe().unwrap().settings["a write waits until it is"], "in memory");
    early.guard(&owner("a")).create(&schema(), "", Intent::Create).unwrap();
    early
        .load("readings", Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())), &Progress::default())
        .unwrap_err();
    early.settle().unwrap();
    let written: Vec<_> = stub.taken().into_iter().filter(|request| request.line.contains("write_lp")).collect();
    let early = |request: &Received| request.line.ends_with("&no_sync=true");
    assert!(written.iter().all(|request| early(request) == request.body.starts_with("readings")), "{written:?}");
    assert!(written.last().unwrap().body.starts_with("sensorbench settled=true "), "what waits comes last");
}

#[test]
fn rows_of_a_batch_that_is_taken_in_part_are_counted() {
    let stub = server();
    let driver = open(&stub, "");
    driver.guard(&owner("a")).create(&schema(), "", Intent::Create).unwrap();
    let batch = batch();
    let (columns, progress) = (batch.schema(), Progress::default());
    let refused = driver.load("readings", Box::new(RecordBatchIterator::new([Ok(batch)], columns)), &progress).unwrap_err();
    assert!(
        refused.to_string().contains("invalid column type") && refused.to_string().contains("2 of the batch's 3 rows are in")
    );
    assert_eq!(progress.rows(), 2);
    let received = stub.taken().pop().unwrap();
    assert_eq!(received.body, "readings,sensor=a value=0.0 0\nreadings,sensor=b value=1.0 1\nreadings,sensor=c value=2.0 2\n");
}

#[test]
fn an_operation_is_a_query_whose_answer_is_read_line_by_line() {
    let stub = server();
    let driver = open(&stub, "");
    driver.guard(&owner("a")).create(&schema(), "", Intent::Create).unwrap();
    let Sessions::Asynchronous(connector) = driver.sessions(&schema().operations).unwrap() else { panic!("asynchronous") };
    let read = runtime().unwrap().block_on(async {
        let session = connector.connect(1).await.unwrap();
        let request = Request { operation: 0, parameters: vec![Value::Text("a".into())], rows: Rows::new() };
        let (request, outcome) = session.execute(Box::new(request)).await;
        outcome.map(|()| request.rows.iter().map(|row| [row.value(0).to_value(), row.value(1).to_value()]).collect::<Vec<_>>())
    });
    let time = 1_600_000_000_000_000;
    let expected = [[Value::Timestamp(time), Value::Double(0.5)], [Value::Timestamp(time + 1_000_000), Value::Null]];
    assert_eq!(read.unwrap(), expected);
    let content: Json = serde_json::from_str(&stub.taken().pop().unwrap().body).unwrap();
    assert_eq!((&content["format"], &content["params"]), (&json!("jsonl"), &json!({"p0": "a"})));
}

#[test]
fn wrong_options_are_refused_before_anything_is_sent() {
    let refused = |url: &str| INFLUXDB3.open(&TargetUrl::parse(url).unwrap()).err().expect(url).to_string();
    assert!(refused("influxdb3://host?sync=maybe").contains("expected on or off"));
    assert!(refused("influxdb3://host?org=x").contains("unknown option org"));
    assert!(refused("influxdb3://host?auth=bearer").contains("expected a token in the place of the password"));
    let opened = INFLUXDB3.open(&TargetUrl::parse("influxdb3://:t@host?auth=bearer&namespace=mine").unwrap()).unwrap();
    assert_eq!(opened.namespace(), "the server at host:8181, database mine");
}
