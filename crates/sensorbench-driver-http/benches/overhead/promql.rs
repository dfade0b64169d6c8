//! Prometheus and VictoriaMetrics: the same points and operations, asked for in PromQL and, of VictoriaMetrics, by its export. Ids are times in ms.

use sensorbench_driver::Database;
use sensorbench_driver_http::{PROMETHEUS, VICTORIAMETRICS};
use serde_json::json;

use super::by_hand::{self, Message};
use super::prefix::prefix;
use super::{Bench, Case, NAMESPACE, RANGE, READS, WRITES, read, schema, seconds, value, write};

/// A bench of one of both, of which a hand-written loop sends these messages and counts the rows of these exports.
fn bench(database: &'static dyn Database, messages: [fn(i64) -> Message; 3], exported: fn(&[u8], i64) -> usize) -> Bench {
    let create = json!({"points": {
        "t": {"fields": ["value"], "time": "id"},
        "w": {"fields": ["value"], "time": "id"},
    }});
    let columns = json!([{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]);
    let range = json!({"export": "::t_value", "from": ":from", "to": ":to"});
    let peak = json!({"query": "max_over_time(::t_value[:range])", "from": ":from", "to": ":to"});
    let operations = json!([write(), read("export", &columns, &range), read("query", &json!([columns[1]]), &peak)]);
    let [written, export, query] = messages;
    let cases = vec![
        Case { operation: "write", operations: WRITES, message: written, parse: |_, _| 1 },
        Case { operation: "export", operations: READS, message: export, parse: exported },
        Case { operation: "query", operations: READS, message: query, parse: |answer, _| by_hand::vector(answer) },
    ];
    Bench::of(database, schema(&create, &operations), 1000, cases)
}

pub fn victoriametrics() -> Bench {
    let written = |id| {
        let line = format!("{NAMESPACE}:w value={} {id}\n", value(id));
        Message::data("/write?precision=ms".to_owned(), line.into_bytes())
    };
    let export = |id| {
        let (start, end) = (seconds(id), seconds(id + RANGE - 1));
        Message::form("/api/v1/export", format!("match%5B%5D={NAMESPACE}%3At_value&start={start}&end={end}"))
    };
    let query = |id| {
        let query = format!("max_over_time%28{NAMESPACE}%3At_value%5B{RANGE}ms%5D%29");
        Message::form("/api/v1/query", format!("query={query}&time={}&nocache=1", seconds(id + RANGE - 1)))
    };
    bench(&VICTORIAMETRICS, [written, export, query], |answer, id| by_hand::export(answer, id..id + RANGE))
}

/// Before 3.0 a range has both of its ends, so that one of 100 ms is asked for as 99.
pub fn prometheus() -> Bench {
    let export = |id| {
        let (name, time) = (prefix().replace(':', "%3A"), seconds(id + RANGE - 1));
        Message::form("/api/v1/query", format!("query={name}t_value%5B{RANGE}ms%5D&time={time}"))
    };
    let query = |id| {
        let (name, time) = (prefix().replace(':', "%3A"), seconds(id + RANGE - 1));
        Message::form("/api/v1/query", format!("query=max_over_time%28{name}t_value%5B{}ms%5D%29&time={time}", RANGE - 1))
    };
    let written = |id| Message::remote_write(&sample(id));
    bench(&PROMETHEUS, [written, export, query], |answer, id| by_hand::matrix(answer, id..id + RANGE))
}

/// A sample of remote write 1.0: fields with lengths below 128.
fn sample(id: i64) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let name = [field(1, b"__name__"), field(2, format!("{}w_value", prefix()).as_bytes())].concat();
    let mut sample = vec![0x09];
    sample.extend_from_slice(&value(id).to_le_bytes());
    sample.push(0x10);
    let mut rest = id as u64;
    while rest >= 0x80 {
        sample.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    sample.push(rest as u8);
    field(1, &[field(1, &name), field(2, &sample)].concat())
}
