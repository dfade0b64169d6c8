//! OpenTSDB: points in JSON, and queries for points and for what is made of them. Ids are times in ms, a second apart, since HBase has a row
//! for each hour of a series.

use std::collections::BTreeMap;
use std::ops::Range;

use sensorbench_driver_http::OPENTSDB;
use serde::Deserialize;
use serde_json::json;

use super::by_hand::Message;
use super::prefix::prefix;
use super::{Bench, Case, RANGE, READS, SENSOR, WRITES, read, schema_with, tagged, value, write_with};

const STEP: i64 = 1000;

pub fn bench() -> Bench {
    let points = json!({"tags": ["sensor"], "fields": ["value"], "time": "id"});
    let create = json!({"points": {"t": points, "w": points}});
    let columns = json!([{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]);
    let raw = json!({"metric": "t.value", "from": ":from", "to": ":to"});
    let peak = json!({"metric": "t.value", "downsample": "all-max", "from": ":from", "to": ":to"});
    let operations = json!([write_with(&tagged()), read("export", &columns, &raw), read("query", &json!([columns[1]]), &peak)]);
    let cases = vec![
        Case {
            operation: "write",
            operations: WRITES,
            message: |id| {
                let point = json!({"metric": format!("{}w.value", prefix()), "timestamp": id / STEP, "value": value(id),
                    "tags": {"sensor": SENSOR}});
                Message::json("/api/put?details", json!([point]).to_string())
            },
            parse: |answer, _| successes(answer),
        },
        Case {
            operation: "export",
            operations: READS,
            message: |id| question(id, None),
            parse: |answer, id| points_of(answer, id..id + RANGE * STEP),
        },
        Case {
            operation: "query",
            operations: READS,
            message: |id| question(id, Some("0all-max")),
            parse: |answer, id| points_of(answer, id..id + RANGE * STEP),
        },
    ];
    let schema = schema_with(&create, &operations, &tagged());
    let rows = 100_000;
    Bench { rows, step: STEP, is_tagged: true, options: "&sync=off", ..Bench::of(&OPENTSDB, schema, 1000, cases) }
}

fn question(id: i64, downsample: Option<&str>) -> Message {
    let mut query = json!({"metric": format!("{}t.value", prefix()), "aggregator": "none", "filters": []});
    if let Some(downsample) = downsample {
        query["downsample"] = json!(downsample);
    }
    let (start, end) = (format!("{id}ms"), format!("{}ms", id + RANGE * STEP));
    let question = json!({"start": start, "end": end, "msResolution": true, "noAnnotations": true, "queries": [query]});
    Message::json("/api/query", question.to_string())
}

fn successes(answer: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Answer {
        success: usize,
    }
    serde_json::from_slice::<Answer>(answer).unwrap().success
}

/// Times and values of series. The server adds the end of the range.
fn points_of(answer: &[u8], wanted: Range<i64>) -> usize {
    #[derive(Deserialize)]
    struct Series<'a> {
        #[serde(borrow)]
        dps: BTreeMap<&'a str, f64>,
    }
    let answer: Vec<Series> = serde_json::from_slice(answer).unwrap();
    let timed = answer.into_iter().flat_map(|series| series.dps).map(|(time, value)| (time.parse::<i64>().unwrap(), value));
    let rows: Vec<(i64, f64)> = timed.filter(|(time, _)| wanted.contains(time)).collect();
    std::hint::black_box(rows).len()
}
