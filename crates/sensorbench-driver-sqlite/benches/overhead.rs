//! What the engine costs on top of the library: processor time an operation, of a run on SQLite and of a hand-written loop
//! that binds, steps and reads the same statement with the same parameters. Both are measured in turn and the ratio counts.

use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl};
use sensorbench_driver_sqlite::SqliteDatabase;
use sensorbench_engine::overhead::{compare, load, on_own_thread, rows, scattered, through_the_engine};
use serde_json::json;

const ROWS: i64 = 1_000_000;
const OPERATIONS: u64 = 500_000;

/// Rows from `id` on, this many.
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

fn by_hand(path: &str, rows_an_answer: i64, ids: &[i64]) -> f64 {
    let path = path.to_owned();
    let (ids, statement) = (ids.to_vec(), statement(rows_an_answer));
    on_own_thread(move || {
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
    })
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db").display().to_string();
    let driver = SqliteDatabase.open(&TargetUrl::parse(&format!("sqlite:{path}")).unwrap()).unwrap();
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    load("sqlite_load_rows_per_s", driver.as_ref(), "t", vec![rows(0..ROWS)]);
    driver.settle().unwrap();
    for rows_an_answer in [1, 100] {
        let ids = scattered(OPERATIONS / rows_an_answer as u64 * 2, ROWS - rows_an_answer);
        let (operation, parameters) = (&schema(rows_an_answer).operations[0], rows(ids.iter().copied()));
        compare(
            &format!("sqlite_cpu_ratio_{rows_an_answer}_rows"),
            ids.len(),
            1,
            || through_the_engine(driver.as_ref(), operation, &parameters, 1),
            || by_hand(&path, rows_an_answer, &ids),
        );
    }
}
