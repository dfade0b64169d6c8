//! What the engine and this driver cost on top of the library: the client's processor time an operation, of a run and of a
//! hand-written loop that binds, sends and reads the same statement with the same parameters over as many connections. Both are
//! measured in turn and the ratio counts.

use std::cell::Cell;

use arrow_array::RecordBatch;
use futures::future::join_all;
use scylla::client::PoolSize;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_cassandra::CassandraDatabase;
use sensorbench_engine::overhead::{compare, load, on_own_thread, scattered, through_the_engine};
use serde_json::json;

const PARTS: i64 = 1000;
const ROWS_A_PART: i64 = 200;
const OPERATIONS: u64 = 60_000;
const NAMESPACE: &str = "bench_overhead";
const CONNECTIONS: usize = 1;

/// How a measurement is made.
#[derive(Clone, Copy)]
struct Case {
    rows_an_answer: i64,
    in_flight: usize,
}

fn rows(parts: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let ids = parts.clone().enumerate().map(|(row, _)| ValueRef::Integer(row as i64 % ROWS_A_PART));
    let values = parts.clone().map(|part| ValueRef::Double(part as f64 / 7.0));
    RecordBatch::try_from_iter([
        ("part", array_of(Type::Integer, parts.map(ValueRef::Integer))),
        ("id", array_of(Type::Integer, ids)),
        ("value", array_of(Type::Double, values)),
    ])
    .unwrap()
}

/// Rows from the first one of a partition on, this many.
fn schema(rows_an_answer: i64) -> Schema {
    serde_json::from_value(json!({
        "create": {"statements": ["CREATE TABLE t (part bigint, id bigint, value double, PRIMARY KEY (part, id))"]},
        "tables": {"t": [
            {"name": "part", "type": "integer"}, {"name": "id", "type": "integer"}, {"name": "value", "type": "double"},
        ]},
        "operations": [{
            "name": "read",
            "parameters": [{"name": "part", "type": "integer"}],
            "columns": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}],
            "statement": {"statement": statement(rows_an_answer, ":part")},
        }],
    }))
    .unwrap()
}

fn statement(rows_an_answer: i64, part: &str) -> String {
    format!("SELECT id, value FROM t WHERE part = {part} AND id < {rows_an_answer}")
}

fn by_hand(base: &str, case: Case, parts: &[i64]) -> f64 {
    let host = base.trim_start_matches("cassandra://").split(['?', ',', '/']).next().unwrap().to_owned();
    let parts = parts.to_vec();
    on_own_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let next = Cell::new(0);
        runtime.block_on(tokio::task::unconstrained(async {
            let connections = PoolSize::PerHost(CONNECTIONS.try_into().unwrap());
            let builder = SessionBuilder::new().known_node(host).pool_size(connections).use_keyspace(NAMESPACE, false);
            let session = builder.build().await.unwrap();
            let mut prepared = session.prepare(statement(case.rows_an_answer, "?")).await.unwrap();
            prepared.set_use_cached_result_metadata(true);
            join_all((0..case.in_flight).map(|_| read(&session, &prepared, &parts, &next))).await;
        }));
        drop(runtime);
    })
}

async fn read(session: &Session, prepared: &PreparedStatement, parts: &[i64], next: &Cell<usize>) {
    let mut answer: Vec<(i64, f64)> = Vec::new();
    while let Some(part) = parts.get(next.replace(next.get() + 1)) {
        answer.clear();
        let rows = session.execute_unpaged(prepared, (part,)).await.unwrap().into_rows_result().unwrap();
        answer.extend(rows.rows::<(i64, f64)>().unwrap().map(Result::unwrap));
        std::hint::black_box(&answer);
    }
}

fn main() {
    let base = std::env::var("SENSORBENCH_TEST_URL").expect("SENSORBENCH_TEST_URL names the cluster");
    let joint = if base.contains('?') { '&' } else { '?' };
    let url = format!("{base}{joint}namespace={NAMESPACE}");
    let open = |options: &str| CassandraDatabase.open(&TargetUrl::parse(&format!("{url}{options}")).unwrap()).unwrap();
    let driver = open("");
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    let all = |start: i64| (start..start + 100).flat_map(|part| std::iter::repeat_n(part, ROWS_A_PART as usize));
    load("cassandra_load_rows_per_s", driver.as_ref(), "t", (0..PARTS).step_by(100).map(|start| rows(all(start))).collect());
    driver.settle().unwrap();
    let connected = open(&format!("&connections={CONNECTIONS}"));
    for (rows_an_answer, in_flight) in [(1, 1), (1, 64), (100, 1), (100, 64)] {
        let case = Case { rows_an_answer, in_flight };
        let parts = scattered(if rows_an_answer == 1 { OPERATIONS } else { OPERATIONS / 5 }, PARTS);
        let (operation, parameters) = (&schema(rows_an_answer).operations[0], rows(parts.iter().copied()));
        compare(
            &format!("cassandra_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight"),
            parts.len(),
            1,
            || through_the_engine(connected.as_ref(), operation, &parameters, in_flight),
            || by_hand(&base, case, &parts),
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
