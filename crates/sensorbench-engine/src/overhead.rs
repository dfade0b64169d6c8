//! What the engine and a driver cost on top of a database's library: processor time per operation of a run, and of a hand-written loop
//! that does the same. Both are measured in alternation and the ratio counts. The `overhead` benches of the drivers use this.

use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use rustix::time::ClockId;
use sensorbench_dataset::array_of;
use sensorbench_driver::{Driver, Operation, Progress, Type, ValueRef};
use serde_json::json;

use crate::cpu::cpu_ns;
use crate::parameter_table::ParameterTable;
use crate::plan::Plan;
use crate::run::Run;

/// How often a ratio is measured; its median counts.
const REPEATS: usize = 5;

/// Rows of `id` and `value`.
pub fn rows(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", array_of(Type::Integer, ids.clone().map(ValueRef::Integer))),
        ("value", array_of(Type::Double, ids.map(|id| ValueRef::Double(id as f64 / 7.0)))),
    ])
    .expect("columns of one length")
}

/// This many numbers below `limit`, far apart from one to the next.
pub fn scattered(operations: u64, limit: i64) -> Vec<i64> {
    (0..operations as i64).map(|k| (k * 7_919) % limit).collect()
}

/// Loads batches of one schema, and prints as `name` how fast that was.
pub fn load(name: &str, driver: &dyn Driver, table: &str, batches: Vec<RecordBatch>) {
    let (schema, rows) = (batches[0].schema(), batches.iter().map(RecordBatch::num_rows).sum::<usize>() as f64);
    let (start, client_s) = (Instant::now(), cpu_s(ClockId::ProcessCPUTime));
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    driver.load(table, Box::new(reader), &Progress::default()).expect("the rows are loaded");
    let (elapsed_s, client_s) = (start.elapsed().as_secs_f64(), cpu_s(ClockId::ProcessCPUTime) - client_s);
    println!("{name}: {:.0} (client: {:.0} ns of CPU time per row)", rows / elapsed_s, client_s / rows * 1e9);
}

/// CPU time of the threads that execute an operation once for each row of `parameters`, in seconds, with connecting.
pub fn through_the_engine(driver: &dyn Driver, operation: &Operation, parameters: &RecordBatch, concurrency: usize) -> f64 {
    counted_through_the_engine(driver, operation, parameters, concurrency).0
}

/// The same, and how many rows all answers had.
pub fn counted_through_the_engine(
    driver: &dyn Driver,
    operation: &Operation,
    parameters: &RecordBatch,
    concurrency: usize,
) -> (f64, u64) {
    let origins: Vec<_> = (0..operation.parameters.len()).map(|column| json!({"source": 0, "column": column})).collect();
    let plan: Plan = serde_json::from_value(json!({
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": operation, "parameters": origins}],
        "parameter_sources": [{"rows": {"table": 0, "choice": "sequential"}}],
        "phases": [{"name": "measure", "operations": parameters.num_rows()}],
        "concurrency": concurrency,
        "timeout_s": 60.0,
    }))
    .expect("a plan");
    let tables = [ParameterTable::of(std::slice::from_ref(parameters)).expect("canonical columns")];
    let run = Run::start(driver, plan, &tables).expect("the run starts");
    while !run.wait(Duration::from_millis(200)) {}
    let (_, ended) = run.end();
    assert!(ended.errors.is_empty(), "{:?}", ended.errors);
    (ended.client_cpu_ns as f64 / 1e9, ended.figures.iter().map(|figures| figures.rows).sum())
}

/// CPU time of a thread that does something, in seconds.
pub fn on_own_thread(work: impl FnOnce() + Send + 'static) -> f64 {
    let measure = move || {
        work();
        cpu_s(ClockId::ThreadCPUTime)
    };
    std::thread::spawn(measure).join().expect("a loop ends")
}

/// Measures both in alternation and prints the ratio as `name`. Each repeat is made of `turns` turns of this many operations, so that what
/// else runs on the machine meets both alike. Both return CPU time in seconds.
pub fn compare(name: &str, operations: usize, turns: usize, engine: impl Fn() -> f64, by_hand: impl Fn() -> f64) {
    let mut ratios = Vec::new();
    let (mut engine_ns, mut hand_ns) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..REPEATS {
        let (mut engine_s, mut hand_s) = (0.0, 0.0);
        for _ in 0..turns {
            engine_s += engine();
            hand_s += by_hand();
        }
        ratios.push(engine_s / hand_s);
        engine_ns = engine_ns.min(engine_s / (operations * turns) as f64 * 1e9);
        hand_ns = hand_ns.min(hand_s / (operations * turns) as f64 * 1e9);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.3} ({engine_ns:.0} ns per operation, {hand_ns:.0} by hand; ratios {ratios:.3?}; limit 1.15)",
        ratios[REPEATS / 2]
    );
}

fn cpu_s(clock: ClockId) -> f64 {
    cpu_ns(clock) as f64 / 1e9
}
