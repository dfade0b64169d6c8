//! HBase's driver keeps the driver contract, with whatever cluster the URL names.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use sensorbench_dataset::array_of;
use sensorbench_dataset::encoding::append_key;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{
    BlockingSession, Database, Deadline, Driver, DriverError, ErrorKind, Intent, Progress, Request, Rows, Schema, Sessions,
    TargetUrl, Type, Value, ValueRef,
};
use sensorbench_driver_hbase::HbaseDatabase;
use serde_json::json;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport};

#[path = "../src/bindings/mod.rs"]
mod bindings;

use bindings::{TGet, THBaseServiceSyncClient, TNamespaceDescriptor, TTHBaseServiceSyncClient, TTableName};

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

/// A namespace with a table of two rows that lost its marker: what somebody else would have.
fn put_foreign_rows(name: &str) {
    let driver = open(&url(name, ""));
    let mine = schema(json!({
        "create": {"table": {"mine": {"key": [{"name": "id", "type": "integer"}], "columns": [{"name": "value", "type": "double"}]}}},
        "tables": {"mine": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
    }));
    driver.guard(&owner()).create(&mine, "", Intent::Create).unwrap();
    let ids = array_of(Type::Integer, ROWS.map(ValueRef::Integer).into_iter());
    let values = array_of(Type::Double, [0.5, 1.5].map(ValueRef::Double).into_iter());
    load(driver.as_ref(), "mine", vec![("id", ids), ("value", values)]).unwrap();
    as_owner(|calls| calls.modify_namespace(TNamespaceDescriptor { name: name.to_owned(), configuration: None }));
}

/// The ids of the two rows.
const ROWS: [i64; 2] = [1, 2];

fn foreign_rows(name: &str) -> Vec<String> {
    let row = |id: i64| {
        let mut key = Vec::new();
        append_key(&mut key, Type::Integer, ValueRef::Integer(id)).unwrap();
        let get = TGet {
            row: key,
            columns: None,
            timestamp: None,
            time_range: None,
            max_versions: None,
            filter_string: None,
            attributes: None,
            authorizations: None,
            consistency: None,
            target_replica_id: None,
            cache_blocks: None,
            store_limit: None,
            store_offset: None,
            existence_only: None,
            filter_bytes: None,
        };
        let found = as_owner(|calls| calls.get(format!("{name}:mine").into_bytes(), get));
        assert!(!found.column_values.is_empty(), "the row {id} is there");
        format!("{:?}", found.column_values)
    };
    ROWS.map(row).to_vec()
}

fn remove_foreign_rows(name: &str) {
    let table = TTableName { ns: Some(name.as_bytes().to_vec()), qualifier: b"mine".to_vec() };
    as_owner(|calls| {
        calls.disable_table(table.clone())?;
        calls.delete_table(table.clone())?;
        calls.delete_namespace(name.to_owned())
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
        // It is slow with fewer rows, too.
        keeps: Keeps { many_rows: 100_000, ..Keeps::default() },
        put_foreign: &|| put_foreign_rows("contract"),
        foreign_rows: &|| foreign_rows("contract"),
        remove_foreign: &|| remove_foreign_rows("contract"),
    });
}

#[test]
fn what_sensorbench_did_not_create_is_not_even_replaced() {
    put_foreign("foreign");
    let driver = open(&url("foreign", ""));
    let error = driver.guard(&owner()).create(&Schema::default(), "", Intent::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Namespace);
    assert!(error.to_string().contains("name another one with namespace="), "{error}");
    driver.guard(&owner()).remove().unwrap();
    assert!(as_owner(|calls| calls.list_namespaces()).contains(&"foreign".to_owned()));
    as_owner(|calls| calls.delete_namespace("foreign".to_owned()));
}

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

/// Values by text and time: with the time as key, as qualifier and as version.
fn layouts() -> Schema {
    let columns = json!([{"name": "value", "type": "double"}, {"name": "note", "type": "text"}]);
    let fill =
        json!([{"name": "name", "type": "text"}, {"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]);
    let apart = |word: &str| {
        let mut table = json!({
            "key": [{"name": "hour", "type": "timestamp"}, {"name": "name", "type": "text"}],
            "columns": [{"name": "value", "type": "double"}],
        });
        table[word] = json!({"name": "time", "since": "hour", "period": "hour", "unit": "minute"});
        table
    };
    let (name, time, value) = (fill[0].clone(), fill[1].clone(), fill[2].clone());
    let (from, to) = (json!({"name": "from", "type": "timestamp"}), json!({"name": "to", "type": "timestamp"}));
    let mut operations = Vec::new();
    for table in ["qualifiers", "versions"] {
        operations.push(json!({
            "name": format!("range_of_{table}"), "parameters": [name, from, to], "columns": [time, value],
            "statement": {"get": {"table": table, "key": [":name"], "from": ":from", "to": ":to"}}}));
        operations.push(json!({
            "name": format!("one_of_{table}"), "parameters": [name, time], "columns": [time, value],
            "statement": {"get": {"table": table, "key": [":name"], "at": ":time"}}}));
        operations.push(json!({
            "name": format!("write_{table}"), "parameters": [name, time, value],
            "statement": {"put": {"table": table, "values": {"name": ":name", "time": ":time", "value": ":value"}}}}));
    }
    let (low, high) = (json!({"name": "low", "type": "double"}), json!({"name": "high", "type": "double"}));
    let (note, max) = (columns[1].clone(), json!({"name": "most", "type": "integer"}));
    operations.extend([
        json!({"name": "between", "parameters": [low, high], "columns": [name, value],
            "statement": {"scan": {"table": "rows", "where": {"value": {"after": ":low", "to": ":high"}}}}}),
        json!({"name": "noted", "parameters": [note], "columns": [name],
            "statement": {"scan": {"table": "rows", "where": {"note": {"from": ":note"}}}}}),
        json!({"name": "first", "parameters": [name, max], "columns": [name],
            "statement": {"scan": {"table": "rows", "from": ":name", "limit": ":most"}}}),
        json!({"name": "all", "parameters": [], "columns": [name, note], "statement": {"scan": {"table": "rows"}}}),
        json!({"name": "note_of", "parameters": [name], "columns": [note],
            "statement": {"get": {"table": "rows", "key": [":name"], "narrow": true}}}),
        json!({"name": "change", "parameters": [name, note],
            "statement": {"put": {"table": "rows", "values": {"name": ":name", "note": ":note"}}}}),
    ]);
    schema(json!({
        "create": {"table": {
            "qualifiers": apart("qualifier"), "versions": apart("version"),
            "rows": {"key": [name], "columns": columns, "splits": [["c"], ["e"]], "bloom": "rowcol", "block_kib": 16},
        }},
        "tables": {"qualifiers": fill, "versions": fill, "rows": [name, value, note]},
        "operations": operations,
    }))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn load_readings(driver: &dyn Driver, table: &str, readings: &[(&str, i64, f64)]) -> Result<u64, DriverError> {
    let names = array_of(Type::Text, readings.iter().map(|reading| ValueRef::Text(reading.0)));
    let times = array_of(Type::Timestamp, readings.iter().map(|reading| ValueRef::Timestamp(reading.1)));
    let values = array_of(Type::Double, readings.iter().map(|reading| ValueRef::Double(reading.2)));
    load(driver, table, vec![("name", names), ("time", times), ("value", values)])
}

/// Times apart from the key, at both ends of hours before and after 1970.
fn times_apart(driver: &dyn Driver, asking: &mut Asking, table: &str) {
    let readings =
        [("a", -MINUTE, -1.0), ("a", 0, 0.0), ("a", MINUTE, 1.0), ("a", HOUR - MINUTE, 59.0), ("a", HOUR, 60.0), ("b", 0, 7.0)];
    assert_eq!(load_readings(driver, table, &readings).unwrap(), 6);
    assert_eq!(driver.count(table).unwrap(), 6, "each reading is counted, whatever row it lies in");
    let (range, one, write) = (format!("range_of_{table}"), format!("one_of_{table}"), format!("write_{table}"));
    let mut values = |from: i64, to: i64| -> Vec<i64> {
        let rows = asking.execute(&range, &[text("a"), Value::Timestamp(from), Value::Timestamp(to)]).unwrap();
        let value = |row: Vec<Value>| match row[..] {
            [Value::Timestamp(time), Value::Double(value)] if time == value as i64 * MINUTE => value as i64,
            ref other => panic!("time and value belong together: {other:?}"),
        };
        rows.into_iter().map(value).collect()
    };
    assert_eq!(values(-HOUR, 2 * HOUR), [-1, 0, 1, 59, 60], "in the order of their times");
    assert_eq!(values(0, HOUR), [0, 1, 59]);
    assert_eq!(values(1, HOUR + 1), [1, 59, 60], "bounds between two units are kept, too");
    assert_eq!(values(MINUTE, HOUR - MINUTE), [1]);
    assert!(values(2 * MINUTE, 3 * MINUTE).is_empty());
    assert!(values(HOUR, HOUR).is_empty());
    assert!(values(1, MINUTE).is_empty(), "there is nothing between two units");
    let at = |time: i64| [text("a"), Value::Timestamp(time)];
    assert_eq!(asking.execute(&one, &at(HOUR)).unwrap(), [vec![Value::Timestamp(HOUR), Value::Double(60.0)]]);
    assert_eq!(asking.execute(&one, &at(HOUR + 1)).unwrap(), Vec::<Vec<Value>>::new());
    asking.execute(&write, &[text("a"), Value::Timestamp(2 * MINUTE), Value::Double(2.5)]).unwrap();
    assert_eq!(asking.execute(&one, &at(2 * MINUTE)).unwrap()[0][1], Value::Double(2.5));
    for (time, problem) in [(MINUTE + 1, "is not a whole minute"), (MINUTE, "two rows have the same key")] {
        let refused = load_readings(driver, table, &[("a", MINUTE, 0.0), ("a", time, 0.0)]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Data);
        assert!(refused.to_string().contains(problem), "{refused}");
    }
}

#[test]
fn columns_versions_filters_and_pages_are_what_schemas_say() {
    let driver = open(&url("layouts", "&page=2&durability=async&load_durability=skip"));
    let schema = layouts();
    driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
    let mut asking = Asking::of(driver.as_ref(), &schema);
    for table in ["qualifiers", "versions"] {
        times_apart(driver.as_ref(), &mut asking, table);
    }
    let names = ["a", "b", "c\0", "d'", "e", "f", "g"];
    let values = [-1.0, -0.0, 0.0, 1.0, 2.0, f64::INFINITY, f64::NAN];
    let notes = ["", "x", "\u{1}' AND", "é", "", "", ""];
    let columns = vec![
        ("name", array_of(Type::Text, names.iter().map(|name| ValueRef::Text(name)))),
        ("value", array_of(Type::Double, values.iter().map(|value| ValueRef::Double(*value)))),
        (
            "note",
            array_of(Type::Text, notes.iter().map(|note| if note.is_empty() { ValueRef::Null } else { ValueRef::Text(note) })),
        ),
    ];
    assert_eq!(load(driver.as_ref(), "rows", columns).unwrap(), 7);
    assert_eq!(driver.count("rows").unwrap(), 7);
    let mut names_of = |operation: &str, parameters: &[Value]| -> Vec<String> {
        let name = |row: Vec<Value>| if let Value::Text(name) = &row[0] { name.to_string() } else { panic!("a name is text") };
        asking.execute(operation, parameters).unwrap().into_iter().map(name).collect()
    };
    let mut between = |low: f64, high: f64| names_of("between", &[Value::Double(low), Value::Double(high)]);
    assert_eq!(between(-2.0, 0.0), ["a"], "both zeros are at the bound");
    assert_eq!(between(-0.0, 3.0), ["d'", "e"]);
    assert_eq!(between(-1.0, 1.0), ["b", "c\0"], "both bounds are excluded, in every region");
    assert_eq!(names_of("noted", &[text("\u{1}' AND")]), ["b", "c\0", "d'"], "what stands in a parameter is a value");
    assert_eq!(names_of("noted", &[text("é")]), ["d'"]);
    for (max, expected) in [(0, &names[..0]), (1, &names[1..2]), (2, &names[1..3]), (5, &names[1..6]), (99, &names[1..])] {
        assert_eq!(names_of("first", &[text("aa"), Value::Integer(max)]), expected, "pages have two rows");
    }
    assert_eq!(names_of("all", &[]), names);
    let note_of = |asking: &mut Asking, name: &str| asking.execute("note_of", &[text(name)]).unwrap();
    asking.execute("change", &[text("a"), text("new")]).unwrap();
    assert_eq!(note_of(&mut asking, "a"), [[text("new")]]);
    asking.execute("change", &[text("a"), Value::Null]).unwrap();
    assert_eq!(note_of(&mut asking, "a"), Vec::<Vec<Value>>::new(), "a null is not a cell");
    let kept = asking.execute("between", &[Value::Double(-2.0), Value::Double(-0.5)]).unwrap();
    assert_eq!(kept, [[text("a"), Value::Double(-1.0)]], "columns that are not named stay");
    driver.guard(&owner()).remove().unwrap();
}

/// A gateway that can be lost: what comes to it is passed on to the first one, until it ends.
struct Passage {
    address: String,
    passing: Arc<Mutex<Option<Vec<TcpStream>>>>,
    keeper: JoinHandle<()>,
}

impl Passage {
    fn open() -> Self {
        let door = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = door.local_addr().unwrap().to_string();
        let passing = Arc::new(Mutex::new(Some(Vec::new())));
        let kept = passing.clone();
        let keeper = std::thread::spawn(move || {
            for caller in door.incoming().map(Result::unwrap) {
                let gateway = TcpStream::connect(&gateways()[0]).unwrap();
                let ways = [(&caller, &gateway), (&gateway, &caller)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()));
                let Some(passing) = &mut *kept.lock().unwrap() else { return };
                passing.extend([caller, gateway]);
                for (mut from, mut to) in ways {
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
            }
        });
        Self { address, passing, keeper }
    }

    fn end(self) {
        let passing = self.passing.lock().unwrap().take().unwrap();
        assert!(!passing.is_empty(), "somebody came this way");
        passing.iter().for_each(|stream| stream.shutdown(Shutdown::Both).unwrap());
        // Whoever comes next has the door closed.
        drop(TcpStream::connect(&self.address));
        self.keeper.join().unwrap();
    }
}

#[test]
fn an_operation_goes_on_at_another_gateway() {
    let server = url("gateways", "");
    let passage = Passage::open();
    let driver = open(&server.replace("hbase://", &format!("hbase://{},127.0.0.1:1,", passage.address)));
    let schema = schema(json!({
        "create": {"table": {"t": {"key": [{"name": "id", "type": "integer"}]}}},
        "operations": [{"name": "all", "columns": [{"name": "id", "type": "integer"}], "statement": {"scan": {"table": "t"}}}],
    }));
    driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
    let ids = array_of(Type::Integer, [1, 2].into_iter().map(ValueRef::Integer));
    assert_eq!(load(driver.as_ref(), "t", vec![("id", ids)]).unwrap(), 2);
    let mut asking = Asking::of(driver.as_ref(), &schema);
    assert_eq!(asking.execute("all", &[]).unwrap().len(), 2);
    passage.end();
    let lost = asking.execute("all", &[]).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Connection, "{lost}");
    assert!(lost.to_string().contains("ended the connection"), "{lost}");
    assert_eq!(asking.execute("all", &[]).unwrap().len(), 2, "the next operation finds a gateway that answers");
    driver.guard(&owner()).remove().unwrap();
    let closed = open("hbase://127.0.0.1:1").describe().unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Connection);
    assert!(closed.to_string().contains("check host and port"), "{closed}");
    let untold = open(server.split('?').next().unwrap());
    assert!(untold.describe().unwrap().settings["settling"].contains("no admin="));
    assert!(untold.size().unwrap().unknown.is_some_and(|why| why.contains("admin=")));
    let description = driver.describe().unwrap();
    assert!(
        description.version.starts_with("2.") && description.settings.contains_key("hbase.client.retries.number"),
        "{description:?}"
    );
    let status = driver.status().unwrap();
    let of_servers = |name: &str| status.iter().filter(|(key, _)| key.ends_with(name)).map(|(_, value)| value).sum::<f64>();
    assert!(of_servers(".read_requests") + of_servers(".scan_calls") > 0.0, "{status:?}");
}
