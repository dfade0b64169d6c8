//! Both kinds of session, on servers that note what they were requested.

mod for_each;
mod with_others;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sensorbench_driver::Deadline;
use serde_json::json;

use crate::{Plan, ReadyPlan};

const BUCKET: i64 = 10;

fn ready_plan(operations: serde_json::Value) -> ReadyPlan {
    let plan: Plan = serde_json::from_value(json!({
        "seed": 1,
        "operations": operations,
        "parameter_sources": [{"numbers": {"columns": [{"type": "timestamp", "start": 0, "step": 1}]}}],
        "phases": [{"name": "measure", "operations": 1}],
        "concurrency": 1,
        "timeout_s": 1.0,
    }))
    .unwrap();
    ReadyPlan::new(plan, &[]).unwrap()
}

fn no_deadline() -> Arc<Deadline> {
    Arc::new(Deadline::new(Instant::now(), Arc::new(AtomicBool::new(false))))
}
