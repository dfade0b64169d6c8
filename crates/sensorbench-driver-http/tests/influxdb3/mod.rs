//! InfluxDB 3, which the lab cannot start: run by hand against a server of one's own, whose token is in the place of the password.

use sensorbench_driver::contract::{Keeps, Subject, check};
use sensorbench_driver_http::INFLUXDB3;
use serde_json::json;

use crate::server::{request, send, url};

/// The last time that InfluxDB has, in whole µs.
const LAST_US: i64 = 9_223_372_036_854_775;
const DATABASES: &str = "/api/v3/configure/database";

fn remove() {
    send("DELETE", &format!("{DATABASES}?db=contract&hard_delete_at=now"), "");
}

pub fn keeps_the_contract() {
    check(&Subject {
        database: &INFLUXDB3,
        url: url("contract", "&auth=bearer"),
        schema: serde_json::from_str(include_str!("../influxdb3.json")).expect("the schema of the contract"),
        stores_nan: false,
        stores_infinity: false,
        keeps: Keeps { times_us: (-LAST_US, LAST_US), ..Keeps::default() },
        put_foreign: &|| {
            remove();
            assert_eq!(request(DATABASES, Some(&json!({"db": "contract"}).to_string())).0, 200);
            // Of the same name as our marker.
            assert_eq!(request("/api/v3/write_lp?db=contract", Some("sensorbench mark=\"mine\",x=1 1000\n")).0, 204);
        },
        foreign_rows: &|| {
            let query = json!({"db": "contract", "q": "SELECT mark, x FROM sensorbench", "format": "jsonl"}).to_string();
            let (_, found) = request("/api/v3/query_sql", Some(&query));
            if found.contains("mine") { vec![found] } else { Vec::new() }
        },
        remove_foreign: &remove,
    });
}
