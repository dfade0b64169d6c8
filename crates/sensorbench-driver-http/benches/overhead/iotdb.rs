//! Apache IoTDB: tablets and SQL over REST. Ids are times in µs.

use sensorbench_driver_http::IOTDB;
use serde_json::json;

use super::by_hand::{self, Message};
use super::{Bench, Case, NAMESPACE, RANGE, READS, WRITES, read, schema, value, write};

pub fn bench() -> Bench {
    let create = json!({
        "statements": ["CREATE TABLE t (value DOUBLE FIELD)", "CREATE TABLE w (value DOUBLE FIELD)"],
        "columns": {"t": {"time": "id"}, "w": {"time": "id"}},
    });
    let columns = json!([{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]);
    let ranged = json!({"statement": "SELECT time, value FROM t WHERE time >= :from AND time < :to"});
    Bench::of(
        &IOTDB,
        schema(&create, &json!([write(), read("read", &columns, &ranged)])),
        1,
        vec![
            Case {
                operation: "write",
                operations: WRITES,
                message: |id| {
                    let row = format!(
                        "{{\"database\":\"{NAMESPACE}\",\"table\":\"w\",\"column_names\":[\"value\"],\"column_catogories\":[\"FIELD\"],\
                        \"data_types\":[\"DOUBLE\"],\"timestamps\":[{id}],\"values\":[[{}]]}}",
                        value(id)
                    );
                    Message::json("/rest/table/v1/insertTablet", row)
                },
                parse: |answer, _| by_hand::code(answer),
            },
            Case {
                operation: "read",
                operations: READS,
                message: |id| {
                    let statement = format!("SELECT time, value FROM t WHERE time >= {id} AND time < {}", id + RANGE);
                    let body = format!("{{\"database\":\"{NAMESPACE}\",\"sql\":\"{statement}\",\"row_limit\":{}}}", i32::MAX);
                    Message::json("/rest/table/v1/query", body)
                },
                parse: |answer, _| by_hand::json_rows(answer),
            },
        ],
    )
}
