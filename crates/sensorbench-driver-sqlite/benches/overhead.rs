//! What the engine costs on top of the library: processor time an operation, of a run on SQLite and of a hand-written loop
//! that binds, steps and reads the same statement with the same parameters. Both are measured in turn and the ratio counts.

use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchIterator};
use rustix::time::{ClockId, clock_gettime};
use sensorbench_dataset::array_of;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Driver, Intent, Progress, Schema, TargetUrl, Type, ValueRef};
use sensorbench_driver_sqlite::SqliteDatabase;
use sensorbench_engine::{ParameterTable, Plan, Run};
use serde_json::json;

const ROWS: i64 = 1_000_000;
const OPERATIONS: u64 = 500_000;
const REPEATS: usize = 5;

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
        "create": {"statements": ["CREATE TABLE t (id INTEGER PRIMARY KEY, value REAL)"]},
        "tables": {"t": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [{
            "name": "read",
            "parameters": [{"name": "id", "type": "integer"}],
            "columns": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}],
            "statement": {"statement": statement(rows_an_answer)},
        }],
    }))
    .unwrap()
}

fn statement(rows_an_answer: i64) -> String {
    format!("SELECT id, value FROM t WHERE id >= :id AND id < :id + {rows_an_answer}")
}

fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn through_the_engine(driver: &dyn Driver, rows_an_answer: i64, ids: &[i64]) -> f64 {
    let plan: Plan = serde_json::from_value(json!({
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": schema(rows_an_answer).operations[0], "parameters": [{"draw": 0, "column": 0}]}],
        "draws": [{"rows": {"table": 0, "choice": "sequential"}}],
        "phases": [{"name": "measure", "operations": ids.len()}],
        "in_flight": 1,
        "timeout_s": 60.0,
    }))
    .unwrap();
    let tables = [ParameterTable::of(&[rows(ids.iter().copied())]).unwrap()];
    let run = Run::start(driver, plan, &tables).unwrap();
    while !run.wait(std::time::Duration::from_millis(200)) {}
    run.end().1.client_cpu_ns as f64 / 1e9
}

fn by_hand(path: &str, rows_an_answer: i64, ids: &[i64]) -> f64 {
    let path = path.to_owned();
    let (ids, statement) = (ids.to_vec(), statement(rows_an_answer));
    let measure = move || {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA temp_store = memory").unwrap();
        let mut prepared = connection.prepare(&statement).unwrap();
        let mut answer: Vec<(i64, f64)> = Vec::new();
        for id in ids {
            answer.clear();
            let mut rows = prepared.query([id]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                answer.push((row.get_unwrap(0), row.get_unwrap(1)));
            }
            std::hint::black_box(&answer);
        }
        cpu_s(ClockId::ThreadCPUTime)
    };
    std::thread::spawn(measure).join().unwrap()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db").display().to_string();
    let driver = SqliteDatabase.open(&TargetUrl::parse(&format!("sqlite:{path}")).unwrap()).unwrap();
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    let batch = rows(0..ROWS);
    let batch_schema = batch.schema();
    let start = Instant::now();
    driver.load("t", Box::new(RecordBatchIterator::new([Ok(batch)], batch_schema)), &Progress::default()).unwrap();
    driver.settle().unwrap();
    println!("sqlite_load_rows_per_s: {:.0}", ROWS as f64 / start.elapsed().as_secs_f64());
    for rows_an_answer in [1, 100] {
        let operations = OPERATIONS / rows_an_answer as u64 * 2;
        let ids: Vec<i64> = (0..operations as i64).map(|k| (k * 7_919) % (ROWS - rows_an_answer)).collect();
        let mut ratios = Vec::new();
        let mut engine_ns = f64::INFINITY;
        for _ in 0..REPEATS {
            let (engine_s, hand_s) =
                (through_the_engine(driver.as_ref(), rows_an_answer, &ids), by_hand(&path, rows_an_answer, &ids));
            ratios.push(engine_s / hand_s);
            engine_ns = engine_ns.min(engine_s / operations as f64 * 1e9);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "sqlite_cpu_ratio_{rows_an_answer}_rows: {:.3} ({engine_ns:.0} ns an operation; ratios {ratios:.3?}; limit 1.15)",
            ratios[REPEATS / 2]
        );
    }
}
