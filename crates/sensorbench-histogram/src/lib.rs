//! How long did operations take? Latencies are counted in HDR histograms, which are merged, never averaged, and
//! written as HdrHistogram V2 interval logs that the format's own tools read.
//!
//! This crate knows no database and no asynchronous code.

mod interval_log;
mod latencies;

pub use interval_log::{
    IntervalLogError, TaggedInterval, interval_log_header, interval_log_line, read_interval_log, summed_interval_log,
};
pub use latencies::Latencies;
