//! MongoDB's driver keeps the driver contract, with whatever server the URL names.

use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use bson::{Document, doc};
use mongodb::Client;
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{
    AsyncSession, Database, Driver, DriverError, ErrorKind, Intent, Progress, Request, Rows, Schema, Sessions, TargetUrl, Type,
    Value, ValueRef,
};
use sensorbench_driver_mongodb::{FERRETDB, FERRETDB_POSTGRESQL, MONGODB, MongodbWire};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// The server's URL with a namespace, and more options.
fn url(namespace: &str, options: &str) -> String {
    let server = std::env::var("SENSORBENCH_TEST_URL").expect("pytest passes the URL of a server");
    format!("{server}?namespace={namespace}{options}")
}

fn database(url: &TargetUrl) -> MongodbWire {
    let databases = [MONGODB, FERRETDB, FERRETDB_POSTGRESQL].map(MongodbWire);
    databases.into_iter().find(|database| database.name() == url.scheme).expect("a server that speaks the protocol")
}

fn open(url: &str) -> Box<dyn Driver> {
    let url = TargetUrl::parse(url).unwrap();
    database(&url).open(&url).unwrap()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Does something at the server as its owner would, with no help of the driver.
fn as_owner<T>(work: impl AsyncFnOnce(Client) -> T) -> T {
    let url = std::env::var("SENSORBENCH_TEST_URL").unwrap();
    let (scheme, server) = url.split_once("://").unwrap();
    let mechanism = if scheme == "mongodb" || !server.contains('@') { "" } else { "?authMechanism=PLAIN" };
    let server = format!("mongodb://{server}/{mechanism}");
    runtime().block_on(async { work(Client::with_uri_str(server).await.unwrap()).await })
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

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    array_of(Type::Integer, values.into_iter().map(ValueRef::Integer))
}

fn times(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    array_of(Type::Timestamp, values.into_iter().map(ValueRef::Timestamp))
}

fn doubles(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    array_of(Type::Double, values.into_iter().map(ValueRef::Double))
}

/// A session for the operations of a schema.
struct Asking {
    runtime: Runtime,
    session: Box<dyn AsyncSession>,
    names: Vec<String>,
}

impl Asking {
    fn of(driver: &dyn Driver, schema: &Schema) -> Self {
        let Sessions::Asynchronous(connector) = driver.sessions(&schema.operations).unwrap() else {
            panic!("sessions are asynchronous")
        };
        let runtime = runtime();
        let session = runtime.block_on(connector.connect(4)).unwrap();
        Self { runtime, session, names: schema.operations.iter().map(|operation| operation.name.clone()).collect() }
    }

    async fn ask(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        let operation = self.names.iter().position(|name| name == operation).expect("an operation of the schema");
        let request = Request { operation, parameters: parameters.to_vec(), rows: Rows::new() };
        let (request, outcome) = self.session.execute(Box::new(request)).await;
        outcome?;
        let row = |row: sensorbench_driver::RowRef| (0..row.columns()).map(|column| row.value(column).to_value()).collect();
        Ok(request.rows.iter().map(row).collect())
    }

    fn execute(&self, operation: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, DriverError> {
        self.runtime.block_on(self.ask(operation, parameters))
    }
}

#[test]
fn the_server_keeps_the_contract() {
    let is_ferretdb = open(&url("contract", "")).describe().unwrap().database == "FerretDB";
    check(&Subject {
        database: &database(&TargetUrl::parse(&url("contract", "")).unwrap()),
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("contract.json")).expect("the schema of the contract"),
        stores_nan: !is_ferretdb,
        stores_infinity: !is_ferretdb,
        // FerretDB reads whole collections for what is slow.
        keeps: Keeps { many_rows: 30_000, ..Keeps::default() },
        put_foreign: &|| {
            as_owner(async |client| {
                client.database("contract").drop().await.unwrap();
                // Of the same name as the collection with our marker.
                client.database("contract").collection("sensorbench").insert_one(doc! {"mark": "mine"}).await.unwrap();
            });
        },
        foreign_rows: &|| {
            as_owner(async |client| {
                let mine = client.database("contract").collection::<Document>("sensorbench");
                let found = mine.find_one(doc! {"mark": "mine"}).await.unwrap();
                found.iter().map(|row| row.get_str("mark").unwrap().to_owned()).collect()
            })
        },
        remove_foreign: &|| as_owner(async |client| client.database("contract").drop().await.unwrap()),
    });
}

#[test]
fn what_sensorbench_did_not_create_is_not_even_replaced() {
    let mine =
        async |client: Client| client.database("foreign").collection::<Document>("mine").count_documents(doc! {}).await.unwrap();
    as_owner(async |client| {
        client.database("foreign").drop().await.unwrap();
        client.database("foreign").collection("mine").insert_one(doc! {"x": 1}).await.unwrap();
    });
    let driver = open(&url("foreign", ""));
    let error = driver.guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Namespace);
    assert!(error.to_string().contains("name another one with namespace="), "{error}");
    driver.guard(&owner()).remove().unwrap();
    assert_eq!(as_owner(mine), 1);
    as_owner(async |client| client.database("foreign").drop().await.unwrap());
}

#[test]
fn a_closed_port_and_a_wrong_password_are_told_with_what_to_do() {
    let closed = open("mongodb://127.0.0.1:1").describe().unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Connection);
    assert!(closed.to_string().contains("check hosts and ports"), "{closed}");
    let right = url("login", "");
    let Some((_, host)) = right.rsplit_once('@') else { return };
    let scheme = right.split_once(':').unwrap().0;
    let driver = open(&format!("{scheme}://sensorbench:wrong-secret@{host}"));
    let wrong = driver.guard(&owner()).create(&Schema::default(), "", Intent::Create).unwrap_err();
    let message = wrong.to_string();
    assert!(matches!(wrong.kind(), ErrorKind::Connection | ErrorKind::Namespace), "{wrong:?}");
    assert!(message.contains("user and password") && !message.contains("wrong-secret"), "{message}");
}

#[test]
fn the_server_says_which_one_it_is_and_what_it_counts() {
    let driver = open(&url("told", "&write_concern=1&journal=on"));
    let description = driver.describe().unwrap();
    assert!(["MongoDB", "FerretDB"].contains(&description.database.as_str()), "{description:?}");
    assert!(description.version.starts_with(|c: char| c.is_ascii_digit()), "{description:?}");
    assert!(description.settings["write concern"].contains("\"j\": true"), "{description:?}");
    if description.database == "FerretDB" {
        assert!(description.settings["speaks like MongoDB"].starts_with("7.0"), "{description:?}");
        assert!(
            ["SQLite", "PostgreSQL"].iter().any(|backend| description.settings["data are in"].starts_with(backend)),
            "{description:?}"
        );
    }
    let status = driver.status().unwrap();
    assert!(status.keys().any(|name| name.starts_with("metrics.commands.")), "{status:?}");
}

/// A reading a document, under concerns that the URL gives.
fn by_id() -> Schema {
    schema(json!({
        "create": {"commands": [{"create": "t"}, {"createIndexes": "t", "indexes": [{"name": "id", "key": {"id": 1}, "unique": true}]}]},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [
            {
                "name": "read",
                "parameters": [{"name": "id", "type": "integer"}],
                "columns": [{"name": "value", "type": "double"}],
                "statement": {"command": {"find": "t", "filter": {"id": ":id"}}},
            },
            {
                "name": "write",
                "parameters": [{"name": "id", "type": "integer"}],
                "statement": {"command": {"insert": "t", "documents": [{"id": ":id", "value": 0.5}]}},
            },
            {
                "name": "up_to",
                "parameters": [{"name": "id", "type": "integer"}],
                "columns": [{"name": "ids", "type": "integer"}],
                "statement": {"command": {"count": "t", "query": {"id": {"$lt": ":id"}}}},
            },
            {
                "name": "values",
                "columns": [{"name": "value", "type": "double"}],
                "statement": {"command": {"distinct": "t", "key": "value", "query": {"id": {"$lt": 3}}}},
            },
            {
                "name": "sums",
                "parameters": [{"name": "id", "type": "integer"}],
                "columns": [{"name": "id", "type": "integer"}, {"name": "sum", "type": "double"}],
                "statement": {"command": {"aggregate": "t", "pipeline": [
                    {"$match": {"id": {"$gte": ":id"}}},
                    {"$group": {"_id": "$id", "sum": {"$sum": "$value"}}},
                    {"$sort": {"_id": 1}},
                    {"$limit": 2},
                ]}, "row": ["_id", "sum"]},
            },
            {
                "name": "raise",
                "parameters": [{"name": "id", "type": "integer"}],
                "columns": [{"name": "value", "type": "double"}],
                "statement": {"command": {"findAndModify": "t", "query": {"id": ":id"}, "update": {"$inc": {"value": 1.0}}, "new": true}},
            },
        ],
    }))
}

fn loaded(namespace: &str, options: &str, rows: i64) -> (Box<dyn Driver>, Asking) {
    let driver = open(&url(namespace, options));
    driver.guard(&owner()).create(&by_id(), "", Intent::Replace).unwrap();
    let columns = vec![("id", integers(0..rows)), ("value", doubles((0..rows).map(|id| id as f64)))];
    assert_eq!(load(driver.as_ref(), "t", columns).unwrap(), rows as u64);
    let asking = Asking::of(driver.as_ref(), &by_id());
    (driver, asking)
}

#[test]
fn every_kind_of_command_is_answered() {
    let (_driver, asking) =
        loaded("commands", "&write_concern=majority&journal=on&read_concern=local&read_preference=nearest", 5_000);
    let double = |value| vec![Value::Double(value)];
    assert_eq!(asking.execute("read", &[Value::Integer(7)]).unwrap(), [double(7.0)]);
    assert_eq!(asking.execute("up_to", &[Value::Integer(3000)]).unwrap(), [[Value::Integer(3000)]]);
    assert_eq!(asking.execute("values", &[]).unwrap(), [double(0.0), double(1.0), double(2.0)]);
    let sums = asking.execute("sums", &[Value::Integer(4990)]).unwrap();
    assert_eq!(sums, [[Value::Integer(4990), Value::Double(4990.0)], [Value::Integer(4991), Value::Double(4991.0)]]);
    assert_eq!(asking.execute("raise", &[Value::Integer(7)]).unwrap(), [double(8.0)]);
    assert!(asking.execute("raise", &[Value::Integer(-7)]).unwrap().is_empty());
    asking.execute("write", &[Value::Integer(-1)]).unwrap();
    let error = asking.execute("write", &[Value::Integer(-1)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement, "{error}");
    assert!(error.to_string().contains("E11000"), "{error}");
}

#[test]
fn answers_of_operations_in_flight_are_not_mixed_up_whoever_gives_up() {
    let (_driver, asking) = loaded("in_flight", "&connections=4", 50);
    asking.runtime.block_on(async {
        let read = async |number: i64| {
            let (id, parameters) = (number % 50, [Value::Integer(number % 50)]);
            let answered = asking.ask("read", &parameters);
            match tokio::time::timeout(Duration::from_micros(if number % 10 == 3 { 200 } else { 60_000_000 }), answered).await {
                Ok(answer) => assert_eq!(answer.unwrap(), [[Value::Double(id as f64)]]),
                Err(_) => assert_eq!(number % 10, 3, "only those give up that wait for a moment"),
            }
        };
        futures::future::join_all((0..300).map(read)).await;
    });
}

const HOUR: i64 = 3_600_000_000;

#[test]
fn nested_slots_are_loaded_written_and_read() {
    let slots = json!({"field": "hours", "start": "day", "levels": ["hour", "minute"], "from": ":from", "to": ":to"});
    let range = [("sensor", "integer"), ("from", "timestamp"), ("to", "timestamp")];
    let parameters = |names: &[(&str, &str)]| {
        names.iter().map(|(name, value_type)| json!({"name": name, "type": value_type})).collect::<Vec<_>>()
    };
    let nested = schema(json!({
        "create": {
            "commands": [{"create": "by_day"}],
            "documents": {"by_day": {
                "document": {"sensor": ":sensor", "day": {"$date": ":day"}},
                "each": {"hours.:time@hour.:time@minute": ":value"},
                "preallocated": true,
            }},
        },
        "tables": {"by_day": parameters(&[("sensor", "integer"), ("day", "timestamp"), ("time", "timestamp"), ("value", "double")])},
        "operations": [
            {
                "name": "read",
                "parameters": parameters(&range),
                "columns": parameters(&[("time", "timestamp"), ("value", "double")]),
                "statement": {"command": {"find": "by_day", "filter": {"sensor": ":sensor"}}, "slots": slots},
            },
            {
                "name": "write",
                "parameters": parameters(&[("day", "timestamp"), ("time", "timestamp")]),
                "statement": {"command": {"update": "by_day", "updates": [
                    {"q": {"sensor": 1, "day": {"$date": ":day"}}, "u": {"$set": {"hours.:time@hour.:time@minute": 9.5}}, "upsert": true},
                ]}},
            },
        ],
    }));
    let driver = open(&url("slots", ""));
    driver.guard(&owner()).create(&nested, "", Intent::Replace).unwrap();
    let columns = vec![
        ("sensor", integers([1, 1, 1])),
        ("day", times([0, 0, 24 * HOUR])),
        ("time", times([0, HOUR + HOUR / 60, 25 * HOUR])),
        ("value", doubles([0.5, 1.5, 2.5])),
    ];
    assert_eq!(load(driver.as_ref(), "by_day", columns).unwrap(), 3);
    assert_eq!(driver.count("by_day").unwrap(), 3, "rows are counted, not documents");
    let asking = Asking::of(driver.as_ref(), &nested);
    let read =
        |from: i64, to: i64| asking.execute("read", &[Value::Integer(1), Value::Timestamp(from), Value::Timestamp(to)]).unwrap();
    let row = |time: i64, value: f64| vec![Value::Timestamp(time), Value::Double(value)];
    assert_eq!(read(1, 48 * HOUR), [row(HOUR + HOUR / 60, 1.5), row(25 * HOUR, 2.5)]);
    asking.execute("write", &[Value::Timestamp(24 * HOUR), Value::Timestamp(26 * HOUR)]).unwrap();
    asking.execute("write", &[Value::Timestamp(48 * HOUR), Value::Timestamp(50 * HOUR)]).unwrap();
    assert_eq!(read(26 * HOUR, 72 * HOUR), [row(26 * HOUR, 9.5), row(50 * HOUR, 9.5)]);
    let error = asking.execute("write", &[Value::Timestamp(0), Value::Timestamp(1)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
}

#[test]
fn collections_of_days_are_filled_indexed_and_counted_together() {
    let sliced = schema(json!({
        "create": {"documents": {"readings": {"collection": "readings_:time@day"}}},
        "settle": {"commands": [{"createIndexes": "readings_*", "indexes": [{"name": "time", "key": {"time": 1}}]}]},
        "tables": {"readings": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]},
        "operations": [{
            "name": "read",
            "parameters": [{"name": "day", "type": "timestamp"}],
            "columns": [{"name": "value", "type": "double"}],
            "statement": {"command": {"find": "readings_:day@day", "sort": {"time": 1}}},
        }],
    }));
    let driver = open(&url("slices", ""));
    driver.guard(&owner()).create(&sliced, "", Intent::Replace).unwrap();
    load(driver.as_ref(), "readings", vec![("time", times([0, HOUR, 24 * HOUR])), ("value", doubles([0.5, 1.5, 2.5]))]).unwrap();
    driver.settle().unwrap();
    assert_eq!(driver.count("readings").unwrap(), 3);
    let parts = driver.size().unwrap().parts;
    assert!(parts.contains_key("readings_0.time") && parts.contains_key("readings_1.time"), "{parts:?}");
    let asking = Asking::of(driver.as_ref(), &sliced);
    let read = |day: i64| asking.execute("read", &[Value::Timestamp(24 * HOUR * day)]).unwrap();
    assert_eq!(read(0), [[Value::Double(0.5)], [Value::Double(1.5)]]);
    assert_eq!(read(1), [[Value::Double(2.5)]]);
    assert!(read(2).is_empty());
}

#[test]
fn what_ferretdb_lacks_is_refused_in_its_own_words() {
    let driver = open(&url("lacks", ""));
    if driver.describe().unwrap().database != "FerretDB" {
        return;
    }
    let timeseries = schema(json!({"create": {"commands": [{"create": "t", "timeseries": {"timeField": "time"}}]}}));
    let error = driver.guard(&owner()).create(&timeseries, "", Intent::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
    assert!(error.to_string().starts_with("create.commands[0]: create: support for field \"timeseries\""), "{error}");
    let grouped = schema(json!({"operations": [{
        "name": "peak",
        "columns": [{"name": "peak", "type": "double"}],
        "statement": {"command": {"aggregate": "t", "pipeline": [{"$group": {"_id": null, "peak": {"$max": "$value"}}}]}},
    }]}));
    let error = Asking::of(driver.as_ref(), &grouped).execute("peak", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Statement, "{error}");
    assert!(error.to_string().contains("$group accumulator \"$max\" is not implemented yet"), "{error}");
}

#[test]
fn capped_collections_keep_what_fits() {
    let capped = schema(json!({
        "create": {"commands": [{"create": "t", "capped": true, "size": 1_048_576}]},
        "tables": {"t": [{"name": "id", "type": "integer"}]},
    }));
    let driver = open(&url("capped", ""));
    driver.guard(&owner()).create(&capped, "", Intent::Replace).unwrap();
    assert_eq!(load(driver.as_ref(), "t", vec![("id", integers(0..100))]).unwrap(), 100);
    assert_eq!(driver.count("t").unwrap(), 100);
}
