//! What the engine and this driver cost on top of hyper: the client's CPU time per operation, of a run and of a hand-written loop that sends
//! the same requests over as many connections and parses the same answers. Both are measured in alternation and the ratio counts.

#[path = "overhead/by_hand.rs"]
mod by_hand;
#[path = "overhead/iotdb.rs"]
mod iotdb;
#[path = "overhead/opentsdb.rs"]
mod opentsdb;
#[path = "overhead/prefix.rs"]
mod prefix;
#[path = "overhead/promql.rs"]
mod promql;

use arrow_array::RecordBatch;
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Driver, Intent, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_http::{CLICKHOUSE, INFLUXDB};
use sensorbench_engine::overhead::{compare, counted_through_the_engine, load, rows, scattered};
use serde_json::{Value as Json, json};

use self::by_hand::{Loop, Message};

const NAMESPACE: &str = "bench_overhead";
/// The first id. Ids are times in ms for VictoriaMetrics, which takes 0 for now, and is not exact in the first minutes of 1970; OpenTSDB takes
/// times from April 1970 on.
const FIRST: i64 = 20_000_000_000;
/// Rows that are loaded at a time.
const BATCH_ROWS: i64 = 50_000;
const SENSOR: &str = "a";
const WRITES: u64 = 2_500;
const READS: u64 = 1_000;
/// This many times a repeat alternates between the engine and the loop: what a server does meanwhile meets both.
const TURNS: usize = 4;
/// Rows per answer of a read of a range.
const RANGE: i64 = 100;

/// An operation of the schema, and what a hand-written loop does for it.
struct Case {
    operation: &'static str,
    operations: u64,
    /// The request for an id.
    message: fn(i64) -> Message,
    /// What is made of the answer for an id: how many rows it has.
    parse: fn(&[u8], i64) -> usize,
}

/// A database with its schema and cases.
struct Bench {
    database: &'static dyn Database,
    schema: Schema,
    /// An id as a time.
    unit_us: i64,
    rows: i64,
    /// From one id to the next.
    step: i64,
    /// Whether rows have a tag besides, because the server takes no point without one.
    is_tagged: bool,
    /// Options of the URL.
    options: &'static str,
    cases: Vec<Case>,
}

impl Bench {
    /// A million rows, whose ids follow one another.
    fn of(database: &'static dyn Database, schema: Schema, unit_us: i64, cases: Vec<Case>) -> Self {
        Self { database, schema, unit_us, rows: 1_000_000, step: 1, is_tagged: false, options: "", cases }
    }

    /// Rows with these ids.
    fn rows_of(&self, ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
        let untagged = rows(ids);
        if !self.is_tagged {
            return untagged;
        }
        let sensors = array_of(Type::Text, (0..untagged.num_rows()).map(|_| ValueRef::Text(SENSOR)));
        let [id, value] = [0, 1].map(|column| untagged.column(column).clone());
        RecordBatch::try_from_iter([("id", id), ("value", value), ("sensor", sensors)]).expect("columns of one length")
    }
}

/// The columns of a row.
fn untagged() -> Json {
    json!([{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}])
}

/// The same with a tag, which is always [`SENSOR`].
fn tagged() -> Json {
    json!([{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}, {"name": "sensor", "type": "text"}])
}

fn schema(create: &Json, operations: &Json) -> Schema {
    schema_with(create, operations, &untagged())
}

fn schema_with(create: &Json, operations: &Json, columns: &Json) -> Schema {
    serde_json::from_value(json!({"create": create, "tables": {"t": columns}, "operations": operations})).expect("a schema")
}

fn write() -> Json {
    write_with(&untagged())
}

/// A write of a row into the table `w`, which nobody reads.
fn write_with(columns: &Json) -> Json {
    json!({"name": "write", "parameters": columns, "statement": {"write": "w"}})
}

/// A read of a range of times that answers with these columns.
fn read(name: &str, columns: &Json, statement: &Json) -> Json {
    let times = json!([{"name": "from", "type": "timestamp"}, {"name": "to", "type": "timestamp"}]);
    json!({"name": name, "parameters": times, "columns": columns, "statement": statement})
}

fn value(id: i64) -> f64 {
    id as f64 / 7.0
}

/// Ids are times in µs.
fn influxdb() -> Bench {
    let create = json!({"points": {
        "t": {"fields": ["id", "value"], "time": "id"},
        "w": {"fields": ["value"], "time": "id"},
    }});
    let columns = json!([{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]);
    let ranged = json!({"query": "SELECT id, value FROM t WHERE time >= :from AND time < :to"});
    Bench::of(
        &INFLUXDB,
        schema(&create, &json!([write(), read("read", &columns, &ranged)])),
        1,
        vec![
            Case {
                operation: "write",
                operations: WRITES,
                message: |id| {
                    Message::data(
                        format!("/write?db={NAMESPACE}&precision=u"),
                        format!("w value={} {id}\n", value(id)).into_bytes(),
                    )
                },
                parse: |_, _| 1,
            },
            Case {
                operation: "read",
                operations: READS,
                message: |id| {
                    let (from, to) = (id * 1000, (id + RANGE) * 1000);
                    let query = "SELECT%20id%2C%20value%20FROM%20t%20WHERE%20time%20%3E%3D%20%24p0%20AND%20time%20%3C%20%24p1";
                    let bound = format!("%7B%22p0%22%3A{from}%2C%22p1%22%3A{to}%7D");
                    Message::form("/query", format!("db={NAMESPACE}&epoch=u&chunked=true&q={query}&params={bound}"))
                },
                parse: |answer, _| by_hand::influxql(answer),
            },
        ],
    )
}

fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Single rows go into a table in memory: of a MergeTree each would be a part, and the server would soon refuse more.
fn clickhouse() -> Bench {
    let create = json!({"statements": [
        "CREATE TABLE t (id Int64, value Float64) ENGINE = MergeTree() ORDER BY id",
        "CREATE TABLE w (id Int64, value Float64) ENGINE = Memory",
    ]});
    let columns = json!([{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]);
    // A time is a number of µs.
    let ranged = json!({"statement": "SELECT id, value FROM t WHERE id >= intDiv(:from, 1000) AND id < intDiv(:to, 1000)"});
    Bench::of(
        &CLICKHOUSE,
        schema(&create, &json!([write(), read("read", &columns, &ranged)])),
        1000,
        vec![
            Case {
                operation: "write",
                operations: WRITES,
                message: |id| {
                    let statement = format!(
                        "INSERT%20INTO%20%60{NAMESPACE}%60.%60w%60%20%28%60id%60%2C%20%60value%60%29%20FORMAT%20RowBinary"
                    );
                    let row = [id.to_le_bytes(), value(id).to_le_bytes()].concat();
                    Message::data(format!("/?database={NAMESPACE}&query={statement}"), row)
                },
                parse: |_, _| 1,
            },
            Case {
                operation: "read",
                operations: READS,
                message: |id| {
                    let (from, to) = (id * 1000, (id + RANGE) * 1000);
                    let statement = format!(
                        "SELECT id, value FROM t WHERE id >= intDiv({from}, 1000) AND id < intDiv({to}, 1000) FORMAT Native"
                    );
                    let path = format!("/?database={NAMESPACE}&readonly=2&low_cardinality_allow_in_native_format=0");
                    Message::data(path, statement.into_bytes())
                },
                parse: |answer, _| by_hand::native(answer),
            },
        ],
    )
}

/// The parameters of an operation for each id: where the range begins and ends, or the row.
fn parameters(bench: &Bench, operation: &str, ids: &[i64]) -> RecordBatch {
    if operation == "write" {
        return bench.rows_of(ids.iter().copied());
    }
    let times = |offset: i64| array_of(Type::Timestamp, ids.iter().map(|id| ValueRef::Timestamp((id + offset) * bench.unit_us)));
    RecordBatch::try_from_iter([("from", times(0)), ("to", times(RANGE * bench.step))]).expect("columns of one length")
}

/// Measures the cases of one database, which has its rows already.
fn measure(bench: &Bench, url: &str, open: &dyn Fn(&str) -> Box<dyn Driver>, case: &Case, concurrency: usize) {
    let driver = open(&format!("&connections={concurrency}"));
    driver.guard(&owner()).attach(&bench.schema, Intent::Attach).unwrap();
    let operation = bench.schema.operations.iter().find(|operation| operation.name == case.operation).expect("an operation");
    let ids = scattered(case.operations, bench.rows - RANGE);
    let ids: Vec<_> = ids.into_iter().map(|id| FIRST + id * bench.step).collect();
    let parameters = parameters(bench, case.operation, &ids);
    let rows_per_answer = if case.operation == "read" || case.operation == "export" { RANGE as usize } else { 1 };
    let by_hand = Loop { message: case.message, parse: case.parse, rows_per_answer, concurrency };
    compare(
        &format!("{}_cpu_ratio_{}_{concurrency}_in_flight", bench.database.name(), case.operation),
        ids.len(),
        TURNS,
        || {
            let (cpu_s, rows) = counted_through_the_engine(driver.as_ref(), operation, &parameters, concurrency);
            let expected = if case.operation == "write" { 0 } else { ids.len() * rows_per_answer };
            assert_eq!(rows, expected as u64, "rows of {}", case.operation);
            cpu_s
        },
        || by_hand.cpu_s(url, &ids),
    );
}

fn main() {
    let url = std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server");
    let bench = match url.split(':').next() {
        Some("influxdb") => influxdb(),
        Some("victoriametrics") => promql::victoriametrics(),
        Some("clickhouse") => clickhouse(),
        Some("prometheus") => promql::prometheus(),
        Some("iotdb") => iotdb::bench(),
        Some("opentsdb") => opentsdb::bench(),
        other => panic!("no server is called {other:?}"),
    };
    let open = |options: &str| {
        let url = format!("{url}?namespace={NAMESPACE}{}{options}", bench.options);
        bench.database.open(&TargetUrl::parse(&url).unwrap()).unwrap()
    };
    let driver = open("");
    driver.guard(&owner()).create(&bench.schema, "", Intent::Replace).unwrap();
    let batch = |start: i64| bench.rows_of((start..(start + BATCH_ROWS).min(bench.rows)).map(|id| FIRST + id * bench.step));
    let batches = (0..bench.rows).step_by(BATCH_ROWS as usize).map(batch).collect();
    load(&format!("{}_load_rows_per_s", bench.database.name()), driver.as_ref(), "t", batches);
    driver.settle().unwrap();
    match bench.database.name() {
        "prometheus" => prefix::look_up(&url, "/api/v1/label/__name__/values", "/data", "t_value"),
        "opentsdb" => prefix::look_up(&url, "/api/suggest?type=metrics&max=1000000", "", "t.value"),
        _ => {}
    }
    // Of all operations, or of those that are named.
    let named: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for case in bench.cases.iter().filter(|case| named.is_empty() || named.iter().any(|name| name == case.operation)) {
        for concurrency in [1, 16] {
            measure(&bench, &url, &open, case, concurrency);
        }
    }
    driver.guard(&owner()).remove().unwrap();
}
