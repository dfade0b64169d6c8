//! What a client costs: processor time an operation, of a run through the engine on this driver and of a hand-written loop over
//! the `redis` library with as many connections and operations in flight. Both are measured in turn and the ratio counts.
//! The other mark, redis-benchmark, is outside of this process: `redis-benchmark -t get -c 50 -P 1`.

use arrow_array::RecordBatch;
use futures::future::join_all;
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_redis::RedisDatabase;
use sensorbench_engine::overhead::{compare, load, on_own_thread, rows, scattered, through_the_engine};
use serde_json::json;

const ROWS: i64 = 1_000_000;

/// One shape of load: this many connections, operations in flight, and rows an answer.
struct Shape {
    connections: usize,
    in_flight: usize,
    rows_an_answer: i64,
    operations: i64,
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

impl Shape {
    fn ids(&self) -> Vec<i64> {
        scattered(self.operations as u64, ROWS - self.rows_an_answer)
    }

    /// The values of the operation's parameters: where the rows begin, and of a range where it ends.
    fn parameters(&self) -> RecordBatch {
        let ids = self.ids();
        let to = array_of(Type::Integer, ids.iter().map(|id| ValueRef::Integer(id + self.rows_an_answer)));
        let id = array_of(Type::Integer, ids.iter().map(|id| ValueRef::Integer(*id)));
        RecordBatch::try_from_iter([("id", id), ("to", to)]).unwrap()
    }

    fn by_hand(&self, url: &str) -> f64 {
        let (url, ids) = (url.to_owned(), self.ids());
        let (connections, in_flight, rows_an_answer) = (self.connections, self.in_flight, self.rows_an_answer);
        on_own_thread(move || {
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
        })
    }
}

fn main() {
    let url = std::env::var("SENSORBENCH_TEST_URL").expect("set SENSORBENCH_TEST_URL to the URL of a Redis");
    let open =
        |options: &str| RedisDatabase.open(&TargetUrl::parse(&format!("{url}?namespace=overhead{options}")).unwrap()).unwrap();
    let driver = open("");
    driver.guard(&owner()).create(&schema(), "", Intent::Replace).unwrap();
    for table in ["keys", "sorted"] {
        let batches = (0..ROWS).step_by(10_000).map(|start| rows(start..start + 10_000)).collect();
        load(&format!("redis_load_{table}_rows_per_s"), driver.as_ref(), table, batches);
    }
    for shape in [
        Shape { connections: 50, in_flight: 50, rows_an_answer: 1, operations: 200_000 },
        Shape { connections: 50, in_flight: 800, rows_an_answer: 1, operations: 1_000_000 },
        Shape { connections: 50, in_flight: 50, rows_an_answer: 100, operations: 50_000 },
    ] {
        let driver = open(&format!("&connections={}", shape.connections));
        driver.guard(&owner()).attach(&schema(), Intent::Attach).unwrap();
        let (operation, parameters) = (&schema().operations[usize::from(shape.rows_an_answer > 1)], shape.parameters());
        let Shape { connections, in_flight, rows_an_answer, operations } = shape;
        compare(
            &format!("redis_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight_{connections}_connections"),
            operations as usize,
            1,
            || through_the_engine(driver.as_ref(), operation, &parameters, in_flight),
            || shape.by_hand(&url),
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
