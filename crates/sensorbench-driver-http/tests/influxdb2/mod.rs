//! InfluxDB 2, which takes too long to build for every run of the tests: run by hand against one of the lab, whose token is in the place of the password.

use sensorbench_driver::contract::{Keeps, Subject, check, owner};
use sensorbench_driver::{ErrorKind, TargetUrl};
use sensorbench_driver_http::INFLUXDB2;
use serde_json::{Value as Json, json};

use crate::influxdb::treats_writes_as_stated;
use crate::server::{open, request, send, url};

const LOGIN: &str = "&org=sensorbench&auth=token";
/// A field holds a MiB; bytes are written as Base64.
const LONGEST_BYTES: usize = (1 << 20) / 4 * 3 - 8;
/// The last time that InfluxDB has, in whole µs.
const LAST_US: i64 = 9_223_372_036_854_775;

fn json_of(path: &str) -> Json {
    let (status, body) = request(path, None);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn remove(bucket: &str) {
    let (status, body) = request(&format!("/api/v2/buckets?org=sensorbench&name={bucket}"), None);
    if status == 200 {
        let listed: Json = serde_json::from_str(&body).unwrap();
        for found in listed["buckets"].as_array().unwrap() {
            assert_eq!(send("DELETE", &format!("/api/v2/buckets/{}", found["id"].as_str().unwrap()), "").0, 204);
        }
    }
}

pub fn keeps_the_contract() {
    check(&Subject {
        database: &INFLUXDB2,
        url: url("contract", LOGIN),
        schema: serde_json::from_str(include_str!("../influxdb.json")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps { times_us: (-LAST_US, LAST_US), large_bytes: LONGEST_BYTES, compresses: true, ..Keeps::default() },
        put_foreign: &|| {
            remove("contract");
            let organisation = json_of("/api/v2/orgs?org=sensorbench")["orgs"][0]["id"].clone();
            let bucket = json!({"orgID": organisation, "name": "contract", "retentionRules": []}).to_string();
            assert_eq!(request("/api/v2/buckets", Some(&bucket)).0, 201);
            // Of the same name and time as our marker.
            let written = request("/api/v2/write?org=sensorbench&bucket=contract", Some("sensorbench mark=\"mine\",x=1 0\n"));
            assert_eq!(written.0, 204, "{}", written.1);
        },
        foreign_rows: &|| {
            let (_, found) = request("/query?db=contract&q=SELECT%20mark,x%20FROM%20sensorbench", None);
            if found.contains("mine") { vec![found] } else { Vec::new() }
        },
        remove_foreign: &|| remove("contract"),
    });
}

pub fn does_as_stated() {
    treats_writes_as_stated(&INFLUXDB2, LOGIN);
    open(&INFLUXDB2, &url("stated", LOGIN)).guard(&owner()).remove().unwrap();
    let driver = open(&INFLUXDB2, &url("said", LOGIN));
    let description = driver.describe().unwrap();
    assert_eq!(description.database, "InfluxDB");
    assert!(description.settings.contains_key("storage-wal-fsync-delay"), "{description:?}");
    assert!(driver.status().unwrap()["go_goroutines"] > 0.0);
    let host = TargetUrl::parse(&url("said", "")).unwrap().rest.rsplit_once('@').map(|(_, host)| host.to_owned()).unwrap();
    let wrong = open(&INFLUXDB2, &format!("influxdb2://:wrong-secret@{host}?org=sensorbench&auth=token")).describe().unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Connection, "{wrong}");
    assert!(wrong.to_string().contains("unauthorized") && !wrong.to_string().contains("wrong-secret"), "{wrong}");
    let unknown = open(&INFLUXDB2, &url("said", "&org=nobody&auth=token")).describe().unwrap_err().to_string();
    assert!(unknown.contains("organization name") && unknown.contains("not found"), "{unknown}");
    let unnamed = open(&INFLUXDB2, &url("said", "&auth=token")).describe().unwrap_err().to_string();
    assert!(unnamed.contains("needs the option org="), "{unnamed}");
}
