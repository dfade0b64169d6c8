//! VictoriaMetrics.

use std::time::{Duration, Instant};

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Driver, ErrorKind, Intent, Value};
use sensorbench_driver_http::VICTORIAMETRICS;
use serde_json::json;

use crate::points::{DAY_US, Readings, SECOND_US, readings_in_promql, remove_series, row};
use crate::server::{doubles, load, open, request, schema, texts, times, url};

fn write(lines: &str) {
    assert_eq!(request("/write?precision=ms", Some(lines)).0, 204);
    assert_eq!(request("/internal/force_flush", None).0, 200);
}

fn export(metric: &str) -> Vec<String> {
    let (status, body) = request(&format!("/api/v1/export?match%5B%5D=%7B__name__%3D%22{metric}%22%7D&start=0"), None);
    assert_eq!(status, 200, "{body}");
    body.lines().map(str::to_owned).collect()
}

pub fn keeps_the_contract() {
    remove_series("contract");
    check(&Subject {
        database: &VICTORIAMETRICS,
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("../promql.json")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps {
            columns: &["id", "value", "time"],
            nulls: false,
            nulls_apart: true,
            all_doubles: false,
            time_step_us: 1000,
            times_us: (SECOND_US / 2, 1_700_000_000 * SECOND_US),
            sorts: false,
            shows_at_once: false,
            ..Keeps::default()
        },
        put_foreign: &|| write("contract:sensorbench,mark=mine value=1 1700000000000\ncontract:mine x=7 1700000000000\n"),
        foreign_rows: &|| [export("contract%3Asensorbench_value"), export("contract%3Amine_x")].concat(),
        remove_foreign: &|| remove_series("contract"),
    });
}

pub fn does_as_stated() {
    for options in ["", "&gzip=on&connections=2"] {
        let driver = open(&VICTORIAMETRICS, &url("stated", options));
        let schema = readings_in_promql(&[]);
        driver.guard(&owner()).create(&schema, "", Intent::Replace).unwrap();
        let readings = Readings::of(driver.as_ref(), &schema);
        let read = |sensor: &str, _| {
            driver.settle().unwrap();
            readings.read(sensor)
        };
        readings.are_exact_to_the_ms(read);
        // Written again, both are kept: none wins.
        readings.write("b", DAY_US, 5.0).unwrap();
        readings.write("b", DAY_US, 3.0).unwrap();
        let mut both = read("b", 2);
        both.sort_by_key(|row| if let Value::Double(value) = row[1] { value as i64 } else { panic!("a value") });
        assert_eq!(both, [row(DAY_US, 3.0), row(DAY_US, 5.0)]);
        readings.have_any_text(&["x\"} or {a=\"b", "a,b=c d=1 2", "é=\\x", "a\\", "100%&match[]=x", "`~'"], read);
        counts_show_what_is_dropped(driver.as_ref());
    }
    open(&VICTORIAMETRICS, &url("stated", "")).guard(&owner()).remove().unwrap();
    says_what_it_is();
}

/// The server answers as if all were well, and drops what is too far in the future: rows that went in are not there when they are counted.
fn counts_show_what_is_dropped(driver: &dyn Driver) {
    let before = driver.count("t").unwrap();
    let future = 4_102_444_800 * SECOND_US;
    let columns = vec![
        ("sensor", texts(&["p", "q", "r"])),
        ("time", times(&[DAY_US, future, DAY_US])),
        ("value", doubles(&[1.0, 2.0, 3.0])),
    ];
    let (rows, outcome) = load(driver, "t", columns);
    outcome.unwrap();
    assert_eq!((rows, driver.count("t").unwrap()), (3, before + 2));
}

fn says_what_it_is() {
    let driver = open(&VICTORIAMETRICS, &url("said", ""));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "VictoriaMetrics");
    assert!(description.settings.contains_key("retentionPeriod"), "{description:?}");
    // Its counters lag by some moments.
    let inserted = || driver.status().unwrap()["vm_rows_inserted_total{type=influx}"];
    let deadline = Instant::now() + Duration::from_secs(10);
    while inserted() <= 0.0 {
        assert!(Instant::now() < deadline, "{:?}", driver.status());
        std::thread::sleep(Duration::from_millis(100));
    }
    let text_field = schema(json!({
        "create": {"points": {"t": {"fields": ["name"]}}},
        "tables": {"t": [{"name": "name", "type": "text"}, {"name": "time", "type": "timestamp"}]},
    }));
    let refused = driver.guard(&owner()).create(&text_field, "", Intent::Replace).unwrap_err();
    assert!(refused.to_string().contains("would store 0 for a text"), "{refused}");
    let right = url("said", "");
    if let Some((_, host)) = right.rsplit_once('@') {
        let wrong = open(&VICTORIAMETRICS, &format!("victoriametrics://me:wrong-secret@{host}")).describe().unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Connection, "{wrong}");
        let message = wrong.to_string();
        assert!(message.contains("give user and password") && !message.contains("wrong-secret"), "{message}");
    }
}
