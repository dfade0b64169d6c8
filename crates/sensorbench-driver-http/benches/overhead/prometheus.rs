//! Prometheus: remote write, and PromQL. Ids are times in ms.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;

use sensorbench_driver_http::PROMETHEUS;
use serde_json::{Value as Json, json};

use super::by_hand::{self, Message};
use super::{Bench, Case, NAMESPACE, RANGE, READS, WRITES, read, schema, seconds, value, write};

/// What stands before the names of metrics: the driver makes it anew each time.
static PREFIX: OnceLock<String> = OnceLock::new();

fn prefix() -> &'static str {
    PREFIX.get().expect("it is looked up after loading")
}

/// Looks up what stands before the names of metrics.
pub fn look_up_prefix(url: &str) {
    let host = url.rsplit_once('/').unwrap().1;
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /api/v1/label/__name__/values HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Json = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let names = answer["data"].as_array().unwrap().iter().filter_map(Json::as_str);
    let ours = names.filter_map(|name| name.strip_suffix("t_value")).filter(|name| name.starts_with(NAMESPACE));
    PREFIX.set(ours.max().expect("what was loaded has a name").to_owned()).unwrap();
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

/// Before 3.0 a range has both of its ends, so that one of 100 ms is asked for as 99.
pub fn bench() -> Bench {
    let create = json!({"points": {
        "t": {"fields": ["value"], "time": "id"},
        "w": {"fields": ["value"], "time": "id"},
    }});
    let columns = json!([{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]);
    let range = json!({"export": "::t_value", "from": ":from", "to": ":to"});
    let peak = json!({"query": "max_over_time(::t_value[:range])", "from": ":from", "to": ":to"});
    let operations = json!([write(), read("export", &columns, &range), read("query", &json!([columns[1]]), &peak)]);
    Bench {
        database: &PROMETHEUS,
        schema: schema(&create, &operations),
        unit_us: 1000,
        cases: vec![
            Case { operation: "write", operations: WRITES, message: |id| Message::remote_write(&sample(id)), parse: |_, _| 1 },
            Case {
                operation: "export",
                operations: READS,
                message: |id| {
                    let (name, time) = (prefix().replace(':', "%3A"), seconds(id + RANGE - 1));
                    Message::form("/api/v1/query", format!("query={name}t_value%5B{RANGE}ms%5D&time={time}"))
                },
                parse: |answer, id| by_hand::matrix(answer, id..id + RANGE),
            },
            Case {
                operation: "query",
                operations: READS,
                message: |id| {
                    let (name, time) = (prefix().replace(':', "%3A"), seconds(id + RANGE - 1));
                    let query = format!("max_over_time%28{name}t_value%5B{}ms%5D%29", RANGE - 1);
                    Message::form("/api/v1/query", format!("query={query}&time={time}"))
                },
                parse: |answer, _| by_hand::vector(answer),
            },
        ],
    }
}
