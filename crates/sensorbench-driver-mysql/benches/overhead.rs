//! What driver and engine cost on top of the library: processor time an operation, of a run and of a hand-written loop that executes
//! the same prepared statement with the same parameters on as many connections. Both are measured in turn and the ratio counts.
//! And how fast rows are loaded. The server is the one that SENSORBENCH_TEST_URL names.

use std::cell::Cell;

use arrow_array::RecordBatch;
use futures::future::join_all;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_mysql::{Mysql, MysqlWire};
use sensorbench_engine::overhead::{compare, load, on_own_thread, rows, scattered, through_the_engine};
use serde_json::json;

const MYSQL: MysqlWire = MysqlWire(&Mysql);
const ROWS: i64 = 1_000_000;
const ROWS_A_BATCH: i64 = 65_536;
/// Each repeat is made of this many turns, so that other load on the machine meets both alike.
const TURNS: usize = 10;
const ROWS_A_TURN: i64 = 200_000;
const MAX_OPERATIONS_A_TURN: i64 = 10_000;
const NAMESPACE: &str = "sb_overhead";

fn server_url() -> String {
    std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the server, mysql://USER:PASSWORD@HOST:PORT")
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

/// Rows from `id` on, this many.
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

fn by_hand(rows_an_answer: i64, in_flight: usize, ids: &[i64]) -> f64 {
    let ids = ids.to_vec();
    on_own_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tokio::task::unconstrained(async {
            let next = Cell::new(0);
            join_all((0..in_flight).map(|_| ask(rows_an_answer, &ids, &next))).await;
        }));
    })
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

fn batches(batch: impl Fn(std::ops::Range<i64>) -> RecordBatch) -> Vec<RecordBatch> {
    (0..ROWS).step_by(ROWS_A_BATCH as usize).map(|start| batch(start..(start + ROWS_A_BATCH).min(ROWS))).collect()
}

fn main() {
    let url = format!("{}?namespace={NAMESPACE}", server_url());
    let driver = MYSQL.open(&TargetUrl::parse(&url).unwrap()).unwrap();
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    load("mysql_load_t_rows_per_s", driver.as_ref(), "t", batches(rows));
    load("mysql_load_readings_rows_per_s", driver.as_ref(), "readings", batches(readings));
    driver.settle().unwrap();
    for (rows_an_answer, in_flight) in [(1, 1), (1, 16), (100, 1), (100, 16)] {
        let operations = (ROWS_A_TURN / rows_an_answer).min(MAX_OPERATIONS_A_TURN);
        let ids = scattered(operations as u64, ROWS - rows_an_answer);
        let (operation, parameters) = (&schema(rows_an_answer).operations[0], rows(ids.iter().copied()));
        compare(
            &format!("mysql_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight"),
            ids.len(),
            TURNS,
            || through_the_engine(driver.as_ref(), operation, &parameters, in_flight),
            || by_hand(rows_an_answer, in_flight, &ids),
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
