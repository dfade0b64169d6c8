//! A server that holds every call for one second, once: arithmetic says what response times must come out, in real time.

mod common;

use std::time::Duration;

use common::{null_driver, plan, rate};
use sensorbench_engine::Run;
use serde_json::json;

#[test]
fn a_stall_shows_as_arithmetic_has_it() {
    // 20 s at 10,000/s. The 10,000 operations that fall into the stall wait evenly from one second down to nothing.
    let phase = json!({"name": "measure", "duration_s": 20.0, "pace": rate(10_000.0)});
    let driver = null_driver("null:?stall_at_ms=10000&stall_ms=1000");
    let run = Run::start(driver.as_ref(), plan(phase, json!({"concurrency": 20_000})), &[]).unwrap();
    assert!(run.wait(Duration::from_secs(60)));
    let (_, ended) = run.end();
    assert_eq!((ended.phases[0].started, ended.phases[0].dropped), (200_000, 0));
    let response = &ended.figures[0].response;
    let measured = [response.quantile(0.99), response.quantile(0.999), response.max()];
    for (measured_ns, expected_s) in measured.into_iter().zip([0.8, 0.98, 1.0]) {
        let ratio = measured_ns.unwrap() as f64 / (expected_s * 1e9);
        assert!((ratio - 1.0).abs() <= 0.02, "{measured:?}: {expected_s} s is {ratio} times as long");
    }
}
