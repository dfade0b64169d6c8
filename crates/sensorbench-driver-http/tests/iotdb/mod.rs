//! Apache IoTDB.

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{ErrorKind, Intent, Schema, TargetUrl, Value};
use sensorbench_driver_http::IOTDB;
use serde_json::{Value as Json, json};

use crate::server::{Asking, doubles, load, open, request, schema, text, texts, times, url};

const SECOND_US: i64 = 1_000_000;

fn ask(path: &str, statement: &str) -> String {
    let body = json!({"database": "information_schema", "sql": statement}).to_string();
    let (status, body) = request(&format!("/rest/table/v1/{path}"), Some(&body));
    assert_eq!(status, 200, "{statement}: {body}");
    body
}

fn run(statement: &str) {
    assert!(ask("nonQuery", statement).contains("SUCCESS_STATUS"), "{statement}");
}

pub fn keeps_the_contract() {
    run("DROP DATABASE IF EXISTS contract");
    check(&Subject {
        database: &IOTDB,
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("../iotdb.json")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        // Bytes come back as text.
        // It is slow with fewer rows, too.
        keeps: Keeps { columns: &["id", "flag", "number", "value", "time", "name"], many_rows: 100_000, ..Keeps::default() },
        put_foreign: &|| {
            run("CREATE DATABASE contract");
            run("CREATE TABLE contract.sensorbench (mark STRING FIELD)");
            run("INSERT INTO contract.sensorbench (time, mark) VALUES (1, 'mine')");
        },
        foreign_rows: &|| {
            let answer: Json = serde_json::from_str(&ask("query", "SELECT * FROM contract.sensorbench")).unwrap();
            answer["values"].as_array().unwrap().iter().map(Json::to_string).collect()
        },
        remove_foreign: &|| run("DROP DATABASE contract"),
    });
}

fn readings() -> Schema {
    let column = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
    schema(json!({
        "create": {"statements": ["CREATE TABLE t (sensor STRING TAG, value DOUBLE FIELD)"]},
        "tables": {"t": [column("sensor", "text"), column("time", "timestamp"), column("value", "double")]},
        "operations": [
            {
                "name": "read",
                "parameters": [column("sensor", "text")],
                "columns": [column("time", "timestamp"), column("value", "double")],
                "statement": {"statement": "SELECT time, value FROM t WHERE sensor = :sensor ORDER BY time"},
            },
            {
                "name": "write",
                "parameters": [column("name", "text"), column("time", "timestamp"), column("value", "double")],
                "statement": {"write": "t", "columns": {"sensor": "name"}},
            },
        ],
    }))
}

pub fn does_as_stated() {
    for options in ["", "&connections=2"] {
        let driver = open(&IOTDB, &url("stated", options));
        driver.guard(&owner()).create(&readings(), "", Intent::Replace).unwrap();
        let asking = Asking::of(driver.as_ref(), &readings());
        let write = |sensor: &str, time: i64, value: f64| {
            asking.execute("write", &[text(sensor), Value::Timestamp(time), Value::Double(value)]).map(drop)
        };
        let read = |sensor: &str| asking.execute("read", &[text(sensor)]).unwrap();
        let row = |time: i64, value: f64| vec![Value::Timestamp(time), Value::Double(value)];
        // A write is visible at once; late points are taken; µs are exact, and there are times before 1970.
        write("a", 2 * SECOND_US, 2.5).unwrap();
        write("a", -1, 1.5).unwrap();
        assert_eq!(read("a"), [row(-1, 1.5), row(2 * SECOND_US, 2.5)]);
        // Written again, the last one stays, also where files already have the first.
        driver.settle().unwrap();
        write("a", -1, 0.5).unwrap();
        assert_eq!(read("a"), [row(-1, 0.5), row(2 * SECOND_US, 2.5)]);
        for hostile in ["x' OR '1'='1", "\\", "é`\"\n", "'); DROP TABLE t --", "%&{}:a"] {
            assert!(read(hostile).is_empty(), "{hostile}");
            write(hostile, 1, 7.0).unwrap();
            assert_eq!(read(hostile), [row(1, 7.0)], "{hostile}");
        }
    }
    keeps_devices_of_the_tree_model();
    says_what_became_of_a_batch();
    refuses_points_that_are_too_old();
    says_what_it_is();
    open(&IOTDB, &url("stated", "")).guard(&owner()).remove().unwrap();
}

/// In the tree model, a sensor is a node of a path, whatever it is called.
fn keeps_devices_of_the_tree_model() {
    let column = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
    let columns =
        json!([column("sensor", "text"), column("time", "timestamp"), column("value", "double"), column("label", "text")]);
    let range = json!([column("sensor", "text"), column("from", "timestamp"), column("to", "timestamp")]);
    let of_tree = schema(json!({
        "create": {"paths": {"t": ["sensor"]}},
        "tables": {"t": columns},
        "operations": [
            {
                "name": "read",
                "parameters": range,
                "columns": [column("time", "timestamp"), column("value", "double")],
                "statement": {"statement": "SELECT value FROM {t}.:sensor@text WHERE time >= :from AND time < :to"},
            },
            {
                "name": "peak",
                "parameters": range,
                "columns": [column("value", "double")],
                "statement": {"statement": "SELECT max_value(value) FROM {t}.:sensor@text WHERE time >= :from AND time < :to"},
            },
            {
                "name": "labels",
                "columns": [column("label", "text")],
                "statement": {"statement": "SELECT label FROM {t}.** WHERE time = 1 ALIGN BY DEVICE"},
            },
            {"name": "write", "parameters": columns, "statement": {"write": "t"}},
        ],
    }));
    let driver = open(&IOTDB, &url("stated", ""));
    driver.guard(&owner()).create(&of_tree, "", Intent::Replace).unwrap();
    let asking = Asking::of(driver.as_ref(), &of_tree);
    let write = |sensor: &str, time: i64, value: f64| {
        asking.execute("write", &[text(sensor), Value::Timestamp(time), Value::Double(value), text(sensor)]).map(drop)
    };
    let ask = |operation: &str, sensor: &str, from: i64, to: i64| {
        asking.execute(operation, &[text(sensor), Value::Timestamp(from), Value::Timestamp(to)]).unwrap()
    };
    let row = |time: i64, value: f64| vec![Value::Timestamp(time), Value::Double(value)];
    for (time, value) in [(2 * SECOND_US, 2.5), (-1, 1.5), (-1, 0.5)] {
        write("a", time, value).unwrap();
    }
    assert_eq!(ask("read", "a", -1, SECOND_US), [row(-1, 0.5)]);
    assert_eq!(ask("peak", "a", -1, 2 * SECOND_US), [[Value::Double(0.5)]]);
    assert_eq!(ask("peak", "a", 5, 6), [[Value::Null]]);
    let names = ["1", "x' OR '1'='1", "root.**", "a`b", "%&{}:a"];
    for name in names {
        assert!(ask("read", name, 0, 9).is_empty(), "{name}");
        write(name, 1, 7.0).unwrap();
        assert_eq!(ask("read", name, 0, 9), [row(1, 7.0)], "{name}");
    }
    let mut labels: Vec<_> = asking.execute("labels", &[]).unwrap().into_iter().map(|row| row[0].to_string()).collect();
    labels.sort_unstable();
    let mut expected = names.map(|name| text(name).to_string());
    expected.sort_unstable();
    assert_eq!(labels, expected);
    let columns = vec![
        ("sensor", texts(&["b", "b", "c"])),
        ("time", times(&[1, 2, 1])),
        ("value", doubles(&[1.0, 2.0, 3.0])),
        ("label", texts(&["b", "b", "c"])),
    ];
    load(driver.as_ref(), "t", columns).1.unwrap();
    driver.settle().unwrap();
    assert_eq!(driver.count("t").unwrap(), 2 + names.len() as u64 + 3);
    // Somebody's database of the tree model is left alone.
    driver.guard(&owner()).remove().unwrap();
    let tree = |path: &str, statement: &str| request(path, Some(&json!({"sql": statement}).to_string())).1;
    tree("/rest/v2/nonQuery", "INSERT INTO root.stated_tree.mine(timestamp, v) VALUES (1, 7.0)");
    let refused = driver.guard(&owner()).create(&of_tree, "", Intent::Create).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Namespace && refused.to_string().contains("somebody's database of the tree"),
        "{refused}"
    );
    assert!(tree("/rest/v2/query", "SELECT v FROM root.stated_tree.mine").contains("7.0"));
    tree("/rest/v2/nonQuery", "DELETE DATABASE root.stated_tree");
    // Neither are somebody's tables, which the server would delete with a database of the same name.
    run("CREATE DATABASE stated_tree");
    let refused = driver.guard(&owner()).create(&of_tree, "", Intent::Replace).unwrap_err();
    assert!(refused.kind() == ErrorKind::Namespace && refused.to_string().contains("stated_tree"), "{refused}");
    run("DROP DATABASE stated_tree");
    driver.guard(&owner()).create(&of_tree, "", Intent::Replace).unwrap();
}

/// A table that changed under the driver refuses the batch with a code in an answer of success.
fn says_what_became_of_a_batch() {
    let driver = open(&IOTDB, &url("stated", ""));
    driver.guard(&owner()).create(&readings(), "", Intent::Replace).unwrap();
    let columns = || vec![("sensor", texts(&["a", "b"])), ("time", times(&[1, 2])), ("value", doubles(&[1.0, f64::NAN]))];
    let (rows, outcome) = load(driver.as_ref(), "t", columns());
    assert!(rows == 0 && outcome.unwrap_err().to_string().contains("column value"), "NaN is refused before anything is sent");
    assert_eq!(driver.count("t").unwrap(), 0);
}

/// Points older than a table's TTL are refused with a code, and how many of a batch are in is unknown.
fn refuses_points_that_are_too_old() {
    let driver = open(&IOTDB, &url("stated", ""));
    let mut kept_a_day = readings();
    kept_a_day.create = json!({"statements": ["CREATE TABLE t (sensor STRING TAG, value DOUBLE FIELD) WITH (TTL=86400000)"]});
    driver.guard(&owner()).create(&kept_a_day, "", Intent::Replace).unwrap();
    let now_us = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64;
    let columns = |times_us: &[i64]| {
        let sensors = vec!["a"; times_us.len()];
        vec![("sensor", texts(&sensors)), ("time", times(times_us)), ("value", doubles(&vec![1.0; times_us.len()]))]
    };
    assert_eq!(load(driver.as_ref(), "t", columns(&[now_us])).0, 1);
    let (rows, outcome) = load(driver.as_ref(), "t", columns(&[SECOND_US, now_us + 1]));
    let error = outcome.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Data && error.to_string().contains("how many of the batch's 2 rows are in is unknown"),
        "{error}"
    );
    assert_eq!(rows, 0);
    let asking = Asking::of(driver.as_ref(), &kept_a_day);
    let refused = asking.execute("write", &[text("a"), Value::Timestamp(SECOND_US), Value::Double(1.0)]).unwrap_err();
    assert!(refused.kind() == ErrorKind::Statement && refused.to_string().contains("code "), "{refused}");
}

fn says_what_it_is() {
    let driver = open(&IOTDB, &url("said", "&wal_mode=sync"));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "Apache IoTDB");
    assert_eq!(description.settings["TimestampPrecision"], "us");
    assert_eq!(description.settings["wal_mode"], "sync");
    for (statement, path, expected) in [
        ("CREATE TABLE t (sensor STRIN TAG)", "create.statements[0]", "STRIN"),
        ("CREATE TABLE t (sensor STRING TAG)", "fill.t", "the table has no column value; it has time, sensor"),
        ("CREATE TABLE other (sensor STRING TAG)", "fill.t", "create no such table"),
        (
            "CREATE TABLE t (sensor STRING TAG, value INT64 FIELD)",
            "fill.t",
            "column value: values of type double cannot be written",
        ),
    ] {
        let mut wrong = readings();
        wrong.create = json!({"statements": [statement]});
        let refused = driver.guard(&owner()).create(&wrong, "", Intent::Replace).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Schema, "{refused}");
        assert!(refused.to_string().starts_with(path) && refused.to_string().contains(expected), "{refused}");
        driver.guard(&owner()).remove().unwrap();
    }
    for (options, expected) in [("&gzip=on", "takes no compressed bodies"), ("&wal_mode=no", "expected sync, async or disable")] {
        let refused = sensorbench_driver::Database::open(&IOTDB, &TargetUrl::parse(&url("said", options)).unwrap());
        assert!(refused.err().expect(options).to_string().contains(expected), "{options}");
    }
    let right = url("said", "");
    let (_, host) = right.rsplit_once('@').expect("pytest passes user and password");
    let wrong = open(&IOTDB, &format!("iotdb://sensorbench:wr0ng-secret@{host}")).describe().unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Connection, "{wrong}");
    assert!(!wrong.to_string().contains("wr0ng-secret"), "{wrong}");
}
