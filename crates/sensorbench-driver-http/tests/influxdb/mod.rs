//! InfluxDB.

use std::time::{Duration, Instant};

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{ErrorKind, Intent, Schema, Value};
use sensorbench_driver_http::{HttpDatabase, INFLUXDB};
use serde_json::json;

use crate::server::{Asking, doubles, load, open, request, schema, text, texts, times, url};

const DAY_US: i64 = 86_400_000_000;
/// The last time that InfluxDB has, in whole µs.
const LAST_US: i64 = 9_223_372_036_854_775;

fn query(query: &str) -> String {
    let (status, body) = request(
        "/query",
        Some(&format!("epoch=u&q={}", percent_encoding::utf8_percent_encode(query, percent_encoding::NON_ALPHANUMERIC))),
    );
    assert_eq!(status, 200, "{body}");
    body
}

pub fn keeps_the_contract() {
    check(&Subject {
        database: &INFLUXDB,
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("../influxdb.json")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps { times_us: (-LAST_US, LAST_US), compresses: true, ..Keeps::default() },
        put_foreign: &|| {
            query("DROP DATABASE contract");
            query("CREATE DATABASE contract");
            // Of the same name and time as our marker.
            assert_eq!(request("/write?db=contract", Some("sensorbench mark=\"mine\",x=1 0\n")).0, 204);
        },
        foreign_rows: &|| {
            let found = query("SELECT mark, x FROM contract.autogen.sensorbench");
            if found.contains("mine") { vec![found] } else { Vec::new() }
        },
        remove_foreign: &|| drop(query("DROP DATABASE contract")),
    });
}

/// Readings with a tag and a field.
fn readings() -> Schema {
    let column = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
    let parameters = [column("sensor", "text"), column("time", "timestamp"), column("value", "double"), column("more", "double")];
    schema(json!({
        "create": {"points": {"t": {"tags": ["sensor"], "fields": ["value", "more"]}}, "shard_duration": "30d"},
        "tables": {"t": parameters},
        "operations": [
            {
                "name": "read",
                "parameters": [column("sensor", "text")],
                "columns": [column("time", "timestamp"), column("value", "double"), column("more", "double")],
                "statement": {"query": "SELECT value, more FROM t WHERE sensor = :sensor"},
            },
            {
                "name": "named",
                "parameters": [column("field", "text")],
                "columns": [column("value", "double")],
                "statement": {"query": "SELECT \":field\" AS value FROM t"},
            },
            {"name": "write", "parameters": parameters, "statement": {"write": "t"}},
        ],
    }))
}

pub fn does_as_stated() {
    treats_writes_as_stated(&INFLUXDB, "");
    refuses_what_is_beyond_retention();
    open(&INFLUXDB, &url("stated", "")).guard(&owner()).remove().unwrap();
    says_what_it_is();
}

/// What both main versions do with writes. `login` are the options that each URL needs.
pub fn treats_writes_as_stated(database: &HttpDatabase, login: &str) {
    for options in ["", "&gzip=on&connections=2"] {
        let driver = open(database, &url("stated", &format!("{login}{options}")));
        driver.guard(&owner()).create(&readings(), "", Intent::Replace).unwrap();
        let asking = Asking::of(driver.as_ref(), &readings());
        let write = |sensor: &str, time: i64, value: Value, more: Value| {
            asking.execute("write", &[text(sensor), Value::Timestamp(time), value, more]).map(drop)
        };
        let read = |sensor: &str| asking.execute("read", &[text(sensor)]).unwrap();
        let row = |time: i64, value: f64, more: Value| vec![Value::Timestamp(time), Value::Double(value), more];
        // One's own write is visible at once; late points are taken; µs are exact.
        for number in 0..50 {
            write("a", DAY_US * 20_000 - number, Value::Double(number as f64), Value::Null).unwrap();
            assert_eq!(read("a").len(), number as usize + 1, "the write is visible when it is answered");
        }
        // Written again, the last value wins, and fields are merged.
        write("b", 1, Value::Double(5.0), Value::Double(0.5)).unwrap();
        write("b", 1, Value::Double(3.0), Value::Null).unwrap();
        assert_eq!(read("b"), [row(1, 3.0, Value::Double(0.5))]);
        // What a client would have to get wrong for others is text, at a real server too.
        for hostile in ["x' OR 'a'='a", "a\" OR \"a\"=\"a", "a,b=c d=1 2", "é=\\x", "$p0", "100%&db=_internal"] {
            assert!(read(hostile).is_empty(), "{hostile}");
            write(hostile, 7, Value::Double(7.0), Value::Null).unwrap();
            assert_eq!(read(hostile), [row(7, 7.0, Value::Null)], "{hostile}");
        }
        assert!(asking.execute("named", &[text("x\" FROM t; DROP DATABASE stated --")]).unwrap().is_empty());
        assert_eq!(driver.count("t").unwrap(), 50 + 1 + 6);
        accounts_for_what_is_refused(driver.as_ref());
        answers_are_not_mixed_up(&asking);
    }
}

/// Of a batch that is partly refused the rest is in, and the driver counts it.
fn accounts_for_what_is_refused(driver: &dyn sensorbench_driver::Driver) {
    // Somebody has made the field a text in the week of these times.
    assert_eq!(request("/write?db=stated", Some(&format!("t,sensor=c more=\"text\" {}000\n", 500 * DAY_US))).0, 204);
    let before = driver.count("t").unwrap();
    let columns = |first: i64| {
        vec![
            ("sensor", texts(&["p", "q", "r"])),
            ("time", times(&[first, 500 * DAY_US, first + 1])),
            ("value", doubles(&[1.0, 2.0, 3.0])),
            ("more", doubles(&[1.0, 2.0, 3.0])),
        ]
    };
    let (rows, outcome) = load(driver, "t", columns(900 * DAY_US));
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    let message = error.to_string();
    assert!(message.contains("field type conflict") && message.contains("2 of the batch's 3 rows are in"), "{message}");
    assert_eq!(rows, 2);
    // InfluxDB 2 refuses as soon as one shard does, while others still write.
    let begun = Instant::now();
    while driver.count("t").unwrap() < before + 2 && begun.elapsed() < Duration::from_secs(10) {}
    assert_eq!(driver.count("t").unwrap(), before + 2);
}

/// A policy that keeps a day drops what is older, and says so.
fn refuses_what_is_beyond_retention() {
    query("ALTER RETENTION POLICY autogen ON stated DURATION 1d SHARD DURATION 1h");
    let driver = open(&INFLUXDB, &url("stated", ""));
    driver.guard(&owner()).attach(&readings(), Intent::Attach).unwrap();
    let asking = Asking::of(driver.as_ref(), &readings());
    let old = asking.execute("write", &[text("old"), Value::Timestamp(DAY_US), Value::Double(1.0), Value::Null]).unwrap_err();
    assert!(old.to_string().contains("points beyond retention policy dropped=1"), "{old}");
    let columns =
        vec![("sensor", texts(&["x"])), ("time", times(&[DAY_US])), ("value", doubles(&[1.0])), ("more", doubles(&[1.0]))];
    let (rows, outcome) = load(driver.as_ref(), "t", columns);
    assert_eq!(rows, 0);
    assert!(outcome.unwrap_err().to_string().contains("0 of the batch's 1 rows are in"));
}

fn answers_are_not_mixed_up(asking: &Asking) {
    asking.block_on(async {
        let one = async |number: i64| {
            let sensor = text(&format!("s{}", number % 20));
            let value = (number % 20) as f64;
            let parameters = [sensor.clone(), Value::Timestamp(number), Value::Double(value), Value::Null];
            let written = asking.ask("write", &parameters);
            let limit = Duration::from_micros(if number % 10 == 3 { 200 } else { 60_000_000 });
            match tokio::time::timeout(limit, written).await {
                Ok(outcome) => drop(outcome.unwrap()),
                Err(_) => assert_eq!(number % 10, 3, "only those give up that wait for a moment"),
            }
            let rows = asking.ask("read", &[sensor]).await.unwrap();
            assert!(rows.iter().all(|row| row[1] == Value::Double(value)), "{rows:?}");
        };
        futures::future::join_all((1000..1200).map(one)).await;
    });
}

fn says_what_it_is() {
    let driver = open(&INFLUXDB, &url("said", ""));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "InfluxDB");
    assert!(description.version.starts_with("1."), "{description:?}");
    assert!(description.settings.contains_key("wal-fsync-delay"), "{description:?}");
    let status = driver.status().unwrap();
    assert!(status["write.pointReq"] > 0.0 && status["memstats.Sys"] > 0.0, "{status:?}");
    let closed = open(&INFLUXDB, "influxdb://127.0.0.1:1").describe().unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Connection);
    assert!(closed.to_string().contains("check that InfluxDB runs there"), "{closed}");
}
