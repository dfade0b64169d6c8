//! What the engine costs on top of the library: CPU time per operation, of a run on DuckDB and of a hand-written loop that binds, executes and
//! reads the same statement with the same parameters by the C API. Both are measured in turn and the ratio counts.

#[path = "../tests/library/mod.rs"]
mod library;

use std::ffi::{CString, c_char, c_void};
use std::ptr::null_mut;

use libloading::os::unix::Library;
use sensorbench_driver::contract::owner;
use sensorbench_driver::{Database, Intent, Schema, TargetUrl};
use sensorbench_engine::overhead::{compare, load, on_own_thread, rows, scattered, through_the_engine};
use serde_json::json;

use crate::library::DUCKDB;

const ROWS: i64 = 1_000_000;
const OPERATIONS: u64 = 20_000;

/// Rows from `id` on, this many.
fn schema(rows_an_answer: i64) -> Schema {
    serde_json::from_value(json!({
        "create": {"statements": ["CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE)"]},
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
    match rows_an_answer {
        1 => format!("SELECT id, value FROM t WHERE id = {id}"),
        more => format!("SELECT id, value FROM t WHERE id >= {id} AND id < {id} + {more}"),
    }
}

/// `duckdb_result`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Answer([*mut c_void; 6]);

type Handle = *mut c_void;

fn by_hand(path: &str, rows_an_answer: i64, ids: &[i64]) -> f64 {
    let (path, ids) = (CString::new(path).unwrap(), ids.to_vec());
    let statement = CString::new(statement(rows_an_answer, "$1")).unwrap();
    let library = (DUCKDB.find_library)().unwrap();
    // SAFETY: the functions have these signatures, and what they are given lives until the thread is over.
    on_own_thread(move || unsafe {
        let library = Library::new(library).unwrap();
        macro_rules! function {
            ($name:literal, ($($argument:ty),*) $(-> $returned:ty)?) => {
                *library.get::<unsafe extern "C" fn($($argument),*) $(-> $returned)?>(concat!("duckdb_", $name, "\0")).unwrap()
            };
        }
        let bind = function!("bind_int64", (Handle, u64, i64) -> u32);
        let execute = function!("execute_prepared", (Handle, *mut Answer) -> u32);
        let fetch = function!("fetch_chunk", (Answer) -> Handle);
        let size = function!("data_chunk_get_size", (Handle) -> u64);
        let vector = function!("data_chunk_get_vector", (Handle, u64) -> Handle);
        let data = function!("vector_get_data", (Handle) -> Handle);
        let destroy_chunk = function!("destroy_data_chunk", (*mut Handle));
        let destroy_result = function!("destroy_result", (*mut Answer));
        let (mut database, mut connection, mut prepared) = (null_mut(), null_mut(), null_mut());
        assert_eq!(function!("open", (*const c_char, *mut Handle) -> u32)(path.as_ptr(), &mut database), 0);
        assert_eq!(function!("connect", (Handle, *mut Handle) -> u32)(database, &mut connection), 0);
        assert_eq!(
            function!("prepare", (Handle, *const c_char, *mut Handle) -> u32)(connection, statement.as_ptr(), &mut prepared),
            0
        );
        let mut read: Vec<(i64, f64)> = Vec::new();
        for id in ids {
            read.clear();
            let mut answer = Answer([null_mut(); 6]);
            assert_eq!(bind(prepared, 1, id) + execute(prepared, &mut answer), 0);
            loop {
                let mut chunk = fetch(answer);
                if chunk.is_null() {
                    break;
                }
                let (ids, values) = (data(vector(chunk, 0)).cast::<i64>(), data(vector(chunk, 1)).cast::<f64>());
                (0..size(chunk) as usize).for_each(|row| read.push((*ids.add(row), *values.add(row))));
                destroy_chunk(&mut chunk);
            }
            destroy_result(&mut answer);
            std::hint::black_box(&read);
        }
        function!("destroy_prepare", (*mut Handle))(&mut prepared);
        function!("disconnect", (*mut Handle))(&mut connection);
        function!("close", (*mut Handle))(&mut database);
    })
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db").display().to_string();
    let open = || DUCKDB.open(&TargetUrl::parse(&format!("duckdb:{path}")).unwrap()).unwrap();
    let driver = open();
    driver.guard(&owner()).create(&schema(1), "", Intent::Replace).unwrap();
    load("duckdb_load_rows_per_s", driver.as_ref(), "t", vec![rows(0..ROWS)]);
    driver.settle().unwrap();
    drop(driver);
    for rows_an_answer in [1, 100] {
        let ids = scattered(OPERATIONS / rows_an_answer as u64 * 2, ROWS - rows_an_answer);
        let (operation, parameters) = (&schema(rows_an_answer).operations[0], rows(ids.iter().copied()));
        compare(
            &format!("duckdb_cpu_ratio_{rows_an_answer}_rows"),
            ids.len(),
            1,
            // One of both has the file open at a time.
            || {
                let driver = open();
                driver.guard(&owner()).attach(&schema(1), Intent::Attach).unwrap();
                through_the_engine(driver.as_ref(), operation, &parameters, 1)
            },
            || by_hand(&path, rows_an_answer, &ids),
        );
    }
}
