//! What the engine and this driver cost on top of the library: the client's processor time an operation, of a run and of a
//! hand-written loop that binds, sends and reads the same statement with the same parameters over as many connections. Both are
//! measured in turn and the ratio counts.

use std::cell::Cell;
use std::pin::pin;

use futures::TryStreamExt;
use futures::future::join_all;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl};
use sensorbench_driver_postgresql::{Postgresql, PostgresqlWire};
use sensorbench_engine::overhead::{compare, load, on_own_thread, rows, scattered, through_the_engine};
use serde_json::json;
use tokio_postgres::{Client, NoTls, Statement};

const POSTGRESQL: PostgresqlWire = PostgresqlWire(&Postgresql);
const ROWS: i64 = 1_000_000;
const OPERATIONS: u64 = 60_000;
const NAMESPACE: &str = "bench_overhead";

/// How a measurement is made.
#[derive(Clone, Copy)]
struct Case {
    rows_an_answer: i64,
    in_flight: usize,
    connections: usize,
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

fn by_hand(url: &str, case: Case, ids: &[i64]) -> f64 {
    let config: tokio_postgres::Config = url.split('?').next().unwrap().parse().unwrap();
    let ids = ids.to_vec();
    on_own_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let next = Cell::new(0);
        runtime.block_on(tokio::task::unconstrained(async {
            let connections = join_all((0..case.connections).map(|_| connect(&config, case))).await;
            join_all((0..case.in_flight).map(|slot| read(&connections[slot % case.connections], &ids, &next))).await;
        }));
        drop(runtime);
    })
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
    let open = |options: &str| POSTGRESQL.open(&TargetUrl::parse(&format!("{url}{options}")).unwrap()).unwrap();
    let driver = open("");
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    let batches = (0..ROWS).step_by(65_536).map(|start| rows(start..(start + 65_536).min(ROWS))).collect();
    load("postgresql_load_rows_per_s", driver.as_ref(), "t", batches);
    driver.settle().unwrap();
    for (rows_an_answer, in_flight, connections) in [(1, 1, 1), (1, 64, 4), (100, 1, 1), (100, 64, 4)] {
        let case = Case { rows_an_answer, in_flight, connections };
        let ids = scattered(if rows_an_answer == 1 { OPERATIONS } else { OPERATIONS / 5 }, ROWS - rows_an_answer);
        let (operation, parameters) = (&schema(rows_an_answer).operations[0], rows(ids.iter().copied()));
        let driver = open(&format!("&connections={connections}"));
        compare(
            &format!("postgresql_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight_{connections}_connections"),
            ids.len(),
            1,
            || through_the_engine(driver.as_ref(), operation, &parameters, in_flight),
            || by_hand(&base, case, &ids),
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
