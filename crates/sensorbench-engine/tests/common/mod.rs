//! Plans and drivers that the engine's tests share. Each test uses some of them.
#![allow(dead_code)]

use sensorbench_driver::{Database, Driver, NullDatabase, TargetUrl};
use sensorbench_engine::{Figures, Outcome, Plan};
use serde_json::{Value, json};

pub fn null_driver(url: &str) -> Box<dyn Driver> {
    NullDatabase.open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// A plan with one operation without parameters; `changes` are laid over it.
pub fn plan(phase: Value, changes: Value) -> Plan {
    let mut plan = json!({
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": {"name": "nothing"}}],
        "phases": [phase],
        "concurrency": 1,
        "timeout_s": 10.0,
    });
    for (key, value) in changes.as_object().unwrap() {
        plan[key] = value.clone();
    }
    serde_json::from_value(plan).unwrap()
}

pub fn rate(per_s: f64) -> Value {
    json!({"segments": [{"from_per_s": per_s}]})
}

/// Every operation that was started ended in exactly one way.
pub fn assert_accounted_for(started: u64, figures: &[Figures]) {
    let ended: u64 = figures.iter().map(Figures::ended).sum();
    assert_eq!(ended, started, "started = ok + error + timeout + cancelled");
    let counted: u64 = figures.iter().map(|figures| figures.count(Outcome::Ok) + figures.count(Outcome::Timeout)).sum();
    assert_eq!(figures.iter().map(|figures| figures.response.count()).sum::<u64>(), counted);
}
