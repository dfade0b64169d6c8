//! What the engine and this driver cost on top of the library: the client's CPU time per operation, of a run and of a hand-written
//! loop that binds, sends and reads the same statement with the same parameters over as many connections. Both are measured in
//! alternation and the ratio counts. The URL says which server it is: PostgreSQL or QuestDB.

use std::cell::Cell;
use std::pin::pin;

use futures::TryStreamExt;
use futures::future::join_all;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl};
use sensorbench_driver_postgresql::{Postgresql, PostgresqlWire, Questdb};
use sensorbench_engine::overhead::{compare, load, on_own_thread, rows, scattered, through_the_engine};
use serde_json::json;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Statement};

const OPERATIONS: u64 = 60_000;
const NAMESPACE: &str = "bench_overhead";

/// How a measurement is made.
#[derive(Clone, Copy)]
struct Case {
    rows_an_answer: i64,
    in_flight: usize,
    connections: usize,
}

/// A server, and how the bench words what it wants of it.
struct Bench {
    name: &'static str,
    database: PostgresqlWire,
    /// Rows of the table. QuestDB has no index for a range of integers and reads all of them.
    rows: i64,
    create: &'static str,
    settle: &'static [&'static str],
    /// The table in a schema file, and as a hand-written loop names it.
    table: (&'static str, &'static str),
    /// The type that the parameter is cast to.
    integer: &'static str,
    /// What a hand-written loop says first on each connection.
    first: Option<&'static str>,
}

const POSTGRESQL: Bench = Bench {
    name: "postgresql",
    database: PostgresqlWire(&Postgresql),
    rows: 1_000_000,
    create: "CREATE TABLE t (id bigint PRIMARY KEY, value double precision)",
    settle: &["VACUUM ANALYZE t"],
    table: ("t", "t"),
    integer: "::bigint",
    first: Some("SET search_path = bench_overhead"),
};

const QUESTDB: Bench = Bench {
    name: "questdb",
    database: PostgresqlWire(&Questdb),
    rows: 20_000,
    create: "CREATE TABLE {t} (id LONG, value DOUBLE)",
    settle: &[],
    table: ("{t}", "\"bench_overhead.t\""),
    integer: "",
    first: None,
};

impl Bench {
    /// Rows from `id` on, this many.
    fn schema(&self, rows_an_answer: i64) -> Schema {
        serde_json::from_value(json!({
            "create": {"statements": [self.create]},
            "settle": {"statements": self.settle},
            "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
            "operations": [{
                "name": "read",
                "parameters": [{"name": "id", "type": "integer"}],
                "columns": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}],
                "statement": {"statement": self.statement(self.table.0, rows_an_answer, ":id")},
            }],
        }))
        .unwrap()
    }

    fn statement(&self, table: &str, rows_an_answer: i64, id: &str) -> String {
        let integer = self.integer;
        format!("SELECT id, value FROM {table} WHERE id >= {id}{integer} AND id < {id}{integer} + {rows_an_answer}")
    }
}

fn by_hand(bench: &'static Bench, url: &str, case: Case, ids: &[i64]) -> f64 {
    let (_, address) = url.split('?').next().unwrap().split_once("://").unwrap();
    let config: tokio_postgres::Config = format!("postgresql://{address}").parse().unwrap();
    let ids = ids.to_vec();
    on_own_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let next = Cell::new(0);
        runtime.block_on(tokio::task::unconstrained(async {
            let connections = join_all((0..case.connections).map(|_| connect(bench, &config, case))).await;
            join_all((0..case.in_flight).map(|slot| read(&connections[slot % case.connections], &ids, &next))).await;
        }));
        drop(runtime);
    })
}

async fn connect(bench: &Bench, config: &tokio_postgres::Config, case: Case) -> (Client, Statement) {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    if let Some(first) = bench.first {
        client.batch_execute(first).await.unwrap();
    }
    let statement = bench.statement(bench.table.1, case.rows_an_answer, "$1");
    let prepared = client.prepare_typed(&statement, &[Type::INT8]).await.unwrap();
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
    let bench: &'static Bench = match base.split(':').next() {
        Some("postgresql") => &POSTGRESQL,
        Some("questdb") => &QUESTDB,
        other => panic!("no server is called {other:?}"),
    };
    let url = format!("{base}?namespace={NAMESPACE}");
    let open = |options: &str| bench.database.open(&TargetUrl::parse(&format!("{url}{options}")).unwrap()).unwrap();
    let driver = open("");
    driver.guard(&owner()).create(&bench.schema(1), "", Intent::Replace).unwrap();
    let batches = (0..bench.rows).step_by(65_536).map(|start| rows(start..(start + 65_536).min(bench.rows))).collect();
    load(&format!("{}_load_rows_per_s", bench.name), driver.as_ref(), "t", batches);
    driver.settle().unwrap();
    for (rows_an_answer, in_flight, connections) in [(1, 1, 1), (1, 64, 4), (100, 1, 1), (100, 64, 4)] {
        let case = Case { rows_an_answer, in_flight, connections };
        let ids = scattered(if rows_an_answer == 1 { OPERATIONS } else { OPERATIONS / 5 }, bench.rows - rows_an_answer);
        let (operation, parameters) = (&bench.schema(rows_an_answer).operations[0], rows(ids.iter().copied()));
        let driver = open(&format!("&connections={connections}"));
        compare(
            &format!("{}_cpu_ratio_{rows_an_answer}_rows_{in_flight}_in_flight_{connections}_connections", bench.name),
            ids.len(),
            1,
            || through_the_engine(driver.as_ref(), operation, &parameters, in_flight),
            || by_hand(bench, &base, case, &ids),
        );
    }
    driver.guard(&owner()).remove().unwrap();
}
