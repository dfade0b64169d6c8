//! What a client costs: processor time an operation, of a run through the engine on this driver and of a hand-written loop over
//! the `redis` library with as many connections and operations in flight. Both are measured in turn and the ratio counts.
//! The other mark, redis-benchmark, is outside of this process: `redis-benchmark -t get -c 50 -P 1`.

use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use futures::future::join_all;
use rustix::time::{ClockId, clock_gettime};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Driver, Intent, Progress, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_redis::RedisDatabase;
use sensorbench_engine::{ParameterTable, Plan, Run};
use serde_json::json;

const ROWS: i64 = 1_000_000;
const REPEATS: usize = 5;

/// One shape of load: so many connections, operations in flight, and rows an answer.
struct Shape {
    connections: usize,
    in_flight: usize,
    rows_an_answer: i64,
    operations: i64,
}

fn rows(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, ids.clone().map(ValueRef::Integer))),
        ("value", array_of(Type::Double, ids.map(|id| ValueRef::Double(id as f64 / 7.0)))),
    ])
    .unwrap()
}

/// Values under a key each, and in one sorted set.
fn schema() -> Schema {
    let columns = json!([{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]);
    serde_json::from_value(json!({
        "create": {"table": {
            "keys": {"key": "{id}", "write": ["SET", "{value}"]},
            "sorted": {"write": ["ZADD", "{id}", "{id}:{value}"]},
        }},
        "tables": {"keys": columns, "sorted": columns},
        "operations": [
            {"name": "get", "parameters": [columns[0]], "columns": [columns[1]], "statement": {"table": "keys", "command": ["GET"]}},
            {"name": "range", "parameters": [columns[0], {"name": "to", "type": "integer"}], "columns": columns, "statement": {
                "table": "sorted", "command": ["ZRANGEBYSCORE", "{id}", "({to}"], "row": ["{id}:{value}"]}},
        ],
    }))
    .unwrap()
}

fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Shape {
    fn ids(&self) -> Vec<i64> {
        (0..self.operations).map(|k| (k * 7_919) % (ROWS - self.rows_an_answer)).collect()
    }

    fn through_the_engine(&self, driver: &dyn Driver) -> f64 {
        let ids = self.ids();
        let to = array_of(Type::Integer, ids.iter().map(|id| ValueRef::Integer(id + self.rows_an_answer)));
        let id = array_of(Type::Integer, ids.iter().map(|id| ValueRef::Integer(*id)));
        let table = RecordBatch::try_from_iter([("id", id), ("to", to)]).unwrap();
        let is_range = self.rows_an_answer > 1;
        let parameters: Vec<_> = (0..1 + usize::from(is_range)).map(|column| json!({"draw": 0, "column": column})).collect();
        let plan: Plan = serde_json::from_value(json!({
            "seed": 1,
            "operations": [{"weight": 1.0, "operation": schema().operations[usize::from(is_range)], "parameters": parameters}],
            "draws": [{"rows": {"table": 0, "choice": "sequential"}}],
            "phases": [{"name": "measure", "operations": ids.len()}],
            "in_flight": self.in_flight,
            "timeout_s": 60.0,
        }))
        .unwrap();
        let run = Run::start(driver, plan, &[ParameterTable::of(&[table]).unwrap()]).unwrap();
        while !run.wait(Duration::from_millis(200)) {}
        run.end().1.client_cpu_ns as f64 / 1e9
    }

    fn by_hand(&self, url: &str) -> f64 {
        let (url, ids) = (url.to_owned(), self.ids());
        let (connections, in_flight, rows_an_answer) = (self.connections, self.in_flight, self.rows_an_answer);
        let measure = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = redis::Client::open(url).unwrap();
                let connect = |_| client.get_multiplexed_async_connection();
                let connections = join_all((0..connections).map(connect)).await;
                let slot = |slot: usize| {
                    let mut connection = connections[slot % connections.len()].as_ref().unwrap().clone();
                    let ids = ids.iter().skip(slot).step_by(in_flight);
                    async move {
                        for id in ids {
                            if rows_an_answer == 1 {
                                let command = redis::cmd("GET").arg(format!("overhead:keys:{id}")).clone();
                                let value: Option<f64> = command.query_async(&mut connection).await.unwrap();
                                std::hint::black_box(value);
                                continue;
                            }
                            let (key, to) = ("overhead:sorted:", format!("({}", id + rows_an_answer));
                            let command = redis::cmd("ZRANGEBYSCORE").arg(key).arg(id).arg(to).clone();
                            let members: Vec<String> = command.query_async(&mut connection).await.unwrap();
                            let parsed = members.iter().map(|member| member.split_once(':').unwrap());
                            let rows: Vec<(i64, f64)> =
                                parsed.map(|(id, value)| (id.parse().unwrap(), value.parse().unwrap())).collect();
                            std::hint::black_box(rows);
                        }
                    }
                };
                join_all((0..in_flight).map(slot)).await;
            });
            cpu_s(ClockId::ThreadCPUTime)
        };
        std::thread::spawn(measure).join().unwrap()
    }
}

fn main() {
    let url = std::env::var("SENSORBENCH_TEST_URL").expect("set SENSORBENCH_TEST_URL to the URL of a Redis");
    let open =
        |options: &str| RedisDatabase.open(&TargetUrl::parse(&format!("{url}?namespace=overhead{options}")).unwrap()).unwrap();
    let driver = open("");
    driver.guard(&owner()).create(&schema(), "", Intent::Replace).unwrap();
    for table in ["keys", "sorted"] {
        let batches: Vec<_> = (0..ROWS).step_by(10_000).map(|start| Ok(rows(start..start + 10_000))).collect();
        let (batch_schema, start, cpu) = (rows(0..1).schema(), Instant::now(), cpu_s(ClockId::ProcessCPUTime));
        driver.load(table, Box::new(RecordBatchIterator::new(batches, batch_schema)), &Progress::default()).unwrap();
        let (elapsed_s, cpu_s) = (start.elapsed().as_secs_f64(), cpu_s(ClockId::ProcessCPUTime) - cpu);
        println!(
            "redis_load_rows_per_s ({table}): {:.0} ({:.0} ns of the client's processor a row)",
            ROWS as f64 / elapsed_s,
            cpu_s / ROWS as f64 * 1e9
        );
    }
    for shape in [
        Shape { connections: 50, in_flight: 50, rows_an_answer: 1, operations: 200_000 },
        Shape { connections: 50, in_flight: 800, rows_an_answer: 1, operations: 1_000_000 },
        Shape { connections: 50, in_flight: 50, rows_an_answer: 100, operations: 50_000 },
    ] {
        let driver = open(&format!("&connections={}", shape.connections));
        driver.guard(&owner()).attach(&schema(), Intent::Attach).unwrap();
        let mut ratios = Vec::new();
        let (mut engine_ns, mut hand_ns) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..REPEATS {
            let (engine_s, hand_s) = (shape.through_the_engine(driver.as_ref()), shape.by_hand(&url));
            ratios.push(engine_s / hand_s);
            engine_ns = engine_ns.min(engine_s / shape.operations as f64 * 1e9);
            hand_ns = hand_ns.min(hand_s / shape.operations as f64 * 1e9);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "redis_cpu_ratio_{}_rows ({} connections, {} in flight): {:.3} ({engine_ns:.0} ns an operation, {hand_ns:.0} by hand; \
             ratios {ratios:.3?})",
            shape.rows_an_answer,
            shape.connections,
            shape.in_flight,
            ratios[REPEATS / 2]
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
