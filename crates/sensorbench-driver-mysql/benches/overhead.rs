//! What driver and engine cost on top of the library: processor time an operation, of a run and of a hand-written loop that executes
//! the same prepared statement with the same parameters on as many connections. Both are measured in turn and the ratio counts.
//! And how fast rows are loaded. The server is the one that SENSORBENCH_TEST_URL names.

use std::cell::Cell;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use futures::future::join_all;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use rustix::time::{ClockId, clock_gettime};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Driver, Intent, Progress, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_mysql::{Mysql, MysqlWire};
use sensorbench_engine::{ParameterTable, Plan, Run};
use serde_json::json;

const MYSQL: MysqlWire = MysqlWire(&Mysql);
const ROWS: i64 = 1_000_000;
const ROWS_A_BATCH: i64 = 65_536;
const REPEATS: usize = 5;
/// Each repeat is made of so many turns, so that what else goes on at the machine meets both alike.
const TURNS: usize = 10;
const ROWS_A_TURN: i64 = 200_000;
const MOST_OPERATIONS_A_TURN: i64 = 10_000;
const NAMESPACE: &str = "sb_overhead";

fn server_url() -> String {
    std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server, mysql://USER:PASSWORD@HOST:PORT")
}

fn rows(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, ids.clone().map(ValueRef::Integer))),
        ("value", array_of(Type::Double, ids.map(|id| ValueRef::Double(id as f64 / 7.0)))),
    ])
    .unwrap()
}

/// Readings of 33 sensors in 11 zones, one a minute, in the order of their key.
fn readings(numbers: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let a_sensor = ROWS / 33;
    let sensors: Vec<String> = (0..3).map(|sensor| format!("z_AC{sensor}(kW)")).collect();
    let sensor = |number: i64| (number / a_sensor % 3) as usize;
    RecordBatch::try_from_iter([
        ("floor", array_of(Type::Integer, numbers.clone().map(|_| ValueRef::Integer(1)))),
        ("zone", array_of(Type::Integer, numbers.clone().map(|number| ValueRef::Integer(number / a_sensor / 3)))),
        ("sensor", array_of(Type::Text, numbers.clone().map(|number| ValueRef::Text(&sensors[sensor(number)])))),
        (
            "time",
            array_of(
                Type::Timestamp,
                numbers.clone().map(|number| ValueRef::Timestamp(1_530_403_200_000_000 + number % a_sensor * 60_000_000)),
            ),
        ),
        ("value", array_of(Type::Double, numbers.map(|number| ValueRef::Double((number * 7_919 % 10_000) as f64 / 100.0)))),
    ])
    .unwrap()
}

/// Rows from `id` on, so many.
fn schema(rows_an_answer: i64) -> Schema {
    let column = |name: &str, value_type: &str| json!({"name": name, "type": value_type});
    serde_json::from_value(json!({
        "create": {"statements": [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE NOT NULL)",
            "CREATE TABLE readings (floor INT, zone INT, sensor VARCHAR(20), time DATETIME(6), value DOUBLE NOT NULL,
                PRIMARY KEY (floor, zone, sensor, time))",
        ]},
        "tables": {
            "t": [column("id", "integer"), column("value", "double")],
            "readings": [column("floor", "integer"), column("zone", "integer"), column("sensor", "text"),
                column("time", "timestamp"), column("value", "double")],
        },
        "operations": [{
            "name": "read",
            "parameters": [column("id", "integer")],
            "columns": [column("id", "integer"), column("value", "double")],
            "statement": {"statement": format!("SELECT id, value FROM t WHERE id >= :id AND id < :id + {rows_an_answer}")},
        }],
    }))
    .unwrap()
}

fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn through_the_engine(driver: &dyn Driver, rows_an_answer: i64, in_flight: usize, ids: &[i64]) -> f64 {
    let plan: Plan = serde_json::from_value(json!({
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": schema(rows_an_answer).operations[0], "parameters": [{"draw": 0, "column": 0}]}],
        "draws": [{"rows": {"table": 0, "choice": "sequential"}}],
        "phases": [{"name": "measure", "operations": ids.len()}],
        "in_flight": in_flight,
        "timeout_s": 60.0,
    }))
    .unwrap();
    let tables = [ParameterTable::of(&[rows(ids.iter().copied())]).unwrap()];
    let run = Run::start(driver, plan, &tables).unwrap();
    while !run.wait(Duration::from_millis(200)) {}
    let ended = run.end().1;
    assert!(ended.errors.is_empty(), "{:?}", ended.errors);
    ended.client_cpu_ns as f64 / 1e9
}

fn by_hand(rows_an_answer: i64, in_flight: usize, ids: &[i64]) -> f64 {
    let ids = ids.to_vec();
    let measure = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tokio::task::unconstrained(async {
            let next = Cell::new(0);
            join_all((0..in_flight).map(|_| ask(rows_an_answer, &ids, &next))).await;
        }));
        cpu_s(ClockId::ThreadCPUTime)
    };
    std::thread::spawn(measure).join().unwrap()
}

async fn ask(rows_an_answer: i64, ids: &[i64], next: &Cell<usize>) {
    let opts = Opts::from_url(&server_url()).unwrap();
    let mut connection = Conn::new(OptsBuilder::from_opts(opts).db_name(Some(NAMESPACE)).prefer_socket(false)).await.unwrap();
    let statement = format!("SELECT id, value FROM t WHERE id >= ? AND id < ? + {rows_an_answer}");
    let statement = connection.prep(statement).await.unwrap();
    let mut answer: Vec<(i64, f64)> = Vec::new();
    while let Some(id) = ids.get(next.replace(next.get() + 1)) {
        answer.clear();
        let found = connection.exec_iter(&statement, (id, id)).await.unwrap();
        found.for_each_and_drop(|row| answer.push(mysql_async::from_row(row))).await.unwrap();
        std::hint::black_box(&answer);
    }
}

fn load(driver: &dyn Driver, table: &str, batch: impl Fn(std::ops::Range<i64>) -> RecordBatch) -> f64 {
    let batches: Vec<_> =
        (0..ROWS).step_by(ROWS_A_BATCH as usize).map(|start| batch(start..(start + ROWS_A_BATCH).min(ROWS))).collect();
    let schema = batches[0].schema();
    let (start, cpu_at_start_s) = (Instant::now(), cpu_s(ClockId::ProcessCPUTime));
    driver.load(table, Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)), &Progress::default()).unwrap();
    let (elapsed_s, client_s) = (start.elapsed().as_secs_f64(), cpu_s(ClockId::ProcessCPUTime) - cpu_at_start_s);
    println!(
        "mysql_load_{table}_rows_per_s: {:.0} (client {:.0} % of a processor)",
        ROWS as f64 / elapsed_s,
        client_s / elapsed_s * 100.0
    );
    elapsed_s
}

fn main() {
    let url = format!("{}?namespace={NAMESPACE}", server_url());
    let driver = MYSQL.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    load(driver.as_ref(), "t", rows);
    load(driver.as_ref(), "readings", readings);
    driver.settle().unwrap();
    for (rows_an_answer, in_flight) in [(1, 1), (1, 16), (100, 1), (100, 16)] {
        let operations = (ROWS_A_TURN / rows_an_answer).min(MOST_OPERATIONS_A_TURN);
        let ids: Vec<i64> = (0..operations).map(|k| (k * 7_919) % (ROWS - rows_an_answer)).collect();
        let mut ratios = Vec::new();
        let mut engine_ns = f64::INFINITY;
        for _ in 0..REPEATS {
            let (mut engine_s, mut hand_s) = (0.0, 0.0);
            for _ in 0..TURNS {
                engine_s += through_the_engine(driver.as_ref(), rows_an_answer, in_flight, &ids);
                hand_s += by_hand(rows_an_answer, in_flight, &ids);
            }
            ratios.push(engine_s / hand_s);
            engine_ns = engine_ns.min(engine_s / (operations as usize * TURNS) as f64 * 1e9);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "mysql_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight: {:.3} ({engine_ns:.0} ns an operation; ratios {ratios:.3?}; limit 1.15)",
            ratios[REPEATS / 2]
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
