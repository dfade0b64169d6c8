//! Prometheus.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{Driver, ErrorKind, Intent, Schema, Value};
use sensorbench_driver_http::PROMETHEUS;
use serde_json::json;

use crate::points::{DAY_US, Readings, SECOND_US, column, range, readings_in_promql, remove_series, row};
use crate::server::{doubles, load, open, request, schema, texts, times, url};

/// Protobuf's field of a number with a length. All lengths of these tests fit into one byte.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).expect("a short field")], content].concat()
}

/// Writes a sample as its owner would, with the clock's time.
fn write(labels: &[(&str, &str)]) {
    let label = |(name, value): &(&str, &str)| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat());
    let mut series: Vec<u8> = labels.iter().flat_map(label).collect();
    let mut now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut sample = vec![0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10];
    while now >= 0x80 {
        sample.push(now as u8 | 0x80);
        now >>= 7;
    }
    sample.push(now as u8);
    series.extend(field(2, &sample));
    let request = field(1, &series);
    // Snappy: its length, and a literal of all of it.
    let length = u8::try_from(request.len()).expect("a short request");
    assert!((60..128).contains(&length), "{length}");
    let body = [&[length, 60 << 2, length - 1], request.as_slice()].concat();
    let server = std::env::var("SENSORBENCH_TEST_URL").unwrap();
    let host = server.rsplit_once('/').unwrap().1;
    let mut stream = TcpStream::connect(host).expect("the server answers");
    write!(stream, "POST /api/v1/write HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 204"), "{answer}");
}

fn samples_of(metric: &str) -> Vec<String> {
    let (status, body) = request(&format!("/api/v1/query?query=%7B__name__%3D%22{metric}%22%7D%5B1d%5D"), None);
    assert_eq!(status, 200, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    answer["data"]["result"].as_array().unwrap().iter().map(ToString::to_string).collect()
}

pub fn keeps_the_contract() {
    remove_series("contract");
    check(&Subject {
        database: &PROMETHEUS,
        url: url("contract", ""),
        schema: serde_json::from_str(include_str!("../promql.json")).expect("the schema of the contract"),
        stores_nan: true,
        stores_infinity: true,
        keeps: Keeps {
            columns: &["id", "value", "time"],
            nulls: false,
            nulls_apart: true,
            all_doubles: true,
            time_step_us: 1000,
            times_us: (SECOND_US / 2, 1_700_000_000 * SECOND_US),
            sorts: false,
            shows_at_once: true,
            ..Keeps::default()
        },
        put_foreign: &|| {
            write(&[("__name__", "contract:sensorbench"), ("mark", "mine, of somebody else")]);
            write(&[("__name__", "contract:mine"), ("name", "what somebody else has")]);
        },
        foreign_rows: &|| [samples_of("contract%3Asensorbench"), samples_of("contract%3Amine")].concat(),
        remove_foreign: &|| remove_series("contract"),
    });
}

/// Readings, and their means every two seconds.
fn readings() -> Schema {
    let means = json!({
        "query": "avg_over_time(::t_value{sensor=:sensor}[:range])", "from": ":from", "to": ":to", "step": "2s", "row": ["time", "value"]
    });
    let columns = json!([column("time", "timestamp"), column("mean", "double")]);
    readings_in_promql(&[json!({"name": "means", "parameters": range(), "columns": columns, "statement": means})])
}

pub fn does_as_stated() {
    for options in ["", "&gzip=on&connections=2"] {
        let driver = open(&PROMETHEUS, &url("stated", options));
        driver.guard(&owner()).create(&readings(), "", Intent::Replace).unwrap();
        let readings = Readings::of(driver.as_ref(), &readings());
        let read = |sensor: &str, _| readings.read(sensor);
        // Visible at once, and late samples too.
        readings.are_exact_to_the_ms(read);
        // Each step has its own readings alone, and one without readings has no answer.
        let means = readings.ask("means", 0, 6 * SECOND_US).unwrap();
        assert_eq!(means, [row(DAY_US, 0.1), row(DAY_US + 2 * SECOND_US, 2.5)]);
        assert!(readings.ask("means", 0, SECOND_US).unwrap_err().to_string().contains("not a whole number of steps"));
        of_duplicates_the_first_stays(&readings);
        readings.have_any_text(&["x\"} or {a=\"b", "a,b=c d=1 2", "é=\\x", "a\\", "100%&match[]=x", "`~'", "line\nend"], read);
        counts_show_what_is_dropped(driver.as_ref());
        // The mark of a series that has ended is a NaN of its own, and never written: NaN is a value, and the series continues.
        readings.write("n", DAY_US, f64::from_bits(0x7ff0_0000_0000_0002)).unwrap();
        let read = readings.read("n");
        assert!(matches!(read[0][1], Value::Double(value) if value.is_nan()), "{read:?}");
    }
    reuses_what_was_removed();
    says_what_it_is();
}

fn of_duplicates_the_first_stays(readings: &Readings) {
    let write = |time: i64, value: f64| readings.write("b", time, value);
    write(DAY_US + SECOND_US, 5.0).unwrap();
    // The same again is nothing new; another value of the newest time is refused.
    write(DAY_US + SECOND_US, 5.0).unwrap();
    let refused = write(DAY_US + SECOND_US, 3.0).unwrap_err();
    assert!(refused.kind() == ErrorKind::Statement && refused.to_string().contains("duplicate sample"), "{refused}");
    // Late ones are acknowledged, and the first stays.
    write(DAY_US, 1.0).unwrap();
    write(DAY_US, 2.0).unwrap();
    assert_eq!(readings.read("b"), [row(DAY_US, 1.0), row(DAY_US + SECOND_US, 5.0)]);
}

/// A batch is one transaction: refused, none of it is in. What it drops of an acknowledged one, the count shows.
fn counts_show_what_is_dropped(driver: &dyn Driver) {
    let columns = |sensors: &[&str], at: &[i64], values: &[f64]| {
        vec![("sensor", texts(sensors)), ("time", times(at)), ("value", doubles(values))]
    };
    let before = driver.count("t").unwrap();
    let (rows, outcome) = load(driver, "t", columns(&["p", "p", "q"], &[DAY_US, DAY_US, DAY_US], &[1.0, 2.0, 3.0]));
    outcome.unwrap();
    assert_eq!((rows, driver.count("t").unwrap()), (3, before + 2));
    let (rows, outcome) = load(driver, "t", columns(&["r", "q"], &[DAY_US, DAY_US], &[1.0, 4.0]));
    let refused = outcome.unwrap_err().to_string();
    assert!(refused.contains("duplicate sample") && refused.contains("0 of the batch's 2 rows are in"), "{refused}");
    assert_eq!((rows, driver.count("t").unwrap()), (0, before + 2));
}

/// What was removed can be loaded again, with the same series and times, though the server would hide it.
fn reuses_what_was_removed() {
    let driver = open(&PROMETHEUS, &url("stated", ""));
    let late_first = || {
        let columns = vec![
            ("sensor", texts(&["a", "b", "a"])),
            ("time", times(&[DAY_US + SECOND_US, DAY_US, DAY_US])),
            ("value", doubles(&[1.0, 2.0, 3.0])),
        ];
        load(driver.as_ref(), "t", columns).1.unwrap();
        assert_eq!(driver.count("t").unwrap(), 3);
    };
    for _ in 0..2 {
        driver.guard(&owner()).create(&readings(), "", Intent::Replace).unwrap();
        late_first();
    }
    driver.guard(&owner()).remove().unwrap();
    assert_eq!(driver.guard(&owner()).marker().unwrap(), None);
    assert!(!driver.namespaces().unwrap().contains(&"stated".to_owned()));
}

fn says_what_it_is() {
    let driver = open(&PROMETHEUS, &url("said", ""));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "Prometheus");
    assert!(description.settings.contains_key("storage.tsdb.min-block-duration"), "{description:?}");
    assert!(description.settings.contains_key("out_of_order_time_window"), "{description:?}");
    assert!(driver.status().unwrap()["prometheus_tsdb_head_samples_appended_total{type=float}"] > 0.0);
    let text_field = schema(json!({
        "create": {"points": {"t": {"fields": ["name"]}}},
        "tables": {"t": [{"name": "name", "type": "text"}, {"name": "time", "type": "timestamp"}]},
    }));
    let refused = driver.guard(&owner()).create(&text_field, "", Intent::Replace).unwrap_err();
    assert!(refused.to_string().contains("the server keeps numbers alone; expected a tag"), "{refused}");
}
