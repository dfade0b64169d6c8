//! ClickHouse.

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{ErrorKind, Intent, Schema, Value};
use sensorbench_driver_http::CLICKHOUSE;
use serde_json::json;

use crate::server::{Asking, doubles, load, open, request, schema, text, texts, times, url};

const SECOND_US: i64 = 1_000_000;

fn run(statement: &str) -> String {
    let (status, body) = request("/", Some(statement));
    assert_eq!(status, 200, "{statement}: {body}");
    body
}

pub fn keeps_the_contract() {
    run("DROP DATABASE IF EXISTS contract");
    check(&Subject {
        database: &CLICKHOUSE,
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("../clickhouse.json")).expect("the schema of the contract"),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps::default(),
        put_foreign: &|| {
            run("CREATE DATABASE contract");
            run("CREATE TABLE contract.sensorbench (mark String) ENGINE = Log");
            run("INSERT INTO contract.sensorbench VALUES ('mine')");
        },
        foreign_rows: &|| run("SELECT * FROM contract.sensorbench").lines().map(str::to_owned).collect(),
        remove_foreign: &|| drop(run("DROP DATABASE contract")),
    });
}

/// Readings, of which the last one of a sensor and time stays.
fn readings(time: &str) -> Schema {
    let column = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
    let columns = [column("sensor", "text"), column("time", "timestamp"), column("value", "double")];
    schema(json!({
        "create": {"statements": [format!(
            "CREATE TABLE t (sensor String, time {time}, value Float64) ENGINE = ReplacingMergeTree() ORDER BY (sensor, time)"
        )]},
        "tables": {"t": columns},
        "operations": [
            {
                "name": "read",
                "parameters": [column("sensor", "text")],
                "columns": [column("time", "timestamp"), column("value", "double")],
                "statement": {"statement": "SELECT time, value FROM t WHERE sensor = :sensor ORDER BY time, value"},
            },
            {
                "name": "read_last",
                "parameters": [column("sensor", "text")],
                "columns": [column("value", "double")],
                "statement": {"statement": "SELECT value FROM t FINAL WHERE sensor = :sensor ORDER BY time"},
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
    for options in ["", "&gzip=on&connections=2"] {
        let driver = open(&CLICKHOUSE, &url("stated", options));
        driver.guard(&owner()).create(&readings("Int64"), "", Intent::Replace).unwrap();
        let asking = Asking::of(driver.as_ref(), &readings("Int64"));
        let write = |sensor: &str, time: i64, value: f64| {
            asking.execute("write", &[text(sensor), Value::Timestamp(time), Value::Double(value)]).map(drop)
        };
        let read = |sensor: &str| asking.execute("read", &[text(sensor)]).unwrap();
        let row = |time: i64, value: f64| vec![Value::Timestamp(time), Value::Double(value)];
        // A write is visible at once; late points are taken; µs are exact, and there are times before 1970.
        write("a", 2 * SECOND_US, 2.5).unwrap();
        write("a", -1, 1.5).unwrap();
        assert_eq!(read("a"), [row(-1, 1.5), row(2 * SECOND_US, 2.5)]);
        // Written again, both are there, until parts are merged; FINAL leaves out all but the last.
        write("b", 1, 5.0).unwrap();
        write("b", 1, 3.0).unwrap();
        assert_eq!(asking.execute("read_last", &[text("b")]).unwrap(), [[Value::Double(3.0)]]);
        for hostile in ["x' OR '1'='1", "\\", "é\0`\"\n", "'); DROP TABLE t --", "%&{}:a"] {
            assert!(read(hostile).is_empty(), "{hostile}");
            write(hostile, 1, 7.0).unwrap();
            assert_eq!(read(hostile), [row(1, 7.0)], "{hostile}");
        }
    }
    keeps_whole_seconds_alone_where_a_column_does();
    says_what_it_is();
    open(&CLICKHOUSE, &url("stated", "")).guard(&owner()).remove().unwrap();
}

/// What a DateTime would cut is refused before anything is sent.
fn keeps_whole_seconds_alone_where_a_column_does() {
    let driver = open(&CLICKHOUSE, &url("stated", ""));
    driver.guard(&owner()).create(&readings("DateTime"), "", Intent::Replace).unwrap();
    let columns = |time: i64| vec![("sensor", texts(&["a"])), ("time", times(&[time])), ("value", doubles(&[1.0]))];
    assert_eq!(load(driver.as_ref(), "t", columns(SECOND_US)).0, 1);
    for time in [1, -SECOND_US] {
        let (rows, outcome) = load(driver.as_ref(), "t", columns(time));
        let error = outcome.unwrap_err();
        assert!(error.kind() == ErrorKind::Data && error.to_string().contains("does not fit into DateTime"), "{error}");
        assert_eq!(rows, 0);
    }
    assert_eq!(driver.count("t").unwrap(), 1);
}

fn says_what_it_is() {
    let driver = open(&CLICKHOUSE, &url("said", ""));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "ClickHouse");
    assert!(description.settings.contains_key("max_threads"), "{description:?}");
    assert!(driver.status().unwrap()["event.Query"] > 0.0);
    for (statement, path, expected) in [
        ("CREATE TABLE t (sensor Strin) ENGINE = Memory", "create.statements[0]", "Strin"),
        ("CREATE TABLE t (sensor String) ENGINE = Memory", "fill.t", "the table has no column time; it has sensor"),
        ("CREATE TABLE other (sensor String) ENGINE = Memory", "fill.t", "create no such table"),
        (
            "CREATE TABLE t (sensor String, time Float64, value Float64) ENGINE = Memory",
            "fill.t",
            "column time: expected timestamp, but the server returns Float64",
        ),
    ] {
        let mut wrong = readings("Int64");
        wrong.create = json!({"statements": [statement]});
        let refused = driver.guard(&owner()).create(&wrong, "", Intent::Replace).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Schema, "{refused}");
        assert!(refused.to_string().starts_with(path) && refused.to_string().contains(expected), "{refused}");
        driver.guard(&owner()).remove().unwrap();
    }
    let right = url("said", "");
    let (_, host) = right.rsplit_once('@').expect("pytest passes user and password");
    let wrong = open(&CLICKHOUSE, &format!("clickhouse://sensorbench:wr0ng-secret@{host}")).describe().unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Connection, "{wrong}");
    assert!(!wrong.to_string().contains("wr0ng-secret"), "{wrong}");
}
