//! What the engine and this driver cost on top of the library: the client's processor time an operation, of a run and of a
//! hand-written loop that binds, sends and reads the same statement with the same parameters over as many connections. Both are
//! measured in turn and the ratio counts.

use std::cell::Cell;
use std::pin::pin;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchIterator};
use futures::TryStreamExt;
use futures::future::join_all;
use rustix::time::{ClockId, clock_gettime};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Driver, Intent, Progress, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_postgresql::{Postgresql, PostgresqlWire};
use sensorbench_engine::{ParameterTable, Plan, Run};
use serde_json::json;
use tokio_postgres::{Client, NoTls, Statement};

const ROWS: i64 = 1_000_000;
const OPERATIONS: u64 = 60_000;
const REPEATS: usize = 5;
const POSTGRESQL: PostgresqlWire = PostgresqlWire(&Postgresql);
const NAMESPACE: &str = "bench_overhead";

/// How a measurement is made.
#[derive(Clone, Copy)]
struct Case {
    rows_an_answer: i64,
    in_flight: usize,
    connections: usize,
}

fn rows(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, ids.clone().map(ValueRef::Integer))),
        ("value", array_of(Type::Double, ids.map(|id| ValueRef::Double(id as f64 / 7.0)))),
    ])
    .unwrap()
}

/// Rows from `id` on, so many.
fn schema(rows_an_answer: i64) -> Schema {
    serde_json::from_value(json!({
        "create": {"statements": ["CREATE TABLE t (id bigint PRIMARY KEY, value double precision)"]},
        "settle": {"statements": ["VACUUM ANALYZE t"]},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [{
            "name": "read",
            "parameters": [{"name": "id", "type": "integer"}],
            "columns": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}],
            "statement": {"statement": statement(rows_an_answer, ":id")},
        }],
    }))
    .unwrap()
}

fn statement(rows_an_answer: i64, id: &str) -> String {
    format!("SELECT id, value FROM t WHERE id >= {id}::bigint AND id < {id}::bigint + {rows_an_answer}")
}

fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn load(driver: &dyn Driver) {
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    let batches: Vec<_> = (0..ROWS).step_by(65_536).map(|start| rows(start..(start + 65_536).min(ROWS))).collect();
    let batch_schema = batches[0].schema();
    let start = Instant::now();
    driver
        .load("t", Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), batch_schema)), &Progress::default())
        .unwrap();
    println!("postgresql_load_rows_per_s: {:.0}", ROWS as f64 / start.elapsed().as_secs_f64());
    driver.settle().unwrap();
}

/// Processor time of the thread that executes operations, in seconds; with connecting, which is the same in both.
fn through_the_engine(url: &str, case: Case, ids: &[i64]) -> f64 {
    let url = format!("{url}&connections={}", case.connections);
    let driver = POSTGRESQL.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    let plan: Plan = serde_json::from_value(json!({
        "seed": 1,
        "operations": [{
            "weight": 1.0,
            "operation": schema(case.rows_an_answer).operations[0],
            "parameters": [{"draw": 0, "column": 0}],
        }],
        "draws": [{"rows": {"table": 0, "choice": "sequential"}}],
        "phases": [{"name": "measure", "operations": ids.len()}],
        "in_flight": case.in_flight,
        "timeout_s": 60.0,
    }))
    .unwrap();
    let tables = [ParameterTable::of(&[rows(ids.iter().copied())]).unwrap()];
    let run = Run::start(driver.as_ref(), plan, &tables).unwrap();
    while !run.wait(std::time::Duration::from_millis(200)) {}
    let (_, ended) = run.end();
    assert!(ended.errors.is_empty(), "{:?}", ended.errors);
    ended.client_cpu_ns as f64 / 1e9
}

fn by_hand(url: &str, case: Case, ids: &[i64]) -> f64 {
    let config: tokio_postgres::Config = url.split('?').next().unwrap().parse().unwrap();
    let ids = ids.to_vec();
    let measure = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let next = Cell::new(0);
        runtime.block_on(tokio::task::unconstrained(async {
            let connections = join_all((0..case.connections).map(|_| connect(&config, case))).await;
            join_all((0..case.in_flight).map(|slot| read(&connections[slot % case.connections], &ids, &next))).await;
        }));
        drop(runtime);
        cpu_s(ClockId::ThreadCPUTime)
    };
    std::thread::spawn(measure).join().unwrap()
}

async fn connect(config: &tokio_postgres::Config, case: Case) -> (Client, Statement) {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {NAMESPACE}")).await.unwrap();
    let prepared = client.prepare(&statement(case.rows_an_answer, "$1")).await.unwrap();
    (client, prepared)
}

async fn read((client, prepared): &(Client, Statement), ids: &[i64], next: &Cell<usize>) {
    let mut answer: Vec<(i64, f64)> = Vec::new();
    while let Some(id) = ids.get(next.replace(next.get() + 1)) {
        answer.clear();
        let mut rows = pin!(client.query_raw(prepared, [id]).await.unwrap());
        while let Some(row) = rows.try_next().await.unwrap() {
            answer.push((row.get(0), row.get(1)));
        }
        std::hint::black_box(&answer);
    }
}

fn main() {
    let base = std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server");
    let url = format!("{base}?namespace={NAMESPACE}");
    let driver = POSTGRESQL.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    load(driver.as_ref());
    for (rows_an_answer, in_flight, connections) in [(1, 1, 1), (1, 64, 4), (100, 1, 1), (100, 64, 4)] {
        let case = Case { rows_an_answer, in_flight, connections };
        let operations = if rows_an_answer == 1 { OPERATIONS } else { OPERATIONS / 5 };
        let ids: Vec<i64> = (0..operations as i64).map(|k| (k * 7_919) % (ROWS - rows_an_answer)).collect();
        let mut ratios = Vec::new();
        let (mut engine_ns, mut hand_ns) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..REPEATS {
            let (engine_s, hand_s) = (through_the_engine(&url, case, &ids), by_hand(&base, case, &ids));
            ratios.push(engine_s / hand_s);
            engine_ns = engine_ns.min(engine_s / operations as f64 * 1e9);
            hand_ns = hand_ns.min(hand_s / operations as f64 * 1e9);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "postgresql_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight_{connections}_connections: {:.3} ({engine_ns:.0} ns an \
             operation, {hand_ns:.0} by hand; ratios {ratios:.3?}; limit 1.15)",
            ratios[REPEATS / 2]
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
