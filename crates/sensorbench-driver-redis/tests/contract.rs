//! Redis, and Redis Cluster, keep the driver contract.

use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use futures::future::join_all;
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Database, Driver, DriverError, ErrorKind, Intent, Progress, Schema, Type, Value, ValueRef};
use sensorbench_driver_redis::{RedisClusterDatabase, RedisDatabase};
use serde_json::json;

mod server;

use server::{Admin, Client, cluster_url, open, url, values};

fn contract_schema() -> Schema {
    toml::from_str(include_str!("contract.toml")).expect("the schema of the contract")
}

fn keeps_the_contract(database: &dyn Database, url: String) {
    let admin = Admin::of(&url);
    let foreign = ["mark", "mine"].map(|name| format!("{}:{name}", admin.namespace));
    check(&Subject {
        database,
        url,
        schema: contract_schema(),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            admin.clear();
            foreign.iter().for_each(|key| drop(admin.run(key, &["SET", key, "x"])));
        },
        foreign_rows: &|| foreign.iter().map(|key| format!("{:?}", admin.run(key, &["GET", key]))).collect(),
        remove_foreign: &|| admin.clear(),
    });
}

#[test]
fn a_server_keeps_the_contract() {
    keeps_the_contract(&RedisDatabase, url("contract"));
}

#[test]
fn a_cluster_keeps_the_contract() {
    keeps_the_contract(&RedisClusterDatabase, cluster_url("contract"));
}

fn json_schema(schema: serde_json::Value) -> Schema {
    serde_json::from_value(schema).expect("a schema")
}

/// A table of values by id, under one key each.
fn by_id_schema() -> Schema {
    json_schema(json!({
        "create": {"table": {"t": {"key": "{id}", "write": ["SET", "{value}"]}}},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [{
            "name": "read",
            "parameters": [{"name": "id", "type": "integer"}],
            "columns": [{"name": "value", "type": "double"}],
            "statement": {"table": "t", "command": ["GET"]},
        }],
    }))
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

fn doubles(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    array_of(Type::Double, values.into_iter().map(ValueRef::Double))
}

/// A target with the values 0.5, 1.5 and so on.
fn loaded(url: &str, rows: i64) -> Box<dyn Driver> {
    let driver = open(url);
    driver.guard(&owner()).create(&by_id_schema(), "", Intent::Replace).unwrap();
    let columns = vec![("id", integers(0..rows)), ("value", doubles((0..rows).map(|id| id as f64 + 0.5)))];
    assert_eq!(load(driver.as_ref(), "t", columns).unwrap(), rows as u64);
    assert_eq!(driver.count("t").unwrap(), rows as u64);
    driver
}

#[test]
fn a_wrong_password_and_a_closed_port_are_told_with_what_to_do() {
    let right = url("login");
    let host = right.rsplit_once('@').map_or_else(|| right.split_once("//").unwrap().1, |(_, host)| host);
    for (url, expected) in [
        (format!("redis://:wrong-secret@{host}"), "WRONGPASS"),
        (format!("redis://nobody:wrong-secret@{host}"), "give user and password in the URL"),
        ("redis://:wrong-secret@127.0.0.1:1".to_owned(), "127.0.0.1:1: Connection refused"),
    ] {
        let error = open(&url).describe().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.to_string().contains("wrong-secret"), "{error}");
    }
}

#[test]
fn what_sensorbench_did_not_create_is_not_even_replaced() {
    for url in [url("foreign"), cluster_url("foreign")] {
        let admin = Admin::of(&url);
        admin.clear();
        admin.run("foreign:t:1", &["SET", "foreign:t:1", "mine"]);
        let driver = open(&url);
        let error = driver.guard(&owner()).create(&by_id_schema(), "", Intent::Replace).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Namespace);
        assert!(error.to_string().contains("foreign:t:1") && error.to_string().contains("namespace="), "{error}");
        driver.guard(&owner()).remove().unwrap();
        assert_eq!(admin.run("foreign:t:1", &["GET", "foreign:t:1"]), redis::Value::BulkString(b"mine".to_vec()));
        admin.clear();
    }
}

#[test]
fn answers_are_not_mixed_up_when_many_are_in_flight_and_some_are_dropped() {
    for url in [url("mixed") + "&connections=4", cluster_url("mixed") + "&connections=2"] {
        let driver = loaded(&url, 1000);
        let client = Client::of(driver.as_ref(), &by_id_schema(), 64);
        let asks = |slot: i64| {
            let client = &client;
            async move {
                for turn in 0..500 {
                    let id = (slot * 7_919 + turn * 104_729) % 1000;
                    let executing = client.session.execute(client.request("read", &[Value::Integer(id)]));
                    if (slot + turn) % 7 == 0 {
                        // Dropped before its answer is there, now and then even before its command is sent.
                        let patience = Duration::from_micros(20 * (turn as u64 % 5));
                        if tokio::time::timeout(patience, executing).await.is_err() {
                            continue;
                        }
                    } else {
                        let (request, outcome) = executing.await;
                        outcome.unwrap();
                        assert_eq!(values(&request.rows), [[Value::Double(id as f64 + 0.5)]]);
                    }
                }
            }
        };
        client.runtime.block_on(join_all((0..64).map(asks)));
        driver.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn a_session_survives_the_loss_of_its_connections() {
    let login = url("lost");
    let admin = Admin::of(&login);
    admin.run("", &["ACL", "SETUSER", "lost", "on", ">lost-secret", "~*", "+@all"]);
    let host = login.rsplit_once('@').map_or_else(|| login.split_once("//").unwrap().1, |(_, host)| host);
    let driver = loaded(&format!("redis://lost:lost-secret@{host}&connections=3"), 10);
    let client = Client::of(driver.as_ref(), &by_id_schema(), 3);
    let answered = |id: i64| client.ask("read", &[Value::Integer(id)]);
    for _ in 0..3 {
        assert_eq!(answered(1).unwrap(), [[Value::Double(1.5)]]);
        assert_eq!(admin.run("", &["CLIENT", "KILL", "USER", "lost"]), redis::Value::Int(3));
        let error = answered(2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(error.to_string().contains("the connection was lost") && !error.to_string().contains("secret"), "{error}");
        for id in 3..10 {
            assert_eq!(answered(id).unwrap(), [[Value::Double(id as f64 + 0.5)]]);
        }
        // All three are connected again for the next loss.
        client.runtime.block_on(join_all((0..3).map(|id| client.session.execute(client.request("read", &[Value::Integer(id)])))));
    }
    driver.guard(&owner()).remove().unwrap();
    admin.run("", &["ACL", "DELUSER", "lost"]);
}

#[test]
fn what_the_server_refuses_ends_a_load_and_an_operation() {
    let schema = json_schema(json!({
        "create": {"table": {"t": {"write": ["ZADD", "{value}", "{id}"]}, "u": {"write": ["SET", "{value}"]}}},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [
            {"name": "wrong", "statement": {"table": "t", "command": ["GET"]}},
            {"name": "right", "columns": [{"name": "number", "type": "integer"}], "statement": {"table": "t", "command": ["ZCARD"]}},
        ],
    }));
    for url in [url("refused"), cluster_url("refused")] {
        let driver = open(&url);
        driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
        let columns = |value| vec![("id", integers([1, 2])), ("value", doubles([0.5, value]))];
        let error = load(driver.as_ref(), "t", columns(f64::NAN)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
        assert!(error.to_string().contains("table t") && error.to_string().contains("not a valid float"), "{error}");
        let nulls = array_of(Type::Double, [ValueRef::Double(0.5), ValueRef::Null].into_iter());
        let error = load(driver.as_ref(), "t", vec![("id", integers([1, 2])), ("value", nulls)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("column value is null"), "{error}");
        load(driver.as_ref(), "t", columns(1.5)).unwrap();
        let client = Client::of(driver.as_ref(), &schema, 1);
        let error = client.ask("wrong", &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Statement);
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
        assert_eq!(client.ask("right", &[]).unwrap(), [[Value::Integer(2)]]);
        driver.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn readings_lie_in_sorted_sets_and_hashes() {
    let readings = json!([
        {"name": "sensor", "type": "text"},
        {"name": "time", "type": "timestamp"},
        {"name": "value", "type": "double"},
    ]);
    let (columns, at) = (json!([readings[1], readings[2]]), json!([readings[0], readings[1]]));
    let schema = json_schema(json!({
        "create": {"table": {
            "series": {"key": "{sensor}", "write": ["ZADD", "{time}", "{time}:{value}"]},
            "reading": {"key": "{sensor}:{time}", "write": ["HSET", "time", "{time}", ["value", "{value}"]]},
        }},
        "tables": {"series": readings, "reading": readings},
        "operations": [
            {"name": "range", "parameters": at, "columns": columns, "statement": {
                "table": "series", "command": ["ZRANGEBYSCORE", "{time}", "(4"], "row": ["{time}:{value}"]}},
            {"name": "scores", "parameters": at, "columns": [columns[0]], "statement": {
                "table": "series", "command": ["ZRANGEBYSCORE", "{time}", "+inf", "WITHSCORES"], "row": [":", "{time}"]}},
            {"name": "all_fields", "parameters": at, "columns": columns, "statement": {
                "table": "reading", "command": ["HGETALL"], "row": ["time", "{time}", "value", "{value}"]}},
            {"name": "fields", "parameters": at, "columns": columns, "statement": {
                "table": "reading", "command": ["HMGET", "time", "value"]}},
            {"name": "write", "parameters": readings, "statement": {
                "table": "reading", "command": ["HSET", "time", "{time}", ["value", "{value}"]]}},
        ],
    }));
    for url in [url("forms"), cluster_url("forms")] {
        let driver = open(&url);
        driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
        let rows = || {
            let sensors = ["a", "a", "a", "b"].into_iter().map(ValueRef::Text);
            let times = [1, 2, 4, 1].into_iter().map(ValueRef::Timestamp);
            vec![
                ("sensor", array_of(Type::Text, sensors)),
                ("time", array_of(Type::Timestamp, times)),
                ("value", doubles([0.1, 1e300, f64::NEG_INFINITY, 7.0])),
            ]
        };
        for table in ["series", "reading"] {
            load(driver.as_ref(), table, rows()).unwrap();
            assert_eq!(driver.count(table).unwrap(), 4, "members of sorted sets, or hashes");
        }
        let client = Client::of(driver.as_ref(), &schema, 1);
        let parameters = |sensor: &str, time| [Value::Text(sensor.into()), Value::Timestamp(time)];
        let row = |time, value| vec![Value::Timestamp(time), Value::Double(value)];
        let ask = |operation: &str, sensor: &str, time| client.ask(operation, &parameters(sensor, time));
        assert_eq!(ask("range", "a", 1).unwrap(), [row(1, 0.1), row(2, 1e300)]);
        assert_eq!(ask("range", "c", 1).unwrap(), [[Value::Null; 0]; 0]);
        assert!(ask("scores", "a", 1).unwrap_err().to_string().contains("the reply has \"1:0.1\" (5 bytes) where \":\""));
        assert_eq!(ask("all_fields", "a", 4).unwrap(), [row(4, f64::NEG_INFINITY)]);
        assert_eq!(ask("fields", "b", 1).unwrap(), [row(1, 7.0)]);
        assert_eq!(ask("fields", "b", 2).unwrap(), [[Value::Null; 0]; 0]);
        let [sensor, time] = parameters("c", 9);
        client.ask("write", &[sensor, time, Value::Null]).unwrap();
        assert_eq!(ask("fields", "c", 9).unwrap(), [[Value::Timestamp(9), Value::Null]]);
        let size = driver.size().unwrap();
        assert_eq!(size.parts.keys().collect::<Vec<_>>(), ["reading", "series"]);
        driver.guard(&owner()).remove().unwrap();
    }
}

#[test]
fn a_server_tells_of_itself() {
    let single = open(&url("told"));
    let description = single.describe().unwrap();
    assert!(description.version.starts_with(|c: char| c.is_ascii_digit()), "{description:?}");
    assert!(description.settings.contains_key("appendonly") && description.settings["redis_mode"] == "standalone");
    assert!(single.status().unwrap()["total_commands_processed"] > 0.0);
    let cluster = open(&cluster_url("told"));
    assert_eq!(cluster.describe().unwrap().settings["masters"], "3");
    assert!(cluster.status().unwrap()["cmdstat_info.calls"] > 0.0);
}

#[test]
fn a_single_node_of_a_cluster_is_not_taken_for_a_server() {
    let url = cluster_url("node").replace("redis+cluster://", "redis://");
    let (hosts, namespace) = url.split_once('?').unwrap();
    let driver = open(&format!("{}?{namespace}", hosts.split(',').next().unwrap()));
    // Where the key of the mark is elsewhere, the first step fails, else the first operation whose key is.
    let error = driver.guard(&owner()).create(&by_id_schema(), "", Intent::Replace).err().unwrap_or_else(|| {
        let client = Client::of(driver.as_ref(), &by_id_schema(), 1);
        let error = (0..100).find_map(|id| client.ask("read", &[Value::Integer(id)]).err()).expect("keys that are elsewhere");
        driver.guard(&owner()).remove().unwrap();
        error
    });
    assert!(error.to_string().contains("give its URL as redis+cluster://"), "{error}");
}

/// Moves a slot of the cluster to another master while a session works, and back.
#[test]
fn a_session_follows_a_slot_that_moves() {
    let url = cluster_url("moving");
    let admin = Admin::of(&url);
    let driver = loaded(&url, 100);
    let client = Client::of(driver.as_ref(), &by_id_schema(), 4);
    let key = "moving:t:7";
    let slot: Vec<u64> = admin.run_everywhere(&["CLUSTER", "KEYSLOT", key]);
    let slot = slot[0].to_string();
    let ids: Vec<String> = admin.run_everywhere(&["CLUSTER", "MYID"]);
    let has_key: Vec<bool> = admin
        .run_everywhere::<Vec<String>>(&["CLUSTER", "GETKEYSINSLOT", &slot, "10"])
        .iter()
        .map(|keys| !keys.is_empty())
        .collect();
    let from = has_key.iter().position(|has| *has).unwrap();
    let to = (from + 1) % 3;
    let answered = || client.ask("read", &[Value::Integer(7)]).unwrap();
    for (from, to) in [(from, to), (to, from)] {
        admin.run_on(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[from]]);
        admin.run_on(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[to]]);
        assert_eq!(answered(), [[Value::Double(7.5)]], "it is still there");
        let (host, port) = admin.address(to);
        let login = admin.password(to).map_or(Vec::new(), |password| vec!["AUTH".to_owned(), password]);
        let migrate = [["MIGRATE", &host, &port, key, "0", "5000"].map(str::to_owned).to_vec(), login].concat();
        admin.run_on(from, &migrate.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(answered(), [[Value::Double(7.5)]], "it is asked for elsewhere, once");
        for place in [to, from, 3 - from - to] {
            admin.run_on(place, &["CLUSTER", "SETSLOT", &slot, "NODE", &ids[to]]);
        }
        assert_eq!(answered(), [[Value::Double(7.5)]], "it has moved");
        assert_eq!(answered(), [[Value::Double(7.5)]]);
    }
    driver.guard(&owner()).remove().unwrap();
}
