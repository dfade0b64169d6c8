//! OpenTSDB.

use std::time::{Duration, Instant};

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Driver, Intent, Schema, Value};
use sensorbench_driver_http::OPENTSDB;
use serde_json::{Value as Json, json};

use crate::points::{DAY_US, Readings, SECOND_US, column, range, readings, row};
use crate::server::{doubles, load, open, request, schema, send, text, texts, times, url};

/// The first time that the driver takes.
const FIRST_US: i64 = 10_000_000_000_000;
const ALL_TIME: &str = "start=10000000000ms&end=4294000000001ms";

/// Writes points as their owner would.
fn write(points: Json) {
    let (status, body) = request("/api/put?details&sync", Some(&points.to_string()));
    assert_eq!(status, 200, "{body}");
}

fn points_of(metric: &str) -> Vec<String> {
    let (status, body) = request(&format!("/api/query?{ALL_TIME}&m=none:{metric}"), None);
    if status == 400 && body.contains("No such name") {
        return Vec::new();
    }
    assert_eq!(status, 200, "{body}");
    let answer: Vec<Json> = serde_json::from_str(&body).unwrap();
    let with_points = answer.into_iter().filter(|series| series["dps"].as_object().is_some_and(|points| !points.is_empty()));
    with_points.map(|series| series.to_string()).collect()
}

/// Removes the points of metrics that begin so; their names stay.
fn remove(namespace: &str) {
    let body = json!({"type": "metrics", "q": format!("{namespace}."), "max": "10000"});
    let (status, body) = request("/api/suggest", Some(&body.to_string()));
    assert_eq!(status, 200, "{body}");
    for name in serde_json::from_str::<Vec<String>>(&body).unwrap() {
        let (status, body) = send("DELETE", &format!("/api/query?{ALL_TIME}&m=sum:0all-count:{name}"), "");
        assert_eq!(status, 200, "{body}");
        // It answers before the points are gone.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !points_of(&name).is_empty() {
            assert!(Instant::now() < deadline, "{name}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

pub fn keeps_the_contract() {
    remove("contract");
    check(&Subject {
        database: &OPENTSDB,
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("../opentsdb.json")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps {
            columns: &["id", "value", "time"],
            nulls: false,
            nulls_apart: true,
            all_doubles: true,
            time_step_us: 1000,
            times_us: (FIRST_US, 1_700_000_000 * SECOND_US),
            later_us: 1_600_000_000 * SECOND_US,
            sorts: false,
            shows_at_once: true,
            many_rows: 3_000,
            ..Keeps::default()
        },
        put_foreign: &|| {
            write(json!({"metric": "contract.sensorbench", "timestamp": 1_700_000_000, "value": 1, "tags": {"mark": "mine"}}));
            write(
                json!({"metric": "contract.mine", "timestamp": 1_700_000_000, "value": 7, "tags": {"name": "what_somebody_has"}}),
            );
        },
        foreign_rows: &|| [points_of("contract.sensorbench"), points_of("contract.mine")].concat(),
        remove_foreign: &|| remove("contract"),
    });
}

/// Readings, how many there are of each sensor, and their means of each second.
fn schema_of_readings() -> Schema {
    let tags = json!({"sensor": ":sensor"});
    let (from, to) = (":from", ":to");
    readings(
        &json!({"metric": "t.value", "tags": tags}),
        &json!({"metric": "t.value", "tags": tags, "downsample": "all-max", "from": from, "to": to}),
        &[
            json!({
                "name": "sensors",
                "columns": [column("sensor", "text"), column("value", "integer")],
                "statement": {"metric": "t.value", "group_by": ["sensor"], "aggregate": "zimsum", "downsample": "all-count"},
            }),
            json!({
                "name": "seconds",
                "parameters": range(),
                "columns": [column("time", "timestamp"), column("value", "double")],
                "statement": {"metric": "t.value", "tags": tags, "downsample": "1s-avg", "from": from, "to": to},
            }),
        ],
    )
}

pub fn does_as_stated() {
    for options in ["", "&gzip=on&connections=2&sync=off"] {
        let driver = open(&OPENTSDB, &url("stated", options));
        let schema = schema_of_readings();
        driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
        let readings = Readings::of(driver.as_ref(), &schema);
        // Without sync a write is visible some ms later.
        let read = |sensor: &str, rows: usize| {
            for _ in 0..100 {
                let found = readings.read(sensor);
                if found.len() == rows || !options.contains("sync=off") {
                    return found;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            panic!("{rows} rows of {sensor} are not visible")
        };
        readings.are_exact_to_the_ms(read);
        for time in [FIRST_US - 1000, 4_294_000_000_001_000] {
            readings.refuse(time, "none of the server's times");
        }
        let seconds = readings.ask("seconds", 0, 3 * SECOND_US).unwrap();
        assert_eq!(seconds, [row(DAY_US, 0.1), row(DAY_US + 2 * SECOND_US, 2.5)]);
        assert!(readings.ask("seconds", 1000, 3 * SECOND_US).unwrap_err().to_string().contains("are not whole ones"));
        // Written again, the last value stays, whatever is larger.
        readings.write("b", DAY_US, 5.0).unwrap();
        readings.write("b", DAY_US, 3.25).unwrap();
        for _ in 0..100 {
            if read("b", 1) == [row(DAY_US, 3.25)] {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(read("b", 1), [row(DAY_US, 3.25)]);
        let hostile = ["x|a", "a,b=c d{}()*", "é=\\x/2F", "a b", "100%&m=x", "literal_or(a)"];
        readings.have_any_text(&hostile, read);
        let mut sensors = readings.asking.execute("sensors", &[]).unwrap();
        sensors.sort_by_key(|row| if let Value::Text(name) = &row[0] { name.to_string() } else { panic!("a name") });
        let mut expected: Vec<_> = [("a", 2), ("b", 1)].into_iter().chain(hostile.map(|name| (name, 1))).collect();
        expected.sort_unstable();
        let rows: Vec<_> = expected.into_iter().map(|(name, count)| vec![text(name), Value::Integer(count)]).collect();
        assert_eq!(sensors, rows);
        assert!(readings.write("", DAY_US, 7.0).unwrap_err().to_string().contains("an empty text cannot be a tag"));
        says_what_is_in_of_a_refused_batch(driver.as_ref());
    }
    open(&OPENTSDB, &url("stated", "")).guard(&owner()).remove().unwrap();
    takes_each_point_by_itself();
    says_what_it_is();
}

/// What the driver refuses is not sent; what was sent before it is in, and counted.
fn says_what_is_in_of_a_refused_batch(driver: &dyn Driver) {
    let before = driver.count("t").unwrap();
    let columns =
        |times_us: &[i64]| vec![("sensor", texts(&["p", "q"])), ("time", times(times_us)), ("value", doubles(&[1.0, 2.0]))];
    let (rows, outcome) = load(driver, "t", columns(&[DAY_US, DAY_US]));
    outcome.unwrap();
    assert_eq!((rows, driver.count("t").unwrap()), (2, before + 2));
    let (rows, outcome) = load(driver, "t", columns(&[DAY_US + 1000, DAY_US + 1]));
    assert!(outcome.unwrap_err().to_string().contains("not a whole number"));
    assert_eq!((rows, driver.count("t").unwrap()), (0, before + 2));
}

/// The server takes each point of a request by itself, and names those that it refused.
fn takes_each_point_by_itself() {
    let point = |metric: &str, value: &str| json!({"metric": metric, "timestamp": DAY_US / SECOND_US, "value": value, "tags": {"sensor": "a"}});
    let points = json!([point("partly.in", "1"), point("partly.in", "no number"), point("partly.too", "2")]);
    let (status, body) = request("/api/put?details&sync", Some(&points.to_string()));
    let answer: Json = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &answer["success"], &answer["failed"]), (400, &json!(2), &json!(1)), "{body}");
    assert_eq!(answer["errors"][0]["datapoint"]["value"], json!("no number"), "{body}");
    assert_eq!((points_of("partly.in").len(), points_of("partly.too").len()), (1, 1));
    remove("partly");
}

fn says_what_it_is() {
    let driver = open(&OPENTSDB, &url("said", ""));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "OpenTSDB");
    assert_eq!(description.settings["sync"], "on");
    assert_eq!(description.settings["tsd.storage.fix_duplicates"], "true");
    assert!(driver.status().unwrap()["tsd.datapoints.added{class=TSDB,type=all}"] > 0.0, "{:?}", driver.status());
    // Row keys are salted or not for all of the server's data.
    let salted = schema(json!({"create": {"salt_width": 2}}));
    let refused = driver.guard(&owner()).create(&salted, "", Intent::Replace).unwrap_err().to_string();
    assert!(refused.contains("create.salt_width") && refused.contains("expected 2"), "{refused}");
}
